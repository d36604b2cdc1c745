"""Fourier transforms: many lines and one, along rows and across, and a convolution by them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import dims, signed, text_contest


def workloads() -> list[Workload]:
    """All of them."""
    place = " [{rows},{columns}]"
    lengths = ((64, 4096), (64, 1000), (64, 1009), (16, 4097), (1, 1009), (1, 1 << 20), (1000, 16))
    return [
        *(workload("fft of rows" + place, partial(_fft, 1), rows=rows, columns=columns) for rows, columns in lengths),
        workload("fft of both dimensions" + place, partial(_fft, 2), rows=512, columns=512),
        workload("real fft of rows" + place, _real_fft, rows=64, columns=4096),
        workload("convolution by fft" + place, _convolution, rows=64, columns=4096),
    ]


def _fft(rank: int, rows: int = 3, columns: int = 10) -> Contest:
    shape, axes = (rows, columns), tuple(range(2 - rank, 2))
    body = (
        f"  x = c64[{dims(shape)}] parameter(0)\n"
        f"  ROOT r = c64[{dims(shape)}] fft(x), fft_type=FFT, fft_length={{{dims(shape[2 - rank :])}}}\n"
    )
    real, imaginary = signed(shape, shape)
    return text_contest(
        body,
        [(real + 1j * imaginary).astype(np.complex64)],
        plain=lambda np_: lambda x: np_.fft.fftn(x, axes=axes),
        scipy=lambda _: lambda x: _scipy_fft().fftn(x, axes=axes, workers=2),
        torch=lambda torch: lambda x: torch.fft.fftn(x, dim=axes),
    )


def _real_fft(rows: int = 3, columns: int = 10) -> Contest:
    body = (
        f"  x = f32[{rows},{columns}] parameter(0)\n"
        f"  ROOT r = c64[{rows},{columns // 2 + 1}] fft(x), fft_type=RFFT, fft_length={{{columns}}}\n"
    )
    return text_contest(
        body,
        signed((rows, columns)),
        plain=lambda np_: np_.fft.rfft,
        scipy=lambda _: lambda x: _scipy_fft().rfft(x, workers=2),
        torch=lambda torch: torch.fft.rfft,
    )


def _convolution(rows: int = 3, columns: int = 10) -> Contest:
    """Rows with rows of the same length, around the end."""
    real, spectrum = f"f32[{rows},{columns}]", f"c64[{rows},{columns // 2 + 1}]"
    length = f"fft_length={{{columns}}}"
    body = f"""
  x = {real} parameter(0)
  y = {real} parameter(1)
  a = {spectrum} fft(x), fft_type=RFFT, {length}
  b = {spectrum} fft(y), fft_type=RFFT, {length}
  c = {spectrum} multiply(a, b)
  ROOT r = {real} fft(c), fft_type=IRFFT, {length}
"""

    def convolve(fft: Any) -> Any:
        return lambda x, y: fft.irfft(fft.rfft(x) * fft.rfft(y), columns)

    return text_contest(
        body,
        signed((rows, columns), (rows, columns)),
        plain=lambda np_: convolve(np_.fft),
        scipy=lambda _: convolve(_scipy_fft()),
        torch=lambda torch: convolve(torch.fft),
    )


def _scipy_fft() -> Any:
    import scipy.fft

    return scipy.fft
