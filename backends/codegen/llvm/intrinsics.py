"""LLVM's overloaded number intrinsics as methods."""

from __future__ import annotations

from xlalite.backends.codegen.llvm.emitter import Emitter
from xlalite.backends.codegen.llvm.families import family
from xlalite.backends.codegen.llvm.types import I1, I32, VOID, Type, struct
from xlalite.backends.codegen.llvm.value import Operand, Value, constant, poison


@family
def _float_unary(name: str, fb: Emitter, a: Value) -> Value:
    type_ = a.type
    if not type_.is_float:
        fb._mismatch(name, a)
    symbol = fb.module.uniform_intrinsic(name, type_, 1)
    return fb._emit(type_, f"call {type_.text} {symbol}({type_.text} {a.text})")


def _pair(name: str, fb: Emitter, a: Value, b: Operand, kind: str) -> Value:
    type_ = a.type
    if not isinstance(b, Value):
        b = constant(type_, b)
    if b.type is not type_ or not getattr(type_, kind):
        fb._mismatch(name, a, b)
    symbol = fb.module.uniform_intrinsic(name, type_, 2)
    return fb._emit(type_, f"call {type_.text} {symbol}({type_.text} {a.text}, {type_.text} {b.text})")


@family
def _float_pair(name: str, fb: Emitter, a: Value, b: Operand) -> Value:
    return _pair(name, fb, a, b, "is_float")


@family
def _integer_pair(name: str, fb: Emitter, a: Value, b: Operand) -> Value:
    return _pair(name, fb, a, b, "is_integer")


@family
def _saturating(name: str, fb: Intrinsics, a: Value, target: Type) -> Value:
    if a.type.is_vector and not target.is_vector:
        target = a.type.with_scalar(target)
    if not a.type.is_float or not target.is_integer or a.type.lanes != target.lanes:
        fb._mismatch(f"{name} to {target}", a)
    return fb.intrinsic(name, target, (a,), (target, a.type))


@family
def _integer_unary(name: str, fb: Intrinsics, a: Value) -> Value:
    if not a.type.is_integer:
        fb._mismatch(name, a)
    return fb.intrinsic(name, a.type, (a,), (a.type,))


@family
def _flagged(name: str, fb: Emitter, a: Value, *, is_poison: bool = False) -> Value:
    """What zero, or the smallest number, gives is a number, or poison."""
    if not a.type.is_integer:
        fb._mismatch(name, a)
    function = fb.module.intrinsic(name, a.type, (a.type, I1), (a.type,))
    return fb._emit(a.type, f"call {a.type.text} {function.text}({a!r}, i1 {str(is_poison).lower()})")


@family
def _funnel(name: str, fb: Intrinsics, high: Value, low: Value, amount: Operand) -> Value:
    type_ = high.type
    if not isinstance(amount, Value):
        amount = constant(type_, amount)
    if low.type is not type_ or amount.type is not type_ or not type_.is_integer:
        fb._mismatch(name, high, low, amount)
    return fb.intrinsic(name, type_, (high, low, amount), (type_,))


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

    fabs = _float_unary("fabs", "Absolute value: clears the sign bit.")
    sqrt = _float_unary("sqrt", "Correctly rounded square root.")
    floor = _float_unary("floor", "Largest integer not above.")
    ceil = _float_unary("ceil", "Smallest integer not below.")
    ftrunc = _float_unary("trunc", "Integer towards zero (`llvm.trunc`; `trunc` is the cast).")
    rint = _float_unary("rint", "Nearest integer, ties to even, in the current rounding mode.")
    round = _float_unary("round", "Nearest integer, ties away from zero.")
    roundeven = _float_unary("roundeven", "Nearest integer, ties to even.")
    copysign = _float_pair("copysign", "The magnitude of the first with the sign of the second.")
    minimum = _float_pair("minimum", "Minimum that propagates NaN and has -0 below +0.")
    maximum = _float_pair("maximum", "Maximum that propagates NaN and has +0 above -0.")
    minnum = _float_pair("minnum", "Minimum that prefers the number over a NaN.")
    maxnum = _float_pair("maxnum", "Maximum that prefers the number over a NaN.")

    def is_fpclass(self, a: Value, classes: int) -> Value:
        """Whether a float belongs to one of the classes of LLVM's bit set (3: NaN, 0x204: infinity, 0x90: denormal)."""
        if not a.type.is_float:
            self._mismatch("is_fpclass", a)
        result = a.type.with_scalar(I1)
        return self.intrinsic("is.fpclass", result, (a, constant(I32, classes)), (a.type,))

    fptosi_sat = _saturating("fptosi.sat", "Signed integer towards zero, saturated; 0 for NaN.")
    fptoui_sat = _saturating("fptoui.sat", "Unsigned integer towards zero, saturated; 0 for NaN.")

    # Integers

    ctpop = _integer_unary("ctpop", "Number of one bits.")
    bswap = _integer_unary("bswap", "Bytes in reverse order.")
    bitreverse = _integer_unary("bitreverse", "Bits in reverse order.")
    ctlz = _flagged("ctlz", "Leading zero bits; the width for 0.")
    cttz = _flagged("cttz", "Trailing zero bits; the width for 0.")
    abs = _flagged("abs", "Absolute value; the smallest value stays itself.")
    smin = _integer_pair("smin", "Signed minimum.")
    smax = _integer_pair("smax", "Signed maximum.")
    umin = _integer_pair("umin", "Unsigned minimum.")
    umax = _integer_pair("umax", "Unsigned maximum.")
    fshl = _funnel(
        "fshl", "High word of `high:low << amount` (modulo the width); a left rotation when both words are the same."
    )
    fshr = _funnel(
        "fshr", "Low word of `high:low >> amount` (modulo the width); a right rotation when both words are the same."
    )

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

    def arithmetic_fence(self, a: Value) -> Value:
        """The same floats, behind which LLVM does not look."""
        if not a.type.is_float:
            self._mismatch("arithmetic_fence", a)
        return self.intrinsic("arithmetic.fence", a.type, (a,), (a.type,))

    def assume(self, condition: Value) -> None:
        """Promises LLVM that a condition holds; undefined behaviour if it does not."""
        self.intrinsic("assume", VOID, (condition,), ())

    def expect(self, condition: Value, likely: bool) -> Value:
        """The condition, marked as usually `likely`."""
        return self.intrinsic("expect", I1, (condition, constant(I1, likely)), (I1,))
