"""Sorting, and the positions of extreme elements."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle, Handles
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.interop.onnx.context import NodeContext, rule


def sorted_with_positions(x: Handle, axis: int, *, descending: bool) -> tuple[Handle, Handle]:
    """Elements in order along a dimension and where they stood (s32); equal ones keep theirs."""
    b = x.builder
    scalar, place = Shape.array(x.dtype), Shape.array(DType.S32)
    relation = "GT" if descending else "LT"
    name = f"comes_first_{relation.lower()}_{x.dtype.value}"
    try:
        comparison = b.module.find(name)
    except KeyError:
        comparison = b.subcomputation(
            name, (scalar, scalar, place, place), lambda inner, p: inner.compare(p[0], p[1], relation)
        )
    positions = b.iota(DType.S32, x.dims, axis)
    found = b.op("sort", (x, positions), OPS["sort"].attrs((axis,), True), (comparison,))
    return found[0], found[1]


@rule("ArgMax", "ArgMin")
def _arg_extreme(context: NodeContext) -> Handle:
    """The position of the extreme element, the first of several or the last; NaN is extreme."""
    b, x = context.builder, context.operand(0)
    axis = context.axis(len(x.dims), 0)
    last = context.integer("select_last_index", 0) != 0
    relation = "GT" if context.operator == "ArgMax" else "LT"
    scalar, place = Shape.array(x.dtype), Shape.array(DType.S64)

    def better(inner: Builder, p: Handles) -> Handle:
        own, at, new, new_at = p
        stays, tied = inner.compare(own, new, relation), inner.compare(own, new, "EQ")
        if own.dtype.is_floating:
            is_nan, other_nan = inner.compare(own, own, "NE"), inner.compare(new, new, "NE")
            stays, tied = stays | is_nan, tied | (is_nan & other_nan)
        stays = inner.select(tied, inner.compare(at, new_at, "GT" if last else "LT"), stays)
        return inner.tuple([inner.select(stays, own, new), inner.select(stays, at, new_at)])

    if x.dims[axis] == 0:
        raise context.error("an empty dimension has no extreme element")
    function = context.importer.subcomputation("better", context.scope, (scalar, place, scalar, place), better)
    kind = MonoidKind.MAXIMUM if relation == "GT" else MonoidKind.MINIMUM
    start = b.constant(monoid_identity(kind, x.dtype), x.dtype)
    nowhere = b.constant(-1 if last else np.iinfo(np.int64).max, DType.S64)
    found = b.reduce((x, b.iota(DType.S64, x.dims, axis)), (start, nowhere), [axis], function)
    return _kept(context, found[1], x.dims, axis)


def _kept(context: NodeContext, found: Handle, dims: tuple[int, ...], axis: int) -> Handle:
    if not context.integer("keepdims", 1):
        return found
    return context.builder.reshape(found, [1 if i == axis else size for i, size in enumerate(dims)])
