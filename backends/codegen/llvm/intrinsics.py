"""LLVM's overloaded number intrinsics as methods."""

from __future__ import annotations

from xlalite.backends.codegen.llvm.emitter import Emitter
from xlalite.backends.codegen.llvm.types import I1, I32, VOID, Type, struct
from xlalite.backends.codegen.llvm.value import Operand, Value, constant, poison


class Intrinsics(Emitter):
    """Methods named after the intrinsics; they take scalars and vectors."""

    def intrinsic(
        self, name: str, return_type: Type, arguments: tuple[Value, ...], overloads: tuple[Type, ...]
    ) -> Value:
        """Calls any intrinsic: `llvm.<name>.<overloads...>` with the given result type."""
        types = tuple([argument.type for argument in arguments])
        function = self.module.intrinsic(name, return_type, types, overloads)
        spelled = ", ".join([f"{argument.type.text} {argument.text}" for argument in arguments])
        text = f"call {return_type.text} {function.text}({spelled})"
        if return_type is VOID:
            self._append("  " + text)
            return Value(VOID, "void")
        return self._emit(return_type, text)

    def _float_unary(self, name: str, a: Value) -> Value:
        type_ = a.type
        if not type_.is_float:
            self._mismatch(name, a)
        symbol = self.module.uniform_intrinsic(name, type_, 1)
        return self._emit(type_, f"call {type_.text} {symbol}({type_.text} {a.text})")

    def _float_pair(self, name: str, a: Value, b: Operand) -> Value:
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not type_.is_float:
            self._mismatch(name, a, b)
        symbol = self.module.uniform_intrinsic(name, type_, 2)
        return self._emit(type_, f"call {type_.text} {symbol}({type_.text} {a.text}, {type_.text} {b.text})")

    def _integer_pair(self, name: str, a: Value, b: Operand) -> Value:
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not type_.is_integer:
            self._mismatch(name, a, b)
        symbol = self.module.uniform_intrinsic(name, type_, 2)
        return self._emit(type_, f"call {type_.text} {symbol}({type_.text} {a.text}, {type_.text} {b.text})")

    # Floating point

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """`a * b + c`, rounded once; `mul_add` will do where twice is no harm."""
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if not isinstance(c, Value):
            c = constant(type_, c)
        if b.type is not type_ or c.type is not type_ or not type_.is_float:
            self._mismatch("fma", a, b, c)
        symbol = self.module.uniform_intrinsic("fma", type_, 3)
        text = type_.text
        return self._emit(type_, f"call {text} {symbol}({text} {a.text}, {text} {b.text}, {text} {c.text})")

    def mul_add(self, a: Value, b: Operand, c: Operand) -> Value:
        """`a * b + c`: one `fma` where the target has it, else a product and a sum, each rounded."""
        if self.module.target.has_fma:
            return self.fma(a, b, c)
        type_ = a.type
        values = [operand if isinstance(operand, Value) else constant(type_, operand) for operand in (b, c)]
        if values[0].type is not type_ or values[1].type is not type_ or not type_.is_float:
            self._mismatch("mul_add", a, *values)
        product = self._emit(type_, f"fmul {type_.text} {a.text}, {values[0].text}")
        return self._emit(type_, f"fadd {type_.text} {product.text}, {values[1].text}")

    def fabs(self, a: Value) -> Value:
        """Absolute value: clears the sign bit."""
        return self._float_unary("fabs", a)

    def sqrt(self, a: Value) -> Value:
        """Correctly rounded square root."""
        return self._float_unary("sqrt", a)

    def floor(self, a: Value) -> Value:
        """Largest integer not above."""
        return self._float_unary("floor", a)

    def ceil(self, a: Value) -> Value:
        """Smallest integer not below."""
        return self._float_unary("ceil", a)

    def ftrunc(self, a: Value) -> Value:
        """Integer towards zero (`llvm.trunc`; `trunc` is the cast)."""
        return self._float_unary("trunc", a)

    def rint(self, a: Value) -> Value:
        """Nearest integer, ties to even, in the current rounding mode."""
        return self._float_unary("rint", a)

    def round(self, a: Value) -> Value:
        """Nearest integer, ties away from zero."""
        return self._float_unary("round", a)

    def roundeven(self, a: Value) -> Value:
        """Nearest integer, ties to even."""
        return self._float_unary("roundeven", a)

    def copysign(self, magnitude: Value, sign: Operand) -> Value:
        """The magnitude of the first with the sign of the second."""
        return self._float_pair("copysign", magnitude, sign)

    def minimum(self, a: Value, b: Operand) -> Value:
        """Minimum that propagates NaN and has -0 below +0."""
        return self._float_pair("minimum", a, b)

    def maximum(self, a: Value, b: Operand) -> Value:
        """Maximum that propagates NaN and has +0 above -0."""
        return self._float_pair("maximum", a, b)

    def minnum(self, a: Value, b: Operand) -> Value:
        """Minimum that prefers the number over a NaN."""
        return self._float_pair("minnum", a, b)

    def maxnum(self, a: Value, b: Operand) -> Value:
        """Maximum that prefers the number over a NaN."""
        return self._float_pair("maxnum", a, b)

    def is_fpclass(self, a: Value, classes: int) -> Value:
        """Whether a float belongs to one of the classes of LLVM's bit set (3: NaN, 0x204: infinity, 0x90: denormal)."""
        if not a.type.is_float:
            self._mismatch("is_fpclass", a)
        result = a.type.with_scalar(I1)
        return self.intrinsic("is.fpclass", result, (a, constant(I32, classes)), (a.type,))

    def fptosi_sat(self, a: Value, target: Type) -> Value:
        """Signed integer towards zero, saturated; 0 for NaN."""
        return self._saturating("fptosi.sat", a, target)

    def fptoui_sat(self, a: Value, target: Type) -> Value:
        """Unsigned integer towards zero, saturated; 0 for NaN."""
        return self._saturating("fptoui.sat", a, target)

    def _saturating(self, name: str, a: Value, target: Type) -> Value:
        if a.type.is_vector and not target.is_vector:
            target = a.type.with_scalar(target)
        if not a.type.is_float or not target.is_integer or a.type.lanes != target.lanes:
            self._mismatch(f"{name} to {target}", a)
        return self.intrinsic(name, target, (a,), (target, a.type))

    # Integers

    def _integer_unary(self, name: str, a: Value) -> Value:
        if not a.type.is_integer:
            self._mismatch(name, a)
        return self.intrinsic(name, a.type, (a,), (a.type,))

    def ctpop(self, a: Value) -> Value:
        """Number of one bits."""
        return self._integer_unary("ctpop", a)

    def bswap(self, a: Value) -> Value:
        """Bytes in reverse order."""
        return self._integer_unary("bswap", a)

    def bitreverse(self, a: Value) -> Value:
        """Bits in reverse order."""
        return self._integer_unary("bitreverse", a)

    def _flagged(self, name: str, a: Value, flag: bool) -> Value:
        if not a.type.is_integer:
            self._mismatch(name, a)
        function = self.module.intrinsic(name, a.type, (a.type, I1), (a.type,))
        return self._emit(a.type, f"call {a.type.text} {function.text}({a!r}, i1 {str(flag).lower()})")

    def ctlz(self, a: Value, *, zero_is_poison: bool = False) -> Value:
        """Leading zero bits; the width for 0."""
        return self._flagged("ctlz", a, zero_is_poison)

    def cttz(self, a: Value, *, zero_is_poison: bool = False) -> Value:
        """Trailing zero bits; the width for 0."""
        return self._flagged("cttz", a, zero_is_poison)

    def abs(self, a: Value, *, minimum_is_poison: bool = False) -> Value:
        """Absolute value; the smallest value stays itself."""
        return self._flagged("abs", a, minimum_is_poison)

    def smin(self, a: Value, b: Operand) -> Value:
        """Signed minimum."""
        return self._integer_pair("smin", a, b)

    def smax(self, a: Value, b: Operand) -> Value:
        """Signed maximum."""
        return self._integer_pair("smax", a, b)

    def umin(self, a: Value, b: Operand) -> Value:
        """Unsigned minimum."""
        return self._integer_pair("umin", a, b)

    def umax(self, a: Value, b: Operand) -> Value:
        """Unsigned maximum."""
        return self._integer_pair("umax", a, b)

    def sadd_sat(self, a: Value, b: Operand) -> Value:
        """Signed saturating sum."""
        return self._integer_pair("sadd.sat", a, b)

    def uadd_sat(self, a: Value, b: Operand) -> Value:
        """Unsigned saturating sum."""
        return self._integer_pair("uadd.sat", a, b)

    def ssub_sat(self, a: Value, b: Operand) -> Value:
        """Signed saturating difference."""
        return self._integer_pair("ssub.sat", a, b)

    def usub_sat(self, a: Value, b: Operand) -> Value:
        """Unsigned saturating difference."""
        return self._integer_pair("usub.sat", a, b)

    def _funnel(self, name: str, high: Value, low: Value, amount: Operand) -> Value:
        type_ = high.type
        if not isinstance(amount, Value):
            amount = constant(type_, amount)
        if low.type is not type_ or amount.type is not type_ or not type_.is_integer:
            self._mismatch(name, high, low, amount)
        return self.intrinsic(name, type_, (high, low, amount), (type_,))

    def fshl(self, high: Value, low: Value, amount: Operand) -> Value:
        """High word of `high:low << amount` (modulo the width); a left rotation when both words are the same."""
        return self._funnel("fshl", high, low, amount)

    def fshr(self, high: Value, low: Value, amount: Operand) -> Value:
        """Low word of `high:low >> amount` (modulo the width); a right rotation when both words are the same."""
        return self._funnel("fshr", high, low, amount)

    def with_overflow(self, operation: str, a: Value, b: Operand) -> tuple[Value, Value]:
        """`sadd`, `uadd`, `ssub`, `usub`, `smul` or `umul`: the wrapped result and whether it overflowed."""
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not type_.is_integer:
            self._mismatch(operation, a, b)
        flag_type = type_.with_scalar(I1)
        pair = self.intrinsic(f"{operation}.with.overflow", struct(type_, flag_type), (a, b), (type_,))
        result = self._emit(type_, f"extractvalue {pair!r}, 0")
        return result, self._emit(flag_type, f"extractvalue {pair!r}, 1")

    def compress(self, a: Value, mask: Value) -> Value:
        """The lanes in a mask, moved to the front in order; what comes behind them is undefined.

        One instruction for lanes of 32 and 64 bits with AVX-512; elsewhere a store and a load for each lane.
        """
        if not a.type.is_vector or mask.type is not a.type.with_scalar(I1):
            self._mismatch("compress", a, mask)
        return self.intrinsic("experimental.vector.compress", a.type, (a, mask, poison(a.type)), (a.type,))

    # Hints

    def assume(self, condition: Value) -> None:
        """Promises LLVM that a condition holds; undefined behaviour if it does not."""
        self.intrinsic("assume", VOID, (condition,), ())

    def expect(self, condition: Value, likely: bool) -> Value:
        """The condition, marked as usually `likely`."""
        return self.intrinsic("expect", I1, (condition, constant(I1, likely)), (I1,))
