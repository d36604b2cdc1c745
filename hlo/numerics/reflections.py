"""Householder reflections on stacks of matrices, packed as LAPACK packs them.

A reflection is H = 1 - tau * v * v^H with v[0] = 1; the rest of v is stored where H makes zeros. Arrays are
[count, ...] in f64 or c128.
"""

from __future__ import annotations

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray


def qr(matrices: AnyArray) -> tuple[AnyArray, AnyArray]:
    """(R with the reflections below it, their tau)."""
    if not matrices.size:
        count, rows, columns = matrices.shape
        return matrices.copy(), np.zeros((count, min(rows, columns)), matrices.dtype)
    packed, taus = np.linalg.qr(matrices, mode="raw")
    return np.swapaxes(packed, -1, -2), taus


def pivoted_qr(matrices: AnyArray, fixed: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(R with the reflections below it, 1-based old number of each column, tau); columns come longest first.

    Args:
        matrices: The matrices.
        fixed: [count, columns], nonzero where a column must come before those that are free.
    """
    packed = matrices.copy()
    count, rows, columns = packed.shape
    order = np.zeros((count, columns), np.int64)
    taus = np.zeros((count, min(rows, columns)), packed.dtype)
    for matrix, names, wanted, tau in zip(packed, order, fixed, taus, strict=True):
        names[:] = np.arange(columns)
        free_from = 0
        for column in np.flatnonzero(wanted).tolist():
            _swap(matrix, names, column, free_from)
            free_from += 1
        for step in range(min(rows, columns)):
            if step >= free_from:
                lengths = (np.abs(matrix[step:, step:]) ** 2).sum(axis=0)
                _swap(matrix, names, step + int(np.argmax(lengths)), step)
            v, tau[step : step + 1], beta = reflection(matrix[np.newaxis, step:, step])
            rest = matrix[np.newaxis, step:, step + 1 :]
            rest[:] = reflect(v, np.conj(tau[step : step + 1]), rest)
            matrix[step, step], matrix[step + 1 :, step] = beta[0], v[0, 1:]
    return packed, order + 1, taus


def _swap(matrix: AnyArray, names: AnyArray, a: int, b: int) -> None:
    matrix[:, [a, b]], names[[a, b]] = matrix[:, [b, a]], names[[b, a]]


def multiply_q(packed: AnyArray, taus: AnyArray, others: AnyArray, *, adjoint: bool) -> AnyArray:
    """Q * other, or Q^H * other, where Q is the product of the reflections in the columns of `packed`."""
    product = others.copy()
    steps = range(taus.shape[1])
    for step in steps if adjoint else reversed(steps):
        v = packed[:, step:, step].copy()
        v[:, 0] = 1
        tau = taus[:, step]
        product[:, step:] = reflect(v, np.conj(tau) if adjoint else tau, product[:, step:])
    return product


def hessenberg(matrices: AnyArray, low: int, high: int) -> tuple[AnyArray, AnyArray]:
    """(H with reflections below its subdiagonal, tau): Q^H * matrix * Q = H between the 1-based rows low and high."""
    packed = matrices.copy()
    count, size, _ = packed.shape
    taus = np.zeros((count, max(0, size - 1)), packed.dtype)
    for step in range(low - 1, high - 1):
        inside = slice(step + 1, high)
        v, tau, beta = reflection(packed[:, inside, step])
        packed[:, :high, inside] = _reflect_columns(v, tau, packed[:, :high, inside])
        packed[:, inside, step + 1 :] = reflect(v, np.conj(tau), packed[:, inside, step + 1 :])
        packed[:, inside, step] = v
        packed[:, step + 1, step], taus[:, step] = beta, tau
    return packed, taus


def tridiagonal(matrices: AnyArray, *, lower: bool) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """(T with the reflections in the named triangle, diagonal, off-diagonal, tau) of Hermitian matrices."""
    if not lower:
        # Counting rows and columns from the end makes the upper triangle a lower one.
        flipped = tridiagonal(matrices[:, ::-1, ::-1], lower=True)
        return flipped[0][:, ::-1, ::-1], flipped[1][:, ::-1], flipped[2][:, ::-1], flipped[3][:, ::-1]
    size = matrices.shape[-1]
    below = np.tril(matrices, -1)
    full = np.where(np.eye(size, dtype=bool), np.real(matrices), below + np.conj(np.swapaxes(below, -1, -2)))
    packed, taus = hessenberg(full, 1, size)
    diagonal = np.diagonal(packed, axis1=1, axis2=2).real
    beside = np.diagonal(packed, -1, axis1=1, axis2=2).real
    return np.where(np.tri(size, dtype=bool), packed, matrices), diagonal, beside, taus


def reflection(columns: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """(v, tau, beta) with H^H * column = [beta, 0, ...] and real beta; tau is 0 where the column is so already."""
    first, rest = columns[:, 0], columns[:, 1:]
    length = np.sqrt((np.abs(columns) ** 2).sum(axis=1))
    done = (np.abs(rest) == 0).all(axis=1) & (np.imag(first) == 0)
    beta = np.where(done, first.real, np.where(first.real >= 0, -length, length))
    tau = np.where(done, 0, (beta - first) / np.where(done, 1, beta))
    v = rest / np.where(done, 1, first - beta)[:, np.newaxis]
    return np.concatenate([np.ones_like(columns[:, :1]), v], axis=1), tau, beta


def reflect(v: AnyArray, tau: AnyArray, matrices: AnyArray) -> AnyArray:
    """H * matrix."""
    seen = np.matmul(np.conj(v)[:, np.newaxis, :], matrices)
    return np.asarray(matrices - tau[:, np.newaxis, np.newaxis] * v[:, :, np.newaxis] * seen)


def _reflect_columns(v: AnyArray, tau: AnyArray, matrices: AnyArray) -> AnyArray:
    """Matrix * H."""
    seen = np.matmul(matrices, v[:, :, np.newaxis])
    return np.asarray(matrices - tau[:, np.newaxis, np.newaxis] * seen * np.conj(v)[:, np.newaxis, :])
