"""Branches and loops that the program takes; in functions that are traced they work on NumPy-like arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.function_graph import trace_function
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, control_flow, functional
from xlalite.ops.helpers.constant import constant
from xlalite.tracing.loops import carrying
from xlalite.tracing.namespace import with_these_names
from xlalite.tracing.promotion import as_tensor, converted
from xlalite.tracing.state import is_tracing
from xlalite.tracing.traced_array import TracedArray

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, *arguments: Any, **options: Any) -> Any:
    """What `true_fn()` gives if `pred` holds, otherwise what `false_fn()` gives; only one of them runs.

    In a function that is traced both work on NumPy-like arrays; elsewhere this is TensorFlow's `tf.cond`.

    Args:
        pred: A truth value.
        true_fn: A function.
        false_fn: Another; its results have the same structure, shapes and element types.
        arguments: What the functions take; outside of traced functions as TensorFlow's.
        options: As TensorFlow's.

    Raises:
        GraphError: The results differ in structure.
    """
    if not is_tracing():
        return control_flow.cond(pred, true_fn, false_fn, *arguments, **options)
    taken, other = (_on_arrays(functools.partial(each, *arguments)) for each in (true_fn, false_fn))
    return _arrays(control_flow.cond(as_tensor(pred), taken, other, **options))


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """What the function at `index` gives for the operands; indices out of range mean the nearest.

    Args:
        index: A whole number.
        branches: Functions whose results have the same structure, shapes and element types.
        operands: Their arguments.

    Raises:
        GraphError: There are no functions, or their results differ in structure.
    """
    if not is_tracing():
        return _compiled(lambda i, *given: switch(i, branches, *given))(index, *operands)
    number = np.clip(index, 0, len(branches) - 1)
    functions = [_on_arrays(lambda each=each: each(*operands)) for each in branches]
    return _arrays(control_flow.switch_case(as_tensor(number.astype(np.int32)), functions))


def while_loop(cond: Function, body: Function, loop_vars: Any, *arguments: Any, **options: Any) -> Any:
    """Replaces the loop variables by what `body` gives as long as `cond` holds; gives their final values.

    In a function that is traced both work on NumPy-like arrays; elsewhere this is TensorFlow's `tf.while_loop`.

    Args:
        cond: Takes the loop variables, gives a truth value.
        body: Takes the loop variables, gives their next values, of the same shapes and element types.
        loop_vars: The initial values, a sequence (of nested sequences or dictionaries); or one array.
        arguments: As TensorFlow's.
        options: As TensorFlow's.

    Raises:
        ShapeError: A loop variable changes its shape.
        ElementTypeError: A loop variable changes its element type.
    """
    if not is_tracing():
        return control_flow.while_loop(cond, body, loop_vars, *arguments, **options)
    if not isinstance(loop_vars, list | tuple | dict):
        loop_vars = [loop_vars]
    found = control_flow.while_loop(_on_arrays(cond), _on_arrays(body), _tensors(loop_vars), *arguments, **options)
    return _arrays(found)


def fori_loop(lower: Any, upper: Any, body_fun: Function, init_val: Any) -> Any:
    """`for i in range(lower, upper): value = body_fun(i, value)`, as a loop of the program.

    Gradients are quickest where both limits are known while the function is traced.

    Args:
        lower: The first number.
        upper: The number that ends it.
        body_fun: Takes the number and the value, gives the next value, of the same structure, shapes and types.
        init_val: The first value: an array, or nested ones.

    Raises:
        ShapeError: A value changes its shape.
        ElementTypeError: A value changes its element type.
    """
    if not is_tracing():
        return _compiled(lambda *given: fori_loop(given[0], given[1], body_fun, given[2]))(lower, upper, init_val)
    leaves, structure = flatten(_tensors(init_val))
    traced = with_these_names(body_fun)

    def step(number: Any, *values: Any) -> Any:
        return number + 1, *flatten(traced(number, rebuild(structure, values)))[0]

    limits = {}
    if isinstance(lower, int | np.integer) and isinstance(upper, int | np.integer):
        limits["maximum_iterations"] = max(int(upper) - int(lower), 0)
    start = as_tensor(np.asarray(lower, np.int64) if not isinstance(lower, TracedArray) else lower.astype(np.int64))
    found = while_loop(lambda number, *_: np.less(number, upper), step, (start, *leaves), **limits)
    return rebuild(structure, found[1:])


def map(f: Function, xs: Any) -> Any:  # jax's name
    """`f` of each of the parts of arrays along their first dimension, one after another; the results are stacked.

    Raises:
        ShapeError: The arrays have different first sizes.
    """
    if not is_tracing():
        return _compiled(lambda given: map(f, given))(xs)
    traced = with_these_names(f)
    return _scanned(lambda carry, parts: (carry, traced(parts)), (), xs, what="map")[1]


def scan(*arguments: Any, **options: Any) -> Any:  # noqa: D417  # they are named as one calls it
    """`scan(f, init, xs)`: the last `carry` of `carry, y = f(carry, x)` over the parts `x` of `xs`, and all `y`.

    This is so in a function that is traced; elsewhere it is TensorFlow's `tf.scan(fn, elems, initializer)`.

    Args:
        f: Takes what it gave last and a part of each array; gives the next one, of the same shapes and types, and a
            result.
        init: The first carry: an array, or nested ones.
        xs: Arrays that are cut along their first dimension, nested as `f` expects them; None with `length`.
        length: The number of steps.
        reverse: Begin at the end.

    Raises:
        TracingError: The arrays have different first sizes, or there are none and no length.
        ShapeError: The carry changes its shape.
        ElementTypeError: The carry changes its element type.
    """
    return _scanned(*arguments, **options) if is_tracing() else functional.scan(*arguments, **options)


def _scanned(
    f: Function, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, what: str = "scan"
) -> Any:
    rows, around = flatten(_tensors(xs))
    state, carry_structure = flatten(_tensors(init))
    lengths = {each.shape.known_dims()[0] if each.shape.known_dims() else None for each in rows}
    lengths |= set() if length is None else {length}
    if len(lengths) != 1 or None in lengths:
        raise TracingError(f"{what}: expected arrays of one first size, found {sorted(map(str, lengths)) or 'none'}")
    traced = with_these_names(f)
    structures: list[Any] = []

    def step(number: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        parts = rebuild(around, [TracedArray(array.gather(each, number)) for each in rows])
        following, result = traced(_arrays(rebuild(carry_structure, list(carried))), parts)
        found, structure = flatten(result)
        structures[:] = [structure]
        next_state = [converted(each, before.dtype) for each, before in zip(flatten(following)[0], state, strict=True)]
        return next_state, [as_tensor(each) for each in found]

    # A graph that is thrown away tells types and shapes of the results.
    kinds: list[Any] = []
    number = constant(np.int32(0))

    def look(carried: Sequence[Any]) -> Sequence[Any]:
        kinds.extend((each.dtype, each.shape.known_dims()) for each in step(number, carried)[1])
        return ()

    trace_function(what, get_default_graph(), [(each.dtype, each.shape) for each in state], look)
    (count,) = lengths
    last, stacked = carrying(int(count or 0), step, state, kinds, reverse)
    return _arrays(rebuild(carry_structure, last)), _arrays(rebuild(structures[0], stacked))


def _on_arrays(function: Function) -> Function:
    traced = with_these_names(function)
    return lambda *values: _tensors(traced(*_arrays(values)))


def _tensors(value: Any) -> Any:
    leaves, structure = flatten(value)
    return rebuild(structure, [as_tensor(leaf) for leaf in leaves])


def _arrays(value: Any) -> Any:
    leaves, structure = flatten(value)
    return rebuild(structure, [TracedArray(as_tensor(leaf)) for leaf in leaves])


def _compiled(function: Function) -> Function:
    from xlalite.tracing.jit import jit

    return jit(function)
