"""Singular values, eigenvalues and Schur forms of stacks of matrices, with LAPACK's `info`.

Arrays are [count, ...] in f64 or c128. A matrix for which the method does not converge gives NaN and a nonzero info.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.hlo.numerics.rounding import AnyArray

_ILL_CONDITIONED = 1e8


def each(
    decompose: Callable[[AnyArray], Sequence[AnyArray]], matrices: AnyArray
) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """(parts, info) of all matrices at once, or one by one if some have none."""
    info = np.zeros(len(matrices), np.int64)
    finite = np.isfinite(matrices).all(axis=(1, 2))
    try:
        if finite.all():
            return tuple(decompose(matrices)), info
    except np.linalg.LinAlgError:
        pass
    like = decompose(np.broadcast_to(np.eye(*matrices.shape[1:], dtype=matrices.dtype), matrices.shape))
    nothing = complex(np.nan, np.nan)
    parts = tuple(np.full(part.shape, nothing if np.iscomplexobj(part) else np.nan) for part in like)
    for number in np.flatnonzero(finite):
        try:
            found = decompose(matrices[number : number + 1])
        except np.linalg.LinAlgError:
            info[number] = 1
            continue
        for part, one in zip(parts, found, strict=True):
            part[number] = one[0]
    info[~finite] = -4
    return parts, info


def singular_values(matrices: AnyArray, *, full: bool) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """((U, s, V^H), info)."""
    return each(lambda some: np.linalg.svd(some, full_matrices=full), matrices)


def hermitian_eigenvalues(matrices: AnyArray, *, lower: bool) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """((eigenvalues, eigenvectors), info), from the named triangle."""
    named = np.tril(matrices) if lower else np.triu(matrices)
    return each(lambda some: np.linalg.eigh(some, "L" if lower else "U"), named)


def eigenvalues(matrices: AnyArray, *, left: bool) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """((eigenvalues, right eigenvectors, left ones u with u^H * matrix = w * u^H if asked for), info), all complex.

    Vectors have length one, and of those that are not real the largest number is real.
    """
    return each(_with_left_eigenvectors if left else _eigenvectors, matrices)


def _eigenvectors(matrices: AnyArray) -> tuple[AnyArray, ...]:
    values, right = np.linalg.eig(matrices)
    return np.asarray(values, np.complex128), np.asarray(right, np.complex128)


def _with_left_eigenvectors(matrices: AnyArray) -> tuple[AnyArray, ...]:
    values, right = _eigenvectors(matrices)
    if not matrices.size:
        return values, right, right
    if (np.linalg.cond(right) < _ILL_CONDITIONED).all():
        left = np.conj(np.swapaxes(np.linalg.inv(right), -1, -2))
    else:
        shifted = matrices[:, np.newaxis] - values[..., np.newaxis, np.newaxis] * np.eye(matrices.shape[-1])
        left = np.swapaxes(np.linalg.svd(shifted)[0][..., -1], -1, -2)
    left = left / np.linalg.norm(left, axis=1, keepdims=True)
    place = np.argmax(np.abs(left), axis=1)[:, np.newaxis]
    largest = np.take_along_axis(left, place, axis=1)
    left = left * np.conj(largest) / np.abs(largest)
    np.put_along_axis(left, place, np.abs(largest), axis=1)
    if np.isrealobj(matrices):
        imaginary = values.imag[:, np.newaxis]
        left = np.where(imaginary < 0, np.conj(np.roll(left, 1, axis=-1)), np.where(imaginary == 0, left.real, left))
    return values, right, left


def schur(matrices: AnyArray) -> tuple[tuple[AnyArray, ...], AnyArray]:
    """((T, Z), info): matrix = Z * T * Z^H.

    T is upper triangular; that of a real matrix has blocks [[a, b], [c, a]] with b * c < 0 for pairs of complex
    eigenvalues.
    """

    def stacked(some: AnyArray) -> tuple[AnyArray, AnyArray]:
        pairs = [_schur(matrix) for matrix in some]
        return np.stack([pair[0] for pair in pairs]), np.stack([pair[1] for pair in pairs])

    return each(stacked, matrices)


def _schur(matrix: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Splits off one eigenvalue, or a pair, after another."""
    size, done = len(matrix), 0
    triangle, vectors = matrix.copy(), np.eye(size, dtype=matrix.dtype)
    while done < size:
        block = triangle[done:, done:]
        basis, width = _leading_basis(block, np.linalg.eigvals(block)[0])
        triangle[:, done:] = triangle[:, done:] @ basis
        triangle[done:] = np.conj(basis).T @ triangle[done:]
        vectors[:, done:] = vectors[:, done:] @ basis
        triangle[done + width :, done : done + width] = 0
        if width == 2:
            triangle[done + 1, done + 1] = triangle[done, done]
        done += width
    return triangle, vectors


def _leading_basis(block: AnyArray, value: complex) -> tuple[AnyArray, int]:
    """(unitary matrix whose first columns span an invariant space of an eigenvalue, their number)."""
    unit = np.eye(len(block))
    is_real = not np.iscomplexobj(block)
    if not (is_real and value.imag):
        shifted = block - (value.real if is_real else value) * unit
        vector = np.conj(np.linalg.svd(shifted)[2][-1:]).T
        return np.linalg.qr(vector, mode="complete")[0], 1
    vector = np.conj(np.linalg.svd(block - value * unit)[2][-1])
    plane = np.stack([vector.real, vector.imag], axis=1)
    # The two ways lose accuracy in different cases: nearly equal eigenvalues, and many equal pairs.
    square = block @ block - 2 * value.real * block + abs(value) ** 2 * unit
    planes = [plane, np.linalg.svd(square)[2][-2:].T]
    bases = [_with_equal_diagonal(block, np.linalg.qr(plane, mode="complete")[0]) for plane in planes]
    return min(bases, key=lambda basis: float(np.abs((basis.T @ block @ basis)[2:, :2]).sum())), 2


def _with_equal_diagonal(block: AnyArray, basis: AnyArray) -> AnyArray:
    """The basis with its first two vectors turned so that the block's first two diagonal elements are equal."""
    (a, b), (c, d) = (basis.T @ block @ basis)[:2, :2]
    angle = 0.5 * np.arctan2(d - a, b + c)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.concatenate([basis[:, :2] @ turn, basis[:, 2:]], axis=1)
