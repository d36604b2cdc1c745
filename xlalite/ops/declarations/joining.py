"""Putting tensors together along a dimension, and taking them apart again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape, register_partial_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, declare, declare_outputs
from xlalite.ops.helpers.gradient_rules import all_gradients, shape_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import normalize_axis, require_same_type, require_type

# ConcatV2(values..., axis).


def _concat_infer(op: Operation) -> Sequence[OutputType]:
    *values, axis = op.inputs
    dtype = require_same_type(values)
    require_type(axis, INTEGER_TYPES, "axis")
    position = constant_value(axis)
    ranks = {tensor.shape.rank for tensor in values} - {None}
    if len(ranks) > 1:
        raise ShapeError(f"cannot concatenate tensors of ranks {sorted(r for r in ranks if r is not None)}")
    rank = next(iter(ranks), None)
    if rank == 0:
        raise ShapeError("Can't concatenate scalars (use tf.stack instead)")
    if rank is None or position is None:
        return [(dtype, unknown_shape(rank))]
    return [(dtype, _joined([t.shape.with_rank(rank) for t in values], normalize_axis(int(position), rank)))]


def _joined(shapes: Sequence[TensorShape], axis: int) -> TensorShape:
    sizes = [shape.as_list()[axis] for shape in shapes]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    merged = TensorShape([None if i == axis else size for i, size in enumerate(shapes[0].as_list())])
    for shape in shapes[1:]:
        merged = merged.merge_with([None if i == axis else size for i, size in enumerate(shape.as_list())])
    return TensorShape([total if i == axis else size for i, size in enumerate(merged.as_list())])


def _concat_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.concatenate(inputs, normalize_axis(int(ctx.constant(op, "axis")), inputs[0].shape.rank))]


def _concat_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    *values, axis = op.inputs
    if len(values) == 1:
        return [grad, None]
    rank = grad.shape.rank
    position = constant_value(axis)
    if rank is not None and position is not None:
        along = normalize_axis(int(position), rank)
        sizes = [tensor.shape.with_rank(rank).as_list()[along] for tensor in values]
        if None not in sizes:
            vector = constant(np.array(sizes, np.int32))
            return [*operation("SplitV", [grad, vector, axis], {"num_split": len(values)}).outputs, None]
    lengths = [node("GatherV2", [shape_tensor(t), axis, constant(0)]) for t in values]
    vector = node("Reshape", [node("Pack", lengths, {"axis": 0}), constant(np.array([-1], np.int32))])
    return [*operation("SplitV", [grad, vector, axis], {"num_split": len(values)}).outputs, None]


def _concat_partial_shape(tensor: Tensor) -> TensorShape:
    result = TensorShape(())
    for part in tensor.op.inputs[:-1]:
        result = result.concatenate(constant_value_as_shape(part))
    return result


declare(
    "ConcatV2", ("values*", "axis"), _concat_infer, _concat_lower, _concat_gradient, MOVEMENT, constant_inputs=("axis",)
)
register_partial_shape("ConcatV2", _concat_partial_shape)


# Pack(values...): along a new dimension.


def _pack_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    shape = op.inputs[0].shape
    for tensor in op.inputs[1:]:
        shape = shape.merge_with(tensor.shape)
    if shape.dims is None:
        return [(dtype, unknown_shape())]
    axis = normalize_axis(op.get_attr("axis"), len(shape.dims) + 1)
    return [(dtype, TensorShape([*shape.dims[:axis], len(op.inputs), *shape.dims[axis:]]))]


def _pack_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    dims = inputs[0].dims
    if any(x.dims != dims for x in inputs):
        raise ShapeError(f"cannot stack tensors of shapes {', '.join(str(x.dims) for x in inputs)}")
    axis = normalize_axis(op.get_attr("axis"), len(dims) + 1)
    expanded = [ctx.builder.reshape(x, [*dims[:axis], 1, *dims[axis:]]) for x in inputs]
    return [ctx.builder.concatenate(expanded, axis)]


def _pack_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return list(operation("Unpack", [grad], {"num": len(op.inputs), "axis": op.get_attr("axis")}).outputs)


def _pack_partial_shape(tensor: Tensor) -> TensorShape:
    sizes = [constant_value(part) for part in tensor.op.inputs]
    return TensorShape([None if size is None or int(size) == -1 else int(size) for size in sizes])


declare("Pack", ("values*",), _pack_infer, _pack_lower, _pack_gradient, MOVEMENT, attrs=("axis",))
register_partial_shape("Pack", _pack_partial_shape)


# Unpack(value): one output for each position along a dimension.


def _unpack_infer(op: Operation) -> Sequence[OutputType]:
    x, num = op.inputs[0], op.get_attr("num")
    if x.shape.dims is None:
        return [(x.dtype, unknown_shape())] * num
    axis = normalize_axis(op.get_attr("axis"), len(x.shape.dims))
    if x.shape.dims[axis] not in (None, num):
        raise ShapeError(f"dimension {axis} of {x.shape} cannot be taken apart into {num} pieces")
    return [(x.dtype, TensorShape([size for i, size in enumerate(x.shape.dims) if i != axis]))] * num


def _unpack_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    (x,) = inputs
    axis, num = normalize_axis(op.get_attr("axis"), x.shape.rank), op.get_attr("num")
    if x.dims[axis] != num:
        raise ShapeError(f"dimension {axis} of {x.shape.text()} cannot be taken apart into {num} pieces")
    kept = [size for i, size in enumerate(x.dims) if i != axis]
    return [ctx.builder.reshape(piece, kept) for piece in _pieces(ctx, x, axis, [1] * num)]


def _unpack_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    return [node("Pack", all_gradients(op, grads), {"axis": op.get_attr("axis")})]


def _pieces(ctx: LoweringContext, x: Handle, axis: int, sizes: Sequence[int]) -> list[Handle]:
    pieces, start = [], 0
    for size in sizes:
        starts = [start if i == axis else 0 for i in range(len(x.dims))]
        limits = [start + size if i == axis else extent for i, extent in enumerate(x.dims)]
        pieces.append(ctx.builder.slice(x, starts, limits))
        start += size
    return pieces


declare_outputs("Unpack", ("value",), _unpack_infer, _unpack_lower, _unpack_gradient, MOVEMENT, attrs=("num", "axis"))


# Split(split_dim, value) into equal parts; SplitV(value, size_splits, split_dim) into parts of given sizes.


def _split_infer(op: Operation) -> Sequence[OutputType]:
    axis, x = op.inputs
    num, position = op.get_attr("num_split"), constant_value(axis)
    if num < 1:
        raise ShapeError(f"num_split must be positive, found {num}")
    if x.shape.dims is None or position is None:
        return [(x.dtype, unknown_shape(x.shape.rank))] * num
    along = normalize_axis(int(position), len(x.shape.dims), "split_dim")
    size = x.shape.dims[along]
    if size is not None and size % num:
        raise ShapeError(f"dimension {along} of {x.shape} cannot be split into {num} equal parts")
    part = None if size is None else size // num
    return [(x.dtype, TensorShape([part if i == along else s for i, s in enumerate(x.shape.dims)]))] * num


def _split_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    x, num = inputs[0], op.get_attr("num_split")
    along = normalize_axis(int(ctx.constant(op, "split_dim")), x.shape.rank, "split_dim")
    if x.dims[along] % num:
        raise ShapeError(f"dimension {along} of {x.shape.text()} cannot be split into {num} equal parts")
    return _pieces(ctx, x, along, [x.dims[along] // num] * num)


def _split_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    return [None, node("ConcatV2", [*all_gradients(op, grads), op.inputs[0]])]


def _split_v_infer(op: Operation) -> Sequence[OutputType]:
    x, sizes, axis = op.inputs
    num, position, parts = op.get_attr("num_split"), constant_value(axis), constant_value(sizes)
    if x.shape.dims is None or position is None:
        return [(x.dtype, unknown_shape(x.shape.rank))] * num
    along = normalize_axis(int(position), len(x.shape.dims), "split_dim")
    known = [None] * num if parts is None else _checked_parts(parts.tolist(), x.shape.dims[along])
    return [(x.dtype, TensorShape([part if i == along else s for i, s in enumerate(x.shape.dims)])) for part in known]


def _checked_parts(parts: Sequence[int], size: int | None) -> list[int | None]:
    """Part sizes with a single -1 filled in; they must add up to the size."""
    if list(parts).count(-1) > 1:
        raise ShapeError(f"only one part may have size -1, found {list(parts)}")
    known = sum(part for part in parts if part != -1)
    rest = None if size is None else size - known
    if rest is not None and (rest < 0 or (rest > 0 and -1 not in parts)):
        raise ShapeError(f"parts {list(parts)} do not add up to the dimension's size {size}")
    return [rest if part == -1 else part for part in parts]


def _split_v_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    x = inputs[0]
    along = normalize_axis(int(ctx.constant(op, "split_dim")), x.shape.rank, "split_dim")
    parts = _checked_parts([int(size) for size in ctx.constant(op, "size_splits")], x.dims[along])
    return _pieces(ctx, x, along, [part for part in parts if part is not None])


def _split_v_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    return [node("ConcatV2", [*all_gradients(op, grads), op.inputs[2]]), None, None]


declare_outputs(
    "Split",
    ("split_dim", "value"),
    _split_infer,
    _split_lower,
    _split_gradient,
    MOVEMENT,
    attrs=("num_split",),
    constant_inputs=("split_dim",),
)
declare_outputs(
    "SplitV",
    ("value", "size_splits", "split_dim"),
    _split_v_infer,
    _split_v_lower,
    _split_v_gradient,
    MOVEMENT,
    attrs=("num_split",),
    constant_inputs=("size_splits", "split_dim"),
)
