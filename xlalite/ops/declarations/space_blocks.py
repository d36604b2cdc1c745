"""Blocks of space that become examples or channels, and the way back; patches of images as channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import COMPILABLE_TYPES, INTEGER_TYPES, int32, int64
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dims, TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import declare
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_rank, require_type
from xlalite.ops.helpers.spatial import SpatialLayout, one_of_each, spatial_layout, steps_along

Pairs = Sequence[Sequence[int]]

# SpaceToBatchND(input, block_shape, paddings): from each block one element goes to each of as many examples.


def _size_of_parts(size: int | None, block: int, pair: Sequence[int]) -> int | None:
    if min(pair) < 0 or block < 1:
        raise ShapeError(f"block {block} must be positive and paddings {list(pair)} must not be negative")
    if size is None:
        return None
    if (size + sum(pair)) % block:
        raise ShapeError(f"a size of {size}, {size + sum(pair)} with padding, is not divisible by the block of {block}")
    return (size + sum(pair)) // block


def _size_of_whole(size: int | None, block: int, pair: Sequence[int]) -> int | None:
    if min(pair) < 0 or block < 1:
        raise ShapeError(f"block {block} must be positive and crops {list(pair)} must not be negative")
    whole = None if size is None else size * block - sum(pair)
    if whole is not None and whole < 0:
        raise ShapeError(f"crops {list(pair)} leave nothing of a size of {size} in blocks of {block}")
    return whole


def _to_batch(b: Builder, x: Handle, blocks: Sequence[int], paddings: Pairs) -> Handle:
    count, rank = len(blocks), len(x.dims)
    rest = rank - 1 - count
    padding = [(0, 0, 0), *((low, high, 0) for low, high in paddings), *[(0, 0, 0)] * rest]
    padded = b.pad(x, b.constant(np.zeros((), x.dtype.numpy), x.dtype), padding)
    parts = [_size_of_parts(*each) or 0 for each in zip(x.dims[1 : 1 + count], blocks, paddings, strict=True)]
    split = [size for pair in zip(parts, blocks, strict=True) for size in pair]
    apart = b.reshape(padded, [x.dims[0], *split, *x.dims[1 + count :]])
    inside, outside = [2 * i + 2 for i in range(count)], [2 * i + 1 for i in range(count)]
    moved = b.transpose(apart, [*inside, 0, *outside, *range(1 + 2 * count, rank + count)])
    return b.reshape(moved, [x.dims[0] * math.prod(blocks), *parts, *x.dims[1 + count :]])


def _from_batch(b: Builder, x: Handle, blocks: Sequence[int], crops: Pairs) -> Handle:
    count, rank = len(blocks), len(x.dims)
    batch, parts, rest = x.dims[0] // math.prod(blocks), x.dims[1 : 1 + count], x.dims[1 + count :]
    apart = b.reshape(x, [*blocks, batch, *parts, *rest])
    order = [count, *(axis for i in range(count) for axis in (count + 1 + i, i)), *range(2 * count + 1, rank + count)]
    whole = [size * block for size, block in zip(parts, blocks, strict=True)]
    merged = b.reshape(b.transpose(apart, order), [batch, *whole, *rest])
    starts = [0, *(low for low, _ in crops), *[0] * len(rest)]
    limits = [batch, *(size - high for size, (_, high) in zip(whole, crops, strict=True)), *rest]
    return b.slice(merged, starts, limits)


def _declare_batch_move(name: str, back: str, margins: str, is_forward: bool, with_blocks: bool) -> None:
    constant_inputs = ("block_shape", margins) if with_blocks else (margins,)
    attrs = () if with_blocks else ("block_size",)

    def arguments(op: Operation, ctx: LoweringContext | None = None) -> tuple[list[int], list[list[int]]] | None:
        """The blocks and margins, None when they are not known."""
        found = []
        for position, what in enumerate(constant_inputs, 1):
            value = constant_value(op.inputs[position]) if ctx is None else ctx.constant(op, what)
            if value is None:
                return None
            found.append(np.asarray(value))
        blocks = [int(each) for each in found[0]] if with_blocks else [op.get_attr("block_size")] * 2
        if found[-1].shape != (len(blocks), 2):
            raise ShapeError(f"{margins} have shape {found[-1].shape}; expected {(len(blocks), 2)}")
        return blocks, [[int(low), int(high)] for low, high in found[-1]]

    def infer(op: Operation) -> Sequence[OutputType]:
        x = op.inputs[0]
        for tensor, what in zip(op.inputs[1:], constant_inputs, strict=True):
            require_type(tensor, INTEGER_TYPES, what)
        if not with_blocks:
            require_rank(x, lambda rank: rank == 4, "rank 4")
        known = arguments(op)
        if known is None or x.shape.dims is None:
            return [(x.dtype, unknown_shape(x.shape.rank))]
        return [(x.dtype, TensorShape(moved_dims(x.shape, *known)))]

    def moved_dims(shape: TensorShape, blocks: list[int], pairs: list[list[int]]) -> Dims:
        dims = shape.with_rank_at_least(1 + len(blocks)).as_list()
        space = zip(dims[1 : 1 + len(blocks)], blocks, pairs, strict=True)
        sizes = [(_size_of_parts if is_forward else _size_of_whole)(*each) for each in space]
        batch, product = dims[0], math.prod(blocks)
        if batch is not None and not is_forward and batch % product:
            raise ShapeError(f"a batch of {batch} is not divisible by the {product} elements of a block")
        if batch is not None:
            batch = batch * product if is_forward else batch // product
        return (batch, *sizes, *dims[1 + len(blocks) :])

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        known = arguments(op, ctx)
        assert known is not None, "known when the operation is lowered"
        moved_dims(TensorShape(inputs[0].dims), *known)
        return [(_to_batch if is_forward else _from_batch)(ctx.builder, inputs[0], *known)]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        known = {each: op.get_attr(each) for each in attrs}
        return [node(back, [grad, *op.inputs[1:]], known), *[None] * len(constant_inputs)]

    declare(
        name,
        ("input", *constant_inputs),
        infer,
        lower,
        gradient,
        None,
        attrs=attrs,
        constant_inputs=constant_inputs,
    )


_declare_batch_move("SpaceToBatchND", "BatchToSpaceND", "paddings", True, True)
_declare_batch_move("BatchToSpaceND", "SpaceToBatchND", "crops", False, True)
_declare_batch_move("SpaceToBatch", "BatchToSpace", "paddings", True, False)
_declare_batch_move("BatchToSpace", "SpaceToBatch", "crops", False, False)


# SpaceToDepth(input): each block of `block_size` squared becomes one place with as many times the channels.


def _to_depth(b: Builder, x: Handle, layout: SpatialLayout, block: int) -> Handle:
    high, wide = (x.dims[i] // block for i in layout.spatial)
    batch, channels = x.dims[0], x.dims[layout.channel]
    if layout.channel == 1:
        apart = b.reshape(x, [batch, channels, high, block, wide, block])
        return b.reshape(b.transpose(apart, [0, 3, 5, 1, 2, 4]), [batch, block * block * channels, high, wide])
    apart = b.reshape(x, [batch, high, block, wide, block, channels])
    return b.reshape(b.transpose(apart, [0, 1, 3, 2, 4, 5]), [batch, high, wide, block * block * channels])


def _from_depth(b: Builder, x: Handle, layout: SpatialLayout, block: int) -> Handle:
    high, wide = (x.dims[i] for i in layout.spatial)
    batch, channels = x.dims[0], x.dims[layout.channel] // (block * block)
    if layout.channel == 1:
        apart = b.reshape(x, [batch, block, block, channels, high, wide])
        return b.reshape(b.transpose(apart, [0, 3, 4, 1, 5, 2]), [batch, channels, high * block, wide * block])
    apart = b.reshape(x, [batch, high, wide, block, block, channels])
    return b.reshape(b.transpose(apart, [0, 1, 3, 2, 4, 5]), [batch, high * block, wide * block, channels])


_IN_FOURS = "NCHW_VECT_C"
"""Channels in fours: `[batch, channels / 4, height, width, 4]`."""


def _depth_layout(op: Operation) -> SpatialLayout:
    """Where the dimensions are; channels in fours are looked at as whole."""
    data_format = op.get_attr("data_format")
    return spatial_layout("NCHW" if data_format == _IN_FOURS else data_format, 4)


def _declare_depth_move(
    name: str, back: str, is_forward: bool, move: Callable[[Builder, Handle, SpatialLayout, int], Handle]
) -> None:
    attrs = ("block_size", "data_format")

    def moved(op: Operation, shape: TensorShape) -> TensorShape:
        layout, block = _depth_layout(op), op.get_attr("block_size")
        if block < 1:
            raise ShapeError(f"block_size must be positive, found {block}")
        in_fours = op.get_attr("data_format") == _IN_FOURS
        dims = shape.with_rank(5 if in_fours else 4).as_list()
        if in_fours:
            if dims.pop() not in (None, 4):
                raise ShapeError(f"the last dimension of {shape} holds channels in fours")
            dims[1] = None if dims[1] is None else dims[1] * 4
        divided = layout.spatial if is_forward else (layout.channel,)
        factors = {layout.channel: block * block, **dict.fromkeys(layout.spatial, block)}
        for axis, factor in factors.items():
            size = dims[axis]
            if size is None:
                continue
            if axis in divided and size % factor:
                raise ShapeError(f"dimension {axis} of size {size} is not divisible by {factor}")
            dims[axis] = size // factor if axis in divided else size * factor
        if in_fours and dims[1] is not None and dims[1] % 4:
            raise ShapeError(f"{dims[1]} channels do not come in fours")
        return TensorShape([dims[0], None if dims[1] is None else dims[1] // 4, *dims[2:], 4] if in_fours else dims)

    def infer(op: Operation) -> Sequence[OutputType]:
        require_type(op.inputs[0], COMPILABLE_TYPES)
        return [(op.inputs[0].dtype, moved(op, op.inputs[0].shape))]

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, (x,) = ctx.builder, inputs
        sizes = moved(op, TensorShape(x.dims)).known_dims()
        if op.get_attr("data_format") != _IN_FOURS:
            return [move(b, x, _depth_layout(op), op.get_attr("block_size"))]
        n, fours, high, wide, _ = x.dims
        planes = b.reshape(b.transpose(x, (0, 1, 4, 2, 3)), (n, fours * 4, high, wide))
        planes = move(b, planes, _depth_layout(op), op.get_attr("block_size"))
        return [b.transpose(b.reshape(planes, (*sizes[:2], 4, *sizes[2:4])), (0, 1, 3, 4, 2))]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        return [node(back, [grad], {each: op.get_attr(each) for each in attrs})]

    declare(name, ("input",), infer, lower, gradient, None, attrs=attrs, defaults={"data_format": "NHWC"})


_declare_depth_move("SpaceToDepth", "DepthToSpace", True, _to_depth)
_declare_depth_move("DepthToSpace", "SpaceToDepth", False, _from_depth)


# ExtractImagePatches(images): the elements below a window at each of its positions, as channels.

_PATCH_ATTRS = ("ksizes", "strides", "rates", "padding")


def _patch_steps(op: Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The window's sizes and the distances of its elements."""
    sizes = one_of_each(op.get_attr("ksizes"), "ksizes", 4)
    rates = one_of_each(op.get_attr("rates"), "rates", 4)
    for what, values in (("ksizes", sizes), ("strides", op.get_attr("strides")), ("rates", rates)):
        if values[0] != 1 or values[3] != 1:
            raise ShapeError(f"{what} of batch and channels must be 1, found {list(values)}")
    return sizes, rates


