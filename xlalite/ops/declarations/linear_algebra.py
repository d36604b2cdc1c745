"""Factorisations of matrices, systems of equations, determinants. A batch of matrices lies in the last two dimensions.

What has no solution gives infinities and NaN; TensorFlow refuses it when it runs operation by operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.dtypes import DType, complex64, complex128, float32, float64
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_to, reduce_axes, sum_axes
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.declarations.elementwise_binary import conjugate
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import declare, declare_outputs
from xlalite.ops.helpers.factors import (
    adjoint,
    identity_like,
    lapack,
    option,
    q_and_r,
    solve,
    solve_triangular,
)
from xlalite.ops.helpers.gradient_rules import all_gradients, sum_to
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import broadcast_shapes, require_same_type, require_type

_TYPES = frozenset({float32, float64, complex64, complex128})
_REAL: dict[DType, DType] = {complex64: float32, complex128: float64}


def _product(x: Tensor, y: Tensor, turn_x: bool = False, turn_y: bool = False) -> Tensor:
    return node("BatchMatMulV2", [x, y], {"adj_x": turn_x, "adj_y": turn_y})


def _turned(x: Tensor) -> Tensor:
    """Rows and columns exchanged, conjugated."""
    rank = x.shape.rank
    if rank is None:
        raise ShapeError("gradients of factorisations need known ranks")
    return conjugate(node("Transpose", [x, constant([*range(rank - 2), rank - 1, rank - 2])]))


def _lower_half(x: Tensor) -> Tensor:
    """The lower triangle, with half of the diagonal."""
    lower = node("MatrixBandPart", [x, constant(-1), constant(0)])
    return node("MatrixSetDiag", [lower, node("MatrixDiagPart", [lower]) * 0.5])


def _square(tensor: Tensor) -> TensorShape:
    """The shape of square matrices."""
    require_type(tensor, _TYPES)
    shape = tensor.shape.with_rank_at_least(2)
    if shape.dims is None:
        return shape
    *batch, rows, columns = shape.dims
    if None not in (rows, columns) and rows != columns:
        raise ShapeError(f"{tensor.name!r} has shape {shape}; expected square matrices")
    size = rows if rows is not None else columns
    return TensorShape([*batch, size, size])


def _like_square(op: Operation) -> Sequence[OutputType]:
    return [(op.inputs[0].dtype, _square(op.inputs[0]))]


def _check_square(x: Handle) -> None:
    if x.dims[-1] != x.dims[-2]:
        raise ShapeError(f"{x.shape.text()} does not hold square matrices")


# Cholesky(input): L with L L^H = input, from the lower triangle.


def _cholesky_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    _check_square(inputs[0])
    return [ctx.builder.op("cholesky", inputs, OPS["cholesky"].attrs(lower=True))]


def _cholesky_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Murray 2016, section 3, symmetrised."""
    factor = op.outputs[0]
    middle = _lower_half(_product(factor, grad, True))
    attrs = {"lower": True, "adjoint": True}
    left = node("MatrixTriangularSolve", [factor, middle], attrs)
    both = _turned(node("MatrixTriangularSolve", [factor, _turned(left)], attrs))
    return [(both + _turned(both)) * 0.5]


declare("Cholesky", ("input",), _like_square, _cholesky_lower, _cholesky_gradient, None)


# MatrixTriangularSolve(matrix, rhs).


def _solution_infer(op: Operation) -> Sequence[OutputType]:
    matrix, rhs = op.inputs
    dtype = require_same_type(op.inputs)
    own, other = _square(matrix).dims, rhs.shape.with_rank_at_least(2).dims
    if own is None or other is None:
        return [(dtype, unknown_shape())]
    if None not in (own[-1], other[-2]) and own[-1] != other[-2]:
        raise ShapeError(f"matrices of shape {matrix.shape} do not fit right-hand sides of shape {rhs.shape}")
    batch = broadcast_shapes(TensorShape(own[:-2]), TensorShape(other[:-2]))
    return [(dtype, batch.concatenate([own[-1] if other[-2] is None else other[-2], other[-1]]))]


def _same_batch(b: Builder, matrix: Handle, rhs: Handle) -> tuple[Handle, Handle]:
    _check_square(matrix)
    if matrix.dims[-1] != rhs.dims[-2]:
        raise ShapeError(f"matrices {matrix.shape.text()} do not fit right-hand sides {rhs.shape.text()}")
    batch = broadcast_dims(matrix.dims[:-2], rhs.dims[:-2])
    return broadcast_to(b, matrix, (*batch, *matrix.dims[-2:])), broadcast_to(b, rhs, (*batch, *rhs.dims[-2:]))


