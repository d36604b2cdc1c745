"""Reductions along dimensions given by an input: sums, means, products, extremes, all and any; arg max and min."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import INTEGER_TYPES, NUMERIC_TYPES, DType, bool_
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import accumulator_type, reduce_axes
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.monoid import MonoidKind, monoid_identity
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import ELEMENTWISE_WITH_REDUCTION, MOVEMENT, REAL_TYPES, REDUCTION, declare
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import (
    constant_axes,
    distinct_axes,
    normalize_axis,
    require_rank,
    require_scalar,
    require_type,
)

Identity = Callable[[HloDType], complex | Array]
_LOWEST: Identity = partial(monoid_identity, MonoidKind.MAXIMUM)
_HIGHEST: Identity = partial(monoid_identity, MonoidKind.MINIMUM)


def _infer(allowed: Collection[DType]) -> Callable[[Operation], Sequence[OutputType]]:
    def infer(op: Operation) -> Sequence[OutputType]:
        x, axes = op.inputs
        require_type(x, allowed)
        require_type(axes, INTEGER_TYPES, "axis")
        require_rank(axes, lambda rank: rank <= 1, "a scalar or a vector", "axis")
        return [(x.dtype, _reduced_shape(x, axes, op.get_attr("keep_dims")))]

    return infer


def _reduced_shape(x: Tensor, axes: Tensor, keep_dims: bool) -> TensorShape:
    if x.shape.dims is None:
        return unknown_shape()
    known = constant_axes(axes, len(x.shape.dims))
    if known is None:
        return unknown_shape(len(x.shape.dims) if keep_dims else None)
    if keep_dims:
        return TensorShape([1 if i in known else size for i, size in enumerate(x.shape.dims)])
    return TensorShape([size for i, size in enumerate(x.shape.dims) if i not in known])


def _axes(ctx: LoweringContext, op: Operation, rank: int) -> list[int]:
    return sorted(distinct_axes(np.ravel(ctx.constant(op, "axis")).tolist(), rank, "Invalid reduction dimension"))


def _declare(
    name: str, opcode: str, identity: Identity, allowed: Collection[DType], gradient: OneOutputGradient | None
) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        x = inputs[0]
        axes = _axes(ctx, op, x.shape.rank)
        return [reduce_axes(ctx.builder, x, opcode, identity(x.dtype), axes, op.get_attr("keep_dims"))]

    declare(
        name,
        ("x", "axis"),
        _infer(allowed),
        lower,
        gradient,
        REDUCTION,
        attrs=("keep_dims",),
        constant_inputs=("axis",),
    )


# Gradients.


def kept_shape(op: Operation) -> Tensor:
    """The sizes of a reduction's result as if the reduced dimensions had been kept with size 1."""
    x, axes = op.inputs
    if x.shape.dims is not None:
        known = constant_axes(axes, len(x.shape.dims))
        sizes = [1 if known is None or i in known else size for i, size in enumerate(x.shape.dims)]
        # Reshape works out one unknown size, unless the tensor is empty.
        if known is not None and (None not in sizes or (sizes.count(None) == 1 and 0 not in sizes)):
            return constant(np.array([-1 if size is None else size for size in sizes], np.int32))
    return node("_KeptShape", [shape_tensor(x), axes])


def _spread(op: Operation, value: Tensor) -> Tensor:
    """A value of the result's shape, repeated along the reduced dimensions."""
    kept = value if op.get_attr("keep_dims") else node("Reshape", [value, kept_shape(op)])
    return node("BroadcastTo", [kept, shape_tensor(op.inputs[0])])


def _sum_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [_spread(op, grad), None]