def _patches_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], COMPILABLE_TYPES)
    sizes, rates = _patch_steps(op)
    dims = op.inputs[0].shape.with_rank(4).as_list()
    steps = steps_along(op, 4, op.get_attr("strides"))
    spans = [(k - 1) * rate + 1 for k, rate in zip(sizes, rates, strict=True)]
    high, wide = (steps[i].positions(dims[i], spans[i]) for i in (1, 2))
    depth = None if dims[3] is None else dims[3] * sizes[1] * sizes[2]
    return [(op.inputs[0].dtype, TensorShape([dims[0], high, wide, depth]))]


def _patches_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    sizes, rates = _patch_steps(op)
    strides = op.get_attr("strides")
    steps = steps_along(op, 4, strides)
    windows = [steps[i].window(x.dims[i], (sizes[i] - 1) * rates[i] + 1) for i in (1, 2)]
    high, wide = (window.output_size(x.dims[i]) for i, window in zip((1, 2), windows, strict=True))
    if 0 in (high, wide):
        return [b.full(0, x.dtype, [x.dims[0], high, wide, x.dims[3] * sizes[1] * sizes[2]])]
    margins = [(0, 0, 0), *((window.pad_low, window.pad_high, 0) for window in windows), (0, 0, 0)]
    padded = b.pad(x, b.constant(np.zeros((), x.dtype.numpy), x.dtype), margins)
    parts = []
    for row, column in np.ndindex(sizes[1], sizes[2]):
        top, left = row * rates[1], column * rates[2]
        bottom, right = top + (high - 1) * strides[1] + 1, left + (wide - 1) * strides[2] + 1
        parts.append(b.slice(padded, [0, top, left, 0], [x.dims[0], bottom, right, x.dims[3]], list(strides)))
    return [b.concatenate(parts, 3)]


