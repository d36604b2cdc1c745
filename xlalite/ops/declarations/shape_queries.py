"""Sizes and ranks of tensors as tensors, and the sums that undo broadcasting. Nothing here reads an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES, int32
from xlalite.framework.graph.op_spec import OpSpec, OutputType, VariableAccess, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor, handle_data_of
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import HostContext, HostValue, require_variable
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import register_partial_shape
from xlalite.hlo.building.broadcasting import broadcast_dims, repeated_axes
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.shape_rules import normalize_axis, require_same_type, require_type


def _constant(ctx: LoweringContext, op: Operation, value: object) -> Handle:
    dtype = op.outputs[0].dtype
    return ctx.builder.constant(np.asarray(value, dtype.numpy_dtype), dtype.hlo)


def _known_shapes(ctx: LoweringContext, op: Operation) -> tuple[list[int], list[int]]:
    return [int(size) for size in ctx.constant(op, "s0")], [int(size) for size in ctx.constant(op, "s1")]


def _type_of(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("out_type"), TensorShape(()))]


def _declare_query(
    name: str,
    infer: Callable[[Operation], Sequence[OutputType]],
    answer: Callable[[tuple[int, ...]], object],
    inputs: tuple[str, ...] = ("input",),
) -> None:
    def lower(ctx: LoweringContext, op: Operation, handles: tuple[Handle, ...]) -> Sequence[Handle]:
        return [_constant(ctx, op, answer(ctx.dims(tensor))) for tensor in op.inputs]

    register(
        OpSpec(
            name,
            infer,
            inputs=inputs,
            attrs=("out_type",),
            lower=lower,
            gradient=None,
            group=MOVEMENT,
            is_metadata=True,
        )
    )


def _shape_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("out_type"), TensorShape([tensor.shape.rank])) for tensor in op.inputs]


_declare_query("Shape", _shape_infer, lambda dims: dims)
_declare_query("ShapeN", _shape_infer, lambda dims: dims, ("input*",))
_declare_query("Rank", lambda op: [(int32, TensorShape(()))], len)
_declare_query("Size", _type_of, lambda dims: np.prod(dims, dtype=np.int64))


def _shape_of_input(tensor: Tensor) -> TensorShape:
    return tensor.op.inputs[tensor.index].shape


register_partial_shape("Shape", _shape_of_input)
register_partial_shape("ShapeN", _shape_of_input)


# VariableShape(handle).


def _variable_shape_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("out_type"), TensorShape([handle_data_of(op.inputs[0]).shape.rank]))]


def _variable_shape_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [_constant(ctx, op, ctx.read_variable(op, op.inputs[0]).dims)]


def _variable_shape_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    data = handle_data_of(op.inputs[0])
    known = data.shape.is_fully_defined()
    dims = data.shape.known_dims() if known else require_variable(context, op, data).shape
    return [np.asarray(dims, op.outputs[0].dtype.numpy_dtype)]


register(
    OpSpec(
        "VariableShape",
        _variable_shape_infer,
        inputs=("input",),
        attrs=("out_type",),
        lower=_variable_shape_lower,
        host_kernel=_variable_shape_on_host,
        gradient=None,
        group=MOVEMENT,
        variable_access=VariableAccess.READ,
        is_metadata=True,
    )
)


# EnsureShape(input): the input, which must have the shape.


def _ensured_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[0].dtype, op.inputs[0].shape.merge_with(op.get_attr("shape")))]


def _ensured_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    wanted = op.get_attr("shape")
    if not wanted.is_compatible_with(inputs[0].dims):
        raise ShapeError(
            f"Shape of tensor {op.inputs[0].name!r} {inputs[0].dims} is not compatible with expected shape {wanted}"
        )
    return inputs[:1]


declare("EnsureShape", ("input",), _ensured_infer, _ensured_lower, lambda op, grad: [grad], MOVEMENT, attrs=("shape",))


# ConcatOffset(concat_dim, shape...): where each of several arrays begins in their concatenation.


def _offset_infer(op: Operation) -> Sequence[OutputType]:
    return [(each.dtype, each.shape.with_rank(1)) for each in op.inputs[1:]]


def _offset_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    shapes = [ctx.constant_at(op, position) for position in range(1, len(op.inputs))]
    axis = normalize_axis(int(ctx.constant(op, "concat_dim")), len(shapes[0]), "concat_dim")
    starts = np.cumsum([0, *(shape[axis] for shape in shapes[:-1])])
    return [_constant(ctx, op, start * (np.arange(len(shapes[0])) == axis)) for start in starts]


declare(
    "ConcatOffset",
    ("concat_dim", "shape*"),
    _offset_infer,
    _offset_lower,
    None,
    MOVEMENT,
    constant_inputs=("concat_dim", "shape"),
)


# BroadcastGradientArgs(s0, s1): for each shape, the dimensions along which it is repeated.


def _gradient_args_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], INTEGER_TYPES)
    return [(dtype, unknown_shape(1)), (dtype, unknown_shape(1))]


def _gradient_args_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    s0, s1 = _known_shapes(ctx, op)
    return [_constant(ctx, op, axes) for axes in (repeated_axes(s0, s1), repeated_axes(s1, s0))]


declare(
    "BroadcastGradientArgs",
    ("s0", "s1"),
    _gradient_args_infer,
    _gradient_args_lower,
    None,
    MOVEMENT,
    constant_inputs=("s0", "s1"),
)


# BroadcastArgs(s0, s1): the common sizes.


def _broadcast_args_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    sizes = [tensor.shape.with_rank(1).as_list()[0] for tensor in op.inputs]
    return [(dtype, TensorShape([None if None in sizes else max(size or 0 for size in sizes)]))]


def _broadcast_args_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [_constant(ctx, op, broadcast_dims(*_known_shapes(ctx, op)))]


declare(
    "BroadcastArgs",
    ("s0", "s1"),
    _broadcast_args_infer,
    _broadcast_args_lower,
    None,
    MOVEMENT,
    constant_inputs=("s0", "s1"),
)
