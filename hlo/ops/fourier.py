"""The discrete Fourier transform over the last dimensions."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext
from xlalite.hlo.late import imported
from xlalite.hlo.ops.evaluation.accumulation import narrow
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT_LIST, enum_codec
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


class FftType(enum.Enum):
    """Direction, and whether the signal is real."""

    FFT = "FFT"
    """Complex to complex, sum of x * exp(-2 pi i j k / n)."""
    IFFT = "IFFT"
    """Its inverse, divided by n."""
    RFFT = "RFFT"
    """Real to complex; only the n/2+1 first frequencies of the last dimension."""
    IRFFT = "IRFFT"
    """The inverse of RFFT."""

    @property
    def is_real(self) -> bool:
        """Whether the signal is real."""
        return self in (FftType.RFFT, FftType.IRFFT)


@dataclass(frozen=True, slots=True)
class FftAttrs:
    """Kind, and the sizes of the signal in the last dimensions."""

    fft_type: FftType = attribute(enum_codec(FftType, what="fft type"))
    fft_length: tuple[int, ...] = attribute(INT_LIST)


_COMPLEX = {DType.F32: DType.C64, DType.F64: DType.C128}


def _frequencies(length: int) -> int:
    """Number of frequencies that describe a real signal."""
    return length // 2 + 1 if length else 0


def _fft_shape(context: ShapeContext) -> Shape:
    operand, attrs = context.array(0), context.attrs
    kind, lengths = attrs.fft_type, attrs.fft_length
    context.require(1 <= len(lengths) <= 3, f"fft_length must have 1 to 3 entries, found {len(lengths)}")
    context.require(min(lengths) >= 0, f"fft_length must not be negative, found {list(lengths)}")
    context.require(
        operand.rank >= len(lengths), f"{len(lengths)} transformed dimensions for an operand of rank {operand.rank}"
    )
    real = kind is FftType.RFFT
    context.require(
        operand.dtype in _COMPLEX if real else operand.dtype.is_complex,
        f"{kind.value} takes {'f32 or f64' if real else 'c64 or c128'}, found {operand.dtype.value}",
    )
    if kind in (FftType.FFT, FftType.IFFT):
        return operand
    expected = (*lengths[:-1], _frequencies(lengths[-1]) if kind is FftType.IRFFT else lengths[-1])
    found = operand.dims[operand.rank - len(lengths) :]
    # XLA knows no signal as one of no frequency or of one: jax's irfft of one makes none.
    is_nothing = kind is FftType.IRFFT and lengths[-1] == 0 and found == (*lengths[:-1], 1)
    context.require(
        found == expected or is_nothing,
        f"{kind.value} with fft_length {list(lengths)} needs last dimensions {list(expected)}, found {list(found)}",
    )
    last = _frequencies(lengths[-1]) if kind is FftType.RFFT else lengths[-1]
    dtype = _COMPLEX[operand.dtype] if real else operand.dtype.component if kind is FftType.IRFFT else operand.dtype
    return Shape.array(dtype, (*operand.dims[:-1], last))


_TRANSFORMS = {
    FftType.FFT: "numpy.fft:fftn",
    FftType.IFFT: "numpy.fft:ifftn",
    FftType.RFFT: "numpy.fft:rfftn",
    FftType.IRFFT: "numpy.fft:irfftn",
}


def _fft(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """Computed in double precision and rounded once.

    Signals shorter than fft_length go on with zeros, of longer ones the beginning is taken; results likewise.
    """
    operand, attrs, shape = array_value(operands[0]), instruction.attrs, instruction.shape
    if not shape.element_count or 0 in attrs.fft_length:
        return np.zeros(shape.dims, shape.dtype.numpy)
    wide = operand.astype(np.complex128 if operand.dtype.kind == "c" else np.float64)
    axes = tuple(range(operand.ndim - len(attrs.fft_length), operand.ndim))
    result = narrow(imported(_TRANSFORMS[attrs.fft_type])(wide, s=attrs.fft_length, axes=axes), shape.dtype)
    if result.shape == shape.dims:
        return result
    fitted = np.zeros(shape.dims, result.dtype)
    common = tuple(slice(min(sizes)) for sizes in zip(result.shape, shape.dims, strict=True))
    fitted[common] = result[common]
    return fitted


def _fft_flops(instruction: HloInstruction) -> int:
    """The usual count: 5 n log2 n for a complex transform, half of it for a real one."""
    attrs: FftAttrs = instruction.attrs
    signal = max(instruction.shape.element_count, instruction.operand(0).shape.element_count)
    per_element = 5 * math.log2(max(1, math.prod(attrs.fft_length)))
    return int(signal * per_element / (2 if attrs.fft_type in (FftType.RFFT, FftType.IRFFT) else 1))


OPS = (
    OpDef(
        "fft",
        "result[k] = sum over j of x[j] * exp(-2 pi i j k / n) over the last dimensions",
        1,
        _fft_shape,
        _fft,
        attrs=FftAttrs,
        flops=_fft_flops,
    ),
)
