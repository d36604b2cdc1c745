"""Values of LLVM IR text (SSA names, constants) and the exact spelling of constants of every type."""

import struct as binary
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.types import I1, PTR, Type, TypeKind, vector

Number: TypeAlias = int | float


class Value:
    """Something an instruction can use: its type and its spelling (`%12`, `@name`, `42`, `splat (i32 1)`)."""

    __slots__ = ("text", "type")

    def __init__(self, type_: Type, text: str) -> None:
        """A value spelled `text`."""
        self.type = type_
        self.text = text

    @property
    def is_constant(self) -> bool:
        """Whether it is known now."""
        return self.text[0] != "%"

    def __repr__(self) -> str:
        """The operand as LLVM spells it, with its type."""
        return f"{self.type.text} {self.text}"


class Function(Value):
    """A declared or defined function: a pointer value that knows its signature."""

    __slots__ = ("name", "parameter_types", "return_type", "variadic")

    def __init__(self, name: str, return_type: Type, parameter_types: tuple[Type, ...], variadic: bool = False) -> None:
        """A symbol of a module; made by `ModuleBuilder`."""
        super().__init__(PTR, "@" + quoted_name(name))
        self.name = name
        self.return_type = return_type
        self.parameter_types = parameter_types
        self.variadic = variadic


Operand: TypeAlias = Value | int | float
"""What arithmetic methods take: a value, or a number that becomes a constant of the other operand's type."""


def constant(type_: Type, number: Number) -> Value:
    """A constant of a number type; for a vector type every lane holds it.

    Integers wrap to the width (so -1 is all ones and 255 is -1 as i8). Floats are rounded once, to nearest even, and
    keep infinities, NaN and the sign of zero.
    """
    if number == 0 and str(number)[0] == "-":
        return _constant_bits(type_, 1 << (type_.bits - 1)) if type_.is_float else _constant(type_, 0)
    return _constant(type_, number)


def constant_bits(type_: Type, bits: int) -> Value:
    """A floating-point constant (splatted over a vector type) given by its bit pattern: NaN payloads, exact tables."""
    return _constant_bits(type_, bits)


def vector_constant(type_: Type, numbers: Sequence[Number]) -> Value:
    """A vector constant with its own number in each lane."""
    if not type_.is_vector or len(numbers) != type_.lanes:
        raise LLVMBuildError(f"vector constant: {len(numbers)} numbers for {type_}")
    scalar = type_.scalar
    return Value(type_, "<" + ", ".join(f"{scalar.text} {constant(scalar, n).text}" for n in numbers) + ">")


def lane_mask(lanes: int, count: int) -> Value:
    """The mask whose first `count` lanes are on."""
    return vector_constant(vector(I1, lanes), [int(lane < count) for lane in range(lanes)])


def lanes_of_mask(mask: Value) -> tuple[int, ...] | None:
    """The lanes that are on in a mask known now, spelled lane by lane; None for any other."""
    if not mask.text.startswith("<"):
        return None
    return tuple(lane for lane, text in enumerate(mask.text[1:-1].split(", ")) if text == "i1 true")


def number_of(value: Value) -> Number | None:
    """The number that a constant holds, in each lane if it is a vector; None if it is another, or no constant."""
    scalar = value.type.scalar
    text = value.text.removeprefix(f"splat ({scalar.text} ").removesuffix(")")
    if text[-1:].isdigit() and scalar.kind is TypeKind.INTEGER and value.is_constant:
        return int(text)
    if text[:2] == "0x" and scalar.kind is TypeKind.FLOAT:
        (number,) = binary.unpack(">d", bytes.fromhex(text[2:]))
        return float(number)
    return None


def undef(type_: Type) -> Value:
    """`undef` of a type."""
    return Value(type_, "undef")


def poison(type_: Type) -> Value:
    """`poison` of a type."""
    return Value(type_, "poison")


def zero(type_: Type) -> Value:
    """The all-zero-bits value of any type: 0, +0.0, null, zeroinitializer."""
    if type_.kind is TypeKind.POINTER:
        return Value(type_, "null")
    if type_.is_scalar:
        return constant(type_, 0)
    return Value(type_, "zeroinitializer")


