"""Fourier transforms, with complex numbers as pairs in the last dimension; all in double precision."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.fourier import FftType
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, rule


@rule("DFT")
def _dft(context: NodeContext) -> Handle:
    b, narrow = context.builder, context.operand(0)
    rank = len(narrow.dims)
    if context.version >= 20:
        stated = int(context.known_scalar(2)) if context.has(2) else -2
    else:
        stated = context.integer("axis", 1)
    axis = context.normalized(stated, rank)
    if axis == rank - 1 or narrow.dims[-1] not in (1, 2):
        raise context.error(f"{narrow.shape.text()} has no dimension {axis} of numbers or of pairs")
    inverse, onesided = (context.integer(name, 0) != 0 for name in ("inverse", "onesided"))
    x = _complex(narrow)
    order = [*(i for i in range(rank - 1) if i != axis), axis]
    x = b.transpose(x, order)
    back = [order.index(i) for i in range(rank - 1)]
    if inverse and onesided:
        length = int(context.known_scalar(1)) if context.has(1) else 2 * (x.dims[-1] - 1)
        real = _transformed(_fitted(x, length // 2 + 1), FftType.IRFFT, length)
        real = b.transpose(real, back)
        return b.convert(b.reshape(real, (*real.dims, 1)), narrow.dtype)
    length = int(context.known_scalar(1)) if context.has(1) else x.dims[-1]
    found = _transformed(_fitted(x, length), FftType.IFFT if inverse else FftType.FFT, length)
    if onesided:
        found = _fitted(found, length // 2 + 1)
    return _pairs(b.transpose(found, back), narrow.dtype)


@rule("STFT")
def _stft(context: NodeContext) -> Handle:
    b, narrow = context.builder, context.operand(0)
    step = int(context.known_scalar(1))
    signal = _complex(narrow if len(narrow.dims) == 3 else b.reshape(narrow, (*narrow.dims, 1)))
    window = context.optional(2)
    if context.has(3):
        length = int(context.known_scalar(3))
    elif window is not None:
        length = window.dims[0]
    else:
        raise context.error("neither a window nor a frame length is given")
    if step < 1 or not 0 < length <= signal.dims[1]:
        raise context.error(f"frames of {length} every {step} of a signal of {signal.dims[1]}")
    count = (signal.dims[1] - length) // step + 1
    places = np.arange(count)[:, np.newaxis] * step + np.arange(length)
    frames = gather_rows(b, signal, b.constant(places.astype(np.int64)), 1)
    if window is not None:
        wide = b.convert(window, frames.dtype.component)
        frames = frames * b.convert(broadcast_to(b, wide, frames.dims), frames.dtype)
    found = _transformed(frames, FftType.FFT, length)
    if context.integer("onesided", 1) and narrow.dims[-1:] != (2,):
        found = _fitted(found, length // 2 + 1)
    return _pairs(found, narrow.dtype)


@rule("MelWeightMatrix")
def _mel_weight_matrix(context: NodeContext) -> Handle:
    """Triangular filters, evenly spaced on the mel scale; all that they follow from must be known."""
    bins, length, rate, low, high = (context.known_scalar(i) for i in range(5))
    spectrum = int(length) // 2 + 1
    mels = 2595 * np.log10(1 + np.array([float(low), float(high)]) / 700)
    edges = np.arange(int(bins) + 2) * (mels[1] - mels[0]) / (int(bins) + 2) + mels[0]
    places = ((int(length) + 1) * 700 * (10 ** (edges / 2595) - 1) // float(rate)).astype(int)
    found = np.zeros((spectrum, int(bins)))
    for column, (start, centre, end) in enumerate(zip(places, places[1:], places[2:], strict=False)):
        if centre == start:
            found[centre, column] = 1
        else:
            found[start : centre + 1, column] = (np.arange(start, centre + 1) - start) / (centre - start)
        if end > centre:
            found[centre:end, column] = (end - np.arange(centre, end)) / (end - centre)
    return context.constant(found, context.dtype("output_datatype", DType.F32))


def _complex(x: Handle) -> Handle:
    """Pairs, or numbers alone, as complex numbers without the last dimension."""
    b = x.builder
    wide = b.convert(x, DType.F64)
    dims = x.dims[:-1]

    def part(number: int) -> Handle:
        starts = [*[0] * len(dims), number]
        return b.reshape(b.slice(wide, starts, [*dims, number + 1]), dims)

    imaginary = part(1) if x.dims[-1] == 2 else b.full(0, wide.dtype, dims)
    return b.op("complex", (part(0), imaginary))


def _pairs(x: Handle, dtype: DType) -> Handle:
    b = x.builder
    parts = [b.reshape(b.op(opcode, (x,)), (*x.dims, 1)) for opcode in ("real", "imag")]
    return b.convert(b.concatenate(parts, len(x.dims)), dtype)


def _fitted(x: Handle, size: int) -> Handle:
    """The last dimension cut off or filled up with zeros."""
    padding = [*[(0, 0, 0)] * (len(x.dims) - 1), (0, size - x.dims[-1], 0)]
    return x.builder.pad(x, x.builder.full(0, x.dtype, ()), padding)


def _transformed(x: Handle, kind: FftType, length: int) -> Handle:
    return x.builder.op("fft", (x,), OPS["fft"].attrs(kind, (length,)))


# Cosines of which each window is a sum, by multiples of the angle.
_WINDOWS = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}


@rule(*_WINDOWS)
def _window(context: NodeContext) -> Handle:
    size, b = int(context.known_scalar(0)), context.builder
    if size < 0:
        raise context.error(f"a window of {size} elements")
    steps = size if context.integer("periodic", 1) else size - 1
    angle = b.convert(b.iota(DType.S64, (size,), 0), DType.F64) * (2 * np.pi / max(1, steps))
    found = b.full(0, DType.F64, (size,))
    for number, weight in enumerate(_WINDOWS[context.operator]):
        found = found + b.op("cosine", (angle * float(number),)) * weight
    return b.convert(found, context.dtype("output_datatype", DType.F32))
