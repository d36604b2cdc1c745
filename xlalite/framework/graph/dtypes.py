"""Element types of the graph front end (`xlalite.float32` and so on), each tied to its HLO type.

A front-end type compares equal to its NumPy dtype and to its name, so that user code may write whichever it has.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from xlalite.hlo.types.dtype import DType as HloDType

_FLOATING: Final = frozenset({"float16", "bfloat16", "float32", "float64"})
_COMPLEX: Final = frozenset({"complex64", "complex128"})
_SIGNED: Final = frozenset({"int8", "int16", "int32", "int64"})
_UNSIGNED: Final = frozenset({"uint8", "uint16", "uint32", "uint64"})
_QUANTIZED: Final = frozenset({"qint8", "quint8", "qint16", "quint16", "qint32"})


class DType:
    """One element type; there is exactly one object for each name."""

    __slots__ = ("_hlo", "_name", "_numpy")

    def __init__(self, name: str, numpy_type: Any, hlo: HloDType | None) -> None:
        """Describes one type; use the module's constants or `as_dtype` instead."""
        self._name = name
        self._numpy: np.dtype[Any] = np.dtype(numpy_type)
        self._hlo = hlo

    @property
    def name(self) -> str:
        """The name a user writes, such as `float32`."""
        return self._name

    @property
    def base_dtype(self) -> DType:
        """The type itself: there are no reference types here."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The type of the parts of complex numbers; that of all others is itself."""
        return as_dtype(self._numpy.type(0).real.dtype) if self.is_complex else self

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy type of arrays that hold such elements."""
        return self._numpy

    @property
    def as_numpy_dtype(self) -> type[Any]:
        """NumPy's scalar type of such elements, which makes numbers too: `float32.numpy_dtype(1)`."""
        return self._numpy.type

    @property
    def hlo(self) -> HloDType:
        """The HLO element type.

        Raises:
            TypeError: the type lives on the host only (`string`, `resource`).
        """
        if self._hlo is None:
            raise TypeError(f"{self._name} tensors live on the host only; they have no HLO type")
        return self._hlo

    @property
    def is_floating(self) -> bool:
        """Whether elements are real floating-point numbers."""
        return self._name in _FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self._name in _COMPLEX

    @property
    def is_integer(self) -> bool:
        """Whether elements are integers, signed or not, that stand for themselves."""
        return self._name in _SIGNED or self._name in _UNSIGNED

    @property
    def is_unsigned(self) -> bool:
        """Whether elements are unsigned integers."""
        return self._name in _UNSIGNED

    @property
    def is_quantized(self) -> bool:
        """Whether elements are integers that stand for real numbers of a range, which is kept elsewhere."""
        return self._name in _QUANTIZED

    @property
    def is_bool(self) -> bool:
        """Whether elements are truth values."""
        return self._name == "bool"

    @property
    def is_differentiable(self) -> bool:
        """Whether a derivative with respect to such elements exists."""
        return self.is_floating or self.is_complex

    @property
    def is_host_only(self) -> bool:
        """Whether such tensors can never be compiled (`string`, `resource`)."""
        return self._hlo is None

    @property
    def size(self) -> int:
        """Bytes that one element takes in an array."""
        return int(self._numpy.itemsize)

    @property
    def min(self) -> Any:
        """Smallest finite value."""
        return self.limits().min

    @property
    def max(self) -> Any:
        """Largest finite value."""
        return self.limits().max

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a value of type `other` may stand where this type is expected."""
        return bool(self == other)

    def limits(self) -> Any:
        """What `np.iinfo` or `np.finfo` says, of all types.

        Raises:
            TypeError: It is no type of numbers in an order.
        """
        if self.is_integer or self.is_quantized:
            return np.iinfo(self._numpy)
        if self.is_floating:
            return ml_dtypes.finfo(self._numpy)  # type: ignore[no-untyped-call]
        raise TypeError(f"{self._name} has no limits")

    def __eq__(self, other: object) -> bool:
        """Whether `other` is this type, its NumPy type or its name."""
        if isinstance(other, DType):
            return self._name == other._name
        if other is None:
            return False
        try:
            return as_dtype(other)._name == self._name
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"xlalite.{self._name}"

    def __str__(self) -> str:
        return f"<dtype: {self._name!r}>"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Pickles by name, so that there stays one object for each type."""
        return as_dtype, (self._name,)


