"""Slices with steps, dropped and new dimensions as one operation: `t[1:, ::-2, ..., None, 3]`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape, register_partial_shape
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@dataclass(frozen=True, slots=True)
class DimensionSlice:
    """What is taken of one dimension: `count` elements from `start` on, `step` apart; dropped when a single index."""

    start: int
    count: int
    step: int
    dropped: bool


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """An index applied to known sizes: what is taken of each dimension, and the sizes of the result."""

    dimensions: tuple[DimensionSlice, ...]
    result: tuple[int, ...]


# StridedSlice(input, begin, end, strides).


def _infer(op: Operation) -> Sequence[OutputType]:
    x, begin, end, strides = op.inputs
    require_same_type([begin, end, strides])
    require_type(begin, INTEGER_TYPES, "begin")
    begins, ends, steps = (constant_value(vector) for vector in (begin, end, strides))
    if x.shape.dims is None:
        return [(x.dtype, unknown_shape())]
    masks = _Masks.of(op)
    count = (begin.shape.dims or (None,))[0]
    if begins is None or ends is None or steps is None:
        if count is None:
            return [(x.dtype, unknown_shape())]
        return [(x.dtype, _dynamic_shape(x.shape, masks, count))]
    return [(x.dtype, _static_shape(x.shape, begins, ends, steps, masks))]


def _static_shape(shape: TensorShape, begins: Array, ends: Array, steps: Array, masks: _Masks) -> TensorShape:
    """The result's shape where input sizes may be unknown."""
    dims = shape.as_list()
    sizes: list[int | None] = []
    for item in masks.spread(len(begins), len(dims)):
        if item.source is None:
            sizes.append(1)
            continue
        size = dims[item.source]
        part = _take(item, size, begins, ends, steps, masks)
        if not masks.drops(item.key):
            sizes.append(None if part is None else part.count)
    return TensorShape(sizes)


def _dynamic_shape(shape: TensorShape, masks: _Masks, count: int) -> TensorShape:
    dims = shape.as_list()
    sizes: list[int | None] = []
    for item in masks.spread(count, len(dims)):
        if item.source is None:
            sizes.append(1)
        elif item.key is None:
            sizes.append(dims[item.source])
        elif not masks.drops(item.key):
            sizes.append(None)
    return TensorShape(sizes)


@dataclass(frozen=True, slots=True)
class _Item:
    """One dimension of the result before dropping: from a dimension of the input, or new."""

    source: int | None
    key: int | None


@dataclass(frozen=True, slots=True)
class _Masks:
    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink: int

    @staticmethod
    def of(op: Operation) -> _Masks:
        return _Masks(*(op.get_attr(name) for name in MASKS))

    def drops(self, key: int | None) -> bool:
        return key is not None and bool(self.shrink >> key & 1)

    def spread(self, keys: int, rank: int) -> list[_Item]:
        """Pairs keys with dimensions; `...`, given or implied at the end, stands for whole dimensions."""
        used = sum(1 for key in range(keys) if not (self.new_axis | self.ellipsis) >> key & 1)
        if used > rank:
            raise ShapeError(f"{used} indices for a tensor of rank {rank}")
        items: list[_Item] = []
        source = 0
        for key in range(keys):
            if self.ellipsis >> key & 1:
                items += [_Item(source + i, None) for i in range(rank - used)]
                source += rank - used
            elif self.new_axis >> key & 1:
                items.append(_Item(None, key))
            else:
                items.append(_Item(source, key))
                source += 1
        return items + [_Item(i, None) for i in range(source, rank)]


def _take(
    item: _Item, size: int | None, begins: Array, ends: Array, steps: Array, masks: _Masks
) -> DimensionSlice | None:
    """What is taken of a dimension; None when that depends on its unknown size."""
    if item.key is None:
        return None if size is None else DimensionSlice(0, size, 1, False)
    key = item.key
    start, stop, step = int(begins[key]), int(ends[key]), int(steps[key])
    if step == 0:
        raise ShapeError("the step of a slice must not be 0")
    if masks.drops(key):
        if size is None:
            return DimensionSlice(start, 1, 1, True)
        if not -size <= start < size:
            raise ShapeError(f"index {start} is out of range for dimension {item.source} of size {size}")
        return DimensionSlice(start % size, 1, 1, True)
    begin = None if masks.begin >> key & 1 else start
    end = None if masks.end >> key & 1 else stop
    if size is None:
        return None
    indices = range(*slice(begin, end, step).indices(size))
    return DimensionSlice(indices.start if len(indices) else 0, len(indices), step, False)


