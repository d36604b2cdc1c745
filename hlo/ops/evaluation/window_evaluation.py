"""Combines the elements below a moving window.

Padding and the holes of dilation contribute nothing. A known monoid reads its identity there and treats the dimensions
one after another; any other function is told by a mask which elements exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.monoid import Monoid, recognise_monoid
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.ir.wide_function import wide_function
from xlalite.hlo.ops.evaluation.accumulation import narrow, widen
from xlalite.hlo.ops.evaluation.monoid_arrays import combine_pairs, reduce_along
from xlalite.hlo.ops.evaluation.scalar_function import ArrayFunction, array_function
from xlalite.hlo.ops.rules.shapes import array_index, elements_of
from xlalite.hlo.ops.slicing import pad_array
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.window import Window, WindowDimension

Combine: TypeAlias = Callable[[list[Array], list[Array]], list[Array]]

_FOLD_LIMIT = 1024


def reduce_window(
    computation: HloComputation, operands: Sequence[Array], initial: Sequence[Array], window: Window, call: Caller
) -> tuple[Array, ...]:
    """One value for each position of the window: the initial value combined with the elements below it.

    Functions must be associative, as in a reduction; small windows are folded in row-major order.
    """
    sizes = window.output_sizes(operands[0].shape)
    types = [shape.dtype for shape in elements_of(computation.root.shape)]
    if 0 in sizes:
        return tuple(np.zeros(sizes, dtype.numpy) for dtype in types)
    monoid = recognise_monoid(computation) if len(operands) == 1 else None
    if monoid is not None:
        return (_reduce_window_monoid(monoid, operands[0], initial[0], window),)
    wide = wide_function(computation)
    if wide is not None:
        arrays, starts = (
            [one.astype(dtype.numpy) for one, dtype in zip(each, types, strict=True)] for each in (operands, initial)
        )
        return tuple(map(narrow, reduce_window(wide, arrays, starts, window, call), types))
    function = array_function(computation, call)
    exists = pad_to_window(np.ones(operands[0].shape, np.bool_), np.asarray(False), window)
    padded = [
        pad_to_window(operand.astype(dtype.numpy, copy=False), np.zeros((), dtype.numpy), window)
        for operand, dtype in zip(operands, types, strict=True)
    ]
    starts = [np.broadcast_to(start.astype(dtype.numpy), sizes) for start, dtype in zip(initial, types, strict=True)]
    if math.prod(window.sizes) <= _FOLD_LIMIT:
        return tuple(_fold_window(function, starts, padded, exists, window))
    *elements, any_exists = _windows_by_doubling(function, [*padded, exists], window)
    combined = function([*starts, *elements])
    return tuple(np.where(any_exists, new, start) for new, start in zip(combined, starts, strict=True))


def pad_to_window(array: Array, value: Array, window: Window) -> Array:
    """The array with the window's padding and base dilation."""
    return pad_array(array, value, [(dim.pad_low, dim.pad_high, dim.lhs_dilate - 1) for dim in window.dimensions])


def window_element(array: Array, offsets: Sequence[int], window: Window) -> Array:
    """The element at an offset in the window, for each window position of a padded array."""
    sizes = [_positions(size, dim) for size, dim in zip(array.shape, window.dimensions, strict=True)]
    return array[
        array_index(
            [
                slice(offset * dim.rhs_dilate, offset * dim.rhs_dilate + (size - 1) * dim.stride + 1, dim.stride)
                for offset, size, dim in zip(offsets, sizes, window.dimensions, strict=True)
            ]
        )
    ]


def _positions(padded_size: int, dim: WindowDimension) -> int:
    return (padded_size - dim.dilated_size) // dim.stride + 1


def _fold_window(
    function: ArrayFunction, starts: Sequence[Array], padded: Sequence[Array], exists: Array, window: Window
) -> list[Array]:
    accumulators = list(starts)
    for offsets in np.ndindex(*window.sizes):
        elements = [window_element(array, offsets, window) for array in padded]
        there = window_element(exists, offsets, window)
        combined = function([*accumulators, *elements])
        accumulators = [np.where(there, new, old) for new, old in zip(combined, accumulators, strict=True)]
    return accumulators


def _reduce_window_monoid(monoid: Monoid, operand: Array, initial: Array, window: Window) -> Array:
    dtype, kind = monoid.dtype, monoid.kind

    def combine(lhs: list[Array], rhs: list[Array]) -> list[Array]:
        return [combine_pairs(kind, lhs[0], rhs[0])]

    with np.errstate(all="ignore"):
        result = widen(pad_to_window(operand.astype(dtype.numpy, copy=False), monoid.identity, window), dtype)
        for axis, dim in enumerate(window.dimensions):
            positions = _positions(result.shape[axis], dim)
            if dim.size * positions <= 4 * result.shape[axis] * max(1, dim.size.bit_length()):
                result = reduce_along(kind, _windows_along(result, axis, dim, positions), axis=-1)
            else:
                result = _double_along(combine, [result], axis, dim)[0]
        return narrow(combine([widen(initial.astype(dtype.numpy), dtype)], [result])[0], dtype)


def _windows_along(array: Array, axis: int, dim: WindowDimension, positions: int) -> Array:
    """A view with one more dimension: the elements of the window along one axis, for each of its positions."""
    step = array.strides[axis]
    sizes = (*array.shape[:axis], positions, *array.shape[axis + 1 :], dim.size)
    strides = (*array.strides[:axis], step * dim.stride, *array.strides[axis + 1 :], step * dim.rhs_dilate)
    return as_strided(array, sizes, strides, writeable=False)


def _double_along(combine: Combine, arrays: list[Array], axis: int, dim: WindowDimension) -> list[Array]:
    """Windows along one axis from windows of 1, 2, 4, ... elements: about 2 log2(size) combinations."""
    total = arrays[0].shape[axis] - dim.dilated_size + 1
    result: list[Array] | None = None
    taken, width, powers = 0, 1, arrays
    while True:
        if dim.size & width:
            start = taken * dim.rhs_dilate
            piece = [_cut(array, axis, start, start + total, 1) for array in powers]
            result = piece if result is None else combine(result, piece)
            taken += width
        if taken == dim.size:
            break
        shift = width * dim.rhs_dilate
        length = powers[0].shape[axis] - shift
        powers = combine(
            [_cut(array, axis, 0, length, 1) for array in powers],
            [_cut(array, axis, shift, shift + length, 1) for array in powers],
        )
        width *= 2
    assert result is not None, "a window has at least one element"
    return [_cut(array, axis, 0, total, dim.stride) for array in result]


def _cut(array: Array, axis: int, start: int, stop: int, step: int) -> Array:
    return array[(slice(None),) * axis + (slice(start, stop, step),)]


def _windows_by_doubling(function: ArrayFunction, arrays: list[Array], window: Window) -> list[Array]:
    """Large windows of any associative function; the last array says which elements, then which windows, exist."""

    def combine(lhs: list[Array], rhs: list[Array]) -> list[Array]:
        left, right = lhs[:-1], rhs[:-1]
        left_exists, right_exists = lhs[-1].astype(np.bool_), rhs[-1].astype(np.bool_)
        both = left_exists & right_exists
        combined = function([*left, *right])
        return [
            *(
                np.where(both, new, np.where(left_exists, a, b))
                for new, a, b in zip(combined, left, right, strict=True)
            ),
            left_exists | right_exists,
        ]

    for axis, dim in enumerate(window.dimensions):
        arrays = _double_along(combine, arrays, axis, dim)
    return arrays
