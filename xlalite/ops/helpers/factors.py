"""Factorisations of matrices in HLO: the routines of LAPACK as custom calls, and triangular systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.custom import ApiVersion
from xlalite.hlo.ops.linear_algebra import Transpose
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

_LETTERS = {DType.F32: "s", DType.F64: "d", DType.C64: "c", DType.C128: "z"}
_COMPLEX_NAMES = {"syevd": "heevd", "orgqr": "ungqr"}


def lapack(
    b: Builder,
    routine: str,
    operands: Sequence[Handle],
    results: Sequence[tuple[DType, Sequence[int]]],
    options: str = "",
) -> list[Handle]:
    """A routine of LAPACK; the batch dimensions come first in all operands and results."""
    dtype = operands[0].dtype
    name = _COMPLEX_NAMES.get(routine, routine) if dtype.is_complex else routine
    attrs = OPS["custom-call"].attrs(
        custom_call_target=f"lapack_{_LETTERS[dtype]}{name}_ffi",
        api_version=ApiVersion.TYPED_FFI,
    )
    shapes = [Shape.array(element, tuple(dims)) for element, dims in results]
    whole = shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)
    found = b.op("custom-call", operands, attrs, shape=whole)
    found.instruction.backend_config = f"{{{options}}}"
    return [found] if len(shapes) == 1 else [found[i] for i in range(len(shapes))]


def option(name: str, letter: str) -> str:
    """A letter among the options of a routine."""
    return f"{name} = {ord(letter)} : ui8"


def solve_triangular(
    b: Builder, matrix: Handle, rhs: Handle, *, lower: bool, adjoint: bool = False, left: bool = True
) -> Handle:
    """The x with op(matrix) x = rhs."""
    turned = Transpose.NO_TRANSPOSE
    if adjoint:
        turned = Transpose.ADJOINT if matrix.dtype.is_complex else Transpose.TRANSPOSE
    attrs = OPS["triangular-solve"].attrs(left_side=left, lower=lower, unit_diagonal=False, transpose_a=turned)
    return b.op("triangular-solve", (matrix, rhs), attrs)


def adjoint(b: Builder, x: Handle) -> Handle:
    """Matrices with rows and columns exchanged, and conjugated."""
    rank = len(x.dims)
    turned = b.transpose(x, (*range(rank - 2), rank - 1, rank - 2))
    return conjugated(b, turned)


def conjugated(b: Builder, x: Handle) -> Handle:
    """The conjugates of complex numbers."""
    return b.op("complex", (b.op("real", (x,)), -b.op("imag", (x,)))) if x.dtype.is_complex else x


def product(b: Builder, x: Handle, y: Handle) -> Handle:
    """Products of matrices `[..., m, k] x [..., k, n]` with the same batch."""
    rank = len(x.dims)
    batch = tuple(range(rank - 2))
    attrs = OPS["dot"].attrs(
        lhs_batch_dims=batch, rhs_batch_dims=batch, lhs_contracting_dims=(rank - 1,), rhs_contracting_dims=(rank - 2,)
    )
    return b.op("dot", (x, y), attrs)


def identity_like(b: Builder, x: Handle, rows: int, columns: int) -> Handle:
    """Ones on the main diagonal, for each batch of `x`."""
    eye = b.constant(np.eye(rows, columns).astype(x.dtype.numpy), x.dtype)
    return broadcast_to(b, eye, (*x.dims[:-2], rows, columns))


def triangle(b: Builder, x: Handle, *, upper: bool) -> Handle:
    """One triangle of matrices, zeros in the other."""
    sizes = x.dims[-2:]
    rows, columns = b.iota(DType.S32, sizes, 0), b.iota(DType.S32, sizes, 1)
    kept = b.compare(rows, columns, "LE" if upper else "GE")
    rank = len(x.dims)
    return b.select(b.broadcast(kept, x.dims, (rank - 2, rank - 1)), x, b.full(0, x.dtype, x.dims))


def q_and_r(b: Builder, x: Handle, *, full: bool) -> tuple[Handle, Handle]:
    """X = q r with orthonormal columns of q and upper triangular r."""
    *batch, m, n = x.dims
    k = min(m, n)
    wide = m if full else k
    if not x.shape.element_count:
        return identity_like(b, x, m, wide), b.full(0, x.dtype, (*batch, wide, n))
    packed, tau = lapack(b, "geqrf", (x,), [(x.dtype, x.dims), (x.dtype, (*batch, k))])
    zeros = [0] * len(x.dims)
    reflectors = b.slice(packed, zeros, (*batch, m, min(n, wide)))
    if wide > n:
        around = [(0, 0, 0)] * (len(x.dims) - 1) + [(0, wide - n, 0)]
        reflectors = b.pad(reflectors, b.constant(0, x.dtype), around)
    (q,) = lapack(b, "orgqr", (reflectors, tau), [(x.dtype, (*batch, m, wide))])
    return q, triangle(b, b.slice(packed, zeros, (*batch, wide, n)), upper=True)


def solve(b: Builder, matrix: Handle, rhs: Handle, *, adjointed: bool) -> Handle:
    """The x with op(matrix) x = rhs, by reflections, which need no pivots."""
    q, r = q_and_r(b, matrix, full=False)
    if adjointed:
        return product(b, q, solve_triangular(b, r, rhs, lower=False, adjoint=True))
    return solve_triangular(b, r, product(b, adjoint(b, q), rhs), lower=False)
