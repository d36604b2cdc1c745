"""Windows over the spatial dimensions, as convolutions and pooling state them.

ONNX has channels in the second dimension. Here they are the last one below a window, where vectors run along them; what
stands between two windows is moved by the compiler into the same order, so that nothing is transposed in the end.
"""

from __future__ import annotations

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.window import WindowDimension
from xlalite.interop.onnx.context import NodeContext


@dataclass(frozen=True, slots=True)
class SpatialWindow:
    """A window over spatial dimensions.

    Attributes:
        dimensions: It, with padding so large that every position fits.
        pads: The padding that the model states, before and behind each dimension.
    """

    dimensions: tuple[WindowDimension, ...]
    pads: tuple[tuple[int, int], ...]


def spatial_window(context: NodeContext, sizes: tuple[int, ...], kernel: tuple[int, ...]) -> SpatialWindow:
    """The window of a node over an array of the given spatial sizes."""
    rank = len(sizes)
    strides = _of_rank(context, "strides", rank)
    dilations = _of_rank(context, "dilations", rank)
    if len(kernel) != rank:
        raise context.error(f"a kernel of {len(kernel)} dimensions over {rank}")
    if min((*kernel, *strides, *dilations), default=1) < 1:
        raise context.error("sizes, strides and dilations of a window must be positive")
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    pads = _pads(context, sizes, spans, strides)
    ceil = context.integer("ceil_mode", 0) != 0
    dimensions = []
    for i, (size, (low, high)) in enumerate(zip(sizes, pads, strict=True)):
        if ceil:
            positions = -(-(size + low + high - spans[i]) // strides[i]) + 1
            if (positions - 1) * strides[i] >= size + low:  # a window that begins behind the array
                positions -= 1
            high = max(high, (positions - 1) * strides[i] + spans[i] - size - low)
        dimensions.append(WindowDimension(kernel[i], strides[i], low, high, rhs_dilate=dilations[i]))
    return SpatialWindow(tuple(dimensions), tuple(pads))


def _of_rank(context: NodeContext, name: str, rank: int) -> tuple[int, ...]:
    found = context.integers(name, ()) or (1,) * rank
    if len(found) != rank:
        raise context.error(f"{name} {list(found)} for {rank} dimensions")
    return found


def _pads(
    context: NodeContext, sizes: tuple[int, ...], spans: list[int], strides: tuple[int, ...]
) -> list[tuple[int, int]]:
    rank = len(sizes)
    match context.text("auto_pad", "NOTSET"):
        case "NOTSET":
            found = context.integers("pads", ()) or (0,) * (2 * rank)
            if len(found) != 2 * rank:
                raise context.error(f"pads {list(found)} for {rank} dimensions")
            return list(zip(found[:rank], found[rank:], strict=True))
        case "VALID":
            return [(0, 0)] * rank
        case "SAME_UPPER" | "SAME_LOWER" as mode:
            totals = [
                max(0, (-(-size // stride) - 1) * stride + span - size)
                for size, stride, span in zip(sizes, strides, spans, strict=True)
            ]
            halves = [(total // 2, total - total // 2) for total in totals]
            return halves if mode == "SAME_UPPER" else [(high, low) for low, high in halves]
        case other:
            raise context.error(f"auto_pad {other!r} is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