@lru_cache(maxsize=16384)
def _constant(type_: Type, number: Number) -> Value:
    if type_.is_vector:
        return splat_constant(type_, _constant(type_.scalar, number))
    if type_.kind is TypeKind.INTEGER:
        if number != int(number):
            raise LLVMBuildError(f"constant: {number!r} is not an integer, wanted {type_}")
        return Value(type_, _integer_text(type_.bits, int(number)))
    if type_.kind is TypeKind.FLOAT:
        return Value(type_, _float_text(type_, round_to_bits(type_, float(number))))
    raise LLVMBuildError(f"constant: no number constants of type {type_}")


@lru_cache(maxsize=4096)
def _constant_bits(type_: Type, bits: int) -> Value:
    if not type_.is_float:
        raise LLVMBuildError(f"constant_bits: wanted a floating-point type, got {type_}")
    if type_.is_vector:
        return splat_constant(type_, _constant_bits(type_.scalar, bits))
    return Value(type_, _float_text(type_, bits))


def splat_constant(type_: Type, lane: Value) -> Value:
    """A vector constant with the same constant in each lane."""
    return Value(type_, f"splat ({lane.type.text} {lane.text})")


def _integer_text(bits: int, number: int) -> str:
    wrapped = number & ((1 << bits) - 1)
    if bits == 1:
        return "true" if wrapped else "false"
    return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)


# Mantissa bits (without the hidden one) and exponent bits.
_FORMATS = {"half": (10, 5), "bfloat": (7, 8), "float": (23, 8), "double": (52, 11)}


def round_to_bits(type_: Type, number: float) -> int:
    """The bit pattern of a Python float rounded to nearest even in a floating-point type."""
    mantissa_bits, exponent_bits = _FORMATS[type_.text]
    bits64 = int.from_bytes(binary.pack("<d", number), "little")
    if type_.text == "double":
        return bits64
    sign = bits64 >> 63 << (mantissa_bits + exponent_bits)
    exponent, fraction = bits64 >> 52 & 0x7FF, bits64 & ((1 << 52) - 1)
    top = (1 << exponent_bits) - 1
    if exponent == 0x7FF:
        quiet = 1 << (mantissa_bits - 1) if fraction else 0
        return sign | top << mantissa_bits | quiet | fraction >> (52 - mantissa_bits)
    if exponent == 0:
        return sign
    biased = exponent - 1023 + (top >> 1)
    significand = fraction | 1 << 52
    shift = 52 - mantissa_bits + max(0, 1 - biased)
    if shift > 54:
        return sign
    kept, lost = significand >> shift, significand & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    kept += lost > half or (lost == half and kept & 1)
    # The hidden bit of `kept` carries into the exponent field, and so does a rounding overflow.
    magnitude = kept + (max(biased - 1, 0) << mantissa_bits)
    return sign | min(magnitude, top << mantissa_bits)


def _float_text(type_: Type, bits: int) -> str:
    match type_.text:
        case "double":
            return f"0x{bits:016X}"
        case "float":
            return f"0x{_widen_float_bits(bits):016X}"
        case "half":
            return f"0xH{bits:04X}"
        case _:
            return f"0xR{bits:04X}"


def _widen_float_bits(bits: int) -> int:
    """The double whose value is the given float; LLVM spells float constants so. NaN payloads are kept."""
    if bits >> 23 & 0xFF == 0xFF:
        return bits >> 31 << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    (number,) = binary.unpack("<f", bits.to_bytes(4, "little"))
    return int.from_bytes(binary.pack("<d", number), "little")


def quoted_name(name: str) -> str:
    """A symbol name as LLVM spells it after `@`: quoted when it has characters beyond `[A-Za-z0-9_.$-]`."""
    if name.replace("_", "a").replace(".", "a").replace("$", "a").replace("-", "a").isalnum() and name.isascii():
        return f'"{name}"' if name[0].isdigit() else name
    return f'"{escaped_bytes(name.encode())}"'


def escaped_bytes(data: bytes) -> str:
    """Bytes inside LLVM's double quotes; in long tables all are spelled by number, which is quicker by far.

    So is `@`, with which names begin: whoever looks for names in a text need not know what is a string.
    """
    if len(data) >= _LONG_BYTES:
        return "\\" + data.hex("\\")
    return "".join(_ESCAPED[byte] for byte in data)


_LONG_BYTES = 4096
_ESCAPED = [chr(byte) if 32 <= byte < 127 and byte not in b'"@\\' else f"\\{byte:02X}" for byte in range(256)]
