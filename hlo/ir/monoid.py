"""Recognises computations that combine scalars by known associative operations.

Reductions, windows and scatters run fast, and sum in more precision than their type has, when their computation is one
of these; evaluator, passes and backends ask here. How the computation is spelt makes no difference: copies, calls and
conversions to a wider type and back are looked through.
"""

from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.origin import Use, origin
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array


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
    monoids = recognise_monoids(computation)
    return monoids[0] if monoids is not None and len(monoids) == 1 else None


def recognise_monoids(computation: HloComputation) -> tuple[Monoid, ...] | None:
    """The monoids by which a computation combines accumulators and elements, each pair on its own.

    Parameters are (accumulators..., elements...). None when the computation does anything else.
    """
    parameters = computation.parameters
    count = len(parameters) // 2
    root = origin(Use(computation.root))
    results = [Use(o, root.calls) for o in root.instruction.operands] if root.instruction.opcode == "tuple" else [root]
    if len(parameters) != 2 * count or len(results) != count:
        return None
    monoids = [
        _monoid_of(result, {parameters[number], parameters[count + number]}) for number, result in enumerate(results)
    ]
    known = tuple(monoid for monoid in monoids if monoid is not None)
    return known if len(known) == count else None


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


def same_when_computed_in(wide: DType, kind: MonoidKind, narrow: DType) -> bool:
    """Whether an operation on numbers converted to a wider type and back gives what it gives in their own type."""
    orders = kind in (MonoidKind.MAXIMUM, MonoidKind.MINIMUM)
    if narrow is DType.PRED:
        return wide.is_integral or wide.is_floating
    if narrow.is_integral:
        keeps_order = wide.is_signed or narrow.is_unsigned
        return wide.is_integral and wide.bits > narrow.bits and (keeps_order or not orders)
    if not (narrow.is_floating and wide.is_floating and wide.bits > narrow.bits):
        return False
    # Rounding twice is rounding once where the wider type has twice the precision and two bits more.
    return _precision(wide) >= (_precision(narrow) if orders else 2 * _precision(narrow) + 2)


def _monoid_of(result: Use, wanted: set[HloInstruction]) -> Monoid | None:
    """The monoid that combines exactly two parameters into a result."""
    result = origin(result)
    dtype = result.instruction.shape.dtype
    operation = origin(Use(result.instruction.operand(0), result.calls)) if _converts(result) else result
    kind = _KIND_BY_OPCODE.get(operation.instruction.opcode)
    if kind is None or (kind is MonoidKind.ADD and dtype is DType.F8E8M0FNU):  # no zero: nothing changes nothing
        return None
    operands = [origin(Use(operand, operation.calls)) for operand in operation.instruction.operands]
    wide = operation.instruction.shape.dtype
    if wide is not dtype:
        if not all(map(_converts, operands)) or not same_when_computed_in(wide, kind, dtype):
            return None
        operands = [origin(Use(operand.instruction.operand(0), operand.calls)) for operand in operands]
    found = [operand.instruction for operand in operands]
    if set(found) != wanted or any(not p.shape.is_scalar or p.shape.dtype is not dtype for p in found):
        return None
    return Monoid(_KIND_ON_PRED.get(kind, kind) if dtype is DType.PRED else kind, dtype)


def _converts(use: Use) -> bool:
    return use.instruction.opcode == "convert"


def _precision(dtype: DType) -> int:
    limits: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return int(limits.nmant) + 1


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
