"""Signals: Fourier transforms, frames and windows; what users reach as `xlalite.signal`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import gather, pad, shape
from xlalite.ops.functions.math import maximum, range as numbers
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.shape_rules import normalize_axis
from xlalite.ops.helpers.sizes import as_size_vector


def _complex_transform(op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(input: Any, name: str | None = None) -> Tensor:
        x = convert_to_tensor(input)
        return node(op_type, [x if x.dtype.is_complex else cast_to(x, dtypes.complex64)], None, name)

    function.__doc__ = summary
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


fft = _complex_transform("FFT", "The discrete Fourier transform over the last dimension.")
ifft = _complex_transform("IFFT", "The inverse Fourier transform over the last dimension.")
fft2d = _complex_transform("FFT2D", "The discrete Fourier transform over the last two dimensions.")
ifft2d = _complex_transform("IFFT2D", "The inverse Fourier transform over the last two dimensions.")
fft3d = _complex_transform("FFT3D", "The discrete Fourier transform over the last three dimensions.")
ifft3d = _complex_transform("IFFT3D", "The inverse Fourier transform over the last three dimensions.")


def _real_transform(op_type: str, rank: int, summary: str) -> Callable[..., Tensor]:
    is_inverse = op_type.startswith("I")

    def function(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
        x = convert_to_tensor(input_tensor, preferred_dtype=dtypes.complex64 if is_inverse else dtypes.float32)
        if fft_length is not None:
            lengths = cast_to(as_size_vector(fft_length), dtypes.int32)
        elif x.shape.rank is None:
            raise ShapeError(f"{op_type}: the rank of {x.name!r} is not known; pass fft_length=")
        else:
            lengths = shape(x)[x.shape.rank - rank :]
            if is_inverse:
                # The last dimension holds the frequencies of so many numbers.
                last = maximum((lengths[-1] - 1) * 2, 1)
                lengths = node("ConcatV2", [lengths[:-1], node("Pack", [last], {"axis": 0}), constant(0)])
        return node(op_type, [x, lengths], None, name)

    function.__doc__ = summary
    function.__name__ = function.__qualname__ = op_type.lower()
    return function


rfft = _real_transform("RFFT", 1, "The Fourier transform of real numbers over the last dimension.")
irfft = _real_transform("IRFFT", 1, "Real numbers, from their frequencies in the last dimension.")
rfft2d = _real_transform("RFFT2D", 2, "The Fourier transform of real numbers over the last two dimensions.")
irfft2d = _real_transform("IRFFT2D", 2, "Real numbers, from their frequencies in the last two dimensions.")
rfft3d = _real_transform("RFFT3D", 3, "The Fourier transform of real numbers over the last three dimensions.")
irfft3d = _real_transform("IRFFT3D", 3, "Real numbers, from their frequencies in the last three dimensions.")


def frame(
    signal: Any,
    frame_length: int,
    frame_step: int,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Pieces of a signal, `frame_step` apart: `[..., frames, frame_length, ...]`.

    Raises:
        ShapeError: the rank is not known.
    """
    x = convert_to_tensor(signal)
    if x.shape.rank is None:
        raise ShapeError(f"frame: the rank of {x.name!r} is not known")
    along = normalize_axis(axis, x.shape.rank)
    with get_default_graph().name_scope(name or "frame"):
        length = shape(x)[along]
        if pad_end:
            count = -(-length // frame_step)
            more = maximum((count - 1) * frame_step + frame_length - length, 0)
            around = [constant([0, 0])] * x.shape.rank
            around[along] = node("Pack", [constant(0), more], {"axis": 0})
            x = pad(x, node("Pack", around, {"axis": 0}), constant_values=cast_to(promote(pad_value)[0], x.dtype))
        else:
            count = maximum((length - frame_length + frame_step) // frame_step, 0)
        starts = node("ExpandDims", [numbers(count) * frame_step, constant(1)])
        return gather(x, starts + np.arange(frame_length, dtype=np.int32), axis=along)


def _window(a: float, b: float, length: Any, periodic: bool, dtype: Any) -> Tensor:
    """A - b cos over a window, so that it is periodic or symmetric."""
    wanted = as_dtype(dtype)
    size = convert_to_tensor(length)
    steps = cast_to(maximum(size if periodic else size - 1, 1), wanted)
    place = cast_to(numbers(size), wanted) / steps
    window: Tensor = a - b * node("Cos", [place * (2 * math.pi)])
    return node("SelectV2", [node("Equal", [size, constant(1, size.dtype)]), node("OnesLike", [window]), window])


def hann_window(
    window_length: Any, periodic: bool = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """A raised cosine that begins with 0."""
    with get_default_graph().name_scope(name or "hann_window"):
        return _window(0.5, 0.5, window_length, periodic, dtype)


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """A raised cosine that begins with 0.08."""
    with get_default_graph().name_scope(name or "hamming_window"):
        return _window(0.54, 0.46, window_length, periodic, dtype)


def stft(
    signals: Any,
    frame_length: int,
    frame_step: int,
    fft_length: int | None = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The frequencies of windowed pieces of real signals: `[..., frames, fft_length / 2 + 1]`."""
    with get_default_graph().name_scope(name or "stft"):
        x = convert_to_tensor(signals)
        length = fft_length if fft_length is not None else 1 << (frame_length - 1).bit_length()
        pieces = frame(x, frame_length, frame_step, pad_end)
        if window_fn is not None:
            pieces = pieces * window_fn(frame_length, dtype=x.dtype)
        return rfft(pieces, [length])
