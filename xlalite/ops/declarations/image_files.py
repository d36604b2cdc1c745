"""Pictures as files: decoded and encoded on the host, through Pillow where it is installed (`xlalite[images]`).

PNG files are written without it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.dtypes import DType, float32, int32, string, uint8, uint16
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.shape_rules import require_scalar, require_type

_WHY_HOST: Final = "it reads or writes a picture's format"
_MODES: Final = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_DEEP_MODES: Final = ("I;16", "I;16B", "I")
_DEEP_RAW: Final = ";16B"
_MOST_PIXELS: Final = 178_956_970  # where Pillow, too, suspects a file that is made to fill the memory


def _pillow(op: Operation) -> Any:
    from xlalite.files.picture_library import picture_library  # few programs read pictures

    return picture_library(op.type)


@contextmanager
def _opened(op: Operation, data: bytes, formats: Sequence[str]) -> Iterator[Any]:
    """A picture; what is wrong with it is said in the words of the operation, also while it is used."""
    library = _pillow(op)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", library.DecompressionBombWarning)
            picture = library.open(io.BytesIO(data), formats=formats)
            yield picture
    except (OSError, SyntaxError, ValueError, EOFError, library.DecompressionBombError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(None, op, f"Unknown image file format, or a damaged file: {error}") from None


def _array(picture: Any, channels: int) -> Array:
    """The pixels of a picture `[height, width, channels]`; 0 channels are as many as it has."""
    if picture.mode in _DEEP_MODES:
        return _with_channels(np.asarray(picture, np.uint16)[:, :, None], channels)
    if picture.format == "PNG" and picture.tile and str(picture.tile[0][3]).endswith(_DEEP_RAW):
        return _with_channels(_deep_colors(picture), channels)
    if not channels:
        has_alpha = "transparency" in picture.info or picture.mode in ("LA", "PA", "RGBA")
        is_gray = picture.mode in ("1", "L", "LA")
        channels = (1 if is_gray else 3) + has_alpha
    if picture.format == "JPEG" and picture.mode == "CMYK" and channels == 3:
        picture = picture.convert("RGB")
    found = np.asarray(picture.convert(_MODES[channels]), np.uint8)
    return found.reshape(picture.height, picture.width, channels)


def _deep_colors(picture: Any) -> Array:
    """Numbers of 16 bits, in colour or with alpha: Pillow gives their upper halves, or the lower ones if told so."""
    place, raw = picture.tile[0][:3], picture.tile[0][3]
    if raw == "LA" + _DEEP_RAW:  # as many bytes as four channels of 8 bits
        picture.tile = [(*place, "RGBA")]
        return np.ascontiguousarray(picture).view(">u2").astype(np.uint16)
    lower = type(picture)(io.BytesIO(picture.fp.getvalue()))
    lower.tile = [(*place, raw.replace(_DEEP_RAW, ";16L"))]
    numbers: Array = np.asarray(picture).astype(np.uint16) << 8 | np.asarray(lower)
    return numbers


def _with_channels(pixels: Array, channels: int) -> Array:
    """Pixels of 16 bits with as many channels as asked for; 0 are as many as there are."""
    if channels in (0, pixels.shape[2]):
        return pixels
    is_gray = pixels.shape[2] < 3
    colors = pixels[:, :, : 1 if is_gray else 3]
    if channels < 3 and not is_gray:  # ITU-R 601-2 luma
        colors = ((colors @ np.array([[19595], [38470], [7471]], np.uint32) + 0x8000) >> 16).astype(np.uint16)
    if channels > 2 and is_gray:
        colors = np.repeat(colors, 3, 2)
    if channels % 2:
        return colors
    opaque = np.full_like(pixels[:, :, :1], 65535)
    return np.concatenate([colors, opaque if pixels.shape[2] % 2 else pixels[:, :, -1:]], 2)


def _as_type(pixels: Array, dtype: DType) -> Array:
    """Pixels of 8 or 16 bits as elements of a type, scaled."""
    if dtype is float32:
        return pixels.astype(np.float32) / np.iinfo(pixels.dtype).max
    if dtype is uint8 and pixels.dtype == np.uint16:
        return (pixels >> 8).astype(np.uint8)
    if dtype is uint16 and pixels.dtype == np.uint8:
        return pixels.astype(np.uint16) * 257
    return pixels


# DecodeJpeg, DecodePng, DecodeBmp, DecodeGif, DecodeImage(contents): `[height, width, channels]`; GIFs have frames.


def _decoded_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {string}, "contents")
    require_scalar(op.inputs[0], "contents")
    dtype = op.attrs.get("dtype", uint8)
    if op.attrs.get("channels", 0) not in (0, *_MODES):
        raise InvalidArgumentError(None, op, f"channels must be 0, 1, 2, 3 or 4, not {op.get_attr('channels')}")
    if op.type == "DecodeImage":
        return [(dtype, TensorShape(None))]
    if op.type == "DecodeGif":
        return [(dtype, TensorShape([None, None, None, 3]))]
    return [(dtype, TensorShape([None, None, op.get_attr("channels") or None]))]


_FORMATS: Final = {"DecodeBmp": ("BMP",), "DecodeGif": ("GIF",)}
_ANY_FORMAT: Final = ("JPEG", "PNG", "GIF", "BMP")  # no others, for which Pillow may start programs


def _decoded(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    with _opened(op, bytes(np.asarray(inputs[0]).item()), _FORMATS.get(op.type, _ANY_FORMAT)) as picture:
        return [_pixels(op, picture, inputs[1:])]


def _pixels(op: Operation, picture: Any, window: Sequence[HostValue]) -> Array:
    channels, dtype = op.attrs.get("channels", 3), op.attrs.get("dtype", uint8)
    if "ratio" in op.spec.attrs and op.get_attr("ratio") > 1 and picture.format == "JPEG":
        picture.draft(None, [size // op.get_attr("ratio") for size in picture.size])
    moves = op.type == "DecodeGif" or (op.type == "DecodeImage" and op.get_attr("expand_animations"))
    if picture.format == "GIF" and moves:
        return _as_type(_frames(op, picture), dtype)
    if picture.format == "GIF":
        channels = 3
    pixels = _array(picture, channels)
    if window:
        top, left, height, width = (int(each) for each in np.asarray(window[0]))
        whole, pixels = pixels.shape, pixels[top : top + height, left : left + width]
        if top < 0 or left < 0 or pixels.shape[:2] != (height, width):
            raise InvalidArgumentError(None, op, f"Invalid crop window {np.asarray(window[0])} of a picture of {whole}")
    return _as_type(pixels, dtype)


def _frames(op: Operation, picture: Any) -> Array:
    frames: list[Array] = []
    for number in range(picture.n_frames):
        picture.seek(number)
        frames.append(_array(picture, 3))
        if len(frames) * frames[0].size > 3 * _MOST_PIXELS:
            raise InvalidArgumentError(None, op, f"{picture.n_frames} frames of {picture.size} are too large")
    return np.stack(frames)


_JPEG: Final[dict[str, object]] = {
    "channels": 0,
    "ratio": 1,
    "fancy_upscaling": True,
    "try_recover_truncated": False,
    "acceptable_fraction": 1.0,
    "dct_method": "",
}
for _name, _inputs, _attrs in (
    ("DecodeJpeg", ("contents",), _JPEG),
    ("DecodeAndCropJpeg", ("contents", "crop_window"), _JPEG),
    ("DecodePng", ("contents",), {"channels": 0, "dtype": uint8}),
    ("DecodeBmp", ("contents",), {"channels": 0}),
    ("DecodeGif", ("contents",), {}),
    ("DecodeImage", ("contents",), {"channels": 0, "dtype": uint8, "expand_animations": True}),
):
    declare_on_host(_name, _inputs, _decoded_infer, _decoded, _WHY_HOST, attrs=tuple(_attrs), defaults=dict(_attrs))


# ExtractJpegShape(contents): the sizes, without the pixels.


def _sizes_infer(op: Operation) -> Sequence[OutputType]:
    return [(op.get_attr("output_type"), TensorShape([3]))]


def _sizes(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    with _opened(op, bytes(np.asarray(inputs[0]).item()), ("JPEG",)) as picture:
        sizes = (picture.height, picture.width, len(picture.getbands()))
    return [np.array(sizes, op.get_attr("output_type").as_numpy_dtype)]


declare_on_host(
    "ExtractJpegShape",
    ("contents",),
    _sizes_infer,
    _sizes,
    _WHY_HOST,
    attrs=("output_type",),
    defaults={"output_type": int32},
)


# EncodeJpeg(image), EncodePng(image).


def _encoded_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {uint8, uint16} if op.type == "EncodePng" else {uint8}, "image")
    return [(string, TensorShape(()))]


def _encoded_png(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    from xlalite.files.png import encode_png  # few programs write pictures

    pixels = np.asarray(inputs[0])
    if pixels.ndim != 3 or pixels.shape[2] not in _MODES or not pixels.size:
        raise InvalidArgumentError(None, op, f"image must have 1, 2, 3 or 4 channels and pixels, found {pixels.shape}")
    return [np.array(encode_png(pixels), object)]


def _encoded_jpeg(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    library, pixels = _pillow(op), np.asarray(inputs[0])
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        raise InvalidArgumentError(None, op, f"image must have 1 or 3 channels and pixels, found {pixels.shape}")
    file = io.BytesIO()
    picture = library.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    sampling = "4:2:0" if op.get_attr("chroma_downsampling") else "4:4:4"
    picture.save(
        file,
        "JPEG",
        quality=op.get_attr("quality"),
        progressive=op.get_attr("progressive"),
        optimize=op.get_attr("optimize_size"),
        **({} if pixels.shape[2] == 1 else {"subsampling": sampling}),
    )
    return [np.array(file.getvalue(), object)]


declare_on_host(
    "EncodePng",
    ("image",),
    _encoded_infer,
    _encoded_png,
    _WHY_HOST,
    attrs=("compression",),
    defaults={"compression": -1},
)
_ENCODE: Final[dict[str, object]] = {
    "format": "",
    "quality": 95,
    "progressive": False,
    "optimize_size": False,
    "chroma_downsampling": True,
}
declare_on_host(
    "EncodeJpeg", ("image",), _encoded_infer, _encoded_jpeg, _WHY_HOST, attrs=tuple(_ENCODE), defaults=_ENCODE
)
