"""Recognises computations that combine two scalars by a known associative operation.

Reductions, windows and scatters run fast when their computation is one of these; evaluator, passes and backends ask
here.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from xlalite.hlo.computation import HloComputation
from xlalite.hlo.dtype import DType
from xlalite.hlo.literal import Array
from xlalite.hlo.numerics.conversion import integer_range


class MonoidKind(enum.Enum):
    """An associative and commutative operation; the value is its opcode."""

    ADD = "add"
    MULTIPLY = "multiply"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    AND = "and"
    OR = "or"
    XOR = "xor"


@dataclass(frozen=True, slots=True)
class Monoid:
    """An operation on one element type; on pred, sums and maxima are `or`, products and minima are `and`."""

    kind: MonoidKind
    dtype: DType

    @property
    def identity(self) -> Array:
        """The scalar that changes nothing: 0, 1, the lowest, the highest, all ones, 0, 0."""
        return monoid_identity(self.kind, self.dtype)


def recognise_monoid(computation: HloComputation) -> Monoid | None:
    """The monoid that a computation applies to its two scalar parameters, None when it does anything else."""
    parameters, root = computation.parameters, computation.root
    kind = _KIND_BY_OPCODE.get(root.opcode)
    if kind is None or len(parameters) != 2 or set(root.operands) != set(parameters) or not root.shape.is_scalar:
        return None
    if any(not parameter.shape.compatible(root.shape) for parameter in parameters):
        return None
    dtype = root.shape.dtype
    return Monoid(_KIND_ON_PRED.get(kind, kind) if dtype is DType.PRED else kind, dtype)


def monoid_identity(kind: MonoidKind, dtype: DType) -> Array:
    """The identity of an operation on an element type, as a scalar array of that type.

    For floating point the identity of a sum is -0, the one value that leaves -0 as it is; maxima start at -infinity,
    or at the lowest number of a type without infinities.
    """
    if kind is MonoidKind.ADD:
        return np.asarray(-0.0 if dtype.is_floating and _has_negative(dtype) else 0).astype(dtype.numpy)
    if kind is MonoidKind.MULTIPLY:
        return np.asarray(1).astype(dtype.numpy)
    if kind is MonoidKind.MAXIMUM:
        return _extreme(dtype, -1)
    if kind is MonoidKind.MINIMUM:
        return _extreme(dtype, 1)
    if kind is MonoidKind.AND:
        return np.asarray(True) if dtype is DType.PRED else np.asarray(-1).astype(dtype.numpy)
    return np.asarray(0).astype(dtype.numpy)


_KIND_BY_OPCODE = {kind.value: kind for kind in MonoidKind}
_KIND_ON_PRED = {
    MonoidKind.ADD: MonoidKind.OR,
    MonoidKind.MAXIMUM: MonoidKind.OR,
    MonoidKind.MULTIPLY: MonoidKind.AND,
    MonoidKind.MINIMUM: MonoidKind.AND,
}


def _has_negative(dtype: DType) -> bool:
    """Whether the floating-point type has a negative zero: the fnuz types and f8e8m0fnu do not."""
    with np.errstate(all="ignore"):
        zero = np.asarray(-0.0, np.float32).astype(dtype.numpy).astype(np.float32)
    return bool(zero == 0 and np.signbit(zero))


def _extreme(dtype: DType, sign: int) -> Array:
    if dtype is DType.PRED:
        return np.asarray(sign > 0)
    if dtype.is_integral:
        lowest, highest = integer_range(dtype)
        return np.asarray(highest if sign > 0 else lowest).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        infinite = np.asarray(sign * np.inf).astype(dtype.numpy)
    if np.isinf(infinite.astype(np.float64)):
        return infinite
    limits: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return np.asarray(limits.max if sign > 0 else limits.min).astype(dtype.numpy)
