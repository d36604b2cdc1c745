"""The records through which Python tells the machine code of a call what to expect."""

from __future__ import annotations

import ctypes

NO_MEMORY_STATUS = -1
"""What a run gives that found no memory for its arena."""


class InputRecord(ctypes.Structure):
    """What an argument must be."""

    _fields_ = (
        ("descriptor", ctypes.c_void_p),  # the dtype object
        ("type_number", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_void_p),
        ("size_bytes", ctypes.c_int64),
        ("required_flags", ctypes.c_int32),
        ("is_donated", ctypes.c_int32),
    )


class OutputRecord(ctypes.Structure):
    """What a result will be."""

    _fields_ = (
        ("descriptor", ctypes.c_void_p),
        ("dims", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("alias", ctypes.c_int32),  # the input whose array is the result, or -1
        ("is_large", ctypes.c_int64),  # whether `result_handler` provides the memory
    )


class CallRecord(ctypes.Structure):
    """An executable."""

    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("arena", ctypes.c_void_p),  # a free arena, or null while a call uses it
        ("arena_bytes", ctypes.c_int64),
        ("releases_lock", ctypes.c_int32),
        ("returns_tuple", ctypes.c_int32),
        ("has_donations", ctypes.c_int32),
        ("inputs", ctypes.c_void_p),
        ("outputs", ctypes.c_void_p),
        ("num_inputs", ctypes.c_int64),
        ("num_outputs", ctypes.c_int64),
        ("slow_path", ctypes.c_void_p),  # Python object, called with arguments of any kind
        ("raise_status", ctypes.c_void_p),  # Python function (slow path object, status) that raises
        ("array_type", ctypes.c_void_p),
        ("new_array", ctypes.c_void_p),  # PyArray_NewFromDescr
        ("set_handler", ctypes.c_void_p),  # PyDataMem_SetHandler
        ("result_handler", ctypes.c_void_p),  # NumPy's handler object for large results
        ("none", ctypes.c_void_p),
    )


class BoundRecord(ctypes.Structure):
    """An executable with the addresses of its arrays."""

    _fields_ = (("call", ctypes.c_void_p), ("params", ctypes.c_void_p), ("results", ctypes.c_void_p))
