"""Images in other sizes, dimension by dimension."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.resampling import Taps, cubic_weights
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule

Floats = npt.NDArray[np.float64]

_LARGEST = 1 << 26


@dataclass(frozen=True, slots=True)
class _Along:
    """What happens to one dimension.

    Attributes:
        axis: The dimension.
        size: Its size before.
        new: Its size afterwards.
        scale: The factor that the model states or that follows from the sizes.
        region: The part of it that is taken, as shares of it.
    """

    axis: int
    size: int
    new: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@rule("Resize", since=11)
def _resize(context: NodeContext) -> Handle:
    x = context.operand(0)
    rank = len(x.dims)
    axes = context.normalized_all(context.integers("axes", range(rank)), rank)
    own = [x.dims[axis] for axis in axes]
    if context.has(3) and context.operand(3).shape.element_count:
        scales, sizes = _from_sizes(context, own)
    else:
        scales = [float(each) for each in context.known(2).reshape(-1)]
        sizes = [_scaled(size, scale) for size, scale in zip(own, scales, strict=True)]
    regions = [(0.0, 1.0)] * len(axes)
    mode = context.text("coordinate_transformation_mode", "half_pixel")
    if mode == "tf_crop_and_resize":
        roi = [float(each) for each in context.known(1).reshape(-1)]
        regions = list(zip(roi[: len(axes)], roi[len(axes) :], strict=True))
    plan = [_Along(*each) for each in zip(axes, own, sizes, scales, regions, strict=True)]
    return _resampled(context, x, plan, mode)


@rule("Resize", since=10)
def _resize_of_version_10(context: NodeContext) -> Handle:
    return _upsampled(context, [float(each) for each in context.known(1).reshape(-1)])


@rule("Upsample")
def _upsample(context: NodeContext) -> Handle:
    stated = context.known(1).reshape(-1).tolist() if context.has(1) else list(context.numbers("scales"))
    return _upsampled(context, [float(each) for each in stated])


def _upsampled(context: NodeContext, scales: list[float]) -> Handle:
    x = context.operand(0)
    plan = [
        _Along(axis, size, _scaled(size, scale), scale)
        for axis, (size, scale) in enumerate(zip(x.dims, scales, strict=True))
    ]
    return _resampled(context, x, plan, "asymmetric", nearest="floor")


def _scaled(size: int, scale: float) -> int:
    """The new size: as others compute it, in single precision, in which 0.7 times 10 is 7."""
    product = np.float32(size) * np.float32(scale)
    return math.floor(product) if math.isfinite(product) else -1


def _from_sizes(context: NodeContext, own: list[int]) -> tuple[list[float], list[int]]:
    sizes = list(context.known_integers(3))
    policy = context.text("keep_aspect_ratio_policy", "stretch")
    scales = [size / before if before else 1.0 for size, before in zip(sizes, own, strict=True)]
    if policy == "stretch":
        return scales, sizes
    if policy not in ("not_larger", "not_smaller"):
        raise context.error(f"keep_aspect_ratio_policy {policy!r} is none of stretch, not_larger, not_smaller")
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [scale] * len(own), [math.floor(scale * before + 0.5) for before in own]


def _resampled(context: NodeContext, x: Handle, plan: list[_Along], mode: str, nearest: str = "") -> Handle:
    b, kind = context.builder, context.text("mode", "nearest")
    if kind not in ("nearest", "linear", "cubic"):
        raise context.error(f"mode {kind!r} is none of nearest, linear, cubic")
    wide = x if kind == "nearest" or x.dtype in (DType.F32, DType.F64) else b.convert(x, DType.F32)
    outside: list[tuple[int, npt.NDArray[np.bool_]]] = []
    for along in plan:
        if along.new == along.size and (along.scale == 1 or not along.size) and mode != "tf_crop_and_resize":
            continue
        if min(along.new, along.size) < 1 or along.new > _LARGEST:
            raise context.error(f"dimension {along.axis} of {along.size} elements in {along.new}")
        places = _places(context, along, mode)
        if mode == "tf_crop_and_resize":
            outside.append((along.axis, (places < 0) | (places > along.size - 1)))
        wide = _taps(context, along, places, kind, nearest).of(wide, along.axis)
    for axis, is_outside in outside:
        mask = b.broadcast(b.constant(is_outside), wide.dims, [axis])
        value = filled(context.number("extrapolation_value", 0.0), wide)
        wide = b.select(mask, value, wide)
    return b.convert(wide, x.dtype)


def _places(context: NodeContext, along: _Along, mode: str) -> Floats:
    """Where in the old dimension the new elements lie, in single precision: what should be whole is."""
    return _single_places(context, along, mode).astype(np.float64)


def _single_places(context: NodeContext, along: _Along, mode: str) -> npt.NDArray[np.float32]:
    x, half, scale = np.arange(along.new, dtype=np.float32), np.float32(0.5), np.float32(along.scale)
    stretched, last = scale * np.float32(along.size), np.float32(along.size - 1)
    match mode:
        case "align_corners":
            return x * last / (stretched - 1) if stretched != 1 else 0 * x
        case "asymmetric":
            return x / scale
        case "half_pixel":
            return (x + half) / scale - half
        case "pytorch_half_pixel":
            return (x + half) / scale - half if along.new > 1 else 0 * x
        case "half_pixel_symmetric":
            offset = np.float32(along.size) / 2 * (1 - np.float32(along.new) / stretched)
            return offset + (x + half) / scale - half
        case "tf_half_pixel_for_nn":
            return (x + half) / scale
        case "tf_crop_and_resize":
            start, end = (np.float32(each) for each in along.region)
            span = (end - start) * last
            return start * last + (x * span / (stretched - 1) if stretched != 1 else 0 * x + span / 2)
    raise context.error(f"coordinate_transformation_mode {mode!r} is not known")


def _taps(context: NodeContext, along: _Along, places: Floats, kind: str, nearest: str) -> Taps:
    """The old elements around each place: of whole numbers the left neighbour is the one before."""
    left = np.ceil(places) - 1
    share = places - left
    if kind == "nearest":
        rises = _rises(context, share, nearest or context.text("nearest_mode", "round_prefer_floor"))
        return Taps(np.clip(left + rises, 0, along.size - 1).astype(np.int64)[:, np.newaxis])
    sharpness = context.number("cubic_coeff_a", -0.75)
    if context.integer("antialias", 0) and along.scale < 1:
        weights = _wide_weights(share, along.scale, kind, sharpness)
    else:
        weights = np.stack([1 - share, share], 1) if kind == "linear" else cubic_weights(share, sharpness)
    count = weights.shape[1]
    indices = left[:, np.newaxis] - count // 2 + 1 + np.arange(count)
    if context.integer("exclude_outside", 0):
        weights = np.where((indices < 0) | (indices > along.size - 1), 0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    return Taps(np.clip(indices, 0, along.size - 1).astype(np.int64), weights)


def _rises(context: NodeContext, share: Floats, mode: str) -> npt.NDArray[np.bool_]:
    """Whether the right neighbour is taken, which a place that is a whole number is itself."""
    match mode:
        case "floor":
            found = share == 1
        case "ceil":
            found = share > 0
        case "round_prefer_floor":
            found = share > 0.5
        case "round_prefer_ceil":
            found = share >= 0.5
        case _:
            raise context.error(f"nearest_mode {mode!r} is not known")
    return np.asarray(found)


def _wide_weights(share: Floats, scale: float, kind: str, sharpness: float) -> Floats:
    """Weights of a filter as wide as the old elements that a new one covers."""
    reach = 1 if kind == "linear" else 2
    start = math.floor(-reach / scale) + 1
    distance = np.abs((np.arange(start, 2 - start) - share[:, np.newaxis]) * scale)
    if kind == "linear":
        weights = np.clip(1 - distance, 0, 1)
    else:
        near = ((sharpness + 2) * distance - (sharpness + 3)) * distance**2 + 1
        far = ((sharpness * distance - 5 * sharpness) * distance + 8 * sharpness) * distance - 4 * sharpness
        weights = np.where(distance <= 1, near, np.where(distance < 2, far, 0))
    return np.asarray(weights / weights.sum(1, keepdims=True))
