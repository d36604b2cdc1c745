"""How HLO element types live in memory and in registers.

In memory an element is what NumPy holds: one byte for pred and for sub-byte types. In registers

- pred is an i1;
- integers are themselves; sub-byte integers are i8, sign- or zero-extended from their own width;
- floating-point types narrower than f32 are f32 values that the narrow type can represent: each operation computes in
  f32 and rounds once, and loading or storing converts exactly;
- complex numbers are a pair of registers (real, imaginary).
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

from xlalite.backends.codegen.llvm import F32, F64, I1, I8, I16, FunctionBuilder, Type, Value, constant, integer, vector
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

Element: TypeAlias = "Value | tuple[Value, Value]"
"""One element, or one vector of elements: a register, or two for a complex number."""


@dataclass(frozen=True, slots=True)
class Representation:
    """How one element type is held.

    Attributes:
        dtype: The element type.
        memory: LLVM type of one part in memory.
        register: LLVM type of one part in a register (scalar form).
        parts: 1, or 2 for complex numbers, which lie in memory as real, imaginary.
    """

    dtype: DType
    memory: Type
    register: Type
    parts: int

    @property
    def size_bytes(self) -> int:
        """Bytes of one element in memory."""
        return self.memory.size_bytes * self.parts

    @property
    def word(self) -> Type:
        """The integer type of the bits of one part in memory."""
        return integer(self.memory.bits)

    @property
    def is_narrow_float(self) -> bool:
        """Whether values are computed in f32 and rounded after each operation."""
        return self.register is F32 and self.dtype is not DType.F32 and self.parts == 1


@cache
def representation(dtype: DType) -> Representation:
    """How an element type is held."""
    if dtype is DType.PRED:
        return Representation(dtype, I8, I1, 1)
    if dtype.is_integral:
        width = integer(max(dtype.bits, 8))
        return Representation(dtype, width, width, 1)
    if dtype.is_complex:
        part = F32 if dtype is DType.C64 else F64
        return Representation(dtype, part, part, 2)
    if dtype is DType.F64:
        return Representation(dtype, F64, F64, 1)
    if dtype is DType.F32:
        return Representation(dtype, F32, F32, 1)
    return Representation(dtype, I16 if dtype.bits == 16 else I8, F32, 1)


def from_memory(fb: FunctionBuilder, dtype: DType, stored: Value) -> Value:
    """The register form of what was loaded (one part)."""
    if dtype is DType.PRED:
        return fb.icmp("ne", stored, 0)
    if dtype.is_integral:
        return normalize_integer(fb, dtype, stored)
    if representation(dtype).is_narrow_float:
        from xlalite.backends.codegen.arrays.narrow_floats import decode_narrow_float

        return decode_narrow_float(fb, dtype, stored)
    return stored


def to_memory(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """What to store for a register value (one part)."""
    memory = value.type.with_scalar(representation(dtype).memory)
    if dtype is DType.PRED:
        return fb.zext(value, memory)
    if dtype.is_integral and dtype.bits < 8:
        return fb.and_(value, (1 << dtype.bits) - 1) if dtype.is_unsigned else value
    if representation(dtype).is_narrow_float:
        from xlalite.backends.codegen.arrays.narrow_floats import encode_narrow_float

        return encode_narrow_float(fb, dtype, value)
    return value


def normalize_integer(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """Makes a sub-byte integer in i8 proper again after an operation: wraps it to its width."""
    if dtype.bits >= 8:
        return value
    if dtype.is_unsigned:
        return fb.and_(value, (1 << dtype.bits) - 1)
    return fb.ashr(fb.shl(value, 8 - dtype.bits), 8 - dtype.bits)


def round_result(fb: FunctionBuilder, dtype: DType, value: Value) -> Value:
    """Brings the exact result of one operation back into its type: rounds narrow floats, wraps sub-byte integers."""
    if representation(dtype).is_narrow_float:
        from xlalite.backends.codegen.arrays.narrow_floats import round_to_narrow_float

        return round_to_narrow_float(fb, dtype, value)
    if dtype.is_integral:
        return normalize_integer(fb, dtype, value)
    return value


def select_value(fb: FunctionBuilder, dtype: DType, condition: Value, a: Value, b: Value) -> Value:
    """Either of two register values (one part)."""
    if representation(dtype).is_narrow_float:
        from xlalite.backends.codegen.arrays.narrow_floats import select_narrow_float

        return select_narrow_float(fb, dtype, condition, a, b)
    return fb.select(condition, a, b)


def zero_element(dtype: DType, lanes: int) -> Element:
    """The zero of a type, one lane or a vector of them."""
    held = representation(dtype)
    register = held.register if lanes == 1 else vector(held.register, lanes)
    zero = constant(register, 0)
    return zero if held.parts == 1 else (zero, zero)
