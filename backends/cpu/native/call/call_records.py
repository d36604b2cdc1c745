"""The records through which Python tells the machine code of a call what to expect."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

_POINTER, _WORD = ctypes.c_void_p, ctypes.c_int64
PYTHON_FUNCTIONS: Mapping[str, tuple[type | None, tuple[type, ...]]] = {
    "PyTuple_GetItem": (_POINTER, (_POINTER, _WORD)),
    "PyTuple_New": (_POINTER, (_WORD,)),
    "PyTuple_SetItem": (ctypes.c_int32, (_POINTER, _WORD, _POINTER)),
    "PyCapsule_GetPointer": (_POINTER, (_POINTER, _POINTER)),
    "PyObject_Vectorcall": (_POINTER, (_POINTER, _POINTER, _WORD, _POINTER)),
    "PyEval_SaveThread": (_POINTER, ()),
    "PyEval_RestoreThread": (None, (_POINTER,)),
    "PyLong_FromLong": (_POINTER, (_WORD,)),
    "PyLong_AsVoidPtr": (_POINTER, (_POINTER,)),
    "PyErr_Occurred": (_POINTER, ()),
    "Py_IncRef": (None, (_POINTER,)),
    "Py_DecRef": (None, (_POINTER,)),
}
"""Result and parameters of what the code calls of Python."""

CALL = "xlalite_call"
CALL_BOUND = "xlalite_call_bound"
CALL_AT = "xlalite_call_at"
RUN = "xlalite_run"
RELEASE_ARENA = "xlalite_release_arena"
MANY_OVERLAP = "xlalite_many_overlap"
"""Names of what the machine code of calls defines."""

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
        ("many_overlap", ctypes.c_void_p),  # what tells whether many inputs share memory that is donated, or null
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


STORE = "xlalite_result_store"
EVICT = "xlalite_evict"
MALLOC, CALLOC, REALLOC, FREE = (f"xlalite_result_{name}" for name in ("malloc", "calloc", "realloc", "free"))
LARGE_BYTES = 1 << 20
"""From this size on a block may be kept, and a result has its memory from here."""

NUM_SLOTS = 16


class Store(ctypes.Structure):
    """The free blocks that are kept, and how much they are; the cursor counts the blocks that were ever kept."""

    _fields_ = (
        ("kept_bytes", ctypes.c_int64),
        ("limit_bytes", ctypes.c_int64),
        ("cursor", ctypes.c_int64),
        ("slots", ctypes.c_void_p * NUM_SLOTS),
    )
