"""Complex numbers and their parts, and Fourier transforms along any dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.fourier import FftType
from xlalite.interop.torch.rules.operation import Operand, Operation
from xlalite.interop.torch.rules.registry import rule

_MOST = 3
"""Dimensions that HLO transforms at once."""


@rule("aten.view_as_real.default")
def view_as_real(at: Operation, x: Handle) -> Handle:
    """Real and imaginary parts, as the last dimension."""
    b = at.builder
    return b.concatenate([b.reshape(b.op(part, (x,)), (*x.dims, 1)) for part in ("real", "imag")], len(x.dims))


@rule("aten.view_as_complex.default", "aten.complex.default")
def view_as_complex(at: Operation, x: Handle, imaginary: Handle | None = None) -> Handle:
    """Complex numbers of their parts, which are apart or the last dimension."""
    b, last = at.builder, len(x.dims) - 1
    if imaginary is not None:
        return b.op("complex", (at.expand(x, at.dims), at.expand(imaginary, at.dims)))
    starts, limits = [0] * last, x.dims[:-1]
    parts = [b.reshape(b.slice(x, [*starts, i], [*limits, i + 1]), limits) for i in range(2)]
    return b.op("complex", parts)


@rule("aten._conj.default", "aten._conj_physical.default", "aten.conj_physical.default")
def conj(at: Operation, x: Operand) -> Handle:
    """Conjugate numbers."""
    own = at.cast(x, at.dtype)
    if not own.dtype.is_complex:
        return own
    return at.builder.op("complex", (at.builder.op("real", (own,)), -at.builder.op("imag", (own,))))


@rule("aten.resolve_conj.default", "aten.resolve_neg.default")
def resolved(at: Operation, x: Handle) -> Handle:
    """What is as it says here anyway."""
    return x


@rule("aten._neg_view.default")
def negated(at: Operation, x: Handle) -> Handle:
    """Numbers with other signs."""
    return -x


@rule("aten._fft_c2c.default")
def complex_transform(at: Operation, x: Handle, axes: Sequence[int], normalization: int, forward: bool) -> Handle:
    """Of complex numbers."""
    count = _count(x, axes)
    found = _transformed(x, axes, FftType.FFT if forward else FftType.IFFT)
    return _over(found if forward else found * count, normalization, count)


@rule("aten._fft_r2c.default")
def real_transform(at: Operation, x: Handle, axes: Sequence[int], normalization: int, onesided: bool) -> Handle:
    """Of real numbers, of which the first frequencies along the last dimension may be kept alone."""
    if onesided:
        found = _transformed(x, axes[-1:], FftType.RFFT)
        found = _transformed(found, axes[:-1], FftType.FFT)
    else:
        found = _transformed(at.builder.convert(x, at.dtype), axes, FftType.FFT)
    return _over(found, normalization, _count(x, axes))


@rule("aten._fft_c2r.default")
def to_real_transform(at: Operation, x: Handle, axes: Sequence[int], normalization: int, last: int) -> Handle:
    """Of the first frequencies of real numbers."""
    found = _transformed(_transformed(x, axes[:-1], FftType.IFFT), axes[-1:], FftType.IRFFT, last)
    count = _count(x, axes[:-1]) * last
    return _over(found * count, normalization, count)


def _transformed(x: Handle, axes: Sequence[int], kind: FftType, length: int | None = None) -> Handle:
    b, rank = x.builder, len(x.dims)
    for first in range(0, len(axes), _MOST):
        own = [axis % rank for axis in axes[first : first + _MOST]]
        order = [*(i for i in range(rank) if i not in own), *own]
        turned = b.transpose(x, order)
        lengths = (length,) if length is not None else turned.dims[rank - len(own) :]
        found = b.op("fft", (turned,), OPS["fft"].attrs(fft_type=kind, fft_length=tuple(lengths)))
        x = b.transpose(found, [order.index(i) for i in range(rank)])
    return x


def _count(x: Handle, axes: Sequence[int]) -> int:
    return math.prod(x.dims[axis] for axis in axes)


def _over(x: Handle, normalization: int, count: int) -> Handle:
    """Divided by nothing (0), by the root of the count (1) or by the count (2); HLO divides on the way back."""
    divisor = {0: 1.0, 1: math.sqrt(count), 2: float(count)}[normalization]
    return x if divisor == 1 else x * x.builder.full(1 / divisor, x.dtype, x.dims)
