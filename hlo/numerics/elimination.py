"""Gaussian elimination on stacks of matrices, with LAPACK's results: factors packed into one matrix, pivots, info.

Arrays are [count, ...] in f64 or c128. `info` is 0, or the 1-based number of the first row where the method broke down.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray

_PANEL = 32


def substitute(matrix: AnyArray, rhs: AnyArray, *, lower: bool, unit_diagonal: bool) -> AnyArray:
    """The solution x of matrix * x = rhs, row by row; only the named triangle is read."""
    size = matrix.shape[-1]
    solution = rhs.copy()
    for row in range(size) if lower else reversed(range(size)):
        known = slice(0, row) if lower else slice(row + 1, size)
        value = solution[..., row, :] - np.matmul(matrix[..., row : row + 1, known], solution[..., known, :])[..., 0, :]
        solution[..., row, :] = value if unit_diagonal else value / matrix[..., row, row, np.newaxis]
    return solution


def lower_cholesky(matrices: AnyArray) -> tuple[AnyArray, AnyArray]:
    """(L in the lower triangle, the input above it; info): L * L^H = matrix; only the lower triangle is read."""
    factors, info = matrices.copy(), np.zeros(len(matrices), np.int64)
    for column in range(matrices.shape[-1]):
        left = factors[:, column:, :column]
        rest = factors[:, column:, column] - np.matmul(left, np.conj(left[:, :1]).swapaxes(-1, -2))[..., 0]
        pivot = rest[:, 0].real
        info = np.where((info == 0) & ~(pivot > 0), column + 1, info)
        working = (info == 0)[:, np.newaxis]
        root = np.sqrt(np.where(pivot > 0, pivot, 1.0))[:, np.newaxis]
        rest = np.concatenate([root, rest[:, 1:] / root], axis=1)
        factors[:, column:, column] = np.where(working, rest, factors[:, column:, column])
    return factors, info


def lu(matrices: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(L below the diagonal and U, 1-based row that step i swaps with row i, info): L * U = the swapped matrix."""
    factors = matrices.copy()
    count, rows, columns = factors.shape
    steps = min(rows, columns)
    pivots, info = np.zeros((count, steps), np.int64), np.zeros(count, np.int64)
    for start in range(0, steps, _PANEL):
        end = min(start + _PANEL, steps)
        for step in range(start, end):
            info = _eliminate(factors, step, end, pivots, info)
        top = substitute(factors[:, start:end, start:end], factors[:, start:end, end:], lower=True, unit_diagonal=True)
        factors[:, start:end, end:] = top
        factors[:, end:, end:] -= np.matmul(factors[:, end:, start:end], top)
    return factors, pivots + 1, info


def _eliminate(factors: AnyArray, step: int, end: int, pivots: AnyArray, info: AnyArray) -> AnyArray:
    """One column: swaps the row with the largest element up and clears below, in columns before `end`."""
    column = factors[:, step:, step]
    everyone = np.arange(len(factors))
    chosen = step + np.argmax(np.abs(column.real) + np.abs(column.imag), axis=1)
    pivots[:, step] = chosen
    upper = factors[everyone, step].copy()
    factors[:, step] = factors[everyone, chosen]
    factors[everyone, chosen] = upper
    pivot = factors[:, step, step]
    info = np.where((info == 0) & (pivot == 0), step + 1, info)
    factors[:, step + 1 :, step] /= np.where(pivot == 0, 1, pivot)[:, np.newaxis]
    factors[:, step + 1 :, step + 1 : end] -= (
        factors[:, step + 1 :, step, np.newaxis] * factors[:, step, np.newaxis, step + 1 : end]
    )
    return info


def solve_tridiagonal(
    below: AnyArray,
    diagonal: AnyArray,
    above: AnyArray,
    rhs: AnyArray,
    perturbing: np.finfo[Any] | None = None,
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]:
    """(second upper diagonal, diagonal and upper diagonal of U, the solution, info), with row swaps.

    Diagonals have the length n of the matrix: below[0] and above[n - 1] mean nothing. With a type to perturb for,
    numbers on U's diagonal by which a quotient would not be finite in it grow by its epsilon times U's largest number.
    """
    first, second, b = diagonal.copy(), above.copy(), rhs.copy()
    third, info = np.zeros_like(below), np.zeros(len(b), np.int64)
    size = first.shape[1]
    second[:, size - 1 :] = 0
    for row in range(size - 1):
        under = below[:, row + 1]
        swap = _size(first[:, row]) < _size(under)
        upper = (first[:, row].copy(), second[:, row].copy(), np.zeros_like(under), b[:, row].copy())
        lower = (under, first[:, row + 1].copy(), second[:, row + 1].copy(), b[:, row + 1].copy())
        kept = [np.where(_like(swap, u), low, u) for u, low in zip(upper, lower, strict=True)]
        other = [np.where(_like(swap, u), u, low) for u, low in zip(upper, lower, strict=True)]
        info = np.where((info == 0) & (kept[0] == 0), row + 1, info)
        factor = other[0] / np.where(kept[0] == 0, 1, kept[0])
        first[:, row], second[:, row], third[:, row], b[:, row] = kept
        first[:, row + 1] = other[1] - factor * kept[1]
        second[:, row + 1] = other[2] - factor * kept[2]
        b[:, row + 1] = other[3] - factor[:, np.newaxis] * kept[3]
    if size:
        info = np.where((info == 0) & (first[:, -1] == 0), size, info)
    largest = np.max([_size(part) for part in (first, second, third)], (0, 2), initial=0)[:, np.newaxis]
    for row in reversed(range(size)):
        known = b[:, row]
        if row + 1 < size:
            known = known - second[:, row, np.newaxis] * b[:, row + 1]
        if row + 2 < size:
            known = known - third[:, row, np.newaxis] * b[:, row + 2]
        pivot = first[:, row, np.newaxis]
        if perturbing is None:
            b[:, row] = known / np.where(pivot == 0, 1, pivot)
            continue
        tiny = float(perturbing.tiny)
        grown = pivot + np.copysign(np.maximum(float(perturbing.eps) * largest, tiny), pivot.real)
        b[:, row] = known / np.where(_size(pivot) < tiny * np.maximum(1, _size(known)), grown, pivot)
    return third, first, second, b, info


def _size(numbers: AnyArray) -> AnyArray:
    """The sums of the parts' absolute values, by which LAPACK compares."""
    return np.asarray(np.abs(numbers.real) + np.abs(numbers.imag))


def _like(mask: AnyArray, array: AnyArray) -> AnyArray:
    return mask.reshape(mask.shape + (1,) * (array.ndim - 1))
