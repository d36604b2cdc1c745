"""Factorisation and solution of linear systems: cholesky, triangular-solve."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext
from xlalite.hlo.numerics.elimination import lower_cholesky, substitute
from xlalite.hlo.numerics.rounding import AnyArray
from xlalite.hlo.ops.evaluation.accumulation import narrow, widen
from xlalite.hlo.ops.rules.elementwise_rules import is_float_or_complex, require_type
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import BOOL, enum_codec
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class CholeskyAttrs:
    """Which triangle is read and given."""

    lower: bool = attribute(BOOL, default=False)


def _cholesky_shape(context: ShapeContext) -> Shape:
    operand = require_type(context, 0, is_float_or_complex)
    context.require(
        operand.rank >= 2 and operand.dims[-1] == operand.dims[-2], "the operand's last two dimensions must be equal"
    )
    return operand


def _cholesky(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The other triangle of the result is zero; a matrix that is not positive definite gives NaN."""
    operand, dtype = array_value(operands[0]), instruction.shape.dtype
    matrices, count = widen(operand, dtype), math.prod(operand.shape[:-2])
    if not instruction.attrs.lower:
        matrices = np.conj(np.swapaxes(matrices, -1, -2))
    factors = _lower_factors(matrices.reshape(count, *operand.shape[-2:])).reshape(operand.shape)
    if not instruction.attrs.lower:
        # Zeros stay positive.
        turned = np.swapaxes(factors, -1, -2)
        factors = np.where(np.tri(operand.shape[-1], dtype=bool), turned, np.conj(turned))
    return narrow(factors, dtype)


def _lower_factors(matrices: AnyArray) -> AnyArray:
    """L with L * L^H = matrix, from the lower triangles of [batch, n, n]."""
    if not matrices.size:
        return matrices
    if not np.isfinite(np.tril(matrices)).all():
        # LAPACK multiplies by 1 / inf, and takes a product with zero for zero.
        factors, info = lower_cholesky(matrices)
        return np.where(info[:, np.newaxis, np.newaxis] == 0, np.tril(factors), np.nan).astype(matrices.dtype)
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full(matrices.shape, np.nan, matrices.dtype)
    return np.concatenate([_lower_factors(matrices[i : i + 1]) for i in range(len(matrices))])


class Transpose(enum.Enum):
    """What is done to the matrix of a triangular system first."""

    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


@dataclass(frozen=True, slots=True)
class TriangularSolveAttrs:
    """Side of the matrix, its triangle, whether its diagonal counts as ones, and whether it is transposed."""

    left_side: bool = attribute(BOOL, default=False)
    lower: bool = attribute(BOOL, default=False)
    unit_diagonal: bool = attribute(BOOL, default=False)
    transpose_a: Transpose = attribute(
        enum_codec(Transpose, what="transpose_a"), default=Transpose.NO_TRANSPOSE, print_default=True
    )


def _triangular_solve_shape(context: ShapeContext) -> Shape:
    matrix, rhs = require_type(context, 0, is_float_or_complex), require_type(context, 1, is_float_or_complex)
    context.require(matrix.dtype is rhs.dtype, f"element types {matrix.dtype.value} and {rhs.dtype.value} differ")
    context.require(
        matrix.rank >= 2 and matrix.dims[-1] == matrix.dims[-2], "the matrix's last two dimensions must be equal"
    )
    context.require(
        matrix.rank == rhs.rank and matrix.dims[:-2] == rhs.dims[:-2], "batch dimensions of the operands differ"
    )
    side = -2 if context.attrs.left_side else -1
    context.require(
        rhs.dims[side] == matrix.dims[-1],
        f"the matrix has size {matrix.dims[-1]}, the other operand has {rhs.dims[side]} on that side",
    )
    return rhs


def _triangular_solve(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    attrs: TriangularSolveAttrs = instruction.attrs
    dtype: DType = instruction.shape.dtype
    matrix, rhs = widen(array_value(operands[0]), dtype), widen(array_value(operands[1]), dtype)
    lower = attrs.lower
    if attrs.transpose_a is Transpose.ADJOINT:
        matrix = np.conj(matrix)
    if (attrs.transpose_a is not Transpose.NO_TRANSPOSE) != (not attrs.left_side):
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
    if not attrs.left_side:
        rhs = np.swapaxes(rhs, -1, -2)
    with np.errstate(all="ignore"):
        solution = substitute(matrix, rhs, lower=lower, unit_diagonal=attrs.unit_diagonal)
    return narrow(solution if attrs.left_side else np.swapaxes(solution, -1, -2), dtype)


def _cholesky_flops(instruction: HloInstruction) -> int:
    """A third of n^3 for each matrix."""
    return instruction.shape.element_count * instruction.shape.dims[-1] // 3


OPS = (
    OpDef(
        "cholesky",
        "lower L with L * L^H = x, or upper U with U^H * U = x",
        1,
        _cholesky_shape,
        _cholesky,
        attrs=CholeskyAttrs,
        flops=_cholesky_flops,
    ),
    OpDef(
        "triangular-solve",
        "the x with op(a) * x = b, or x * op(a) = b, for a triangular matrix a",
        2,
        _triangular_solve_shape,
        _triangular_solve,
        attrs=TriangularSolveAttrs,
        flops=lambda instruction: instruction.shape.element_count * instruction.operand(0).shape.dims[-1],
    ),
)
