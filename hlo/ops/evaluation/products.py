"""Sums of products, as dot, convolution and their relatives need them: types, rounding, wrap-around."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.op import ShapeContext
from xlalite.hlo.ops.evaluation.accumulation import narrow
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array

_EXACT_IN_F64 = 2.0**53


def product_dtype(context: ShapeContext, lhs: DType, rhs: DType) -> DType:
    """Element type of a product: the declared one if there is one that makes sense, else the wider operand's.

    Operands of all kinds may be mixed.
    """
    declared = context.declared
    if declared is not None and declared.is_array:
        if not (_holds_product(declared.dtype, lhs) and _holds_product(declared.dtype, rhs)):
            raise context.error(
                f"a product of {lhs.value} and {rhs.value} cannot have element type {declared.dtype.value}"
            )
        return declared.dtype
    lhs_rank, rhs_rank = _width(lhs), _width(rhs)
    if not (lhs is rhs or lhs_rank != rhs_rank):
        raise context.error(f"the result shape must be given: neither {lhs.value} nor {rhs.value} is the wider type")
    return lhs if lhs_rank >= rhs_rank else rhs


def _width(dtype: DType) -> tuple[int, int]:
    """What of two types is greater for the wider one: complex, real, integer, pred; then bits."""
    kind = 3 if dtype.is_complex else 2 if dtype.is_floating else 1 if dtype.is_integral else 0
    return kind, dtype.bits


def _holds_product(result: DType, operand: DType) -> bool:
    if result is operand:
        return True
    if operand.is_complex:
        return result.is_complex
    if operand.is_floating:
        return result.is_floating or result.is_complex
    if result.is_integral and operand.is_integral:
        return result.bits >= operand.bits
    return result is not DType.PRED


def product_of(lhs: Array, rhs: Array, dtype: DType) -> Array:
    """[..., m, k] x [..., k, n] -> [..., m, n] with the given element type.

    Floating-point sums are kept in f64 and rounded once, integers wrap, pred is `or` of `and`.
    """
    with np.errstate(all="ignore"):
        return round_product(matmul(*computing_operands(lhs, rhs, dtype, lhs.shape[-1])), dtype)


def computing_operands(lhs: Array, rhs: Array, dtype: DType, terms: int) -> tuple[Array, Array]:
    """Both operands in the type that sums of `terms` products with result type `dtype` are computed in.

    That is c128, f64, or 64-bit integers; integers whose sums are exact in f64 use it too, as it is much faster.
    """
    if dtype.is_complex:
        return lhs.astype(np.complex128), rhs.astype(np.complex128)
    left, right = lhs.astype(np.float64), rhs.astype(np.float64)
    if dtype.is_floating or dtype is DType.PRED or not (left.size and right.size):
        return left, right
    if float(np.abs(left).max()) * float(np.abs(right).max()) * terms < _EXACT_IN_F64:
        return left, right
    return lhs.astype(np.int64), rhs.astype(np.int64)


def matmul(lhs: Array, rhs: Array) -> Array:
    """[..., m, k] x [..., k, n]; of complex numbers by their parts, as BLAS may make NaN where factors are infinite."""
    if lhs.dtype.kind != "c":
        return np.asarray(np.matmul(lhs, rhs))
    real = np.matmul(lhs.real, rhs.real) - np.matmul(lhs.imag, rhs.imag)
    result: npt.NDArray[np.complex128] = np.empty(real.shape, np.complex128)
    result.real, result.imag = real, np.matmul(lhs.real, rhs.imag) + np.matmul(lhs.imag, rhs.real)
    return result


def round_product(total: Array, dtype: DType) -> Array:
    """A sum of products in its result type: rounded once, wrapped, or for pred whether any product was true."""
    with np.errstate(all="ignore"):
        if dtype is DType.PRED:
            return np.asarray(total != 0)
        return narrow(total.astype(np.int64, copy=False) if dtype.is_integral else total, dtype)
