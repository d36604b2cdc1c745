"""Memory of large results, used again instead of given back to the system.

Fresh memory of many megabytes costs a page fault for every few kilobytes, more than a simple kernel over it. NumPy lets
an array bring its own allocator; large results of native calls bring this one. It keeps a few freed blocks, within a
limit, and hands them out again when a size fits. Results are ordinary arrays that own their data, aligned to 64 bytes.

Small results come from the C library, which gives freed memory at the end of its heap back to the system, too: a call
with 600 results of 8 KB had 890 page faults, and took 2400 instead of 330 µs.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

from xlalite.backends.cpu.native.call import call_records as native
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.runtime_code import runtime_code

_MAX_KEPT_BYTES = 256 << 20
_FREED_BYTES = 8 << 20


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, version 1."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


class ResultMemory:
    """The process's store of large blocks; see `result_memory`."""

    def __init__(self, module: LinkedModule) -> None:
        """Takes over the machine code; arrays may use it as long as the process lives."""
        self._module = module
        self._store = native.Store.from_address(module.address(native.STORE))
        self._evict = ctypes.CFUNCTYPE(None, ctypes.c_int64)(module.address(native.EVICT))
        functions = map(module.address, (native.MALLOC, native.CALLOC, native.REALLOC, native.FREE))
        self._handler = _Handler(b"xlalite results", 1, None, *functions)
        new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        create = new_capsule(("PyCapsule_New", ctypes.pythonapi))
        self._capsule = create(ctypes.addressof(self._handler), b"mem_handler", None)
        self.set_limit(default_limit_bytes())

    def address(self, name: str) -> int:
        """Where one of the functions of the store is."""
        return self._module.address(name)

    @property
    def handler_address(self) -> int:
        """Address of the handler object that NumPy's PyDataMem_SetHandler takes."""
        return id(self._capsule)

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept for later results now."""
        return int(self._store.kept_bytes)

    @property
    def limit_bytes(self) -> int:
        """How many bytes may be kept."""
        return int(self._store.limit_bytes)

    def set_limit(self, limit_bytes: int) -> None:
        """Sets how many bytes may be kept, and gives back what is over it; 0 keeps nothing."""
        self._store.limit_bytes = limit_bytes
        self._evict(limit_bytes)

    def release(self) -> None:
        """Gives everything that is kept back to the system."""
        self._evict(0)


@once
def result_memory() -> ResultMemory:
    """The store of this process."""
    return ResultMemory(runtime_code("memory of results", _result_memory_ir))


def _result_memory_ir() -> str:
    from xlalite.backends.cpu.native.call.result_memory_ir import result_memory_ir

    return result_memory_ir()


@functools.cache
def keep_freed_memory() -> None:
    """Makes glibc keep up to 16 MiB of freed memory at the end of its heap.

    It keeps twice the size of the largest block that it had mapped and that was freed since, so any program that frees
    large arrays has this effect. Elsewhere nothing changes.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    library.free.restype, library.free.argtypes = None, (ctypes.c_void_p,)
    library.free(library.malloc(_FREED_BYTES))


def default_limit_bytes() -> int:
    """256 MiB, or a sixteenth of the machine's memory where that is less."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return _MAX_KEPT_BYTES
    return min(_MAX_KEPT_BYTES, physical // 16)
