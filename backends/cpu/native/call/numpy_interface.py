"""Where Python and NumPy keep what native code needs: addresses of their functions, offsets in their objects.

The offsets are those of NumPy's published binary interface (NumPy 1.26 and 2.x). They are checked against live arrays
before anything relies on them; where they do not hold there is no `NumpyInterface`, and calls take the Python path.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

C_CONTIGUOUS = 0x0001
ALIGNED = 0x0100
WRITEABLE = 0x0400

_NEW_FROM_DESCRIPTOR_SLOT = 94
_SET_HANDLER_SLOT = 304
_ARRAY_TYPE_SLOT = 2


@dataclass(frozen=True, slots=True)
class ObjectLayout:
    """The fields that native code reads.

    Attributes:
        array: An ndarray.
        descriptor: A dtype.
    """

    array: type[ctypes.Structure]
    descriptor: type[ctypes.Structure]

    @staticmethod
    def with_header(size: int) -> ObjectLayout:
        """The layout for a size of the header that every Python object begins with; its last word is the type."""
        header = (("header", ctypes.c_int8 * (size - 8)), ("type", ctypes.c_void_p))
        array_fields = (
            *header,
            ("data", ctypes.c_void_p),
            ("rank", ctypes.c_int32),
            ("dims", ctypes.c_void_p),
            ("strides", ctypes.c_void_p),
            ("base", ctypes.c_void_p),
            ("descriptor", ctypes.c_void_p),
            ("flags", ctypes.c_int32),
        )
        descriptor_fields = (
            *header,
            ("scalar_type", ctypes.c_void_p),
            ("kind", ctypes.c_int8),
            ("type_character", ctypes.c_int8),
            ("byte_order", ctypes.c_int8),
            ("flags", ctypes.c_int8),
            ("type_number", ctypes.c_int32),
        )
        return ObjectLayout(
            type("ArrayObject", (ctypes.Structure,), {"_fields_": array_fields}),
            type("DescriptorObject", (ctypes.Structure,), {"_fields_": descriptor_fields}),
        )


@dataclass(frozen=True, slots=True)
class NumpyInterface:
    """NumPy as native code sees it.

    Attributes:
        layout: Fields of Python's and NumPy's objects.
        array_type: Address of the type object of arrays.
        new_array: Address of `PyArray_NewFromDescr`.
        set_handler: Address of `PyDataMem_SetHandler`.
    """

    layout: ObjectLayout
    array_type: int
    new_array: int
    set_handler: int


@functools.cache
def numpy_interface() -> NumpyInterface | None:
    """NumPy's native interface, or None when this interpreter or this NumPy is not laid out as known."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or not hasattr(ctypes, "pythonapi"):
        return None
    layout = ObjectLayout.with_header(object.__basicsize__)
    table = _function_table()
    if table is None or table[_ARRAY_TYPE_SLOT] != id(np.ndarray) or not layout_holds(layout):
        return None
    return NumpyInterface(layout, id(np.ndarray), table[_NEW_FROM_DESCRIPTOR_SLOT], table[_SET_HANDLER_SLOT])


def layout_holds(layout: ObjectLayout) -> bool:
    """Whether arrays of every element type have their fields at the offsets."""
    return all(_array_is_as_expected(layout, np.empty((2, 3), dtype.numpy)) for dtype in DType if dtype.is_array)


def python_functions(names: Sequence[str]) -> Mapping[str, int]:
    """Addresses of functions of Python's C interface."""
    return {name: _address_of(getattr(ctypes.pythonapi, name)) for name in names}


def _function_table() -> Sequence[int] | None:
    """NumPy's table of C functions."""
    name = "numpy._core._multiarray_umath" if int(np.__version__.split(".")[0]) >= 2 else "numpy.core._multiarray_umath"
    capsule = getattr(importlib.import_module(name), "_ARRAY_API", None)
    if capsule is None:
        return None
    prototype = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    get_pointer = prototype(("PyCapsule_GetPointer", ctypes.pythonapi))
    address = get_pointer(capsule, None)
    return [int(slot or 0) for slot in (ctypes.c_void_p * (_SET_HANDLER_SLOT + 1)).from_address(address)]


def _array_is_as_expected(layout: ObjectLayout, array: np.typing.NDArray[np.generic]) -> bool:
    found = layout.array.from_address(id(array))
    if (found.type, found.data, found.rank) != (id(np.ndarray), array.ctypes.data, 2):
        return False
    expected_flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
    if found.flags & expected_flags != expected_flags or found.descriptor != id(array.dtype):
        return False
    if (ctypes.c_int64 * 2).from_address(found.dims)[:] != [2, 3]:
        return False
    dtype = layout.descriptor.from_address(found.descriptor)
    return (dtype.byte_order, dtype.type_number) == (ord(array.dtype.byteorder), array.dtype.num)


def _address_of(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
