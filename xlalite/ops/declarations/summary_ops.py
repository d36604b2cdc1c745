"""Operations that make summaries, the bytes of `Summary` messages. They run on the host."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.shape_rules import require_rank, require_type

Make = Callable[[Operation, list[Array]], Any]


def _infer(op: Operation) -> Sequence[OutputType]:
    if op.type != "MergeSummary":
        require_type(op.inputs[0], {string}, "tag")
    if op.type == "ImageSummary":
        require_rank(op.inputs[1], lambda rank: rank == 4, "[batch, height, width, channels]", "tensor")
    if op.type == "AudioSummaryV2":
        require_rank(
            op.inputs[1], lambda rank: rank in (2, 3), "[batch, frames] or [batch, frames, channels]", "tensor"
        )
        require_rank(op.inputs[2], lambda rank: rank == 0, "a scalar", "sample_rate")
    return [(string, TensorShape(()))]


def _declare(name: str, inputs: tuple[str, ...], attrs: tuple[str, ...], make: Make) -> None:
    def kernel(context: HostContext, op: Operation, values: tuple[HostValue, ...]) -> Sequence[HostValue]:
        result = np.empty((), object)
        result[()] = make(op, [np.asarray(value) for value in values]).SerializeToString()
        return [result]

    register(
        OpSpec(
            name,
            _infer,
            inputs=inputs,
            attrs=attrs,
            host_kernel=kernel,
            gradient=None,
            group=None,
            why_host="it makes text for a file",
        )
    )


def _summary(**fields: Any) -> Any:
    from xlalite.messages.classes import CLASSES  # programs without summaries need no messages

    return CLASSES["Summary"](**fields)


# ScalarSummary(tags, values).


def _scalar(op: Operation, values: list[Array]) -> Any:
    tags, numbers = values
    if tags.shape != numbers.shape:
        raise InvalidArgumentError(None, op, f"tags of shape {tags.shape} for values of shape {numbers.shape}")
    pairs = zip(tags.ravel(), numbers.ravel(), strict=True)
    return _summary(value=[{"tag": tag.decode(), "simple_value": float(number)} for tag, number in pairs])


_declare("ScalarSummary", ("tags", "values"), (), _scalar)


# HistogramSummary(tag, values).


def _bucket_limits() -> Array:
    """Limits that grow by a tenth, on both sides of zero."""
    limits, limit = [], 1e-12
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    limits.append(float(np.finfo(np.float64).max))
    return np.array([-each for each in reversed(limits)] + [0.0] + limits)


_LIMITS: Final = _bucket_limits()


def histogram(values: Array) -> dict[str, Any]:
    """The fields of a `HistogramProto`; empty buckets side by side are one."""
    numbers = np.asarray(values, np.float64).ravel()
    counts = np.bincount(np.searchsorted(_LIMITS, numbers, "right"), minlength=_LIMITS.size)[: _LIMITS.size]
    # A bucket is shown unless it and the next one are empty; the last one always is.
    shown = (counts > 0) | np.append(counts[1:] > 0, True)
    low, high = (
        (float(numbers.min()), float(numbers.max())) if numbers.size else (float(_LIMITS[-1]), -float(_LIMITS[-1]))
    )
    return {
        "min": low,
        "max": high,
        "num": float(numbers.size),
        "sum": float(numbers.sum()),
        "sum_squares": float((numbers * numbers).sum()),
        "bucket_limit": _LIMITS[shown].tolist(),
        "bucket": counts[shown].astype(float).tolist(),
    }


def _histogram(op: Operation, values: list[Array]) -> Any:
    tag = bytes(values[0].item()).decode()
    if not np.isfinite(values[1].astype(np.float64)).all():
        raise InvalidArgumentError(None, op, f"Nan or infinite number in summary histogram for: {tag}")
    return _summary(value=[{"tag": tag, "histo": histogram(values[1])}])


_declare("HistogramSummary", ("tag", "values"), (), _histogram)


# ImageSummary(tag, tensor).


def _as_bytes(image: Array) -> Array:
    """Numbers as brightness: the largest is white; if there are negative ones, zero is grey."""
    if image.dtype == np.uint8:
        return image
    wide = image.astype(np.float64)
    finite = np.isfinite(wide)
    low, high = (wide[finite].min(), wide[finite].max()) if finite.any() else (0.0, 0.0)
    limit, top, offset = (max(-low, high), 127.0, 128.0) if low < 0 else (high, 255.0, 0.0)
    scaled = np.where(finite, wide, 0) * (0.0 if limit < 1e-6 else top / limit) + offset
    shown = scaled.astype(np.uint8)
    bad = ~finite.all(axis=-1)
    shown[bad] = np.array([255, 0, 0, 255], np.uint8)[: image.shape[-1]]
    return shown


def _image(op: Operation, values: list[Array]) -> Any:
    from xlalite.files.png import encode_png

    tag, (_, height, width, channels) = bytes(values[0].item()).decode(), values[1].shape
    if channels not in (1, 3, 4):
        raise InvalidArgumentError(None, op, f"images must have 1, 3 or 4 channels, found {channels}")
    most = op.get_attr("max_images")
    found = []
    for number, image in enumerate(values[1][:most]):
        data = encode_png(_as_bytes(image))
        image_fields = {"height": height, "width": width, "colorspace": channels, "encoded_image_string": data}
        found.append({"tag": f"{tag}/image" if most == 1 else f"{tag}/image/{number}", "image": image_fields})
    return _summary(value=found)


_declare("ImageSummary", ("tag", "tensor"), ("max_images",), _image)


# TensorSummaryV2(tag, tensor, serialized_summary_metadata).


def _tensor(op: Operation, values: list[Array]) -> Any:
    from xlalite.hlo.proto.wire import encode
    from xlalite.messages.classes import CLASSES
    from xlalite.messages.data_types import tensor_message

    tensor = CLASSES["TensorProto"].FromString(encode(tensor_message(values[1], op.inputs[1].dtype)))
    metadata = CLASSES["SummaryMetadata"].FromString(values[2][()])
    return _summary(value=[{"tag": bytes(values[0].item()).decode(), "tensor": tensor, "metadata": metadata}])


_declare("TensorSummaryV2", ("tag", "tensor", "serialized_summary_metadata"), (), _tensor)


# MergeSummary(inputs...).


def _merge(op: Operation, values: list[Array]) -> Any:
    merged = _summary()
    for data in (each for value in values for each in value.ravel()):
        merged.MergeFromString(data)
    tags = [each.tag for each in merged.value]
    if len(set(tags)) < len(tags):
        twice = next(tag for tag in tags if tags.count(tag) > 1)
        raise InvalidArgumentError(None, op, f"Duplicate tag {twice} found in summary inputs")
    return merged


_declare("MergeSummary", ("inputs*",), (), _merge)


# AudioSummaryV2(tag, tensor, sample_rate).


def _audio(op: Operation, values: list[Array]) -> Any:
    tag, sounds, rate = bytes(values[0].item()).decode(), values[1], float(values[2])
    if not rate > 0:
        raise InvalidArgumentError(None, op, f"sample_rate must be above 0, found {rate:g}")
    frames, channels = sounds.shape[1], sounds.shape[2] if sounds.ndim == 3 else 1
    most = op.get_attr("max_outputs")
    found = []
    for index, sound in enumerate(sounds[:most]):
        audio = {
            "sample_rate": rate,
            "num_channels": channels,
            "length_frames": frames,
            "encoded_audio_string": _wave_file(sound, channels, round(rate)),
            "content_type": "audio/wav",
        }
        found.append({"tag": f"{tag}/audio" if most == 1 else f"{tag}/audio/{index}", "audio": audio})
    return _summary(value=found)


def _wave_file(sound: Array, channels: int, rate: int) -> bytes:
    """Numbers of -1 to 1 as a WAV file of 16 bits; what lies outside is cut off, NaN is silence."""
    scaled = np.nan_to_num(np.clip(sound.astype(np.float64), -1, 1)) * 32767
    samples = np.rint(scaled).astype("<i2").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * channels * 2, channels * 2, 16)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI", b"RIFF", len(body)) + body


_declare("AudioSummaryV2", ("tag", "tensor", "sample_rate"), ("max_outputs",), _audio)
