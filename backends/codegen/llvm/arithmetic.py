"""Arithmetic, comparison, selection and conversion, for scalars and vectors alike."""

from __future__ import annotations

from xlalite.backends.codegen.llvm.emitter import Emitter
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.families import family
from xlalite.backends.codegen.llvm.types import I1, Type
from xlalite.backends.codegen.llvm.value import Operand, Value, constant

_INTEGER_PREDICATES = frozenset(["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
_FLOAT_PREDICATES = frozenset(
    ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true", "false"]
)

_CASTS = {
    "trunc": ("is_integer", "is_integer"),
    "zext": ("is_integer", "is_integer"),
    "sext": ("is_integer", "is_integer"),
    "fptrunc": ("is_float", "is_float"),
    "fpext": ("is_float", "is_float"),
    "fptosi": ("is_float", "is_integer"),
    "fptoui": ("is_float", "is_integer"),
    "sitofp": ("is_integer", "is_float"),
    "uitofp": ("is_integer", "is_float"),
    "ptrtoint": ("is_pointer", "is_integer"),
}
"""What each conversion is from, and to."""


@family
def _integer_pair(opcode: str, fb: Emitter, a: Value, b: Operand, flags: str = "") -> Value:
    type_ = a.type
    if not isinstance(b, Value):
        b = constant(type_, b)
    if b.type is not type_ or not type_.is_integer:
        fb._mismatch(opcode, a, b)
    if flags:
        opcode = f"{opcode} {flags}"
    return fb._emit(type_, f"{opcode} {type_.text} {a.text}, {b.text}")


@family
def _float_pair(opcode: str, fb: Emitter, a: Value, b: Operand, flags: str | None = None) -> Value:
    type_ = a.type
    if not isinstance(b, Value):
        b = constant(type_, b)
    if b.type is not type_ or not type_.is_float:
        fb._mismatch(opcode, a, b)
    spelled = fb._contract_flags if flags is None else " " + flags
    return fb._emit(type_, f"{opcode}{spelled} {type_.text} {a.text}, {b.text}")


def _converted(opcode: str, fb: Emitter, a: Value, target: Type) -> Value:
    if a.type.is_vector and not target.is_vector:
        target = a.type.with_scalar(target)
    source_kind, target_kind = _CASTS[opcode]
    fits = getattr(a.type, source_kind) and getattr(target, target_kind)
    if not fits or target.lanes != a.type.lanes:
        raise LLVMBuildError(f"{opcode}: cannot convert {a!r} to {target}")
    return fb._emit(target, f"{opcode} {a.type.text} {a.text} to {target.text}")


_cast = family(_converted)


@family
def _resize(opcode: str, fb: Emitter, a: Value, target: Type) -> Value:
    if a.type.scalar is target.scalar:
        return a
    bits = (a.type.bits, target.bits) if opcode in ("zext", "sext", "fpext") else (target.bits, a.type.bits)
    if bits[0] >= bits[1]:
        raise LLVMBuildError(f"{opcode}: cannot convert {a!r} to {target}")
    return _converted(opcode, fb, a, target)


class Arithmetic(Emitter):
    """Operators on numbers.

    The right operand of a binary method may be a Python number. Flags are written as LLVM spells them (`"nsw"`,
    `"nuw nsw"`, `"nnan ninf"`); `flags=None` means none for integers and the builder's `contract` default for fadd,
    fsub and fmul; `flags=""` means none at all.
    """

    # Integers

    add = _integer_pair("add", "Wrapping sum.")
    sub = _integer_pair("sub", "Wrapping difference.")
    mul = _integer_pair("mul", "Wrapping product.")
    sdiv = _integer_pair(
        "sdiv", "Signed quotient towards zero; undefined for a zero divisor and for the smallest value by -1."
    )
    udiv = _integer_pair("udiv", "Unsigned quotient; undefined for a zero divisor.")
    srem = _integer_pair("srem", "Signed remainder with the sign of the dividend; undefined where `sdiv` is.")
    urem = _integer_pair("urem", "Unsigned remainder; undefined for a zero divisor.")
    shl = _integer_pair("shl", "Left shift; poison when the count reaches the width.")
    lshr = _integer_pair("lshr", "Logical right shift; poison when the count reaches the width.")
    ashr = _integer_pair("ashr", "Arithmetic right shift; poison when the count reaches the width.")
    and_ = _integer_pair("and", "Bitwise and.")
    or_ = _integer_pair("or", "Bitwise or.")
    xor = _integer_pair("xor", "Bitwise exclusive or.")

    def not_(self, a: Value) -> Value:
        """Bitwise complement; logical not of i1."""
        return self.xor(a, -1)

    def neg(self, a: Value, flags: str = "") -> Value:
        """Wrapping negation."""
        return self.sub(constant(a.type, 0), a, flags)

    # Floating point

    fadd = _float_pair("fadd", "Sum.")
    fsub = _float_pair("fsub", "Difference.")
    fmul = _float_pair("fmul", "Product.")
    _quotient = _float_pair("fdiv", "Quotient.")

    def fdiv(self, a: Value, b: Operand, flags: str = "") -> Value:
        """Quotient."""
        return self._quotient(a, b, flags)

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

    trunc = _resize("trunc", "The low bits of an integer; the value itself when it has that type already.")
    zext = _resize("zext", "A wider integer with zeros above; the value itself when it has that type already.")
    sext = _resize("sext", "A wider integer with the sign above; the value itself when it has that type already.")
    fptrunc = _resize(
        "fptrunc", "A narrower float, rounded to nearest even; the value itself when it has that type already."
    )
    fpext = _resize("fpext", "A wider float; the value itself when it has that type already.")
    fptosi = _cast("fptosi", "Signed integer towards zero; poison out of range (see `fptosi_sat`).")
    fptoui = _cast("fptoui", "Unsigned integer towards zero; poison out of range (see `fptoui_sat`).")
    sitofp = _cast("sitofp", "Float nearest to a signed integer.")
    uitofp = _cast("uitofp", "Float nearest to an unsigned integer.")
    ptrtoint = _cast(
        "ptrtoint",
        "The address as a number, to compare or to hash; there is no way back (LLVM 22 can miscompile `inttoptr`).",
    )

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
