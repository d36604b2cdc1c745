"""Arithmetic, comparison, selection and conversion, for scalars and vectors alike."""

from __future__ import annotations

from xlalite.backends.codegen.llvm.emitter import Emitter
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.types import I1, Type
from xlalite.backends.codegen.llvm.value import Operand, Value, constant

_INTEGER_PREDICATES = frozenset(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
_FLOAT_PREDICATES = frozenset(
    ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true", "false"]
)


class Arithmetic(Emitter):
    """Operators on numbers.

    The right operand of a binary method may be a Python number. Flags are written as LLVM spells them (`"nsw"`,
    `"nuw nsw"`, `"nnan ninf"`); `flags=None` means none for integers and the builder's `contract` default for fadd,
    fsub and fmul; `flags=""` means none at all.
    """

    def _integer_binary(self, opcode: str, a: Value, b: Operand, flags: str = "") -> Value:
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not type_.is_integer:
            self._mismatch(opcode, a, b)
        number = self._next
        self._next = number + 1
        name = f"%{number}"
        if flags:
            opcode = f"{opcode} {flags}"
        self._append(f"  {name} = {opcode} {type_.text} {a.text}, {b.text}")
        return Value(type_, name)

    def _float_binary(self, opcode: str, a: Value, b: Operand, flags: str | None) -> Value:
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not type_.is_float:
            self._mismatch(opcode, a, b)
        number = self._next
        self._next = number + 1
        name = f"%{number}"
        spelled = self._contract_flags if flags is None else " " + flags
        self._append(f"  {name} = {opcode}{spelled} {type_.text} {a.text}, {b.text}")
        return Value(type_, name)

    # Integers

    def add(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Wrapping sum."""
        return self._integer_binary("add", a, b, flags)

    def sub(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Wrapping difference."""
        return self._integer_binary("sub", a, b, flags)

    def mul(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Wrapping product."""
        return self._integer_binary("mul", a, b, flags)

    def sdiv(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Signed quotient towards zero; undefined for a zero divisor and for the smallest value by -1."""
        return self._integer_binary("sdiv", a, b, flags)

    def udiv(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Unsigned quotient; undefined for a zero divisor."""
        return self._integer_binary("udiv", a, b, flags)

    def srem(self, a: Value, b: Operand) -> Value:
        """Signed remainder with the sign of the dividend; undefined where `sdiv` is."""
        return self._integer_binary("srem", a, b)

    def urem(self, a: Value, b: Operand) -> Value:
        """Unsigned remainder; undefined for a zero divisor."""
        return self._integer_binary("urem", a, b)

    def shl(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Left shift; poison when the count reaches the width."""
        return self._integer_binary("shl", a, b, flags)

    def lshr(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Logical right shift; poison when the count reaches the width."""
        return self._integer_binary("lshr", a, b, flags)

    def ashr(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Arithmetic right shift; poison when the count reaches the width."""
        return self._integer_binary("ashr", a, b, flags)

    def and_(self, a: Value, b: Operand) -> Value:
        """Bitwise and."""
        return self._integer_binary("and", a, b)

    def or_(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Bitwise or."""
        return self._integer_binary("or", a, b, flags)

    def xor(self, a: Value, b: Operand) -> Value:
        """Bitwise exclusive or."""
        return self._integer_binary("xor", a, b)

    def not_(self, a: Value) -> Value:
        """Bitwise complement; logical not of i1."""
        return self._integer_binary("xor", a, -1)

    def neg(self, a: Value, flags: str = "") -> Value:
        """Wrapping negation."""
        return self._integer_binary("sub", constant(a.type, 0), a, flags)

    # Floating point

    def fadd(self, a: Value, b: Operand, flags: str | None = None) -> Value:
        """Sum."""
        return self._float_binary("fadd", a, b, flags)

    def fsub(self, a: Value, b: Operand, flags: str | None = None) -> Value:
        """Difference."""
        return self._float_binary("fsub", a, b, flags)

    def fmul(self, a: Value, b: Operand, flags: str | None = None) -> Value:
        """Product."""
        return self._float_binary("fmul", a, b, flags)

    def fdiv(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Quotient."""
        return self._float_binary("fdiv", a, b, flags)

    def fneg(self, a: Value, flags: str = "") -> Value:
        """Negation: flips the sign bit, also of NaN."""
        if not a.type.is_float:
            self._mismatch("fneg", a)
        return self._emit(a.type, f"fneg {flags + ' ' if flags else ''}{a.type.text} {a.text}")

    # Comparison and selection

    def icmp(self, predicate: str, a: Value, b: Operand) -> Value:
        """Integer or pointer comparison: eq ne slt sle sgt sge ult ule ugt uge."""
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not (type_.is_integer or type_.is_pointer):
            self._mismatch("icmp", a, b)
        if predicate not in _INTEGER_PREDICATES:
            raise LLVMBuildError(f"icmp: no predicate {predicate!r}")
        return self._emit(type_.with_scalar(I1), f"icmp {predicate} {type_.text} {a.text}, {b.text}")

    def fcmp(self, predicate: str, a: Value, b: Operand, flags: str = "") -> Value:
        """Floating-point comparison: oeq ogt oge olt ole one ord and ueq ugt uge ult ule une uno."""
        type_ = a.type
        if not isinstance(b, Value):
            b = constant(type_, b)
        if b.type is not type_ or not type_.is_float:
            self._mismatch("fcmp", a, b)
        if predicate not in _FLOAT_PREDICATES:
            raise LLVMBuildError(f"fcmp: no predicate {predicate!r}")
        spelled = f"{flags} {predicate}" if flags else predicate
        return self._emit(type_.with_scalar(I1), f"fcmp {spelled} {type_.text} {a.text}, {b.text}")

    def select(self, condition: Value, if_true: Operand, if_false: Operand) -> Value:
        """`if_true` where the condition holds, else `if_false`; one of the two may be a Python number."""
        if not isinstance(if_true, Value):
            if not isinstance(if_false, Value):
                self._mismatch("select", if_true, if_false)
            if_true = constant(if_false.type, if_true)
        elif not isinstance(if_false, Value):
            if_false = constant(if_true.type, if_false)
        type_ = if_true.type
        wanted = condition.type
        if if_false.type is not type_ or (wanted is not I1 and wanted is not type_.with_scalar(I1)):
            self._mismatch("select", condition, if_true, if_false)
        return self._emit(type_, f"select {wanted.text} {condition.text}, {type_.text} {if_true.text}, {if_false!r}")

    # Conversion; the target may be given as the scalar type of a vector conversion.

    def _cast(self, opcode: str, a: Value, target: Type, source_ok: bool, target_ok: bool) -> Value:
        if a.type.is_vector and not target.is_vector:
            target = a.type.with_scalar(target)
        if not (source_ok and target_ok) or target.lanes != a.type.lanes:
            raise LLVMBuildError(f"{opcode}: cannot convert {a!r} to {target}")
        return self._emit(target, f"{opcode} {a.type.text} {a.text} to {target.text}")

    def _resize(self, opcode: str, a: Value, target: Type, wider: bool, floating: bool) -> Value:
        if a.type.scalar is target.scalar:
            return a
        fits = a.type.bits < target.bits if wider else a.type.bits > target.bits
        right = a.type.is_float and target.is_float if floating else a.type.is_integer and target.is_integer
        return self._cast(opcode, a, target, right, fits)

    def trunc(self, a: Value, target: Type) -> Value:
        """The low bits of an integer; the value itself when it has that type already."""
        return self._resize("trunc", a, target, wider=False, floating=False)

    def zext(self, a: Value, target: Type) -> Value:
        """A wider integer with zeros above; the value itself when it has that type already."""
        return self._resize("zext", a, target, wider=True, floating=False)

    def sext(self, a: Value, target: Type) -> Value:
        """A wider integer with the sign above; the value itself when it has that type already."""
        return self._resize("sext", a, target, wider=True, floating=False)

    def fptrunc(self, a: Value, target: Type) -> Value:
        """A narrower float, rounded to nearest even; the value itself when it has that type already."""
        return self._resize("fptrunc", a, target, wider=False, floating=True)

    def fpext(self, a: Value, target: Type) -> Value:
        """A wider float; the value itself when it has that type already."""
        return self._resize("fpext", a, target, wider=True, floating=True)

    def fptosi(self, a: Value, target: Type) -> Value:
        """Signed integer towards zero; poison out of range (see `fptosi_sat`)."""
        return self._cast("fptosi", a, target, a.type.is_float, target.is_integer)

    def fptoui(self, a: Value, target: Type) -> Value:
        """Unsigned integer towards zero; poison out of range (see `fptoui_sat`)."""
        return self._cast("fptoui", a, target, a.type.is_float, target.is_integer)

    def sitofp(self, a: Value, target: Type) -> Value:
        """Float nearest to a signed integer."""
        return self._cast("sitofp", a, target, a.type.is_integer, target.is_float)

    def uitofp(self, a: Value, target: Type) -> Value:
        """Float nearest to an unsigned integer."""
        return self._cast("uitofp", a, target, a.type.is_integer, target.is_float)

    def ptrtoint(self, a: Value, target: Type) -> Value:
        """The address as a number, to compare or to hash; there is no way back (LLVM 22 can miscompile `inttoptr`)."""
        return self._cast("ptrtoint", a, target, a.type.is_pointer, target.is_integer)

    def bitcast(self, a: Value, target: Type) -> Value:
        """The same bits as another type of the same total width; lane counts may differ when both are spelled out."""
        source = a.type
        if source.is_vector and target.is_scalar and target.bits == source.bits:
            target = source.with_scalar(target)
        if target is source:
            return a
        numbers = source.is_integer or source.is_float, target.is_integer or target.is_float
        if not all(numbers) or source.bits * source.lanes != target.bits * target.lanes:
            raise LLVMBuildError(f"bitcast: cannot convert {a!r} to {target}")
        return self._emit(target, f"bitcast {source.text} {a.text} to {target.text}")

    def freeze(self, a: Value) -> Value:
        """The value, with undef and poison fixed to some arbitrary value."""
        return self._emit(a.type, f"freeze {a.type.text} {a.text}")
