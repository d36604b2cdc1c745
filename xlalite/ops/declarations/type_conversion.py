"""Changing the element type: by value (`Cast`) or by reading the same bits differently (`Bitcast`)."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.shape import Shape
from xlalite.ops.helpers.declare import ELEMENTWISE, declare
from xlalite.ops.helpers.node import node


def _require_compilable(op: Operation) -> None:
    source, dtype = op.inputs[0].dtype, op.get_attr("dtype")
    if source.is_host_only or dtype.is_host_only:
        raise ElementTypeError(f"cannot turn {source.name} into {dtype.name}")


def _cast_infer(op: Operation) -> Sequence[OutputType]:
    _require_compilable(op)
    return [(op.get_attr("dtype"), op.inputs[0].shape)]


def _cast_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x, wanted = ctx.builder, inputs[0], op.outputs[0].dtype
    if wanted.is_bool:
        return [x if op.inputs[0].dtype.is_bool else b.compare(x, 0, "NE")]
    if x.dtype.is_complex and not wanted.is_complex:
        x = b.op("real", (x,))
    return [b.convert(x, wanted.hlo)]


def _cast_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    source = op.inputs[0].dtype
    return [node("Cast", [grad], {"dtype": source}) if source.is_differentiable else None]


declare("Cast", ("x",), _cast_infer, _cast_lower, _cast_gradient, ELEMENTWISE, attrs=("dtype",))


def _bitcast_infer(op: Operation) -> Sequence[OutputType]:
    _require_compilable(op)
    x, dtype = op.inputs[0], op.get_attr("dtype")
    if x.dtype.is_bool or dtype.is_bool:
        raise ElementTypeError("bool has no defined bits to reinterpret")
    dims = x.shape.dims
    if dims is None or x.dtype.size == dtype.size:
        return [(dtype, x.shape)]
    if x.dtype.size > dtype.size:
        return [(dtype, x.shape.concatenate([x.dtype.size // dtype.size]))]
    ratio = dtype.size // x.dtype.size
    if not dims or dims[-1] not in (None, ratio):
        raise ShapeError(f"the last dimension of {x.shape} must be {ratio} to make {dtype.name} of {x.dtype.name}")
    return [(dtype, TensorShape(dims[:-1]))]


def _bitcast_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    (x,) = inputs
    wanted = op.outputs[0].dtype
    ratio = x.dtype.size_bytes / wanted.size
    dims = x.dims if ratio == 1 else (*x.dims, int(ratio)) if ratio > 1 else x.dims[:-1]
    return [ctx.builder.op("bitcast-convert", (x,), shape=Shape.array(wanted.hlo, dims))]


declare("Bitcast", ("x",), _bitcast_infer, _bitcast_lower, None, ELEMENTWISE, attrs=("dtype",))
