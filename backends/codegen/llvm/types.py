"""LLVM types as small interned values: two equal types are the same object, so emitters compare them with `is`."""

from enum import Enum
from functools import cache

from xlalite.hlo.records import dataclass


class TypeKind(Enum):
    """What a type is, at its outermost level."""

    VOID = "void"
    INTEGER = "integer"
    FLOAT = "float"
    POINTER = "pointer"
    VECTOR = "vector"
    ARRAY = "array"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Type:
    """One LLVM type. Make vectors, arrays and structs with the functions below, never directly: types are interned.

    Attributes:
        text: its spelling in LLVM IR.
        kind: its outermost kind.
        bits: the width of a number or a pointer; for a vector that of one lane; 0 where it has no meaning.
        lanes: the lane count of a vector, the length of an array, 1 otherwise.
        mangled: its spelling inside the name of an overloaded intrinsic.
        element: the lane type of a vector or the element type of an array.
        members: the member types of a struct.
        is_integer: an integer, or a vector of integers.
        is_float: a floating-point number, or a vector of them.
        is_pointer: a pointer, or a vector of pointers.
        is_vector: a vector.
    """

    text: str
    kind: TypeKind
    bits: int = 0
    lanes: int = 1
    mangled: str = ""
    element: "Type | None" = None
    members: "tuple[Type, ...]" = ()
    is_integer: bool = False
    is_float: bool = False
    is_pointer: bool = False
    is_vector: bool = False

    @property
    def scalar(self) -> "Type":
        """The lane type of a vector; any other type itself."""
        return self.element if self.is_vector and self.element is not None else self

    @property
    def is_scalar(self) -> bool:
        """A number or a pointer, not a vector or an aggregate."""
        return self.kind in (TypeKind.INTEGER, TypeKind.FLOAT, TypeKind.POINTER)

    @property
    def size_bytes(self) -> int:
        """Bytes that a store of this type writes (i1 takes one); arrays and structs of equally aligned members only."""
        if self.members:
            return sum(member.size_bytes for member in self.members)
        if self.kind is TypeKind.ARRAY and self.element is not None:
            return self.lanes * self.element.size_bytes
        return (self.bits * self.lanes + 7) // 8

    def with_scalar(self, scalar: "Type") -> "Type":
        """The type of the same shape whose lanes are `scalar`: `<8 x float>` with i32 gives `<8 x i32>`."""
        return vector(scalar, self.lanes) if self.is_vector else scalar

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def _integer(bits: int) -> Type:
    return Type(f"i{bits}", TypeKind.INTEGER, bits, mangled=f"i{bits}", is_integer=True)


def _float(text: str, bits: int, mangled: str) -> Type:
    return Type(text, TypeKind.FLOAT, bits, mangled=mangled, is_float=True)


VOID = Type("void", TypeKind.VOID, mangled="isVoid")
I1, I8, I16, I32, I64, I128 = (_integer(bits) for bits in (1, 8, 16, 32, 64, 128))
F16 = _float("half", 16, "f16")
BF16 = _float("bfloat", 16, "bf16")
F32 = _float("float", 32, "f32")
F64 = _float("double", 64, "f64")
PTR = Type("ptr", TypeKind.POINTER, 64, mangled="p0", is_pointer=True)

_STANDARD_INTEGERS = {type_.bits: type_ for type_ in (I1, I8, I16, I32, I64, I128)}


@cache
def integer(bits: int) -> Type:
    """The integer type of `bits` bits."""
    return _STANDARD_INTEGERS.get(bits) or _integer(bits)


@cache
def vector(element: Type, lanes: int) -> Type:
    """`<lanes x element>`; one lane is a vector too (use `widened` to get a scalar there)."""
    if not element.is_scalar or lanes < 1:
        raise TypeError(f"no vector of {lanes} x {element}")
    return Type(
        f"<{lanes} x {element.text}>",
        TypeKind.VECTOR,
        element.bits,
        lanes,
        f"v{lanes}{element.mangled}",
        element,
        is_integer=element.is_integer,
        is_float=element.is_float,
        is_pointer=element.is_pointer,
        is_vector=True,
    )


def widened(element: Type, lanes: int) -> Type:
    """`element` itself for one lane, else the vector: what code written once for every width wants."""
    return element if lanes == 1 else vector(element, lanes)


@cache
def array(element: Type, length: int) -> Type:
    """`[length x element]`."""
    text = f"[{length} x {element.text}]"
    return Type(text, TypeKind.ARRAY, element.bits, length, f"a{length}{element.mangled}", element)


@cache
def struct(*members: Type) -> Type:
    """The literal struct `{members...}`."""
    text = "{ " + ", ".join(member.text for member in members) + " }" if members else "{}"
    mangled = "sl_" + "".join(member.mangled for member in members) + "s"
    return Type(text, TypeKind.STRUCT, mangled=mangled, members=members)
