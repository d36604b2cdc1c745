"""Convolutions, forwards and transposed."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.convolutions import Convolution, channels_last, channels_second
from xlalite.hlo.building.indexing import scatter_slices
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.interop.onnx.context import NodeContext, rule
from xlalite.interop.onnx.rules.windows import spatial_window


@rule("Conv")
def _conv(context: NodeContext) -> Handle:
    return biased(context, convolution(context, context.operand(0), context.operand(1)), 2)


def convolution(context: NodeContext, image: Handle, filters: Handle) -> Handle:
    """The convolution of a node, without what is added to it."""
    window = spatial_window(context, image.dims[2:], filters.dims[2:]).dimensions
    sizes = Window(window).output_sizes(image.dims[2:])
    labels, filter_labels = _labels(len(window))
    own, kernel = channels_last(image), _filters_last(filters)
    output = (image.dims[0], *sizes, filters.dims[0])
    groups = context.integer("group", 1)
    at = Convolution(labels, filter_labels, window, own.dims, kernel.dims, output, groups)
    return channels_second(at.forward(own, kernel))


def _labels(rank: int) -> tuple[str, str]:
    space = "".join(map(str, range(rank)))
    return f"b{space}f", f"{space}io"


def _filters_last(filters: Handle) -> Handle:
    """`[outputs, inputs, space...]` as `[space..., inputs, outputs]`."""
    return filters.builder.transpose(filters, [*range(2, len(filters.dims)), 1, 0])


def biased(context: NodeContext, x: Handle, position: int) -> Handle:
    """A number for each channel added, where the input is there."""
    bias = context.optional(position)
    return x if bias is None else x + context.builder.broadcast(bias, x.dims, [1])


@rule("ConvTranspose")
def _conv_transpose(context: NodeContext) -> Handle:
    """The derivative of a convolution by its image."""
    x, filters = context.operand(0), context.operand(1)
    groups = context.integer("group", 1)
    rank = len(x.dims) - 2
    kernel = filters.dims[2:]
    strides = context.integers("strides", (1,) * rank)
    dilations = context.integers("dilations", (1,) * rank)
    extra = context.integers("output_padding", (0,) * rank)
    spans = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    covered = [(n - 1) * stride + span for n, stride, span in zip(x.dims[2:], strides, spans, strict=True)]
    sizes, lows = [], []
    mode = context.text("auto_pad", "NOTSET")
    wanted = context.integers("output_shape", ())[-rank:] if "output_shape" in context.attributes else None
    if wanted is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(n * stride for n, stride in zip(x.dims[2:], strides, strict=True))
    pads = context.integers("pads", (0,) * (2 * rank))
    for i in range(rank):
        if wanted is not None:
            total = max(0, covered[i] + extra[i] - wanted[i])
            lows.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
            sizes.append(wanted[i])
        else:
            lows.append(pads[i])
            sizes.append(covered[i] + extra[i] - pads[i] - pads[rank + i])
    window = tuple(WindowDimension(kernel[i], strides[i], lows[i], 0, rhs_dilate=dilations[i]) for i in range(rank))
    labels, filter_labels = _labels(rank)
    own, kernel_last = channels_last(x), _filters_last(filters)
    image = (x.dims[0], *sizes, filters.dims[1] * groups)
    at = Convolution(labels, filter_labels, window, image, kernel_last.dims, own.dims, groups)
    return biased(context, channels_second(at.to_image(kernel_last, own)), 2)


@rule("Col2Im")
def _col2im(context: NodeContext) -> Handle:
    """Blocks put back where they came from and added up: a transposed convolution with one filter for each place."""
    b, x = context.builder, context.operand(0)
    image, block = context.known_integers(1), context.known_integers(2)
    rank = len(image)
    strides, dilations = context.integers("strides", (1,) * rank), context.integers("dilations", (1,) * rank)
    pads = context.integers("pads", (0,) * (2 * rank))
    batch, rows, count = x.dims
    places = 1
    for size in block:
        places *= size
    channels = rows // places
    counts = [
        (image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)
    ]
    padded = [image[i] + pads[i] + pads[rank + i] for i in range(rank)]
    split = b.reshape(x, (batch, channels, *block, *counts))
    dims = (*block, *counts)
    linear = b.full(0, DType.S64, dims)
    for i in range(rank):
        place = b.iota(DType.S64, dims, i) * dilations[i] + b.iota(DType.S64, dims, rank + i) * strides[i]
        linear = linear * padded[i] + place
    total = 1
    for size in padded:
        total *= size
    order = [*range(2, 2 + 2 * rank), 0, 1]
    updates = b.reshape(b.transpose(split, order), (places * count, batch, channels))
    flat = scatter_slices(
        b, b.full(0, x.dtype, (total, batch, channels)), b.reshape(linear, (places * count, 1)), updates, "add"
    )
    whole = b.transpose(b.reshape(flat, (*padded, batch, channels)), [rank, rank + 1, *range(rank)])
    starts = [0, 0, *pads[:rank]]
    return b.slice(whole, starts, [batch, channels, *(pads[i] + image[i] for i in range(rank))])
