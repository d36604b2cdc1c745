"""`xlalite.vmap`: a function of one example as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.function_graph import trace_function
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.tracing.batching import elements, flow, places, shapes  # noqa: F401  # they register their rules
from xlalite.tracing.batching.batch import Batch, Part
from xlalite.tracing.namespace import with_these_names
from xlalite.tracing.promotion import as_tensor, normal_axis
from xlalite.tracing.state import is_tracing
from xlalite.tracing.traced_array import TracedArray


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """A function that does what `fun` does, for many examples at once.

    Its operations are those of `fun`, each on all examples; loops run until the last example is through, and branches
    that examples take differently are taken both ways.

    Args:
        fun: A function of arrays, or of nested ones.
        in_axes: For each positional argument the dimension of its examples, None for one that is the same for all, or
            a structure of these that fits the argument; one for all arguments. Named arguments have theirs in front.
        out_axes: Where the examples lie in the results, one number or a structure that fits; None for what is the
            same for all.

    Raises:
        TracingError: Arguments have different numbers of examples, or a result that differs has no dimension for them.
    """

    @functools.wraps(fun)
    def mapped(*arguments: Any, **named: Any) -> Any:
        if not is_tracing():
            from xlalite.tracing.jit import jit

            return jit(mapped)(*arguments, **named)
        leaves, structure = flatten((list(arguments), named))
        per_argument = [in_axes] * len(arguments) if in_axes is None or isinstance(in_axes, int) else list(in_axes)
        if len(per_argument) != len(arguments):
            raise TracingError(f"vmap of {_name(fun)}: {len(per_argument)} in_axes for {len(arguments)} arguments")
        axes = [*_spread(per_argument, list(arguments), fun), *[0] * len(flatten(named)[0])]
        given = [_example_axis(leaf, axis, fun) for leaf, axis in zip(leaves, axes, strict=True)]
        size = _size(given, fun)
        results: list[Any] = []

        def one(examples: tuple[Tensor, ...]) -> Sequence[Tensor]:
            rest = iter(examples)
            values = [
                (leaf.copy() if isinstance(leaf, TracedArray) else leaf) if part is None else TracedArray(next(rest))
                for leaf, part in zip(leaves, given, strict=True)
            ]
            positional, own_named = rebuild(structure, values)
            results.append(with_these_names(fun)(*positional, **own_named))
            return [as_tensor(each) for each in flatten(results[0])[0]]

        parts = [part for part in given if part is not None]
        kinds = [(part.tensor.dtype, TensorShape(_without(part))) for part in parts]
        function = trace_function(f"vmap_{_name(fun)}", get_default_graph(), kinds, one)
        batch = Batch(size, dict(zip(function.inputs, parts, strict=False)))
        found = batch.replay(function.outputs, function)
        _, result_structure = flatten(results[0])
        wanted = _spread(out_axes, results[0], fun)
        return rebuild(result_structure, [_result(batch, *each, fun) for each in zip(found, wanted, strict=True)])

    return mapped


def _spread(axes: Any, value: Any, fun: Callable[..., Any]) -> list[int | None]:
    """The dimension of each leaf of a value, from numbers in a structure that begins like the value's."""
    leaves = flatten(value)[0]
    if axes is None or isinstance(axes, int):
        return [axes] * len(leaves)
    inner = [value[key] for key in sorted(value)] if isinstance(value, dict) else list(value)
    own = [axes[key] for key in sorted(axes)] if isinstance(axes, dict) else list(axes)
    if len(own) != len(inner) or isinstance(value, dict) != isinstance(axes, dict):
        raise TracingError(f"vmap of {_name(fun)}: the axes {axes!r} do not fit {value!r}")
    return [axis for each, part in zip(own, inner, strict=True) for axis in _spread(each, part, fun)]


def _example_axis(leaf: Any, axis: int | None, fun: Callable[..., Any]) -> Part | None:
    if axis is None:
        return None
    tensor = as_tensor(leaf)
    rank = len(tensor.shape.known_dims())
    if not -rank <= axis < rank:
        raise TracingError(f"vmap of {_name(fun)}: an argument of {rank} dimensions has no dimension {axis}: {leaf!r}")
    return Part(tensor, axis % rank)


def _size(parts: Sequence[Part | None], fun: Callable[..., Any]) -> int:
    found = {part.tensor.shape.known_dims()[part.axis] for part in parts if part is not None and part.axis is not None}
    if len(found) != 1:
        sizes = f"have {', '.join(map(str, sorted(found)))} examples" if found else "have no dimension of examples"
        raise TracingError(f"vmap of {_name(fun)}: the arguments {sizes}; expected one number for all")
    return found.pop()


def _without(part: Part) -> list[int]:
    return [size for i, size in enumerate(part.tensor.shape.known_dims()) if i != part.axis]


def _result(batch: Batch, part: Part, axis: int | None, fun: Callable[..., Any]) -> TracedArray:
    if axis is not None:
        rank = len(part.tensor.shape.known_dims()) + (part.axis is None)
        return TracedArray(batch.moved(part, normal_axis(axis, rank)))
    if part.axis is not None:
        raise TracingError(f"vmap of {_name(fun)}: a result with out_axes=None differs between examples")
    return TracedArray(part.tensor)


def _name(fun: Callable[..., Any]) -> str:
    return getattr(fun, "__name__", repr(fun))
