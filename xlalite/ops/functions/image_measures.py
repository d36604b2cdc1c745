"""How much images vary and differ: functions of `xlalite.image`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, pad, reshape, shape, zeros_like
from xlalite.ops.functions.convolutions import depthwise_conv2d
from xlalite.ops.functions.image_colors import convert_image_dtype
from xlalite.ops.functions.math import abs, log, reduce_mean, reduce_sum, squared_difference
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences of neighbouring elements, for each image."""
    x = convert_to_tensor(images)
    with get_default_graph().name_scope(name or "total_variation"):
        if x.shape.rank == 3:
            down, right, axes = x[1:] - x[:-1], x[:, 1:] - x[:, :-1], None
        elif x.shape.rank == 4:
            down, right, axes = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1], [1, 2, 3]
        else:
            raise ShapeError(f"images of shape {x.shape} must have rank 3 or 4")
        return reduce_sum(abs(down), axes) + reduce_sum(abs(right), axes)  # type: ignore[no-any-return]


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Differences to the next row and to the next column of `[batch, height, width, channels]`; 0 at the end."""
    x = convert_to_tensor(image)
    x.shape.with_rank(4)
    down, right = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return concat([down, zeros_like(x[:, :1])], 1), concat([right, zeros_like(x[:, :, :1])], 2)


def sobel_edges(image: Any) -> Tensor:
    """Slopes along height and width, `[batch, height, width, channels, 2]`."""
    x = convert_to_tensor(image)
    channels = x.shape.with_rank(4).as_list()[3]
    if channels is None:
        raise ShapeError(f"sobel_edges: the number of channels of {x.shape} must be known")
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    kernel = np.tile(np.stack([down, down.T], -1)[:, :, None], [1, 1, channels, 1])
    padded = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, constant(kernel, x.dtype), [1, 1, 1, 1], "VALID")
    return reshape(edges, concat([shape(x), [2]], 0))


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Peak signal to noise in decibels: 20 log10(max_val) - 10 log10(mean squared error), for each image."""
    with get_default_graph().name_scope(name or "PSNR"):
        first, second, peak = _as_floats(a, b, max_val)
        error = reduce_mean(squared_difference(first, second), [-3, -2, -1])
        return node("Sub", [20 / math.log(10) * log(peak), 10 / math.log(10) * log(error)])


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Structural similarity (Wang et al. 2004) of each pair of images, at most 1."""
    with get_default_graph().name_scope("SSIM"):
        x, y, peak = _as_floats(img1, img2, max_val)
        sizes, channels = shape(x), x.shape.with_rank_at_least(3).as_list()[-1]
        if channels is None:
            raise ShapeError(f"ssim: the number of channels of {x.shape} must be known")
        offsets = np.arange(filter_size) - (filter_size - 1) / 2
        bell = np.exp(-(offsets**2) / (2 * filter_sigma**2))
        weights = np.outer(bell, bell) / bell.sum() ** 2
        kernel = constant(np.tile(weights[:, :, None, None], [1, 1, channels, 1]), x.dtype)

        def blurred(image: Tensor) -> Tensor:
            flat = reshape(image, concat([[-1], sizes[-3:]], 0))
            return depthwise_conv2d(flat, kernel, [1, 1, 1, 1], "VALID")

        c1, c2 = (peak * k1) ** 2, (peak * k2) ** 2
        mean_x, mean_y = blurred(x), blurred(y)
        means = mean_x * mean_y * 2.0
        squares = node("Square", [mean_x]) + node("Square", [mean_y])
        luminance = (means + c1) / (squares + c1)
        both = blurred(x * y) * 2.0 - means
        own = blurred(node("Square", [x]) + node("Square", [y])) - squares
        values = reduce_mean(luminance * (both + c2) / (own + c2), [-3, -2, -1])
        return reshape(values, sizes[:-3])


def _as_floats(a: Any, b: Any, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Both images and the largest value, in f32."""
    first, second = convert_to_tensor(a), convert_to_tensor(b)
    peak = node("Cast", [convert_to_tensor(max_val)], {"dtype": first.dtype})
    x, y, largest = (convert_image_dtype(each, float32) for each in (first, second, peak))
    return x, y, largest
