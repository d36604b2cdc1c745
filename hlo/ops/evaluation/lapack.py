"""Meaning of the custom-call targets `lapack_*_ffi`, by which jax does linear algebra on CPUs.

The first letter after `lapack_` is the element type: s f32, d f64, c c64, z c128. Leading dimensions of operands and
results are a batch. Options are letters, written as numbers in `backend_config`: `{uplo = 76 : ui8}` says 'L'.
Everything is computed in f64 or c128 and rounded once. What LAPACK leaves undefined is zero here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.numerics import elimination, reflections, spectra
from xlalite.hlo.numerics.rounding import AnyArray
from xlalite.hlo.ops.asynchronous import zero_value
from xlalite.hlo.ops.evaluation.accumulation import narrow, widen
from xlalite.hlo.ops.rules.lapack_calls import LAPACK_TYPES, Options, letter_of, read_options
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.surroundings.custom_calls import custom_call
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape

Routine = Callable[..., tuple[AnyArray | None, ...]]
"""(options, operands [count, ...]) -> results [count, ...]; None for what the options leave out."""


def _letter(options: Options, name: str) -> str:
    """An option that is a letter.

    Raises:
        EvaluationError: It is not there, or is none.
    """
    if name not in options:
        raise EvaluationError(f"backend_config: found options {sorted(options)}, expected {name!r} among them")
    letter = letter_of(options, name)
    if not letter.isalpha():
        raise EvaluationError(f"backend_config: {name} is {options[name]}, expected a letter")
    return letter


def _routine(name: str, types: str, ranks: tuple[int, ...]) -> Callable[[Routine], Routine]:
    """Registers a routine for some element types; `ranks` are those of its operands without the batch."""

    def register(routine: Routine) -> Routine:
        for letter in types:
            custom_call(f"lapack_{letter}{name}_ffi")(partial(_run, routine, ranks))
        return routine

    return register


def _run(
    routine: Routine, ranks: tuple[int, ...], instruction: HloInstruction, operands: Sequence[Value], call: Caller
) -> Value:
    if len(operands) != len(ranks):
        raise EvaluationError(
            f"{instruction.attrs.custom_call_target}: found {len(operands)} operands, expected {len(ranks)}"
        )
    arrays = [array_value(operand) for operand in operands]
    batch = arrays[0].shape[: arrays[0].ndim - ranks[0]]
    count = math.prod(batch)
    if not count:
        return zero_value(instruction.shape)
    stacks = [
        widen(array, operand.shape.dtype).reshape(count, *array.shape[len(batch) :])
        for array, operand in zip(arrays, instruction.operands, strict=True)
    ]
    with np.errstate(all="ignore"):
        found = routine(read_options(instruction), *stacks)
    shapes = instruction.shape.elements if instruction.shape.is_tuple else (instruction.shape,)
    if len(found) != len(shapes):
        raise EvaluationError(
            f"{instruction.attrs.custom_call_target} gives {len(found)} results, declared are {len(shapes)}"
        )
    results = [_in_type(part, shape).reshape(shape.dims) for part, shape in zip(found, shapes, strict=True)]
    return tuple(results) if instruction.shape.is_tuple else results[0]


def _in_type(array: AnyArray | None, shape: Shape) -> AnyArray:
    dtype = shape.dtype
    if array is None:
        return np.zeros(shape.dims, dtype.numpy)
    if dtype.is_integral:
        return array.astype(dtype.numpy)
    return narrow(array.real if np.iscomplexobj(array) and not dtype.is_complex else array, dtype)


@_routine("potrf", "sdcz", (2,))
def _cholesky(options: Options, matrices: AnyArray) -> tuple[AnyArray, ...]:
    """(L with L * L^H = matrix or U with U^H * U = matrix, the input in the other triangle; info)."""
    if _letter(options, "uplo") == "L":
        return elimination.lower_cholesky(matrices)
    factors, info = elimination.lower_cholesky(np.conj(np.swapaxes(matrices, -1, -2)))
    return np.conj(np.swapaxes(factors, -1, -2)), info


@_routine("getrf", "sdcz", (2,))
def _lu(options: Options, matrices: AnyArray) -> tuple[AnyArray, ...]:
    """(L and U, pivots counted from 1, info)."""
    return elimination.lu(matrices)


@_routine("trsm", "sdcz", (2, 2))
def _triangular_solve(options: Options, matrices: AnyArray, rhs: AnyArray) -> tuple[AnyArray, ...]:
    """The x with op(a) * x = b (side L), or x * op(a) = b (side R)."""
    left, lower = _letter(options, "side") == "L", _letter(options, "uplo") == "L"
    transposed = _letter(options, "trans_x")
    if transposed == "C":
        matrices = np.conj(matrices)
    if (transposed != "N") == left:
        matrices, lower = np.swapaxes(matrices, -1, -2), not lower
    solution = elimination.substitute(
        matrices,
        rhs if left else np.swapaxes(rhs, -1, -2),
        lower=lower,
        unit_diagonal=_letter(options, "diag") == "U",
    )
    return (solution if left else np.swapaxes(solution, -1, -2),)


@_routine("gtsv", "sdcz", (1, 1, 1, 2))
def _tridiagonal_solve(
    options: Options, below: AnyArray, diagonal: AnyArray, above: AnyArray, rhs: AnyArray
) -> tuple[AnyArray, ...]:
    """(what is left of the diagonals, the solution, info)."""
    return elimination.solve_tridiagonal(below, diagonal, above, rhs)


@custom_call("tridiagonal_solve_perturbed_ffi")
def _perturbed_tridiagonal_solve(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The solution of a tridiagonal system, finite where the matrix is singular; no routine of LAPACK, but jaxlib's."""
    types = {operand.shape.dtype for operand in instruction.operands}
    if len(types) != 1 or not types <= set(LAPACK_TYPES.values()):
        raise EvaluationError(f"{instruction!r}: expected operands of one type, f32, f64, c64 or c128")
    limits = np.finfo(str(types.pop().numpy))

    def solve(
        options: Options, below: AnyArray, diagonal: AnyArray, above: AnyArray, rhs: AnyArray
    ) -> tuple[AnyArray, ...]:
        return (elimination.solve_tridiagonal(below, diagonal, above, rhs, limits)[3],)

    return _run(solve, (1, 1, 1, 2), instruction, operands, call)


