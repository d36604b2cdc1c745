"""Linear algebra: what users reach as `xlalite.linalg`, and under older names at the top."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import broadcast_to, concat, ones, shape, transpose
from xlalite.ops.functions.diagonals import matrix_diag, matrix_diag_part
from xlalite.ops.functions.math import cast, conj, log, matmul, reduce_sum
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.sizes import as_size_vector


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Ones on the main diagonal of a matrix, or of each matrix of a batch."""
    wanted = as_dtype(dtype)
    columns = num_rows if num_columns is None else num_columns
    with get_default_graph().name_scope(name or "eye"):
        if isinstance(num_rows, int) and isinstance(columns, int):
            single = constant(np.eye(num_rows, columns).astype(wanted.numpy_dtype))
        elif num_columns is None:
            single = matrix_diag(ones([num_rows], wanted))
        else:
            sizes = node("Pack", promote(num_rows, columns), {"axis": 0})
            diagonal = ones([node("Minimum", promote(num_rows, columns))], wanted)
            zeros = node("Fill", [sizes, constant(0, wanted)])
            single = node("MatrixSetDiag", [zeros, diagonal])
        if batch_shape is None:
            return single
        return broadcast_to(single, concat([as_size_vector(batch_shape), cast_to(shape(single), dtypes.int32)], 0))


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Rows and columns exchanged.

    Raises:
        ShapeError: the rank is not known, or less than 2.
    """
    x = convert_to_tensor(a)
    if x.shape.rank is None or x.shape.rank < 2:
        raise ShapeError(f"matrix_transpose: {x.name!r} has shape {x.shape}; expected a known rank of 2 or more")
    order = [*range(x.shape.rank - 2), x.shape.rank - 1, x.shape.rank - 2]
    return transpose(x, order, name, conjugate)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Rows and columns exchanged, conjugated."""
    return matrix_transpose(matrix, name or "adjoint", True)


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L L^H = input; NaN where there is none."""
    return node("Cholesky", [convert_to_tensor(input)], None, name)


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The x with matrix x = rhs, where only one triangle of the matrix is looked at."""
    return node("MatrixTriangularSolve", promote(matrix, rhs), {"lower": lower, "adjoint": adjoint}, name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The x with L L^H x = rhs."""
    with get_default_graph().name_scope(name or "cholesky_solve"):
        return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The x with matrix x = rhs."""
    return node("MatrixSolve", promote(matrix, rhs), {"adjoint": adjoint}, name)


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Inverses of matrices."""
    return node("MatrixInverse", [convert_to_tensor(input)], {"adjoint": adjoint}, name)


def det(input: Any, name: str | None = None) -> Tensor:
    """Determinants."""
    return node("MatrixDeterminant", [convert_to_tensor(input)], None, name)


def slogdet(input: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Signs of determinants, and logarithms of their absolute values."""
    sign, logarithm = operation("LogMatrixDeterminant", [convert_to_tensor(input)], None, name).outputs
    return sign, logarithm


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of matrices that are hermitian and positive definite."""
    with get_default_graph().name_scope(name or "logdet"):
        diagonal = node("Real", [d]) if (d := matrix_diag_part(cholesky(matrix))).dtype.is_complex else d
        result: Tensor = 2.0 * reduce_sum(log(diagonal), [-1])
        return result


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Q with orthonormal columns and upper triangular r, whose product is the input."""
    q, r = operation("Qr", [convert_to_tensor(input)], {"full_matrices": full_matrices}, name).outputs
    return q, r


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values s, and if asked vectors u and v: tensor = u diag(s) v^H."""
    attrs = {"compute_uv": compute_uv, "full_matrices": full_matrices}
    s, u, v = operation("Svd", [convert_to_tensor(tensor)], attrs, name).outputs
    return (s, u, v) if compute_uv else s


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and vectors in columns, of matrices whose lower triangle is given."""
    values, vectors = operation("SelfAdjointEigV2", [convert_to_tensor(tensor)], {"compute_v": True}, name).outputs
    return values, vectors


def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues in ascending order, of matrices whose lower triangle is given."""
    return operation("SelfAdjointEigV2", [convert_to_tensor(tensor)], {"compute_v": False}, name).outputs[0]


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None) -> Tensor:
    """The x that makes `|matrix x - rhs|^2 + l2_regularizer |x|^2` smallest; of several the shortest.

    Raises:
        ShapeError: the sizes of the matrices are not known.
    """
    a, b = promote(matrix, rhs)
    dims = a.shape.dims
    if dims is None or dims[-1] is None or dims[-2] is None:
        raise ShapeError(f"lstsq: {a.name!r} has shape {a.shape}; expected known sizes of matrices")
    rows, columns = dims[-2], dims[-1]
    with get_default_graph().name_scope(name or "matrix_solve_ls"):
        weight = cast(l2_regularizer, a.dtype) * eye(min(rows, columns), dtype=a.dtype)
        if rows >= columns:
            return cholesky_solve(cholesky(matmul(a, a, adjoint_a=True) + weight), matmul(a, b, adjoint_a=True))
        return matmul(a, cholesky_solve(cholesky(matmul(a, a, adjoint_b=True) + weight), b), adjoint_a=True)


def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
) -> Tensor:
    """The solutions of systems whose matrices have three diagonals.

    Args:
        diagonals: `[..., 3, m]` (compact: the one above, the main one, the one below, as long as the matrix is high), a
            sequence of three (sequence; the outer ones may be shorter by one), or matrices `[..., m, m]` (matrix).
        rhs: `[..., m]`, or `[..., m, k]`.
        diagonals_format: compact, sequence or matrix.
        transpose_rhs: Whether right-hand sides lie in rows, `[..., k, m]`; solutions lie in columns all the same.
        conjugate_rhs: Whether right-hand sides are conjugated first.
        name: Name scope.
        partial_pivoting: Whether rows are exchanged, for accuracy.

    Raises:
        ShapeError: the format is none of these, or ranks are not known.
    """
    with get_default_graph().name_scope(name or "tridiagonal_solve"):
        compact = _compact(diagonals, diagonals_format)
        sides = cast_to(convert_to_tensor(rhs), compact.dtype)
        rank, own = sides.shape.rank, compact.shape.rank
        if rank is None or own is None:
            raise ShapeError("tridiagonal_solve needs known ranks")
        is_vector = rank == own - 1
        if transpose_rhs and not is_vector:
            sides = matrix_transpose(sides, conjugate=conjugate_rhs)
        elif conjugate_rhs:
            sides = conj(sides)
        if is_vector:
            sides = node("ExpandDims", [sides, constant(-1)])
        found = node("TridiagonalSolve", [compact, sides], {"partial_pivoting": partial_pivoting})
        if is_vector:
            return node("Squeeze", [found], {"squeeze_dims": (-1,)})
        return found


def _compact(diagonals: Any, form: str) -> Tensor:
    if form == "compact":
        return convert_to_tensor(diagonals)
    if form == "matrix":
        whole = convert_to_tensor(diagonals)
        if whole.shape.dims is not None and not whole.shape[-2:].is_compatible_with(whole.shape[:-3:-1]):
            raise ShapeError(f"tridiagonal_solve: matrices of shape {whole.shape} are not square")
        parts: Any = [matrix_diag_part(whole, k=k) if k else matrix_diag_part(whole) for k in (1, 0, -1)]
    elif form == "sequence":
        parts = promote(*diagonals)
    else:
        raise ShapeError(f"tridiagonal_solve: format {form!r} is not compact, sequence or matrix")
    above, main, below = parts
    rank = main.shape.rank
    if rank is None:
        raise ShapeError("tridiagonal_solve needs known ranks")
    size = shape(main)[-1]

    def filled(x: Tensor, before: bool) -> Tensor:
        more = size - shape(x)[-1]
        around = [constant([0, 0])] * (rank - 1)
        around.append(node("Pack", [more, constant(0)] if before else [constant(0), more], {"axis": 0}))
        padded = node("Pad", [x, node("Pack", around, {"axis": 0})])
        padded.set_shape(main.shape)
        return padded

    return node("Pack", [filled(above, False), main, filled(below, True)], {"axis": rank - 1})
