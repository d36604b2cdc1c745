"""Calls of ufuncs with all that NumPy lets them take, and their methods: reduce, accumulate, outer and at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import TracingError
from xlalite.ops.functions import array, functional, math
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to
from xlalite.tracing.indexing import combine_at
from xlalite.tracing.promotion import as_tensor, converted, normal_axes, normal_axis, numpy_dtype, sizes, traced_array
from xlalite.tracing.traced_array import TracedArray
from xlalite.tracing.ufuncs import apply_ufunc

_REDUCTIONS: Mapping[np.ufunc, Callable[..., Tensor]] = {
    np.add: math.reduce_sum,
    np.multiply: math.reduce_prod,
    np.maximum: math.reduce_max,
    np.minimum: math.reduce_min,
    np.logical_and: math.reduce_all,
    np.logical_or: math.reduce_any,
}
_ASSOCIATIVE = frozenset(
    {
        *(np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or, np.logical_xor),
        *(np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logaddexp, np.logaddexp2, np.gcd, np.hypot),
    }
)
_EXTREMES: Mapping[np.ufunc, str] = {np.maximum: "_Cummax", np.minimum: "_Cummin"}
_SCATTERS: Mapping[np.ufunc, str] = {
    np.add: "TensorScatterAdd",
    np.subtract: "TensorScatterSub",
    np.maximum: "TensorScatterMax",
    np.minimum: "TensorScatterMin",
}
_HARMLESS: Mapping[np.ufunc, float] = {np.arcsin: 0.5, np.arccos: 0.5, np.arctanh: 0.5, np.arccosh: 2}
"""Where functions and their derivatives are finite, if that is not 1."""
_FEW_GROUPS = 16
"""So many are combined each by itself."""
_LAYOUT = ("order", "subok", "casting")


def apply_method(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Records `ufunc.method(*inputs, **options)`."""
    rules: dict[str, Callable[..., Any]] = {
        "__call__": _call,
        "reduce": reduce,
        "accumulate": accumulate,
        "outer": _outer,
        "reduceat": _reduceat,
        "at": _at,
    }
    rule = rules.get(method)
    if rule is None:
        raise TracingError(f"numpy.{ufunc.__name__}.{method} cannot be recorded by xlalite.jit")
    return rule(ufunc, *inputs, **{name: value for name, value in options.items() if name not in _LAYOUT})


