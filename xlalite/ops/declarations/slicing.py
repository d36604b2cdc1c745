"""Cutting boxes out of tensors, padding them, and turning dimensions round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.gradient_rules import of_one_output, shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import constant_axes, require_rank, require_same_type, require_type

# Slice(input, begin, size): a size of -1 means all that is left.


def _slice_infer(op: Operation) -> Sequence[OutputType]:
    x, begin, size = op.inputs
    require_same_type([begin, size])
    require_type(begin, INTEGER_TYPES, "begin")
    begins, sizes = constant_value(begin), constant_value(size)
    rank = x.shape.rank
    for vector in (begin, size):
        require_rank(vector, lambda found: found == 1, "a vector", "begin or size")
        rank = rank if rank is not None or not vector.shape.dims else vector.shape.dims[0]
    if sizes is None or rank is None:
        return [(x.dtype, constant_value_as_shape(size) if sizes is None else unknown_shape(rank))]
    dims = x.shape.with_rank(rank).as_list()
    if len(sizes) != rank:
        raise ShapeError(f"size has {len(sizes)} entries for an input of shape {x.shape}")
    starts = [None] * rank if begins is None else begins.tolist()
    parts = zip(dims, starts, sizes.tolist(), strict=True)
    return [(x.dtype, TensorShape([_slice_size(extent, start, count) for extent, start, count in parts]))]


def _slice_size(extent: int | None, start: int | None, count: int) -> int | None:
    if start is not None and (start < 0 or (extent is not None and start + max(count, 0) > extent)):
        raise ShapeError(f"a slice from {start} of size {count} does not lie in a dimension of size {extent}")
    if count >= 0:
        return count
    return None if extent is None or start is None else extent - start


def _slice_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    sizes, begins = ctx.constant(op, "size").tolist(), ctx.constant_or_none(op.inputs[1])
    if begins is not None:
        starts = begins.tolist()
        found = [_slice_size(e, s, n) for e, s, n in zip(x.dims, starts, sizes, strict=True)]
        return [b.slice(x, starts, [s + (n or 0) for s, n in zip(starts, found, strict=True)])]
    if -1 in sizes:
        raise LoweringError(f"{op.describe()}: a size of -1 needs a begin that is known when the operation is compiled")
    return [b.dynamic_slice(x, b.scalars(ctx.handle(op.inputs[1])), sizes)]


def _begin_of_a_rest(op: Operation) -> Sequence[int]:
    """`begin`, when what is left from there on is asked for: the size of the result depends on it."""
    sizes = constant_value(op.inputs[2])
    return (1,) if sizes is not None and -1 in sizes else ()


def _slice_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The gradient padded with zeros to the input's sizes."""
    x, begin = op.inputs[0], op.inputs[1]
    before = node("Cast", [begin], {"dtype": shape_tensor(x).dtype})
    after = shape_tensor(x) - before - shape_tensor(op.outputs[0])
    paddings = node("Pack", [before, after], {"axis": 1})
    return [node("Pad", [grad, paddings]), None, None]


register(
    OpSpec(
        "Slice",
        _slice_infer,
        inputs=("input", "begin", "size"),
        lower=_slice_lower,
        gradient=of_one_output(_slice_gradient),
        group=MOVEMENT,
        constant_inputs=("size",),
        preferred_constant_inputs=("begin",),
        further_constant_inputs=_begin_of_a_rest,
    )
)


# Pad(input, paddings) with zeros; PadV2 with a given value; paddings is [rank, 2].


def _pad_infer(op: Operation) -> Sequence[OutputType]:
    x, paddings = op.inputs[0], op.inputs[1]
    require_type(paddings, INTEGER_TYPES, "paddings")
    if len(op.inputs) == 3:
        require_same_type([x, op.inputs[2]])
    known = constant_value(paddings)
    if known is None or x.shape.dims is None:
        return [(x.dtype, unknown_shape(x.shape.rank))]
    if known.shape != (len(x.shape.dims), 2):
        raise ShapeError(f"paddings has shape {known.shape}, expected ({len(x.shape.dims)}, 2) for input {x.shape}")
    if (known < 0).any():
        raise ShapeError(f"paddings must not be negative, found {known.tolist()}")
    sizes = [
        None if size is None else size + before + after
        for size, (before, after) in zip(x.shape.dims, known.tolist(), strict=True)
    ]
    return [(x.dtype, TensorShape(sizes))]


def _pad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    known = ctx.constant(op, "paddings")
    if known.shape != (x.shape.rank, 2) or (known < 0).any():
        raise ShapeError(f"paddings {known.tolist()} do not fit {x.shape.text()}")
    value = inputs[1] if len(inputs) == 2 else b.constant(np.zeros((), x.dtype.numpy), x.dtype)
    return [b.pad(x, value, [(before, after, 0) for before, after in known.tolist()])]


def _pad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, paddings = op.inputs[0], op.inputs[1]
    sizes = shape_tensor(x)
    rank = x.shape.rank if x.shape.rank is not None else len(paddings.shape)
    first_column = [constant(np.array([0, 0], np.int32)), constant(np.array([rank, 1], np.int32))]
    before = node("Slice", [node("Cast", [paddings], {"dtype": sizes.dtype}), *first_column])
    begin = node("Reshape", [before, constant(np.array([-1], np.int32))])
    return [node("Slice", [grad, begin, sizes]), *[None] * (len(op.inputs) - 1)]


for _name, _inputs in (("Pad", ("input", "paddings")), ("PadV2", ("input", "paddings", "constant_values"))):
    declare(_name, _inputs, _pad_infer, _pad_lower, _pad_gradient, MOVEMENT, constant_inputs=("paddings",))


# ReverseV2(tensor, axis).


def _reverse_infer(op: Operation) -> Sequence[OutputType]:
    x, axis = op.inputs
    require_type(axis, INTEGER_TYPES, "axis")
    if x.shape.rank is not None:
        known = constant_value(axis)
        axes = constant_axes(axis, x.shape.rank)
        if known is not None and axes is not None and len(axes) != known.size:
            raise ShapeError(f"axis {known.tolist()} names a dimension twice")
    return [(x.dtype, x.shape)]


def _reverse_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    axes = [int(axis) % inputs[0].shape.rank for axis in ctx.constant(op, "axis").ravel()]
    return [ctx.builder.reverse(inputs[0], axes)]


def _reverse_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("ReverseV2", [grad, op.inputs[1]]), None]


declare(
    "ReverseV2",
    ("tensor", "axis"),
    _reverse_infer,
    _reverse_lower,
    _reverse_gradient,
    MOVEMENT,
    constant_inputs=("axis",),
)
