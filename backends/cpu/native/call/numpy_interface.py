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
from dataclasses import dataclass

import numpy as np

from xlalite.hlo.types.dtype import DType

C_CONTIGUOUS = 0x0001
ALIGNED = 0x0100
WRITEABLE = 0x0400

_NEW_FROM_DESCRIPTOR_SLOT = 94
_SET_HANDLER_SLOT = 304
_ARRAY_TYPE_SLOT = 2


@dataclass(frozen=True, slots=True)
class ObjectLayout:
    """Byte offsets of the fields that native code reads."""

    type_offset: int
    data_offset: int
    rank_offset: int
    dims_offset: int
    descriptor_offset: int
    flags_offset: int
    byte_order_offset: int
    type_number_offset: int

    @staticmethod
    def with_header(size: int) -> ObjectLayout:
        """The layout for a size of the header that every Python object begins with; its last word is the type."""
        return ObjectLayout(
            type_offset=size - 8,
            data_offset=size,
            rank_offset=size + 8,
            dims_offset=size + 16,
            descriptor_offset=size + 40,
            flags_offset=size + 48,
            byte_order_offset=size + 10,
            type_number_offset=size + 12,
        )


@dataclass(frozen=True, slots=True)
class NumpyInterface:
    """NumPy as native code sees it.

    Attributes:
        layout: Offsets in Python's and NumPy's objects.
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
    base = id(array)
    dtype = array.dtype
    if (
        _pointer(base + layout.type_offset) != id(np.ndarray)
        or _pointer(base + layout.data_offset) != array.ctypes.data
    ):
        return False
    rank = ctypes.c_int32.from_address(base + layout.rank_offset).value
    if rank != 2 or (ctypes.c_int64 * 2).from_address(_pointer(base + layout.dims_offset))[:] != [2, 3]:
        return False
    flags = ctypes.c_int32.from_address(base + layout.flags_offset).value
    expected_flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
    if flags & expected_flags != expected_flags or _pointer(base + layout.descriptor_offset) != id(dtype):
        return False
    byte_order = ctypes.c_char.from_address(id(dtype) + layout.byte_order_offset).value
    number = ctypes.c_int32.from_address(id(dtype) + layout.type_number_offset).value
    return byte_order == dtype.byteorder.encode() and number == dtype.num


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def _address_of(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
