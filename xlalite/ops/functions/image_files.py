"""Pictures as files, under TensorFlow's names: `image.decode_jpeg` and its like."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import as_dtype, int32, uint8
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """The pixels of a JPEG file (or another one) `[height, width, channels]`, perhaps smaller by a ratio of 2, 4, 8."""
    attrs = _jpeg(channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    return node("DecodeJpeg", [convert_to_tensor(contents)], attrs, name)


def decode_and_crop_jpeg(
    contents: Any,
    crop_window: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
) -> Tensor:
    """A window of a JPEG file: top, left, height, width."""
    attrs = _jpeg(channels, ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    inputs = [convert_to_tensor(contents), convert_to_tensor(crop_window, int32)]
    return node("DecodeAndCropJpeg", inputs, attrs, name)


def _jpeg(
    channels: int, ratio: int, fancy_upscaling: bool, recover: bool, fraction: float, dct_method: str
) -> dict[str, Any]:
    return {
        "channels": channels or 0,
        "ratio": ratio,
        "fancy_upscaling": fancy_upscaling,
        "try_recover_truncated": recover,
        "acceptable_fraction": float(fraction),
        "dct_method": dct_method,
    }


def decode_png(contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None) -> Tensor:
    """The pixels of a PNG file (or another one) `[height, width, channels]`, of 8 or 16 bits."""
    attrs = {"channels": channels or 0, "dtype": as_dtype(dtype)}
    return node("DecodePng", [convert_to_tensor(contents)], attrs, name)


def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a BMP file `[height, width, channels]`."""
    return node("DecodeBmp", [convert_to_tensor(contents)], {"channels": channels or 0}, name)


def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """The pixels of a GIF file `[frames, height, width, 3]`."""
    return node("DecodeGif", [convert_to_tensor(contents)], None, name)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """The pixels of a file of any of these formats; a GIF has frames, unless `expand_animations` is false."""
    attrs = {"channels": channels or 0, "dtype": as_dtype(dtype), "expand_animations": expand_animations}
    return node("DecodeImage", [convert_to_tensor(contents)], attrs, name)


def extract_jpeg_shape(contents: Any, output_type: Any = int32, name: str | None = None) -> Tensor:
    """The height, width and channels of a JPEG file."""
    return node("ExtractJpegShape", [convert_to_tensor(contents)], {"output_type": as_dtype(output_type)}, name)


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Tensor:
    """A PNG file of pixels of 8 or 16 bits with 1 to 4 channels."""
    return node("EncodePng", [convert_to_tensor(image)], {"compression": compression}, name)


def encode_jpeg(
    image: Any,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
    name: str | None = None,
) -> Tensor:
    """A JPEG file of pixels of 8 bits with 1 or 3 channels."""
    attrs = {
        "format": format,
        "quality": quality,
        "progressive": progressive,
        "optimize_size": optimize_size,
        "chroma_downsampling": chroma_downsampling,
    }
    return node("EncodeJpeg", [convert_to_tensor(image)], attrs, name)
