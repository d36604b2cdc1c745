"""Reductions along dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import accumulator_type, broadcast_to, max_axes, reduce_axes, sum_axes
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule

Reduction = Callable[[NodeContext, Handle, tuple[int, ...]], Handle]


def _axes(context: NodeContext, x: Handle) -> tuple[int, ...] | None:
    """The dimensions that go away; None where nothing is reduced."""
    axes = context.integers_at(1, "axes")
    if axes:
        return context.normalized_all(axes, len(x.dims))
    return None if context.integer("noop_with_empty_axes", 0) else tuple(range(len(x.dims)))


def _sum(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    return sum_axes(context.builder, x, axes, True)


def _product(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    return reduce_axes(context.builder, x, "multiply", 1, axes, True)


def _maximum(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    if x.dtype is DType.PRED:
        return reduce_axes(context.builder, x, "or", False, axes, True)
    return max_axes(context.builder, x, axes, True)


def _minimum(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    if x.dtype is DType.PRED:
        return reduce_axes(context.builder, x, "and", True, axes, True)
    return reduce_axes(context.builder, x, "minimum", monoid_identity(MonoidKind.MINIMUM, x.dtype), axes, True)


def _mean(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    return mean(x, axes)


def mean(x: Handle, axes: tuple[int, ...]) -> Handle:
    """The average along dimensions, which stay with size 1."""
    b, wide = x.builder, accumulator_type(x.dtype)
    count = math.prod(x.dims[axis] for axis in axes)
    total = sum_axes(b, b.convert(x, wide), axes, True)
    return b.convert(total / b.constant(np.asarray(count).astype(wide.numpy), wide), x.dtype)


def _l1(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    return _sum(context, context.builder.op("abs", (x,)), axes)


def _sum_of_squares(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    wide = context.builder.convert(x, accumulator_type(x.dtype))
    return context.builder.convert(_sum(context, wide * wide, axes), x.dtype)


def _l2(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    wide = context.builder.convert(x, _floating(accumulator_type(x.dtype)))
    return context.builder.convert(context.builder.op("sqrt", (_sum(context, wide * wide, axes),)), x.dtype)


def _log_sum(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    total = _sum(context, context.builder.convert(x, _floating(x.dtype)), axes)
    return context.builder.convert(context.builder.op("log", (total,)), x.dtype)


def _log_sum_exp(context: NodeContext, x: Handle, axes: tuple[int, ...]) -> Handle:
    """From the largest element, so that nothing overflows; infinite ones are left alone."""
    b = context.builder
    wide = b.convert(x, _floating(accumulator_type(x.dtype)))
    largest = max_axes(b, wide, axes, True)
    base = b.select(b.op("is-finite", (largest,)), largest, filled(0, largest))
    power = b.op("exponential", (wide - broadcast_to(b, base, wide.dims),))
    return b.convert(b.op("log", (_sum(context, power, axes),)) + base, x.dtype)


def _floating(dtype: DType) -> DType:
    return dtype if dtype.is_floating else DType.F64


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _maximum,
    "ReduceMean": _mean,
    "ReduceMin": _minimum,
    "ReduceProd": _product,
    "ReduceSum": _sum,
    "ReduceSumSquare": _sum_of_squares,
}


_OF_ONE: dict[str, tuple[int, ...]] = {name: () for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare")}


@rule(*_REDUCTIONS)
def _reduce(context: NodeContext) -> Handle:
    x = context.operand(0)
    axes = _axes(context, x)
    if axes is None:
        # Without axes nothing is summed, but every element is still what the operator makes of it.
        return _REDUCTIONS[context.operator](context, x, ()) if context.operator in _OF_ONE else x
    found = _REDUCTIONS[context.operator](context, x, axes)
    if context.integer("keepdims", 1):
        return found
    return context.builder.reshape(found, [size for i, size in enumerate(x.dims) if i not in axes])