def _triangular_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    matrix, rhs = _same_batch(b, *inputs)
    return [solve_triangular(b, matrix, rhs, lower=op.get_attr("lower"), adjoint=op.get_attr("adjoint"))]


def _solve_gradients(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Those of the matrices and of the right-hand sides, at the common batch."""
    attrs = {name: op.get_attr(name) for name in op.spec.attrs}
    turned = attrs["adjoint"]
    of_rhs = node(op.type, [op.inputs[0], grad], {**attrs, "adjoint": not turned})
    solution = op.outputs[0]
    of_matrix = _product(solution, of_rhs, False, True) if turned else _product(of_rhs, solution, False, True)
    return -of_matrix, of_rhs


def _triangular_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    of_matrix, of_rhs = _solve_gradients(op, grad)
    limits = (-1, 0) if op.get_attr("lower") else (0, -1)
    kept = node("MatrixBandPart", [of_matrix, *map(constant, limits)])
    return [sum_to(kept, op.inputs[0], kept), sum_to(of_rhs, op.inputs[1], of_rhs)]


declare(
    "MatrixTriangularSolve",
    ("matrix", "rhs"),
    _solution_infer,
    _triangular_lower,
    _triangular_gradient,
    None,
    attrs=("lower", "adjoint"),
)


# MatrixSolve(matrix, rhs), MatrixInverse(input).


def _solve_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    matrix, rhs = _same_batch(b, *inputs)
    return [solve(b, matrix, rhs, adjointed=op.get_attr("adjoint"))]


def _solve_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    of_matrix, of_rhs = _solve_gradients(op, grad)
    return [sum_to(of_matrix, op.inputs[0], of_matrix), sum_to(of_rhs, op.inputs[1], of_rhs)]


def _inverse_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    _check_square(x)
    return [solve(b, x, identity_like(b, x, *x.dims[-2:]), adjointed=op.get_attr("adjoint"))]


def _inverse_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    inverse, turned = op.outputs[0], op.get_attr("adjoint")
    return [-_product(inverse, _product(grad, inverse, turned, not turned), not turned, False)]


declare("MatrixSolve", ("matrix", "rhs"), _solution_infer, _solve_lower, _solve_gradient, None, attrs=("adjoint",))
declare("MatrixInverse", ("input",), _like_square, _inverse_lower, _inverse_gradient, None, attrs=("adjoint",))


# MatrixDeterminant(input), LogMatrixDeterminant(input): from the triangular factor and the number of exchanged rows.


def _batch_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    shape = _square(x)
    batch = unknown_shape() if shape.dims is None else TensorShape(shape.dims[:-2])
    return [(x.dtype, batch)] * (1 if op.type == "MatrixDeterminant" else 2)


def _diagonal_and_sign(b: Builder, x: Handle) -> tuple[Handle, Handle]:
    """The diagonal of the triangular factor `[..., n]`, and 1 or -1 for the exchanged rows."""
    _check_square(x)
    *batch, n, _ = x.dims
    if not x.shape.element_count:
        return b.full(1, x.dtype, (*batch, n)), b.full(1, x.dtype, batch)
    integer = HloDType.S32
    packed, pivots, _ = lapack(b, "getrf", (x,), [(x.dtype, x.dims), (integer, (*batch, n)), (integer, batch)])
    on_diagonal = identity_like(b, x, n, n)
    diagonal = sum_axes(b, packed * on_diagonal, [len(batch)]) if not x.dtype.is_complex else None
    if diagonal is None:
        chosen = b.compare(on_diagonal, 1, "EQ")
        diagonal = sum_axes(b, b.select(chosen, packed, b.full(0, x.dtype, x.dims)), [len(batch)])
    places = b.broadcast(b.iota(integer, (n,), 0) + 1, pivots.dims, [len(batch)])
    exchanged = sum_axes(b, b.convert(b.compare(pivots, places, "NE"), integer), [len(batch)])
    is_odd = b.compare(exchanged % 2, 1, "EQ")
    one = b.full(1, x.dtype, batch)
    return diagonal, b.select(is_odd, -one, one)


def _determinant_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    diagonal, sign = _diagonal_and_sign(b, inputs[0])
    return [sign * reduce_axes(b, diagonal, "multiply", 1, [len(diagonal.dims) - 1], False)]


def _log_determinant_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    diagonal, sign = _diagonal_and_sign(b, inputs[0])
    last = [len(diagonal.dims) - 1]
    signs = reduce_axes(b, b.op("sign", (diagonal,)), "multiply", 1, last, False)
    sizes = b.convert(b.op("abs", (diagonal,)), diagonal.dtype)
    return [sign * signs, sum_axes(b, b.op("log", (sizes,)), last)]


def _spread(x: Tensor) -> Tensor:
    """A number for each matrix, with sizes of 1 for rows and columns."""
    return node("ExpandDims", [node("ExpandDims", [x, constant(-1)]), constant(-1)])


def _determinant_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    turned = node("MatrixInverse", [op.inputs[0]], {"adjoint": True})
    return [_spread(grad * conjugate(op.outputs[0])) * turned]


def _log_determinant_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    if grads[1] is None:
        return [None]
    return [_spread(grads[1]) * node("MatrixInverse", [op.inputs[0]], {"adjoint": True})]


declare("MatrixDeterminant", ("input",), _batch_infer, _determinant_lower, _determinant_gradient, None)
declare_outputs(
    "LogMatrixDeterminant", ("input",), _batch_infer, _log_determinant_lower, _log_determinant_gradient, None
)


# Qr(input): q with orthonormal columns, r upper triangular.


def _qr_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, _TYPES)
    dims = x.shape.with_rank_at_least(2).dims
    if dims is None:
        return [(x.dtype, unknown_shape())] * 2
    *batch, m, n = dims
    k = m if op.get_attr("full_matrices") else None if m is None or n is None else min(m, n)
    return [(x.dtype, TensorShape([*batch, m, k])), (x.dtype, TensorShape([*batch, k, n]))]


def _qr_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return q_and_r(ctx.builder, inputs[0], full=op.get_attr("full_matrices"))


def _qr_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    """Of real matrices that are not wider than high."""
    q, r = op.outputs
    rows, columns = (op.inputs[0].shape.dims or (None, None))[-2:]
    if q.dtype.is_complex or (rows is not None and columns is not None and rows < columns):
        raise ShapeError("the gradient of Qr needs real matrices that are not wider than high")
    if op.get_attr("full_matrices") and rows != columns:
        raise ShapeError("the gradient of Qr needs full_matrices=False")
    of_q, of_r = all_gradients(op, grads)

    def by_r(x: Tensor) -> Tensor:
        """X r^-H."""
        return _turned(node("MatrixTriangularSolve", [r, _turned(x)], {"lower": False, "adjoint": False}))

    inner = _product(q, of_q, True)
    outer = _product(r, of_r, False, True)
    skew = (inner - _turned(inner)) + (outer - _turned(outer))
    lower = node("MatrixBandPart", [skew, constant(-1), constant(0)])
    return [_product(q, of_r + by_r(lower)) + by_r(of_q - _product(q, inner))]


declare_outputs("Qr", ("input",), _qr_infer, _qr_lower, _qr_gradient, None, attrs=("full_matrices",))


# SelfAdjointEigV2(input): eigenvalues in ascending order and vectors in columns, from the lower triangle.


def _eigen_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    shape = _square(x)
    values = unknown_shape() if shape.dims is None else TensorShape(shape.dims[:-1])
    return [(x.dtype, values), (x.dtype, shape if op.get_attr("compute_v") else TensorShape([0]))]


def _eigen_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    _check_square(x)
    *batch, n, _ = x.dims
    if x.shape.element_count:
        real = x.dtype.component if x.dtype.is_complex else x.dtype
        results = [(x.dtype, x.dims), (real, (*batch, n)), (HloDType.S32, batch)]
        options = f"{option('uplo', 'L')}, {option('mode', 'V')}"
        vectors, values, _ = lapack(b, "syevd", (x,), results, options)
        values = b.convert(values, x.dtype)
    else:
        vectors, values = x, b.full(0, x.dtype, (*batch, n))
    return [values, vectors if op.get_attr("compute_v") else b.full(0, x.dtype, (0,))]


def _inverse_gaps(later: Tensor, earlier: Tensor) -> Tensor:
    """1 / (later - earlier) for all pairs, 0 on the diagonal."""
    gaps = node("ExpandDims", [later, constant(-2)]) - node("ExpandDims", [earlier, constant(-1)])
    diagonal = node("MatrixDiagPart", [gaps])
    safe = node("MatrixSetDiag", [gaps, node("OnesLike", [diagonal])])
    inverse = node("Reciprocal", [safe])
    return node("MatrixSetDiag", [inverse, node("ZerosLike", [diagonal])])


def _eigen_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    values, vectors = op.outputs
    if not op.get_attr("compute_v"):
        vectors = operation("SelfAdjointEigV2", [op.inputs[0]], {"compute_v": True}).outputs[1]
    of_values = node("ZerosLike", [values]) if grads[0] is None else grads[0]
    inner = node("MatrixDiag", [of_values])
    if grads[1] is not None and op.get_attr("compute_v"):
        inner += _inverse_gaps(values, values) * _product(vectors, grads[1], True)
    whole = _product(vectors, _product(inner, vectors, False, True))
    return [_lower_half(whole + _turned(whole))]


declare_outputs("SelfAdjointEigV2", ("input",), _eigen_infer, _eigen_lower, _eigen_gradient, None, attrs=("compute_v",))


# Svd(input): singular values in descending order, left vectors u and right vectors v in columns.


def _svd_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, _TYPES)
    real = _REAL.get(x.dtype, x.dtype)
    dims = x.shape.with_rank_at_least(2).dims
    if dims is None:
        return [(real, unknown_shape()), (x.dtype, unknown_shape()), (x.dtype, unknown_shape())]
    *batch, m, n = dims
    k = None if m is None or n is None else min(m, n)
    values = (real, TensorShape([*batch, k]))
    if not op.get_attr("compute_uv"):
        return [values, (x.dtype, TensorShape([0])), (x.dtype, TensorShape([0]))]
    full = op.get_attr("full_matrices")
    left, right = (m, n) if full else (k, k)
    return [values, (x.dtype, TensorShape([*batch, m, left])), (x.dtype, TensorShape([*batch, n, right]))]


def _svd_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    *batch, m, n = x.dims
    k, full = min(m, n), op.get_attr("full_matrices")
    left, right = (m, n) if full else (k, k)
    real = x.dtype.component if x.dtype.is_complex else x.dtype
    if x.shape.element_count:
        results = [
            (x.dtype, x.dims),
            (real, (*batch, k)),
            (x.dtype, (*batch, m, left)),
            (x.dtype, (*batch, right, n)),
            (HloDType.S32, batch),
        ]
        mode = ("A" if full else "S") if op.get_attr("compute_uv") else "N"
        _, values, u, turned, _ = lapack(b, "gesdd", (x,), results, option("mode", mode))
        v = adjoint(b, turned)
    else:
        values = b.full(0, real, (*batch, k))
        u, v = identity_like(b, x, m, left), identity_like(b, x, n, right)
    if not op.get_attr("compute_uv"):
        u = v = b.full(0, x.dtype, (0,))
    return [values, u, v]


def _svd_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    """Of real matrices with different singular values (Townsend 2016)."""
    attrs = {"compute_uv": True, "full_matrices": False}
    if op.inputs[0].dtype.is_complex or op.get_attr("full_matrices"):
        raise ShapeError("the gradient of Svd needs real matrices and full_matrices=False")
    s, u, v = op.outputs if op.get_attr("compute_uv") else operation("Svd", [op.inputs[0]], attrs).outputs
    of_s = node("ZerosLike", [s]) if grads[0] is None else grads[0]
    total = _product(u * node("ExpandDims", [of_s, constant(-2)]), v, False, True)
    if not op.get_attr("compute_uv") or (grads[1] is None and grads[2] is None):
        return [total]
    squares = s * s
    gaps = _inverse_gaps(squares, squares)
    row, column = (node("ExpandDims", [s, constant(axis)]) for axis in (-2, -1))
    if grads[1] is not None:
        mixed = _product(u, grads[1], True)
        inner = gaps * (mixed - _turned(mixed)) * row
        rest = grads[1] - _product(u, mixed)
        total += _product(_product(u, inner) + rest / row, v, False, True)
    if grads[2] is not None:
        mixed = _product(v, grads[2], True)
        inner = column * (gaps * (mixed - _turned(mixed)))
        rest = grads[2] - _product(v, mixed)
        total += _product(u, _product(inner, v, False, True) + _turned(rest / row))
    return [total]


declare_outputs("Svd", ("input",), _svd_infer, _svd_lower, _svd_gradient, None, attrs=("compute_uv", "full_matrices"))
