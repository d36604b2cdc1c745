"""Operators that move elements without looking at them, and those that ask for shapes."""

from __future__ import annotations

import math

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.building.resampling import Taps
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.tensors import LARGEST

_CONSTANTS = {"value_float": np.float32, "value_int": np.int64, "value_floats": np.float32, "value_ints": np.int64}


@rule("Constant")
def _constant(context: NodeContext) -> Handle:
    for name, dtype in _CONSTANTS.items():
        if name in context.attributes:
            with np.errstate(over="ignore"):
                return context.builder.constant(np.asarray(context.attributes[name], dtype))
    name = "sparse_value" if "sparse_value" in context.attributes else "value"
    if not isinstance(context.attributes.get(name), np.ndarray):
        raise context.error("only constants of numbers are supported")
    return context.builder.constant(context.array(name))


@rule("ConstantOfShape")
def _constant_of_shape(context: NodeContext) -> Handle:
    value = context.array("value") if "value" in context.attributes else np.zeros(1, np.float32)
    if value.size != 1:
        raise context.error(f"the value must be one number, found {value.size}")
    scalar = context.builder.constant(value.reshape(()))
    return context.builder.broadcast(scalar, context.known_integers(0))


@rule("Shape")
def _shape(context: NodeContext) -> Handle:
    dims = context.operand(0).dims
    end = context.integer("end", len(dims))
    return context.builder.constant(np.array(dims[context.integer("start", 0) : end], np.int64))


@rule("Size")
def _size(context: NodeContext) -> Handle:
    return context.builder.constant(np.array(math.prod(context.operand(0).dims), np.int64))


@rule("Reshape")
def _reshape(context: NodeContext) -> Handle:
    x = context.operand(0)
    wanted = list(context.integers_at(1, "shape") or ())
    if not context.integer("allowzero", 0):
        wanted = [x.dims[i] if size == 0 else size for i, size in enumerate(wanted)]
    if -1 in wanted:
        others = math.prod(size for size in wanted if size != -1)
        if others == 0 or math.prod(x.dims) % others:
            raise context.error(f"{x.shape.text()} does not fit sizes {wanted}")
        wanted[wanted.index(-1)] = math.prod(x.dims) // others
    return context.builder.reshape(x, wanted)


@rule("Flatten")
def _flatten(context: NodeContext) -> Handle:
    x = context.operand(0)
    axis = context.integer("axis", 1)
    axis = axis if axis == len(x.dims) else context.normalized(axis, len(x.dims))
    return context.builder.reshape(x, (math.prod(x.dims[:axis]), math.prod(x.dims[axis:])))


@rule("Squeeze")
def _squeeze(context: NodeContext) -> Handle:
    x = context.operand(0)
    axes = context.integers_at(1, "axes")
    if axes is None:
        gone = {i for i, size in enumerate(x.dims) if size == 1}
    else:
        gone = set(context.normalized_all(axes, len(x.dims)))
    return context.builder.reshape(x, [size for i, size in enumerate(x.dims) if i not in gone])


@rule("Unsqueeze")
def _unsqueeze(context: NodeContext) -> Handle:
    x = context.operand(0)
    axes = context.integers_at(1, "axes") or ()
    new = set(context.normalized_all(axes, len(x.dims) + len(axes)))
    sizes = iter(x.dims)
    return context.builder.reshape(x, [1 if i in new else next(sizes) for i in range(len(x.dims) + len(new))])


@rule("Transpose")
def _transpose(context: NodeContext) -> Handle:
    x = context.operand(0)
    return context.builder.transpose(x, context.integers("perm", range(len(x.dims))[::-1]))


@rule("Expand")
def _expand(context: NodeContext) -> Handle:
    x = context.operand(0)
    return broadcast_to(context.builder, x, np.broadcast_shapes(x.dims, context.known_integers(1)))


@rule("Tile")
def _tile(context: NodeContext) -> Handle:
    """Each dimension in two, the first of which repeats."""
    b, x, repeats = context.builder, context.operand(0), context.known_integers(1)
    if len(repeats) != len(x.dims):
        raise context.error(f"{len(repeats)} repeats for {x.shape.text()}")
    pairs = [size for repeat, own in zip(repeats, x.dims, strict=True) for size in (repeat, own)]
    spread = b.broadcast(x, pairs, range(1, 2 * len(repeats), 2))
    return b.reshape(spread, [repeat * own for repeat, own in zip(repeats, x.dims, strict=True)])


@rule("Slice")
def _slice(context: NodeContext) -> Handle:
    x = context.operand(0)
    starts, ends = context.integers_at(1, "starts") or (), context.integers_at(2, "ends") or ()
    axes = context.integers_at(3, "axes")
    steps = context.known_integers(4) if context.has(4) else (1,) * len(starts)
    axes = context.normalized_all(range(len(starts)) if axes is None else axes, len(x.dims))
    ranges = [range(size) for size in x.dims]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        ranges[axis] = ranges[axis][start:end:step]
    return cut(x, ranges)


def cut(x: Handle, ranges: list[range]) -> Handle:
    """The elements at evenly spaced positions of each dimension, which may run backwards."""
    turned = [i for i, each in enumerate(ranges) if each.step < 0]
    forward = [each[::-1] if each.step < 0 else each for each in ranges]
    starts, limits = (
        [each.start if each else 0 for each in forward],
        [each[-1] + 1 if each else 0 for each in forward],
    )
    found = x.builder.slice(x, starts, limits, [each.step if len(each) > 1 else 1 for each in forward])
    return x.builder.reverse(found, turned)


