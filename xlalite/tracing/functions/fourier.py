"""`numpy.fft`: Fourier transforms of one and several dimensions, of real and complex numbers."""

from __future__ import annotations

from typing import Any

from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import normal_axes, normal_axis, numpy_dtype, sizes, traced, traced_array
from xlalite.tracing.ufunc_methods import finished


@records(np.fft.fft)
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    return finished(_complex_transform("FFT", a, n, axis, _factor(norm, n, a, axis, False)), out)


@records(np.fft.ifft)
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    return finished(_complex_transform("IFFT", a, n, axis, _factor(norm, n, a, axis, True)), out)


@records(np.fft.rfft)
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    if numpy_dtype(a).kind == "c":
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop with signature matching types of complex numbers")
    rows = _rows(_single_or_double(floating_array(a, None)), n, axis)
    found = traced(node("RFFT", [rows.tensor, constant([rows.shape[-1]])]))
    return finished(_back(found, axis, _factor(norm, n, a, axis, False)), out)


@records(np.fft.irfft)
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    length = 2 * (sizes(a)[axis] - 1) if n is None else n
    rows = _rows(_complex_array(a), length // 2 + 1, axis)
    found = traced(node("IRFFT", [rows.tensor, constant([length])]))
    return finished(_back(found, axis, _factor(norm, length, a, axis, True)), out)


@records(np.fft.hfft)
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    length = 2 * (sizes(a)[axis] - 1) if n is None else n
    return finished(irfft(np.conjugate(a), length, axis, _SWAPPED[norm]), out)


@records(np.fft.ihfft)
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    return finished(np.conjugate(rfft(a, n, axis, _SWAPPED[norm])), out)


@records(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    return finished(_along_axes(fft, a, *_sizes_and_axes(a, s, axes), norm), out)


@records(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    return finished(_along_axes(ifft, a, *_sizes_and_axes(a, s, axes), norm), out)


@records(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Any:
    return fftn(a, s, axes, norm, out)


@records(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Any:
    return ifftn(a, s, axes, norm, out)


@records(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    lengths, order = _sizes_and_axes(a, s, axes)
    found = rfft(a, lengths[-1], order[-1], norm)
    return finished(_along_axes(fft, found, lengths[:-1], order[:-1], norm), out)


@records(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    lengths, order = _sizes_and_axes(a, s, axes)
    last = 2 * (sizes(a)[order[-1]] - 1) if s is None else lengths[-1]
    found = _along_axes(ifft, a, lengths[:-1], order[:-1], norm)
    return finished(irfft(found, last, order[-1], norm), out)


@records(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Any:
    return rfftn(a, s, axes, norm, out)


@records(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None) -> Any:
    return irfftn(a, s, axes, norm, out)


@records(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    dims, order = sizes(x), normal_axes(axes, len(sizes(x)))
    return np.roll(traced_array(x), [dims[i] // 2 for i in order], order)


@records(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    dims, order = sizes(x), normal_axes(axes, len(sizes(x)))
    return np.roll(traced_array(x), [-(dims[i] // 2) for i in order], order)


_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _factor(norm: str | None, n: int | None, a: Any, axis: int, is_inverse: bool) -> float:
    """What a transform is multiplied by that is scaled as by default: an inverse one divided by the length."""
    if norm not in _SWAPPED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    length = sizes(a)[axis] if n is None else n
    if length < 1:
        raise ValueError(f"Invalid number of FFT data points ({length}) specified.")
    power = {"ortho": 0.5, "forward": 1.0}.get(norm or "", 0.0)
    return float(length ** (power if is_inverse else -power))


def _single_or_double(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _complex_array(a: Any) -> Any:
    x = _single_or_double(floating_array(a, None))
    return x.astype(np.result_type(x.dtype, np.complex64))


def _rows(x: Any, n: int | None, axis: int) -> Any:
    """The transformed dimension as the last one, cut or filled with zeros to a length."""
    rows = np.moveaxis(x, axis, -1)
    length = rows.shape[-1]
    if n is None or n == length:
        return rows
    return rows[..., :n] if n < length else np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, n - length)])


def _back(found: Any, axis: int, factor: float) -> Any:
    turned = np.moveaxis(found, -1, axis)
    return turned if factor == 1 else turned * factor


def _complex_transform(operation: str, a: Any, n: int | None, axis: int, factor: float) -> Any:
    rows = _rows(_complex_array(a), n, axis)
    return _back(traced(node(operation, [rows.tensor])), axis, factor)


def _sizes_and_axes(a: Any, s: Any, axes: Any) -> tuple[list[int], list[int]]:
    dims = sizes(a)
    last = range(-len(dims if s is None else s), 0)
    order = list(last if axes is None else axes)
    lengths = (
        [dims[i] for i in order] if s is None else [dims[i] if n == -1 else n for n, i in zip(s, order, strict=True)]
    )
    return lengths, [normal_axis(each, len(dims)) for each in order]


def _along_axes(transform: Any, a: Any, lengths: list[int], order: list[int], norm: str | None) -> Any:
    found = traced_array(a)
    for n, axis in reversed(list(zip(lengths, order, strict=True))):
        found = transform(found, n, axis, norm)
    return found