def _mean_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs[0], op.outputs[0]
    count, kept = x.shape.num_elements(), y.shape.num_elements()
    if count is not None and kept is not None:
        return [_spread(op, grad / max(1, count // max(1, kept))), None]
    factor = node("FloorDiv", [_element_count(x), node("Maximum", [_element_count(y), constant(1)])])
    return [_spread(op, grad / node("Cast", [factor], {"dtype": grad.dtype})), None]


def _element_count(x: Tensor) -> Tensor:
    count = x.shape.num_elements()
    return node("Size", [x], {"out_type": dtypes.int32}) if count is None else constant(count, dtypes.int32)


def _extreme_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The gradient goes in equal parts to the elements that attain the extreme."""
    x, axes = op.inputs
    chosen = node("Cast", [node("Equal", [x, _spread(op, op.outputs[0])])], {"dtype": grad.dtype})
    count = node("Sum", [chosen, axes], {"keep_dims": op.get_attr("keep_dims")})
    return [chosen * _spread(op, grad / count), None]


def _product_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The product of all other elements; right in the presence of zeros too."""
    x, axes = op.inputs
    zero = node("Equal", [x, node("ZerosLike", [x])])
    zeros = node("Cast", [zero], {"dtype": x.dtype})
    keep = {"keep_dims": op.get_attr("keep_dims")}
    zero_count = _spread(op, node("Sum", [zeros, axes], keep))
    without_zeros = node("SelectV2", [zero, node("OnesLike", [x]), x])
    partial = _spread(op, node("Prod", [without_zeros, axes], keep))
    alone = node("Cast", [node("Equal", [zero_count, zeros])], {"dtype": x.dtype})
    return [_spread(op, grad) * alone * partial / without_zeros, None]


_declare("Sum", "add", lambda dtype: 0, NUMERIC_TYPES, _sum_gradient)
_declare("Prod", "multiply", lambda dtype: 1, NUMERIC_TYPES, _product_gradient)
_declare("Max", "maximum", _LOWEST, REAL_TYPES, _extreme_gradient)
_declare("Min", "minimum", _HIGHEST, REAL_TYPES, _extreme_gradient)
_declare("All", "and", lambda dtype: True, {bool_}, None)
_declare("Any", "or", lambda dtype: False, {bool_}, None)


def _mean_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    axes = _axes(ctx, op, x.shape.rank)
    # The sum of a narrow type may not exist in it although the mean does.
    wide = accumulator_type(x.dtype)
    total = reduce_axes(b, b.convert(x, wide), "add", 0, axes, op.get_attr("keep_dims"))
    count = np.asarray(math.prod(x.dims[axis] for axis in axes)).astype(wide.numpy)
    return [b.convert(total / b.constant(count, wide), x.dtype)]


declare(
    "Mean",
    ("x", "axis"),
    _infer(NUMERIC_TYPES),
    _mean_lower,
    _mean_gradient,
    REDUCTION,
    attrs=("keep_dims",),
    constant_inputs=("axis",),
)


# _KeptShape(shape, axes): the sizes with 1 in place of the reduced ones.


def _kept_shape_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[0].dtype, op.inputs[0].shape.with_rank(1))]


def _kept_shape_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    sizes = np.array(ctx.constant(op, "shape"))
    sizes[[normalize_axis(int(axis), len(sizes)) for axis in np.ravel(ctx.constant(op, "axis"))]] = 1
    return [ctx.builder.constant(sizes, op.outputs[0].dtype.hlo)]


declare(
    "_KeptShape",
    ("shape", "axis"),
    _kept_shape_infer,
    _kept_shape_lower,
    None,
    MOVEMENT,
    constant_inputs=("shape", "axis"),
)


# ArgMax and ArgMin: the first position of the extreme; NaN counts as extreme.


def _arg_infer(op: Operation) -> Sequence[OutputType]:
    x, axis = op.inputs
    require_type(x, REAL_TYPES)
    require_type(axis, INTEGER_TYPES, "dimension")
    require_scalar(axis, "dimension")
    if x.shape.dims is None:
        return [(op.get_attr("output_type"), unknown_shape())]
    if not x.shape.dims:
        raise ShapeError("a scalar has no dimension to search")
    known = constant_axes(axis, len(x.shape.dims))
    shape = (
        unknown_shape(len(x.shape.dims) - 1)
        if known is None
        else TensorShape([size for i, size in enumerate(x.shape.dims) if i not in known])
    )
    return [(op.get_attr("output_type"), shape)]


def _declare_arg(name: str, direction: str, identity: Identity) -> None:
    def better(b: Builder, p: tuple[Handle, ...]) -> Handle:
        best, best_index, value, index = p
        wins = b.compare(best, value, direction)
        if best.dtype.is_floating:
            wins = wins | b.compare(best, best, "NE")
        tied_earlier = b.compare(best, value, "EQ") & b.compare(best_index, index, "LT")
        if best.dtype.is_floating:
            both_nan = b.compare(best, best, "NE") & b.compare(value, value, "NE")
            tied_earlier = tied_earlier | (both_nan & b.compare(best_index, index, "LT"))
            wins = wins & ~both_nan
        chosen = wins | tied_earlier
        return b.tuple([b.select(wins, best, value), b.select(chosen, best_index, index)])

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, x, index_type = ctx.builder, inputs[0], op.outputs[0].dtype.hlo
        axis = normalize_axis(int(ctx.constant(op, "dimension")), x.shape.rank, "dimension")
        if x.dims[axis] == 0:
            raise ShapeError(f"dimension {axis} of {x.shape.text()} is empty, so it has no extreme")
        indices = b.iota(index_type, x.dims, axis)
        value, index = Shape.array(x.dtype), Shape.array(index_type)
        function = b.subcomputation(name.lower(), (value, index, value, index), better)
        start = (b.constant(identity(x.dtype), x.dtype), b.constant(0, index_type))
        return [b.reduce((x, indices), start, [axis], function)[1]]

    declare(
        name,
        ("x", "dimension"),
        _arg_infer,
        lower,
        None,
        ELEMENTWISE_WITH_REDUCTION,
        attrs=("output_type",),
        constant_inputs=("dimension",),
    )


_declare_arg("ArgMax", "GT", _LOWEST)
_declare_arg("ArgMin", "LT", _HIGHEST)
