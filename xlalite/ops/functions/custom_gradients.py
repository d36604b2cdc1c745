"""Functions with gradients of their own, and second derivatives."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, reshape, shape, size
from xlalite.ops.functions.functional import map_fn
from xlalite.ops.functions.math import range as range_of
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.gradient_registry import RegisterGradient
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.helpers.node import operation

_NUMBERS = itertools.count()


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradients it gives itself: `f(*args)` returns its results and `grad(*result_gradients)`.

    Variables that the function uses besides its arguments get no gradient through it.
    """

    @functools.wraps(f)
    def with_gradient(*args: Any, **kwargs: Any) -> Any:
        given = [convert_to_tensor(each) for each in args]
        result, grad_fn = f(*given, **kwargs)
        results, structure = flatten(result)
        outputs = [convert_to_tensor(each) for each in results]
        name = f"CustomGradient-{next(_NUMBERS)}"

        @RegisterGradient(name)
        def gradient(op: Operation, *arrived: Any) -> list[Any]:
            found = grad_fn(*arrived[: len(outputs)])
            own = list(found) if isinstance(found, list | tuple) else [found]
            return [*[None] * len(outputs), *own]

        # The arguments pass through the same operation, so that their gradients can come out of it.
        with get_default_graph().gradient_override_map({"IdentityN": name}):
            passed = operation("IdentityN", [*outputs, *given]).outputs
        return rebuild(structure, list(passed[: len(outputs)]))

    return with_gradient


def hessians(ys: Any, xs: Any, name: str = "hessians", **options: Any) -> list[Tensor]:
    """The second derivatives of `ys` with respect to each of `xs`: of shape `[*x.shape, *x.shape]`.

    Args:
        ys: A tensor or several, whose sum is taken.
        xs: Tensors or variables, one or several.
        name: Name scope.
        options: As for `gradients`.

    Raises:
        ShapeError: `ys` do not depend on some `x`.
    """
    listed: Sequence[Any] = xs if isinstance(xs, list | tuple) else [xs]
    with get_default_graph().name_scope(name):
        return [_hessian(ys, x, options) for x in listed]


def _hessian(ys: Any, x: Any, options: dict[str, Any]) -> Tensor:
    (first,) = gradients(ys, [x], **options)
    if first is None:
        raise ShapeError(f"hessians: there is no dependence on {getattr(x, 'name', x)!r}")
    flat = reshape(convert_to_tensor(first), [-1])

    def row(i: Tensor) -> Tensor:
        return convert_to_tensor(gradients(flat[i], [x], **options)[0])

    rows = map_fn(row, range_of(0, size(flat)), dtype=flat.dtype)
    sizes = shape(first)
    return reshape(rows, concat([sizes, sizes], 0))
