"""Quotients of many elements by one number: products with its reciprocal, mended, which are the quotients bit for bit.

With z = 1 / y rounded to nearest, q = x * z rounded, and r = x - q * y, which is exact, q + r * z rounded is x / y
rounded, wherever nothing leaves the range of normal numbers: Markstein, "Computation of elementary functions on the IBM
RISC System/6000 processor", 1990; Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division
when the divisor is known in advance", 2004. Vectors with elements for which that is not known are divided; 0 is known.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Type, Value, constant, integer
from xlalite.backends.codegen.math.floating import mended_quotient
from xlalite.hlo.records import dataclass

_FORMATS: dict[Type, tuple[str, str]] = {F32: ("f", "I"), F64: ("d", "Q")}

_MOST_DIVISOR = {F32: 2.0**24, F64: 2.0**60}
"""Divisors up to here, and down to its reciprocal."""

_MOST_DIVIDEND = {F32: 2.0**100, F64: 2.0**960}
"""Dividends likewise: quotients are normal numbers, and rests have no digits below the least number."""


@dataclass(frozen=True, slots=True)
class KnownDivisor:
    """A divisor in all lanes, and what is known of it.

    Attributes:
        divisor: The number y.
        reciprocal: 1 / y, rounded.
        least: The bits of the least dividend without sign; those of no number if the divisor is too large or small.
        zero: The bits of the other dividend, which is 0; likewise.
    """

    divisor: Value
    reciprocal: Value
    least: Value
    zero: Value

    @classmethod
    def of(cls, fb: FunctionBuilder, y: Value, lanes: int) -> KnownDivisor:
        """What is known of a scalar, spread over some lanes."""
        type_ = y.type
        bits, most = integer(type_.bits), _MOST_DIVISOR[type_]
        size = fb.fabs(y)
        is_usual = fb.and_(fb.fcmp("oge", size, 1 / most), fb.fcmp("ole", size, most))
        none = constant(bits, _bits(type_, float("inf")) | 1)
        least = fb.select(is_usual, constant(bits, _bits(type_, 1 / _MOST_DIVIDEND[type_])), none)
        zero = fb.select(is_usual, constant(bits, 0), none)
        return cls(*(fb.splat(one, lanes) for one in (y, fb.fdiv(fb.constant(type_, 1.0), y), least, zero)))

    @classmethod
    def of_number(cls, fb: FunctionBuilder, type_: Type, number: float) -> KnownDivisor | None:
        """What is known of a constant for vectors of a type; None if they had better be divided by it."""
        scalar, most = type_.scalar, _MOST_DIVISOR[type_.scalar]
        if not 1 / most <= abs(number) <= most or abs(math.frexp(number)[0]) == 0.5:  # by powers of two it multiplies
            return None
        single = np.float32 if scalar is F32 else np.float64
        least = constant(integer(scalar.bits), _bits(scalar, 1 / _MOST_DIVIDEND[scalar]))
        bits = (fb.splat(one, type_.lanes) for one in (least, constant(integer(scalar.bits), 0)))
        return cls(fb.constant(type_, number), fb.constant(type_, float(single(1) / single(number))), *bits)

    @property
    def lanes(self) -> int:
        """Lanes of the vectors that it divides."""
        return self.divisor.type.lanes

    def quotient(self, fb: FunctionBuilder, x: Value, *, is_usual: bool = False) -> Value:
        """The quotients of a vector, rounded to nearest; of usual dividends and zeros alone, if that is known."""
        if is_usual:
            return mended_quotient(fb, x, self.divisor, self.reciprocal)
        type_ = x.type.scalar
        bits = fb.bitcast(x, self.least.type)
        above = fb.sub(fb.and_(bits, _bits(type_, float("inf")) | (1 << _digits(type_)) - 1), self.least)
        range_ = _bits(type_, _MOST_DIVIDEND[type_]) - _bits(type_, 1 / _MOST_DIVIDEND[type_])
        is_rare = fb.and_(fb.icmp("ugt", above, range_), fb.icmp("ne", bits, self.zero))
        branch = fb.if_else(fb.any_lane(is_rare), likely=False)
        with branch.then():
            branch.yield_(fb.fdiv(x, self.divisor))
        with branch.otherwise():
            branch.yield_(mended_quotient(fb, x, self.divisor, self.reciprocal))
        (result,) = branch.results
        return result


def _bits(type_: Type, number: float) -> int:
    as_float, as_integer = _FORMATS[type_]
    (bits,) = struct.unpack(as_integer, struct.pack(as_float, number))
    return int(bits)


def _digits(type_: Type) -> int:
    """Bits of the mantissa that are stored."""
    return 23 if type_ is F32 else 52
