"""Where a machine has no instruction for a method of `Intrinsics`, or a better one than LLVM knows.

x86-64 got the roundings with SSE4.1 and the multiply-add with FMA. LLVM would call the C library, lane by lane; here
they are a few operations on whole vectors, exact all the same. AVX-512 has extremes that tell zeros apart.
"""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.llvm.intrinsics import Intrinsics
from xlalite.backends.codegen.llvm.types import F32, F64, I32, integer, vector
from xlalite.backends.codegen.llvm.value import Operand, Value, constant, undef, zero
from xlalite.backends.codegen.llvm.vectors import Vectors


class Substitutes(Vectors, Intrinsics):
    """The methods of `Intrinsics` that some machines need other instructions for."""

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """`a * b + c`, rounded once; where the target has no FMA, one of f64 takes some forty instructions.

        There a product beyond the range of f64 is infinite whatever is added, and f64 may round twice where the lowest
        bits of the product are below the smallest number.
        """
        if self.module.target.has_fma:
            return super().fma(a, b, c)
        b, c = (operand if isinstance(operand, Value) else constant(a.type, operand) for operand in (b, c))
        if a.type.scalar not in (F32, F64) or b.type is not a.type or c.type is not a.type:
            self._mismatch("fma", a, b, c)
        with self.contraction(False):
            if a.type.scalar is F64:
                return self._fma_double(a, b, c)
            wide = a.type.with_scalar(F64)
            product = self.fmul(self.fpext(a, wide), self.fpext(b, wide))
            return self.fptrunc(self._sum_to_odd(product, self.fpext(c, wide)), a.type)

    def product_error(self, a: Value, b: Value, product: Value) -> Value:
        """What the product of two numbers, which is given, lost by rounding: exact unless below the smallest number.

        Without FMA by halves of the digits (Dekker, A floating-point technique for extending the available precision).
        """
        if self.module.target.has_fma or a.type.scalar is not F64:
            return self.fma(a, b, self.fneg(product))
        with self.contraction(False):
            (a_high, a_low), (b_high, b_low) = self._halves(a), self._halves(b)
            error = self.fsub(self.fmul(a_high, b_high), product)
            error = self.fadd(self.fadd(error, self.fmul(a_high, b_low)), self.fmul(a_low, b_high))
            return self.fadd(error, self.fmul(a_low, b_low))

    def rint(self, a: Value) -> Value:
        """Nearest integer, ties to even, in the current rounding mode."""
        return self._rounding(a, super().rint, self._nearest)

    def roundeven(self, a: Value) -> Value:
        """Nearest integer, ties to even."""
        return self._rounding(a, super().roundeven, self._nearest)

    def floor(self, a: Value) -> Value:
        """Largest integer not above."""
        return self._rounding(a, super().floor, lambda x: self._stepped(self._nearest(x), "ogt", x, -1.0))

    def ceil(self, a: Value) -> Value:
        """Smallest integer not below."""
        return self._rounding(a, super().ceil, lambda x: self._stepped(self._nearest(x), "olt", x, 1.0))

    def ftrunc(self, a: Value) -> Value:
        """Integer towards zero (`llvm.trunc`; `trunc` is the cast)."""
        return self._rounding(a, super().ftrunc, self._towards_zero)

    def round(self, a: Value) -> Value:
        """Nearest integer, ties away from zero."""
        return self._rounding(a, super().round, self._nearest_or_away)

    def minimum(self, a: Value, b: Operand) -> Value:
        """Minimum that propagates NaN and has -0 below +0."""
        return self._extreme(0, a, b) if self._has_range(a, b) else super().minimum(a, b)

    def maximum(self, a: Value, b: Operand) -> Value:
        """Maximum that propagates NaN and has +0 above -0."""
        return self._extreme(1, a, b) if self._has_range(a, b) else super().maximum(a, b)

    def _has_range(self, a: Value, b: Operand) -> bool:
        """Whether `range` takes two numbers or vectors; LLVM knows better if it knows one of them."""
        is_open = isinstance(b, Value) and b.type is a.type and not (a.is_constant or b.is_constant)
        fills_register = a.type.lanes == 1 or a.type.lanes * a.type.bits in (128, 256, 512)
        return (
            is_open
            and fills_register
            and a.type.scalar in (F32, F64)
            and all(map(self.module.target.has, ("avx512dq", "avx512vl")))
        )

    def _extreme(self, choice: int, a: Value, b: Operand) -> Value:
        """With the sign of what is chosen; of a number and NaN the instruction gives the number."""
        assert isinstance(b, Value), "the caller asked"
        if a.type.lanes == 1:
            register = undef(vector(a.type, 128 // a.type.bits))
            return self.extract(self._extreme(choice, self.insert(register, a, 0), self.insert(register, b, 0)), 0)
        lanes, bits = a.type.lanes, a.type.lanes * a.type.bits
        suffix = f"{'ps' if a.type.scalar is F32 else 'pd'}.{bits}"
        arguments = [a, b, constant(I32, 4 + choice), zero(a.type), constant(integer(max(lanes, 8)), -1)]
        if bits == 512:
            arguments.append(constant(I32, 4))
        chosen = self.intrinsic(f"x86.avx512.mask.range.{suffix}", a.type, tuple(arguments), ())
        return self.select(self.fcmp("uno", a, b), self.fadd(a, b), chosen)

    def _rounding(self, a: Value, instruction: Callable[[Value], Value], substitute: Callable[[Value], Value]) -> Value:
        """Either way; what has no fraction stays, NaN too, and the result has the sign of the operand."""
        if self.module.target.has_roundings or a.type.scalar not in (F32, F64):
            return instruction(a)
        with self.contraction(False):
            has_fraction = self.fcmp("olt", self.fabs(a), _first_without_fraction(a))
            return self.select(has_fraction, self.copysign(substitute(a), a), a)

    def _nearest(self, a: Value) -> Value:
        """With the sign of the operand, but for zeros."""
        unit = self.copysign(constant(a.type, _first_without_fraction(a)), a)
        return self.fsub(self.fadd(a, unit), unit)

    def _towards_zero(self, a: Value) -> Value:
        size = self.fabs(a)
        return self._stepped(self._nearest(size), "ogt", size, -1.0)

    def _nearest_or_away(self, a: Value) -> Value:
        size, below = self.fabs(a), self._towards_zero(a)
        return self.select(self.fcmp("oge", self.fsub(size, below), 0.5), self.fadd(below, 1.0), below)

    def _stepped(self, rounded: Value, predicate: str, a: Value, step: float) -> Value:
        """One further where the rounding went to the wrong side of `a`."""
        return self.select(self.fcmp(predicate, rounded, a), self.fadd(rounded, step), rounded)

    def _fma_double(self, a: Value, b: Value, c: Value) -> Value:
        """Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd."""
        product = self.fmul(a, b)
        lost = self.product_error(a, b, product)
        low, low_error = self._two_sum(c, lost)
        high, high_error = self._two_sum(product, low)
        exact = self.fadd(high, self._sum_to_odd(low_error, high_error))
        # Zeros have their sign from the plain sum, infinities and NaN do not survive the error terms.
        return self.select(self.fcmp("one", exact, 0.0), exact, self.fadd(product, c))

    def _halves(self, a: Value) -> tuple[Value, Value]:
        """The number as a sum of two of 26 bits, also where the rounded half would be beyond the largest number."""
        word = a.type.with_scalar(integer(64))
        bits = self.bitcast(a, word)
        rounded = self.bitcast(self.and_(self.add(bits, 1 << 26), -1 << 27), a.type)
        cut = self.bitcast(self.and_(bits, -1 << 27), a.type)
        high = self.select(self.fcmp("oeq", self.fabs(rounded), float("inf")), cut, rounded)
        return high, self.fsub(a, high)

    def _two_sum(self, a: Value, b: Value) -> tuple[Value, Value]:
        """A sum and what it lost by rounding (Knuth)."""
        total = self.fadd(a, b)
        b_part = self.fsub(total, a)
        a_part = self.fsub(total, b_part)
        return total, self.fadd(self.fsub(a, a_part), self.fsub(b, b_part))

    def _sum_to_odd(self, a: Value, b: Value) -> Value:
        """A sum of f64 whose last bit is set where it is inexact: rounded again to less, it was rounded once."""
        total, error = self._two_sum(a, b)
        word = total.type.with_scalar(integer(64))
        bits = self.bitcast(total, word)
        # One further from zero where the error has the sign of the sum, else one closer.
        step = self.or_(self.ashr(self.xor(bits, self.bitcast(error, word)), 63), 1)
        is_even = self.icmp("eq", self.and_(bits, 1), 0)
        inexact = self.and_(self.fcmp("one", error, 0.0), is_even)
        return self.bitcast(self.select(inexact, self.add(bits, step), bits), total.type)


def _first_without_fraction(a: Value) -> float:
    return 2.0**23 if a.type.scalar is F32 else 2.0**52