@_routine("geqrf", "sdcz", (2,))
def _qr(options: Options, matrices: AnyArray) -> tuple[AnyArray, ...]:
    """(R and reflections, tau)."""
    return reflections.qr(matrices)


@_routine("geqp3", "sdcz", (2, 1))
def _pivoted_qr(options: Options, matrices: AnyArray, fixed: AnyArray) -> tuple[AnyArray, ...]:
    """(R and reflections, order of the columns counted from 1, tau)."""
    return reflections.pivoted_qr(matrices, fixed)


@_routine("orgqr", "sd", (2, 1))
@_routine("ungqr", "cz", (2, 1))
def _q(options: Options, packed: AnyArray, taus: AnyArray) -> tuple[AnyArray, ...]:
    """The first columns of the product of the reflections."""
    unit = np.broadcast_to(np.eye(*packed.shape[1:], dtype=packed.dtype), packed.shape)
    return (reflections.multiply_q(packed, taus, unit, adjoint=False),)


@_routine("ormqr", "sd", (2, 1, 2))
@_routine("unmqr", "cz", (2, 1, 2))
def _multiply_q(options: Options, packed: AnyArray, taus: AnyArray, others: AnyArray) -> tuple[AnyArray, ...]:
    """Q * c, c * Q, or the same with the adjoint of Q."""
    adjoint = bool(options.get("transpose", 0))
    if options.get("left", 1):
        return (reflections.multiply_q(packed, taus, others, adjoint=adjoint),)
    # c * Q = (Q^H * c^H)^H.
    product = reflections.multiply_q(packed, taus, np.conj(np.swapaxes(others, -1, -2)), adjoint=not adjoint)
    return (np.conj(np.swapaxes(product, -1, -2)),)


