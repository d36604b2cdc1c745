"""Element types: XLA's primitive types and their NumPy twins.

A sub-byte type (s4, u1, f4e2m1fn, ...) takes one byte an element in NumPy, as in ml_dtypes.
"""

from __future__ import annotations

import enum

import ml_dtypes
import numpy as np


class Kind(enum.Enum):
    """What family of values an element type belongs to."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    NOT_ARRAY = "not an array"


class DType(enum.Enum):
    """An element type; the value is XLA's name for it."""

    PRED = "pred"
    S1 = "s1"
    S2 = "s2"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U1 = "u1"
    U2 = "u2"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F4E2M1FN = "f4e2m1fn"
    F6E2M3FN = "f6e2m3fn"
    F6E3M2FN = "f6e3m2fn"
    F8E3M4 = "f8e3m4"
    F8E4M3 = "f8e4m3"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3B11FNUZ = "f8e4m3b11fnuz"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0FNU = "f8e8m0fnu"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"
    TOKEN = "token"
    OPAQUE = "opaque"
    TUPLE = "tuple"
    BUFFER = "buffer"

    kind: Kind
    bits: int
    size_bytes: int
    """Bytes of one element in NumPy's storage; 0 for types that hold no data."""
    is_array: bool
    """Whether arrays of the type exist."""
    is_floating: bool
    """Whether the type is a real floating-point type."""
    is_complex: bool
    """Whether the type is complex."""
    is_signed: bool
    """Whether the type is a signed integer."""
    is_unsigned: bool
    """Whether the type is an unsigned integer (pred is not)."""
    is_integral: bool
    """Whether the type is a signed or unsigned integer (pred is not)."""
    _numpy: np.dtype[np.generic] | None

    # Members live as long as the process and are compared by identity, so the default object hash is right and quick.
    __hash__ = object.__hash__

    @classmethod
    def from_name(cls, name: str) -> DType:
        """The type with XLA's name.

        Raises:
            KeyError: There is no such type.
        """
        return _BY_NAME[name]

    @classmethod
    def from_numpy(cls, dtype: np.typing.DTypeLike) -> DType:
        """The type of NumPy's or ml_dtypes' twin; byte order is ignored.

        Raises:
            TypeError: No element type corresponds (strings, objects, long double, records).
        """
        found = _BY_NUMPY.get(dtype) if isinstance(dtype, np.dtype) else None
        if found is not None:
            return found
        found = _BY_NUMPY.get(np.dtype(dtype).newbyteorder("="))
        if found is None:
            raise TypeError(f"element type: no HLO type corresponds to numpy dtype {np.dtype(dtype)!r}")
        return found

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds one element.

        Raises:
            TypeError: The type is token, opaque, tuple or buffer.
        """
        if self._numpy is None:
            raise TypeError(f"element type {self.value} has no array representation")
        return self._numpy

    @property
    def component(self) -> DType:
        """The real type of a complex type's parts; the type itself when it is not complex."""
        return _COMPONENT.get(self, self)

    def __repr__(self) -> str:
        return f"DType.{self.name}"


_NUMPY_NAME = {
    DType.PRED: "bool",
    DType.S8: "int8",
    DType.S16: "int16",
    DType.S32: "int32",
    DType.S64: "int64",
    DType.U8: "uint8",
    DType.U16: "uint16",
    DType.U32: "uint32",
    DType.U64: "uint64",
    DType.F16: "float16",
    DType.F32: "float32",
    DType.F64: "float64",
    DType.C64: "complex64",
    DType.C128: "complex128",
}

_ML_DTYPE = {
    DType.S1: ml_dtypes.int1,
    DType.S2: ml_dtypes.int2,
    DType.S4: ml_dtypes.int4,
    DType.U1: ml_dtypes.uint1,
    DType.U2: ml_dtypes.uint2,
    DType.U4: ml_dtypes.uint4,
    DType.F4E2M1FN: ml_dtypes.float4_e2m1fn,
    DType.F6E2M3FN: ml_dtypes.float6_e2m3fn,
    DType.F6E3M2FN: ml_dtypes.float6_e3m2fn,
    DType.F8E3M4: ml_dtypes.float8_e3m4,
    DType.F8E4M3: ml_dtypes.float8_e4m3,
    DType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    DType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    DType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    DType.F8E5M2: ml_dtypes.float8_e5m2,
    DType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    DType.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    DType.BF16: ml_dtypes.bfloat16,
}

_COMPONENT = {DType.C64: DType.F32, DType.C128: DType.F64}
_NO_ARRAY = frozenset({DType.TOKEN, DType.OPAQUE, DType.TUPLE, DType.BUFFER})


def _kind_of(dtype: DType) -> Kind:
    if dtype is DType.PRED:
        return Kind.PRED
    if dtype in _NO_ARRAY:
        return Kind.NOT_ARRAY
    by_letter = {"s": Kind.SIGNED, "u": Kind.UNSIGNED, "f": Kind.FLOAT, "b": Kind.FLOAT, "c": Kind.COMPLEX}
    return by_letter[dtype.value[0]]


def _bits_of(dtype: DType) -> int:
    if dtype in _NO_ARRAY:
        return 0
    if dtype is DType.PRED:
        return 8
    digits = dtype.value.lstrip("sufbc")
    return int(digits.split("e")[0])


for _dtype in DType:
    _dtype.kind = _kind_of(_dtype)
    _dtype.bits = _bits_of(_dtype)
    _dtype._numpy = (
        np.dtype(_NUMPY_NAME[_dtype])
        if _dtype in _NUMPY_NAME
        else np.dtype(_ML_DTYPE[_dtype])
        if _dtype in _ML_DTYPE
        else None
    )
    _dtype.size_bytes = 0 if _dtype._numpy is None else _dtype._numpy.itemsize
    _dtype.is_array = _dtype.kind is not Kind.NOT_ARRAY
    _dtype.is_floating = _dtype.kind is Kind.FLOAT
    _dtype.is_complex = _dtype.kind is Kind.COMPLEX
    _dtype.is_signed = _dtype.kind is Kind.SIGNED
    _dtype.is_unsigned = _dtype.kind is Kind.UNSIGNED
    _dtype.is_integral = _dtype.is_signed or _dtype.is_unsigned

_BY_NAME = {dtype.value: dtype for dtype in DType}
_BY_NUMPY = {dtype._numpy: dtype for dtype in DType if dtype._numpy is not None}
