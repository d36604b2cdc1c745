"""Convolutions: forward and transposed ones, and what their derivatives are by image, filters and bias."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.building.convolutions import Convolution
from xlalite.hlo.types.window import WindowDimension
from xlalite.interop.torch.rules.operation import Operation
from xlalite.interop.torch.rules.registry import rule


def _convolution(
    image: Sequence[int],
    filters: Sequence[int],
    output: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Convolution:
    space = len(image) - 2
    steps = zip(filters[2:], *(_each(sizes, space) for sizes in (stride, padding, dilation)), strict=True)
    window = tuple(WindowDimension(size, by, pad, pad, rhs_dilate=spread) for size, by, pad, spread in steps)
    digits = "".join(map(str, range(space)))
    return Convolution(f"bf{digits}", f"oi{digits}", window, tuple(image), tuple(filters), tuple(output), groups)


def _each(sizes: Sequence[int], count: int) -> Sequence[int]:
    return list(sizes) * count if len(sizes) == 1 else sizes


@rule("aten.convolution.default")
def convolution(
    at: Operation,
    image: Handle,
    filters: Handle,
    bias: Handle | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Handle:
    """A transposed convolution is the derivative of one by its image; with a bias, sums are rounded behind it."""
    sizes = (at.dims, filters.dims, image.dims) if transposed else (image.dims, filters.dims, at.dims)
    own = _convolution(*sizes, stride, padding, dilation, groups)
    if bias is not None:
        image, filters, bias = at.wide(image), at.wide(filters), at.wide(bias)
    found = own.to_image(filters, image) if transposed else own.forward(image, filters)
    return found if bias is None else at.cast(found + at.builder.broadcast(bias, found.dims, [1]), at.dtype)


@rule("aten.convolution_backward.default")
def convolution_backward(
    at: Operation,
    grad: Handle,
    image: Handle,
    filters: Handle,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Handle | None, ...]:
    """By image, filters and bias, each where it is wanted."""
    sizes = (grad.dims, filters.dims, image.dims) if transposed else (image.dims, filters.dims, grad.dims)
    own = _convolution(*sizes, stride, padding, dilation, groups)
    found: list[Handle | None] = [None, None, None]
    if wanted[0]:
        found[0] = own.forward(grad, filters) if transposed else own.to_image(filters, grad)
    if wanted[1]:
        found[1] = own.to_filters(grad, image) if transposed else own.to_filters(image, grad)
    if wanted[2]:
        found[2] = sum_axes(at.builder, grad, [i for i in range(len(grad.dims)) if i != 1])
    return tuple(found)