@_routine("gehrd", "sdcz", (2,))
def _hessenberg(options: Options, matrices: AnyArray) -> tuple[AnyArray, ...]:
    """(Hessenberg matrix and reflections, tau, info)."""
    packed, taus = reflections.hessenberg(matrices, options.get("low", 1), options.get("high", matrices.shape[-1]))
    return packed, taus, _no_trouble(matrices)


@_routine("sytrd", "sd", (2,))
@_routine("hetrd", "cz", (2,))
def _tridiagonal(options: Options, matrices: AnyArray) -> tuple[AnyArray, ...]:
    """(tridiagonal matrix and reflections, diagonal, off-diagonal, tau, info)."""
    return *reflections.tridiagonal(matrices, lower=_letter(options, "uplo") == "L"), _no_trouble(matrices)


@_routine("gesdd", "sdcz", (2,))
@_routine("gesvd", "sdcz", (2,))
def _singular_values(options: Options, matrices: AnyArray) -> tuple[AnyArray | None, ...]:
    """(the operand, s, U, V^H, info); mode A gives all vectors, S those with a value, N none."""
    mode = _letter(options, "mode")
    (u, values, v), info = spectra.singular_values(matrices, full=mode == "A")
    return (matrices, values, None, None, info) if mode == "N" else (matrices, values, u, v, info)


@_routine("syevd", "sd", (2,))
@_routine("heevd", "cz", (2,))
def _hermitian_eigenvalues(options: Options, matrices: AnyArray) -> tuple[AnyArray | None, ...]:
    """(eigenvectors, eigenvalues, info); mode N gives no vectors."""
    (values, vectors), info = spectra.hermitian_eigenvalues(matrices, lower=_letter(options, "uplo") == "L")
    return vectors if _letter(options, "mode") == "V" else None, values, info


@_routine("geev", "sdcz", (2,))
def _eigenvalues(options: Options, matrices: AnyArray) -> tuple[AnyArray | None, ...]:
    """(eigenvalues, left and right eigenvectors, info); those of a real matrix as two arrays, real and imaginary."""
    has_left, has_right = (_letter(options, name) == "V" for name in ("compute_left", "compute_right"))
    (values, right, *left), info = spectra.eigenvalues(matrices, left=has_left)
    parts = (values,) if np.iscomplexobj(matrices) else (values.real, values.imag)
    return *parts, left[0] if has_left else None, right if has_right else None, info


@_routine("gees", "sdcz", (2,))
def _schur(options: Options, matrices: AnyArray) -> tuple[AnyArray | None, ...]:
    """(T, Z, eigenvalues, number of selected ones, info); eigenvalues as for geev.

    Raises:
        EvaluationError: A selection of eigenvalues is asked for, which only a callback can make.
    """
    if options.get("sort", ord("N")) != ord("N"):
        raise EvaluationError("gees: sorting eigenvalues needs a function of the caller, which text cannot carry")
    (triangle, vectors), info = spectra.schur(matrices)
    values = np.diagonal(triangle, axis1=1, axis2=2)
    parts: tuple[AnyArray, ...] = (values,)
    if not np.iscomplexobj(matrices):
        parts = (values, _imaginary_parts(triangle))
    return triangle, vectors if _letter(options, "mode") == "V" else None, *parts, np.zeros_like(info), info


def _imaginary_parts(triangles: AnyArray) -> AnyArray:
    """Imaginary parts of the eigenvalues of real Schur forms: sqrt(|b c|), the positive one of a pair first."""
    above, below = (np.diagonal(triangles, k, axis1=1, axis2=2) for k in (1, -1))
    size = np.sqrt(np.abs(above)) * np.sqrt(np.abs(below))
    edge = 0 * np.diagonal(triangles, axis1=1, axis2=2)[:, :1]
    parts = np.concatenate([size, edge], axis=1) - np.concatenate([edge, size], axis=1)
    return np.asarray(parts[:, : triangles.shape[1]])


def _no_trouble(matrices: AnyArray) -> AnyArray:
    return np.zeros(len(matrices), np.int64)