def reduce(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The elements along dimensions, combined.

    Raises:
        ValueError: There are none and the ufunc has no identity, or `where` is given without one.
    """
    rank = len(sizes(a))
    axes = normal_axes(axis, rank)
    if len(axes) > 1 and ufunc not in _ASSOCIATIVE:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    x = cast_to(as_tensor(a), as_dtype(_reduced_type(ufunc, a, dtype)))
    start = ufunc.identity if initial is None else initial
    mask = None if where is True else array.broadcast_to(math.cast(as_tensor(where), np.bool_), list(sizes(a)))
    if mask is not None and start is None:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a where mask one has to "
            "specify 'initial'"
        )
    if 0 in [sizes(a)[each] for each in axes] and start is None:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    if ufunc not in _ASSOCIATIVE:
        found = _one_by_one(ufunc, x, axes, initial, mask)
    else:
        if mask is not None:
            x = array.where_v2(mask, x, _value(start if ufunc.identity is None else ufunc.identity, x))
        found = _reduce_axes(ufunc, x, axes, start)
        if initial is not None:
            found = apply_ufunc(ufunc, (TracedArray(_value(initial, x)), found))
    result = cast_to(found.tensor, x.dtype)
    if keepdims:
        result = array.reshape(result, [1 if i in axes else size for i, size in enumerate(sizes(a))])
    return finished(TracedArray(result), out)


def accumulate(ufunc: np.ufunc, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """What is combined of the elements up to each along a dimension."""
    along = normal_axis(axis, len(sizes(a)))
    x = cast_to(as_tensor(a), as_dtype(_reduced_type(ufunc, a, dtype)))
    if ufunc in (np.add, np.multiply) and not x.dtype.is_bool:
        return finished(TracedArray((math.cumsum if ufunc is np.add else math.cumprod)(x, along)), out)
    if ufunc in _EXTREMES and not (x.dtype.is_bool or x.dtype.is_complex):
        attrs = {"exclusive": False, "reverse": False}
        return finished(TracedArray(node(_EXTREMES[ufunc], [x, as_tensor(np.int32(along))], attrs)), out)
    rows = TracedArray(_axis_first(x, along))
    length = rows.shape[0]
    if ufunc in _ASSOCIATIVE:
        step = 1
        while step < length:
            later = apply_ufunc(ufunc, (rows[:-step], rows[step:]))
            rows = TracedArray(array.concat([rows[:step].tensor, cast_to(later.tensor, x.dtype)], 0))
            step *= 2
    elif length > 1:
        each: Any = functional.scan(_combined(ufunc, x), rows[1:].tensor, rows[0].tensor)
        rows = TracedArray(array.concat([rows[:1].tensor, each], 0))
    order = [*range(1, along + 1), 0, *range(along + 1, rows.ndim)]
    return finished(TracedArray(array.transpose(rows.tensor, order)), out)


def finished(result: Any, out: Any) -> Any:
    """The result, or `out` with the result in it, if that was given.

    Raises:
        TracingError: `out` is no traced array.
        TypeError: Its element type cannot hold the result.
        ValueError: It has another shape.
    """
    target = out[0] if isinstance(out, tuple) else out
    if target is None:
        return result
    if not isinstance(target, TracedArray):
        raise TracingError(
            f"out is {type(target).__name__}, an array that the function being traced does not compute: xlalite.jit "
            "cannot write to it; make it of a traced array, as np.zeros_like(x), or with xlalite.numpy"
        )
    if target.shape != result.shape:
        raise ValueError(f"non-broadcastable output operand with shape {target.shape} doesn't match {result.shape}")
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise TypeError(f"Cannot cast output from {result.dtype!r} to {target.dtype!r} with casting rule 'same_kind'")
    if not target.shape and target._base is None:
        return TracedArray(cast_to(result.tensor, target.tensor.dtype))
    target.assign(cast_to(result.tensor, target.tensor.dtype))
    return target


def _call(
    ufunc: np.ufunc, *inputs: Any, out: Any = None, where: Any = True, dtype: Any = None, axis: int = -1, **others: Any
) -> Any:
    if {*others} - {"signature", "axes", "keepdims"} or any(value is not None for value in others.values()):
        raise TracingError(f"numpy.{ufunc.__name__} with {', '.join(others)} cannot be recorded by xlalite.jit")
    if axis != -1:
        inputs = tuple(np.moveaxis(each, axis, -1) for each in inputs)
    if where is not True and out is None:
        raise TracingError(f"numpy.{ufunc.__name__} with where needs out=: other elements have no value")
    if where is not True:
        # What is not computed has no derivative, either, which may be infinite.
        inputs = tuple([_chosen(where, each, _HARMLESS.get(ufunc, 1)) for each in inputs])
    found = apply_ufunc(ufunc, inputs, dtype)
    if where is not True:
        mask = math.cast(as_tensor(where), np.bool_)
        found = TracedArray(array.where_v2(mask, found.tensor, converted(out[0], found.tensor.dtype)))
    if ufunc.nout == 1:
        return finished(found, out)
    return tuple(finished(each, target) for each, target in zip(found, out or [None] * ufunc.nout, strict=True))


def _chosen(where: Any, value: Any, other: float) -> Any:
    if not isinstance(value, TracedArray) or value.dtype.kind not in "fc":
        return value
    return np.where(where, value, value.dtype.type(other))


def _outer(ufunc: np.ufunc, a: Any, b: Any, **options: Any) -> Any:
    x = np.reshape(a, (*sizes(a), *[1] * len(sizes(b)))) if isinstance(a, TracedArray) else np.asarray(a)
    if not isinstance(a, TracedArray):
        x = x.reshape(*x.shape, *[1] * len(sizes(b)))
    return _call(ufunc, x, b, **options)


def _reduceat(ufunc: np.ufunc, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    """The elements from each index to the next, combined."""
    if isinstance(indices, TracedArray) and indices.known is None:
        raise TracingError(
            f"numpy.{ufunc.__name__}.reduceat cannot be recorded by xlalite.jit: indices that are traced leave open "
            "which elements are combined; use ufunc.at with the number of each element's group"
        )
    places = [int(each) for each in np.asarray(indices)]
    rows = np.moveaxis(traced_array(a).astype(_reduced_type(ufunc, a, dtype)), axis, 0)
    for place in places:
        if not 0 <= place < len(rows):
            raise IndexError(f"index {place} out-of-bounds in {ufunc.__name__}.reduceat [0, {len(rows)})")
    ends = [*places[1:], len(rows)][: len(places)]
    lengths = np.subtract(ends, places)
    if len(places) > _FEW_GROUPS and (lengths > 0).all():
        following = np.delete(np.arange(len(rows)), [*range(places[0]), *places])
        found = rows[places]
        _at(ufunc, found, np.searchsorted(places, following) - 1, rows[following])
    else:
        pairs = zip(places, ends, strict=True)
        parts = [reduce(ufunc, rows[i:j], 0, rows.dtype) if i < j else rows[i] for i, j in pairs]
        found = np.stack(parts) if parts else rows[:0]
    return finished(np.moveaxis(found, 0, axis), out)


def _at(ufunc: np.ufunc, a: Any, indices: Any, b: Any = None) -> None:
    if not isinstance(a, TracedArray):
        raise TypeError(f"numpy.{ufunc.__name__}.at changes its first argument, which is no traced array: {a!r}")
    values = () if b is None else (b,)
    kind = apply_ufunc(ufunc, (a[indices], *values)).dtype
    operation = _SCATTERS.get(ufunc)
    if operation is None or kind != a.dtype or kind.kind in ("bc" if ufunc in _EXTREMES else "b"):
        _one_after_another(ufunc, a, indices, values)
    else:
        combine_at(a, indices, b, operation)


def _one_after_another(ufunc: np.ufunc, a: TracedArray, indices: Any, values: Sequence[Any]) -> None:
    """`ufunc.at` as a loop over the chosen elements."""
    from xlalite.tracing.control_flow import fori_loop  # which stands on NumPy's names

    places = traced_array(np.arange(a.size).reshape(a.shape))[indices]
    others = [
        traced_array(np.broadcast_to(each, places.shape)).ravel() if len(sizes(each)) else each for each in values
    ]
    places = places.ravel()

    def step(i: Any, whole: Any) -> Any:
        found = apply_ufunc(ufunc, (whole[places[i]], *[each[i] if len(sizes(each)) else each for each in others]))
        whole[places[i]] = found
        return whole

    start: Any = a.flatten()
    a[...] = fori_loop(0, places.size, step, start).reshape(a.shape)


def _reduced_type(ufunc: np.ufunc, a: Any, dtype: Any) -> np.dtype[Any]:
    """The element type of a reduction: sums and products of small whole numbers are in 64 bits."""
    if dtype is not None:
        wanted: np.dtype[Any] = np.dtype(dtype)
        return wanted
    found: np.dtype[Any] = ufunc.resolve_dtypes((None, numpy_dtype(a), None), reduction=True)[0]
    return found


def _value(number: Any, like: Tensor) -> Tensor:
    """What a reduction begins with, in its element type; -1 is all bits of a number without a sign."""
    dtype = like.dtype.numpy_dtype
    return as_tensor(np.asarray(number).astype(dtype)) if isinstance(number, int) else converted(number, like.dtype)


def _one_by_one(ufunc: np.ufunc, x: Tensor, axes: tuple[int, ...], initial: Any, mask: Tensor | None) -> TracedArray:
    """A reduction along at most one dimension, in the order of its elements."""
    if not axes:
        return TracedArray(x)
    rows, chosen = _axis_first(x, axes[0]), None if mask is None else _axis_first(mask, axes[0])
    if initial is None:
        first, rows = rows[0], rows[1:]
    else:
        first = array.broadcast_to(_value(initial, x), rows.shape.known_dims()[1:])
    if rows.shape.known_dims()[0] == 0:
        return TracedArray(first)
    combine = _combined(ufunc, x)
    if chosen is None:
        return TracedArray(functional.foldl(combine, rows, first))

    def step(total: Tensor, element: Any) -> Tensor:
        return array.where_v2(element[1], combine(total, element[0]), total)

    return TracedArray(functional.foldl(step, (rows, chosen), first))


def _reduce_axes(ufunc: np.ufunc, x: Tensor, axes: tuple[int, ...], start: Any) -> TracedArray:
    direct = _REDUCTIONS.get(ufunc)
    if x.dtype.is_bool and ufunc in (np.maximum, np.minimum):
        direct = math.reduce_any if ufunc is np.maximum else math.reduce_all
    if x.dtype.is_complex and ufunc in (np.maximum, np.minimum):
        direct = None
    if not axes:
        return TracedArray(x)
    if direct is not None:
        return TracedArray(direct(x, list(axes)))
    dims = x.shape.known_dims()
    kept = [axis for axis in range(len(dims)) if axis not in axes]
    rows = array.reshape(
        array.transpose(x, [*axes, *kept]), [int(np.prod([dims[i] for i in axes])), *[dims[i] for i in kept]]
    )
    length = rows.shape.known_dims()[0]
    if length == 0:
        return TracedArray(array.broadcast_to(_value(start, x), [dims[i] for i in kept]))
    found = TracedArray(rows)
    while found.shape[0] > 1:
        whole = found.shape[0] // 2
        pairs = apply_ufunc(ufunc, (found[: 2 * whole : 2], found[1 : 2 * whole : 2]))
        found = pairs if found.shape[0] % 2 == 0 else TracedArray(array.concat([pairs.tensor, found[-1:].tensor], 0))
    return TracedArray(found[0].tensor)


def _combined(ufunc: np.ufunc, like: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    def combine(total: Tensor, element: Tensor) -> Tensor:
        found = apply_ufunc(ufunc, (TracedArray(total), TracedArray(element)))
        return cast_to(found.tensor, like.dtype)

    return combine


def _axis_first(x: Tensor, axis: int) -> Tensor:
    rank = len(x.shape.known_dims())
    return array.transpose(x, [axis, *[i for i in range(rank) if i != axis]])
