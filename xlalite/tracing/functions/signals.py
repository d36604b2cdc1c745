"""Neighbours along a dimension: differences, slopes, areas under samples, convolutions."""

from __future__ import annotations

from typing import Any

from xlalite.ops.functions import convolutions
from xlalite.tracing.duck_numpy import np
from xlalite.tracing.functions.reductions import floating_array
from xlalite.tracing.functions.registry import records
from xlalite.tracing.promotion import common_type, normal_axes, normal_axis, sizes, traced, traced_array

_NOTHING = np._NoValue  # NumPy's own default


@records(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _NOTHING, append: Any = _NOTHING) -> Any:
    x = traced_array(a)
    along = normal_axis(axis, x.ndim)
    side = (*x.shape[:along], 1, *x.shape[along + 1 :])
    parts = [
        each if each is x or np.ndim(each) else np.broadcast_to(traced_array(each), side)
        for each in (prepend, x, append)
        if each is not _NOTHING
    ]
    x = np.concatenate(parts, along) if len(parts) > 1 else x
    before = (slice(None),) * along
    for _ in range(n):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = np.not_equal(later, earlier) if x.dtype == np.bool_ else later - earlier
    return x


@records(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    steps = np.diff(np.ravel(traced_array(ary)))
    parts = [steps if each is steps else np.ravel(each) for each in (to_begin, steps, to_end) if each is not None]
    return np.concatenate(parts)


@records(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x = floating_array(f, None)
    axes = normal_axes(axis, x.ndim)
    spacings = list(varargs) if len(varargs) == len(axes) else [varargs[0] if varargs else 1.0] * len(axes)
    found = [_slope(x, each, spacing, edge_order) for each, spacing in zip(axes, spacings, strict=True)]
    return found[0] if len(axes) == 1 else tuple(found)


@records(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    values = np.moveaxis(traced_array(y), axis, -1)
    if x is None:
        steps: Any = dx
    else:
        places = traced_array(x)
        steps = np.diff(places if places.ndim == 1 else np.moveaxis(places, axis, -1))
    return np.sum(steps * (values[..., 1:] + values[..., :-1]) / 2.0, axis=-1)


@records(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    return _correlated(a, np.flip(traced_array(v)), mode)


@records(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    first, second = traced_array(a), traced_array(v)
    if second.shape[0] > first.shape[0]:
        return np.flip(np.conjugate(_correlated(second, np.conjugate(first), mode)))
    return _correlated(first, second.conj(), mode)


def _correlated(a: Any, v: Any, mode: str) -> Any:
    """Sums of products of `v` with each part of `a`, by a convolution."""
    wanted = common_type(a, v)
    first, second = (np.ravel(traced_array(each)).astype(wanted) for each in (a, v))
    if not first.size or not second.size:
        raise ValueError("a cannot be empty" if not first.size else "v cannot be empty")
    if first.size < second.size:
        first, second = np.flip(second), np.flip(first)
    count = second.size
    low = {"full": count - 1, "same": count // 2, "valid": 0}[mode]
    high = {"full": count - 1, "same": count - 1 - count // 2, "valid": 0}[mode]
    padded = np.pad(first, (low, high))
    if wanted.kind == "f" and wanted.itemsize in (4, 8):
        image, kernel = np.reshape(padded, (1, -1, 1)), np.reshape(second, (-1, 1, 1))
        found = convolutions.conv1d(image.tensor, kernel.tensor, stride=1, padding="VALID")
        return np.reshape(traced(found), -1)
    length = padded.shape[0] - count + 1
    if count <= 32:
        found = padded[:length] * second[0]
        for i in range(1, count):
            found = found + padded[i : i + length] * second[i]
        return found
    windows = padded[np.arange(length)[:, None] + np.arange(count)]
    return np.sum(windows * second, axis=1).astype(wanted)


def _slope(x: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    rows = np.moveaxis(x, axis, 0)
    if rows.shape[0] < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )
    tail = (1,) * (rows.ndim - 1)
    if np.ndim(spacing) == 0:
        inner = (rows[2:] - rows[:-2]) / (2.0 * spacing)
        h0 = h1 = hn = hm = spacing
    else:
        steps = np.diff(traced_array(spacing))
        one, other = np.reshape(steps[:-1], (-1, *tail)), np.reshape(steps[1:], (-1, *tail))
        inner = -other / (one * (one + other)) * rows[:-2] + (other - one) / (one * other) * rows[1:-1]
        inner = inner + one / (other * (one + other)) * rows[2:]
        h0, h1, hm, hn = steps[0], steps[min(1, sizes(steps)[0] - 1)], steps[max(sizes(steps)[0] - 2, 0)], steps[-1]
    if edge_order == 1:
        first, last = (rows[1] - rows[0]) / h0, (rows[-1] - rows[-2]) / hn
    else:
        first = (
            -(2.0 * h0 + h1) / (h0 * (h0 + h1)) * rows[0]
            + (h0 + h1) / (h0 * h1) * rows[1]
            - h0 / (h1 * (h0 + h1)) * rows[2]
        )
        last = (
            hn / (hm * (hm + hn)) * rows[-3]
            - (hn + hm) / (hm * hn) * rows[-2]
            + (2.0 * hn + hm) / (hn * (hm + hn)) * rows[-1]
        )
    return np.moveaxis(np.concatenate([first[None], inner, last[None]]), 0, axis).astype(x.dtype)
