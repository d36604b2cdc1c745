"""Colours of images, and their element types: functions of `xlalite.image`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype, float32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import shape, tile
from xlalite.ops.functions.math import cast, clip_by_value, div, matmul, maximum, reduce_mean, reduce_prod, square
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to

_TO_GREY = np.array([[0.2989], [0.5870], [0.1140]])
_TO_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])
_FROM_YIQ = np.array([[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])
_TO_YUV = np.array(
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
)
_FROM_YUV = np.array([[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """Images in another element type: all of an integer type's positive range stands for 0 to 1.

    Args:
        image: Images.
        dtype: The type.
        saturate: Cut off what the type cannot hold, instead of leaving it to the conversion.
        name: Name scope.
    """
    tensor, wanted = convert_to_tensor(image), as_dtype(dtype)
    if tensor.dtype is wanted:
        return tensor
    with get_default_graph().name_scope(name or "convert_image"):
        if tensor.dtype.is_integer and wanted.is_integer:
            return _between_integers(tensor, wanted, saturate)
        if tensor.dtype.is_floating and wanted.is_floating:
            return cast(tensor, wanted)
        if tensor.dtype.is_integer:
            return cast(tensor, wanted) * (1.0 / tensor.dtype.max)  # type: ignore[no-any-return]
        scaled = tensor * (wanted.max + 0.5)
        return _saturated(scaled, wanted) if saturate else cast(scaled, wanted)


def _between_integers(tensor: Tensor, wanted: Any, saturate: bool) -> Tensor:
    own, other = int(tensor.dtype.max), int(wanted.max)
    if own > other:
        scaled = div(tensor, (own + 1) // (other + 1))
        return _saturated(scaled, wanted) if saturate else cast(scaled, wanted)
    converted = _saturated(tensor, wanted) if saturate else cast(tensor, wanted)
    return converted * ((other + 1) // (own + 1))  # type: ignore[no-any-return]


def _saturated(tensor: Tensor, wanted: Any) -> Tensor:
    low, high = (float(limit) if tensor.dtype.is_floating else int(limit) for limit in (wanted.min, wanted.max))
    if tensor.dtype.is_integer:
        low, high = max(low, int(tensor.dtype.min)), min(high, int(tensor.dtype.max))
    return cast(clip_by_value(tensor, low, high), wanted)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """How bright colours look, `[..., 1]`."""
    return _as_float(images, lambda x: _mixed(x, _TO_GREY), name or "rgb_to_grayscale")


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """The same value for all three colours."""
    tensor = convert_to_tensor(images)
    return tile(tensor, [*[1] * (len(tensor.shape) - 1), 3], name)


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value, all from 0 to 1."""
    return node("RGBToHSV", [convert_to_tensor(images)], None, name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """The way back from `rgb_to_hsv`."""
    return node("HSVToRGB", [convert_to_tensor(images)], None, name)


def rgb_to_yiq(images: Any) -> Tensor:
    """Brightness and two differences of colours, as NTSC has them."""
    return _mixed(convert_to_tensor(images), _TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """The way back from `rgb_to_yiq`."""
    return _mixed(convert_to_tensor(images), _FROM_YIQ)


def rgb_to_yuv(images: Any) -> Tensor:
    """Brightness and two differences of colours, as PAL has them."""
    return _mixed(convert_to_tensor(images), _TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """The way back from `rgb_to_yuv`."""
    return _mixed(convert_to_tensor(images), _FROM_YUV)


def _mixed(images: Tensor, weights: Any) -> Tensor:
    sizes = shape(images)
    flat = node("Reshape", [images, constant([-1, 3])])
    result = matmul(flat, constant(weights, images.dtype))
    ends = node("ConcatV2", [sizes[:-1], constant([weights.shape[1]]), constant(0)])
    mixed = node("Reshape", [result, ends])
    if images.shape.dims is not None:
        mixed.set_shape([*images.shape.dims[:-1], weights.shape[1]])
    return mixed


def _as_float(images: Any, change: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """A function of floating-point images applied to those of any type."""
    tensor = convert_to_tensor(images)
    with get_default_graph().name_scope(name):
        if tensor.dtype.is_floating:
            return change(tensor)
        return convert_image_dtype(change(convert_image_dtype(tensor, float32)), tensor.dtype, saturate=True)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """`delta`, in parts of the range, added to each element."""
    return _as_float(image, lambda x: x + cast(delta, x.dtype), "adjust_brightness")


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """`(x - mean) * contrast_factor + mean`, with a mean for each channel of each image."""
    return _as_float(images, lambda x: node("AdjustContrastv2", [x, _number(contrast_factor)]), "adjust_contrast")


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Hues turned by `delta`, in parts of the circle."""
    return _as_float(image, lambda x: node("AdjustHue", [x, _number(delta)]), name or "adjust_hue")


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Saturations times `saturation_factor`."""
    return _as_float(
        image, lambda x: node("AdjustSaturation", [x, _number(saturation_factor)]), name or "adjust_saturation"
    )


def _number(value: Any) -> Tensor:
    return cast_to(convert_to_tensor(value, preferred_dtype=float32), float32)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """`gain * x^gamma`, with elements in parts of the range.

    Raises:
        GraphError: gamma is negative.
    """
    if isinstance(gamma, int | float) and gamma < 0:
        raise GraphError(f"adjust_gamma: gamma must not be negative, found {gamma}")
    return _as_float(image, lambda x: x ** cast(gamma, x.dtype) * gain, "adjust_gamma")


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` with a number from `-max_delta` to `max_delta`."""
    _require(max_delta >= 0, f"random_brightness: max_delta must not be negative, found {max_delta}")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` with a number from `lower` to `upper`."""
    _require(0 <= lower < upper, f"random_contrast: expected 0 <= lower < upper, found {lower} and {upper}")
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` with a number from `-max_delta` to `max_delta`."""
    _require(0 <= max_delta <= 0.5, f"random_hue: max_delta must be from 0 to 0.5, found {max_delta}")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` with a number from `lower` to `upper`."""
    _require(0 <= lower < upper, f"random_saturation: expected 0 <= lower < upper, found {lower} and {upper}")
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise GraphError(message)


def per_image_standardization(image: Any) -> Tensor:
    """Each image with mean 0 and variance 1; one of a single colour becomes 0."""
    given = convert_to_tensor(image)
    with get_default_graph().name_scope("per_image_standardization"):
        x = given if given.dtype.is_floating else cast(given, float32)
        dims = x.shape.as_list()[-3:]
        known = [size for size in dims if size is not None]
        count = constant(math.prod(known), x.dtype) if len(known) == 3 else cast(reduce_prod(shape(x)[-3:]), x.dtype)
        centred = x - reduce_mean(x, [-1, -2, -3], True)
        deviation = node("Sqrt", [reduce_mean(square(centred), [-1, -2, -3], True)])
        return centred / maximum(deviation, node("Rsqrt", [count]))  # type: ignore[no-any-return]
