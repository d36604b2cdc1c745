"""Borders, and images in other sizes, with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import accumulator_type
from xlalite.hlo.building.resampling import Taps, cubic_weights
from xlalite.interop.torch.rules.operation import Operation
from xlalite.interop.torch.rules.registry import Declined, rule

Array = npt.NDArray[Any]


def _border(size: int, low: int, high: int, *, mirrors: bool) -> Taps:
    places = np.arange(-low, size + high)
    if mirrors:
        places = np.abs(places)
        places = size - 1 - np.abs(size - 1 - places)
    return Taps(np.clip(places, 0, size - 1)[:, None])


def _borders(x: Handle, padding: Sequence[int], *, mirrors: bool) -> list[tuple[int, Taps]]:
    rank = len(x.dims)
    axes = [rank - 1 - i for i in range(len(padding) // 2)]
    sides = zip(padding[::2], padding[1::2], strict=True)
    return [(axis, _border(x.dims[axis], *pair, mirrors=mirrors)) for axis, pair in zip(axes, sides, strict=True)]


@rule(*(f"aten.{kind}_pad{n}d.default" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def border(at: Operation, x: Handle, padding: Sequence[int]) -> Handle:
    """A border that mirrors or repeats what it surrounds."""
    for axis, taps in _borders(x, padding, mirrors="reflection" in at.name):
        x = taps.of(x, axis)
    return x


@rule(*(f"aten.{kind}_pad{n}d_backward.default" for kind in ("reflection", "replication") for n in (1, 2, 3)))
def border_backward(at: Operation, grad: Handle, x: Handle, padding: Sequence[int]) -> Handle:
    """Gradients of a border go to what it is made of."""
    for axis, taps in reversed(_borders(x, padding, mirrors="reflection" in at.name)):
        grad = taps.transposed(grad, axis, x.dims[axis])
    return grad


def _scale(old: int, new: int, given: float | None, *, align_corners: bool) -> float:
    if align_corners:
        return (old - 1) / (new - 1) if new > 1 else 0.0
    return 1 / given if given else old / new


def _taps(at: Operation, old: int, new: int, given: float | None, *, align_corners: bool) -> Taps:
    scale, numbers = np.float32(_scale(old, new, given, align_corners=align_corners)), np.arange(new, dtype=np.float32)
    if "nearest" in at.name:
        shift = np.float32(0.5 if "exact" in at.name else 0)
        return Taps(np.minimum(np.floor((numbers + shift) * scale), old - 1).astype(np.int64)[:, None])
    places = numbers * scale if align_corners else (numbers + np.float32(0.5)) * scale - np.float32(0.5)
    if "cubic" in at.name:
        below = np.floor(places)
        wanted = below.astype(np.int64)[:, None] + np.arange(-1, 3)
        return Taps(np.clip(wanted, 0, old - 1), cubic_weights(places - below, np.float32(-0.75)))
    below = np.minimum(np.maximum(places, 0).astype(np.int64), old - 1)
    share = np.clip(np.maximum(places, 0) - below, 0, 1)
    return Taps(np.stack([below, np.minimum(below + 1, old - 1)], 1), np.stack([1 - share, share], 1))


_KINDS = {
    "nearest": (1, 2, 3),
    "_nearest_exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
_NAMES = [
    f"_upsample{kind}{n}d" if kind.startswith("aten._") else f"upsample_{kind}{n}d"
    for kind, ns in _KINDS.items()
    for n in ns
]


def _arguments(given: Sequence[Any], space: int) -> tuple[bool, list[float | None]]:
    align_corners = bool(given[0]) if given and isinstance(given[0], bool) else False
    scales = [each for each in given if not isinstance(each, bool)]
    return align_corners, [*scales, *[None] * (space - len(scales))]


@rule(*(f"{name}.default" for name in _NAMES))
def upsample(at: Operation, x: Handle, sizes: Sequence[int], *given: Any) -> Handle:
    """Images in other sizes."""
    align_corners, scales = _arguments(given, len(sizes))
    wide, dtype = accumulator_type(x.dtype), x.dtype
    if not dtype.is_floating and "nearest" not in at.name:
        raise Declined(f"sums of {dtype.value} are rounded in a way of their own")
    x = at.builder.convert(x, wide)
    for axis, (new, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        x = _taps(at, x.dims[axis], new, scale, align_corners=align_corners).of(x, axis)
    return at.builder.convert(x, dtype)


@rule(*(f"{name}_backward.default" for name in _NAMES))
def upsample_backward(at: Operation, grad: Handle, sizes: Sequence[int], olds: Sequence[int], *given: Any) -> Handle:
    """Each gradient goes to the elements of which its own was made."""
    align_corners, scales = _arguments(given, len(sizes))
    wide, dtype = accumulator_type(grad.dtype), grad.dtype
    grad = at.builder.convert(grad, wide)
    for axis in reversed(range(2, len(olds))):
        taps = _taps(at, olds[axis], grad.dims[axis], scales[axis - 2], align_corners=align_corners)
        grad = taps.transposed(grad, axis, olds[axis])
    return at.builder.convert(grad, dtype)