def _patches_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Extraction is a depthwise convolution with one filter for each element of the window."""
    channels = op.inputs[0].shape.with_rank(4).as_list()[3]
    if channels is None:
        raise ShapeError("the gradient of ExtractImagePatches needs a known number of channels")
    _, rows, columns, _ = op.get_attr("ksizes")
    one_each = np.eye(rows * columns).reshape(rows, columns, 1, rows * columns)
    filters = constant(np.tile(one_each, [1, 1, channels, 1]).astype(grad.dtype.numpy_dtype))
    sizes = shape_tensor(grad)
    ends = node("Slice", [sizes, constant([0]), constant([3])])
    split = node("ConcatV2", [ends, constant([rows * columns, channels]), constant(0)])
    by_channel = node("Transpose", [node("Reshape", [grad, split]), constant([0, 1, 2, 4, 3])])
    attrs = {
        "strides": op.get_attr("strides"),
        "padding": op.get_attr("padding"),
        "explicit_paddings": (),
        "data_format": "NHWC",
        "dilations": op.get_attr("rates"),
    }
    inputs = [shape_tensor(op.inputs[0]), filters, node("Reshape", [by_channel, sizes])]
    return [node("DepthwiseConv2dNativeBackpropInput", inputs, attrs)]


declare("ExtractImagePatches", ("images",), _patches_infer, _patches_lower, _patches_gradient, None, attrs=_PATCH_ATTRS)


# DataFormatDimMap(x): dimension numbers in another order; DataFormatVecPermute(x): one value for each, in that order.

_FORMATS = {"src_format": "NHWC", "dst_format": "NCHW"}
_FORMAT_ATTRS = tuple(_FORMATS)


def _formats(op: Operation, count: int) -> tuple[str, str]:
    source, target = (op.get_attr(name) for name in _FORMAT_ATTRS)
    if len(source) == count + 2:
        source, target = (each.replace("N", "").replace("C", "") for each in (source, target))
    if sorted(source) != sorted(target) or len(source) != count:
        raise ShapeError(f"{source!r} and {target!r} are not orders of the same {count} dimensions")
    return source, target


def _dim_map_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {int32, int64})
    _formats(op, len(op.get_attr("src_format")))
    return [(op.inputs[0].dtype, op.inputs[0].shape)]


def _dim_map_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    source, target = _formats(op, len(op.get_attr("src_format")))
    table = b.constant(np.array([target.index(each) for each in source], x.dtype.numpy), x.dtype)
    return [gather_rows(b, table, b.select(b.compare(x, 0, "LT"), x + len(source), x), 0)]


def _permute_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, {int32, int64})
    require_rank(x, lambda rank: rank in (1, 2), "a vector or pairs")
    if x.shape.dims and x.shape.dims[0] is not None:
        _formats(op, x.shape.dims[0])
    return [(x.dtype, x.shape)]


def _permute_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    source, target = _formats(op, x.dims[0])
    order = b.constant(np.array([source.index(each) for each in target], np.int32))
    return [gather_rows(b, x, order, 0)]


declare("DataFormatDimMap", ("x",), _dim_map_infer, _dim_map_lower, None, None, attrs=_FORMAT_ATTRS, defaults=_FORMATS)
declare(
    "DataFormatVecPermute", ("x",), _permute_infer, _permute_lower, None, None, attrs=_FORMAT_ATTRS, defaults=_FORMATS
)