def plan_slice(dims: Sequence[int], begins: Array, ends: Array, steps: Array, masks: _Masks) -> SlicePlan:
    """An index applied to known sizes.

    Raises:
        ShapeError: an index is out of range, or there are too many.
    """
    parts: list[DimensionSlice] = []
    result: list[int] = []
    for item in masks.spread(len(begins), len(dims)):
        if item.source is None:
            result.append(1)
            continue
        part = _take(item, dims[item.source], begins, ends, steps, masks)
        assert part is not None, "sizes are known here"
        parts.append(part)
        if not part.dropped:
            result.append(part.count)
    return SlicePlan(tuple(parts), tuple(result))


def _cut(b: Builder, x: Handle, plan: SlicePlan) -> Handle:
    starts, limits, steps, backwards = [], [], [], []
    for axis, part in enumerate(plan.dimensions):
        last = part.start + (part.count - 1) * part.step
        low = min(part.start, last) if part.count else 0
        starts.append(low)
        limits.append(max(part.start, last) + 1 if part.count else low)
        steps.append(abs(part.step))
        backwards += [axis] if part.step < 0 and part.count > 1 else []
    return b.reverse(b.slice(x, starts, limits, steps), backwards)


def slice_plan_of(ctx: LoweringContext, op: Operation, dims: Sequence[int]) -> SlicePlan:
    """The index that an operation's constant inputs and masks name, applied to known sizes."""
    begin, end, strides = (ctx.constant(op, name) for name in ("begin", "end", "strides"))
    return plan_slice(dims, begin, end, strides, _Masks.of(op))


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    x = inputs[0]
    plan = slice_plan_of(ctx, op, x.dims)
    return [ctx.builder.reshape(_cut(ctx.builder, x, plan), plan.result)]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    masks = {name: op.get_attr(name) for name in MASKS}
    x, *index = op.inputs
    sizes = node("Cast", [shape_tensor(x)], {"dtype": index[0].dtype})
    return [node("StridedSliceGrad", [sizes, *index, grad], masks), None, None, None]


def _partial_shape(tensor: Tensor) -> TensorShape:
    """A slice of a vector of sizes."""
    source, *index = tensor.op.inputs
    values = [constant_value(vector) for vector in index]
    known = constant_value_as_shape(source)
    begins, ends, steps = values
    if known.dims is None or begins is None or ends is None or steps is None or len(begins) != 1:
        return unknown_shape(tensor.shape.dims[0] if tensor.shape.dims else None)
    masks = _Masks.of(tensor.op)
    plan = plan_slice((len(known.dims),), begins, ends, steps, masks)
    if masks.new_axis or masks.ellipsis or plan.dimensions[0].dropped:
        return unknown_shape()
    part = plan.dimensions[0]
    return TensorShape([known.dims[part.start + i * part.step] for i in range(part.count)])


declare(
    "StridedSlice",
    ("input", "begin", "end", "strides"),
    _infer,
    _lower,
    _gradient,
    MOVEMENT,
    attrs=MASKS,
    constant_inputs=("begin", "end", "strides"),
)
register_partial_shape("StridedSlice", _partial_shape)


# StridedSliceGrad(shape, begin, end, strides, dy): dy put where StridedSlice took it from, zeros elsewhere.


def _grad_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[4].dtype, constant_value_as_shape(op.inputs[0]))]


def in_order(b: Builder, part: Handle, plan: SlicePlan) -> Handle:
    """What a slice took, as it lies in its source: with dropped dimensions, without new ones, none backwards."""
    box = b.reshape(part, [each.count for each in plan.dimensions])
    return b.reverse(box, [i for i, each in enumerate(plan.dimensions) if each.step < 0 and each.count > 1])


def put_back(b: Builder, part: Handle, dims: Sequence[int], plan: SlicePlan) -> Handle:
    """What a slice took in an array of the source's sizes, zeros elsewhere."""
    padding = []
    for size, each in zip(dims, plan.dimensions, strict=True):
        low = min(each.start, each.start + (each.count - 1) * each.step) if each.count else 0
        covered = (each.count - 1) * abs(each.step) + 1 if each.count else 0
        padding.append((low, size - low - covered, abs(each.step) - 1))
    return b.pad(in_order(b, part, plan), b.constant(np.zeros((), part.dtype.numpy), part.dtype), padding)


def _grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    dims = tuple(int(size) for size in ctx.constant(op, "shape"))
    return [put_back(ctx.builder, inputs[0], dims, slice_plan_of(ctx, op, dims))]


def _grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    masks = {name: op.get_attr(name) for name in MASKS}
    return [None, None, None, None, node("StridedSlice", [grad, *op.inputs[1:4]], masks)]


declare(
    "StridedSliceGrad",
    ("shape", "begin", "end", "strides", "dy"),
    _grad_infer,
    _grad_lower,
    _grad_gradient,
    MOVEMENT,
    attrs=MASKS,
    constant_inputs=("shape", "begin", "end", "strides"),
)