@rule("Pad")
def _pad(context: NodeContext) -> Handle:
    x = context.operand(0)
    rank = len(x.dims)
    pads = context.integers_at(1, "pads" if "pads" in context.attributes else "paddings") or ()
    axes = context.known_integers(3) if context.has(3) else tuple(range(rank))
    axes = context.normalized_all(axes, rank)
    if len(pads) != 2 * len(axes):
        raise context.error(f"{len(pads)} pads for {len(axes)} axes")
    if max(map(abs, pads), default=0) > LARGEST:
        raise context.error(f"pads {list(pads)}")
    sides = [(0, 0)] * rank
    for axis, low, high in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        sides[axis] = (low, high)
    mode = context.text("mode", "constant")
    if mode == "constant":
        value = context.optional(2)
        if value is None:
            value = context.constant(context.number("value", 0.0), x.dtype)
        value = context.builder.reshape(value, ())
        return context.builder.pad(x, value, [(low, high, 0) for low, high in sides])
    if mode not in ("reflect", "edge", "wrap"):
        raise context.error(f"mode must be constant, reflect, edge or wrap, found {mode!r}")
    for axis, (low, high) in enumerate(sides):
        if low or high:
            x = _bordered(context, x, axis, low, high, mode)
    return x


def _bordered(context: NodeContext, x: Handle, axis: int, low: int, high: int, mode: str) -> Handle:
    """One dimension with a border that repeats what it surrounds; negative sides cut off."""
    size = x.dims[axis]
    if size == 0:
        raise context.error("an empty dimension has nothing to repeat")
    places = np.arange(-low, size + high)
    match mode:
        case "edge":
            places = places.clip(0, size - 1)
        case "wrap":
            places = places % size
        case _:
            period = max(1, 2 * (size - 1))
            places = (size - 1) - np.abs(places % period - (size - 1))
    return Taps(places[:, np.newaxis]).of(x, axis)


@rule("DepthToSpace")
def _depth_to_space(context: NodeContext) -> Handle:
    b, x, size = context.builder, context.operand(0), context.integer("blocksize")
    batch, channels, height, width = x.dims
    rest = channels // (size * size)
    if context.text("mode", "DCR") == "DCR":
        split, order = (batch, size, size, rest, height, width), (0, 3, 4, 1, 5, 2)
    else:
        split, order = (batch, rest, size, size, height, width), (0, 1, 4, 2, 5, 3)
    return b.reshape(b.transpose(b.reshape(x, split), order), (batch, rest, height * size, width * size))


@rule("SpaceToDepth")
def _space_to_depth(context: NodeContext) -> Handle:
    b, x, size = context.builder, context.operand(0), context.integer("blocksize")
    batch, channels, height, width = x.dims
    split = b.reshape(x, (batch, channels, height // size, size, width // size, size))
    order = (0, 3, 5, 1, 2, 4) if context.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return b.reshape(b.transpose(split, order), (batch, channels * size * size, height // size, width // size))


@rule("CenterCropPad")
def _center_crop_pad(context: NodeContext) -> Handle:
    x = context.operand(0)
    axes = context.normalized_all(context.integers("axes", range(len(x.dims))), len(x.dims))
    zero = context.constant(0, x.dtype)
    for axis, wanted in zip(axes, context.known_integers(1), strict=True):
        missing = wanted - x.dims[axis]
        low = missing // 2 if missing > 0 else -((-missing) // 2)
        padding = [(low, missing - low, 0) if i == axis else (0, 0, 0) for i in range(len(x.dims))]
        x = context.builder.pad(x, zero, padding)
    return x


@rule("Trilu")
def _trilu(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    rank = len(x.dims)
    shift = int(context.known_scalar(1)) if context.has(1) else 0
    shift = max(-(1 << 40), min(1 << 40, shift))
    rows, columns = b.iota(DType.S64, x.dims, rank - 2), b.iota(DType.S64, x.dims, rank - 1)
    kept = b.compare(columns - rows, shift, "GE" if context.integer("upper", 1) else "LE")
    return b.select(kept, x, filled(0, x))


@rule("EyeLike")
def _eye_like(context: NodeContext) -> Handle:
    b, x = context.builder, context.operand(0)
    dtype = context.dtype("dtype", x.dtype)
    rows, columns = b.iota(DType.S64, x.dims, 0), b.iota(DType.S64, x.dims, 1)
    return b.convert(b.compare(columns - rows, context.integer("k", 0), "EQ"), dtype)


@rule("Range")
def _range(context: NodeContext) -> Handle:
    start, limit, step = (context.known_scalar(i) for i in range(3))
    if float(step) == 0:
        raise context.error("the step is 0")
    wide = start.astype(np.float64) if start.dtype.kind not in "iu" else start.astype(object)
    span = (limit.astype(wide.dtype) - wide) / step.astype(wide.dtype)
    count = max(0, math.ceil(span))
    b = context.builder
    steps = b.iota(DType.S64, (count,), 0)
    dtype = DType.from_numpy(start.dtype)
    kind = DType.F32 if dtype in (DType.F16, DType.BF16) else dtype
    found = b.convert(steps, kind) * b.constant(step.astype(kind.numpy)) + b.constant(start.astype(kind.numpy))
    return b.convert(found, dtype)