float16: Final = DType("float16", np.float16, HloDType.F16)
bfloat16: Final = DType("bfloat16", ml_dtypes.bfloat16, HloDType.BF16)
float32: Final = DType("float32", np.float32, HloDType.F32)
float64: Final = DType("float64", np.float64, HloDType.F64)
int8: Final = DType("int8", np.int8, HloDType.S8)
int16: Final = DType("int16", np.int16, HloDType.S16)
int32: Final = DType("int32", np.int32, HloDType.S32)
int64: Final = DType("int64", np.int64, HloDType.S64)
uint8: Final = DType("uint8", np.uint8, HloDType.U8)
uint16: Final = DType("uint16", np.uint16, HloDType.U16)
uint32: Final = DType("uint32", np.uint32, HloDType.U32)
uint64: Final = DType("uint64", np.uint64, HloDType.U64)
bool_: Final = DType("bool", np.bool_, HloDType.PRED)
complex64: Final = DType("complex64", np.complex64, HloDType.C64)
complex128: Final = DType("complex128", np.complex128, HloDType.C128)
qint8: Final = DType("qint8", np.int8, HloDType.S8)
quint8: Final = DType("quint8", np.uint8, HloDType.U8)
qint16: Final = DType("qint16", np.int16, HloDType.S16)
quint16: Final = DType("quint16", np.uint16, HloDType.U16)
qint32: Final = DType("qint32", np.int32, HloDType.S32)
string: Final = DType("string", np.object_, None)
resource: Final = DType("resource", np.object_, None)

half: Final = float16
double: Final = float64

ALL_TYPES: Final[tuple[DType, ...]] = (
    float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_,
    complex64, complex128, qint8, quint8, qint16, quint16, qint32, string, resource,
)  # fmt: skip
QUANTIZED_TYPES: Final[frozenset[DType]] = frozenset(t for t in ALL_TYPES if t.is_quantized)
_PLAIN_TYPES: Final = tuple(t for t in ALL_TYPES if not t.is_host_only and not t.is_quantized)
NUMERIC_TYPES: Final[frozenset[DType]] = frozenset(t for t in _PLAIN_TYPES if not t.is_bool)
FLOATING_TYPES: Final[frozenset[DType]] = frozenset(t for t in ALL_TYPES if t.is_floating)
INTEGER_TYPES: Final[frozenset[DType]] = frozenset(t for t in ALL_TYPES if t.is_integer)
COMPILABLE_TYPES: Final[frozenset[DType]] = frozenset(t for t in ALL_TYPES if not t.is_host_only)

_BY_NAME: Final[dict[str, DType]] = {t.name: t for t in ALL_TYPES} | {
    "half": float16, "double": float64, "float": float32, "bool_": bool_, "str": string,
}  # fmt: skip
_BY_NUMPY: Final[dict[np.dtype[Any], DType]] = {t.numpy_dtype: t for t in _PLAIN_TYPES}
_BY_PYTHON: Final[dict[type, DType]] = {
    float: float32, int: int32, bool: bool_, complex: complex128, str: string, bytes: string,
}  # fmt: skip
_BY_HLO: Final[dict[HloDType, DType]] = {t.hlo: t for t in _PLAIN_TYPES}


def as_dtype(value: Any) -> DType:
    """The front-end type for a type object, name, NumPy type or Python type.

    Python's own types mean what literals of them become: `float` is float32 and `int` is int32.

    Raises:
        TypeError: nothing here corresponds to `value`.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, HloDType):
        if value in _BY_HLO:
            return _BY_HLO[value]
        raise TypeError(f"no front-end element type for the HLO type {value.value}")
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    return _from_numpy(value)


def _from_numpy(value: Any) -> DType:
    try:
        dtype = np.dtype(value).newbyteorder("=")
    except (TypeError, ValueError):
        raise TypeError(f"cannot convert {value!r} to an element type; expected one of {', '.join(_BY_NAME)}") from None
    if dtype.kind in "SU":
        return string
    if dtype not in _BY_NUMPY:
        raise TypeError(f"no front-end element type for the NumPy type {dtype}; expected one of {', '.join(_BY_NAME)}")
    return _BY_NUMPY[dtype]


def result_type(*types: DType) -> DType:
    """The common type of strongly typed operands by NumPy's promotion rules.

    Raises:
        TypeError: the types have no common type (`string` with a number, `float16` with `bfloat16`).
    """
    first = types[0]
    if all(t is first for t in types):
        return first
    names = " and ".join(t.name for t in types)
    if any(t.is_host_only or t.is_quantized for t in types):
        raise TypeError(f"no common element type for {names}")
    try:
        return as_dtype(np.result_type(*(t.numpy_dtype for t in types)))
    except TypeError:
        raise TypeError(f"no common element type for {names}; cast one of them explicitly") from None
