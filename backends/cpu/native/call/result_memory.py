"""Memory of large results, used again instead of given back to the system.

Fresh memory of many megabytes costs a page fault for every few kilobytes, more than a simple kernel over it. NumPy lets
an array bring its own allocator; large results of native calls bring this one. It keeps a few freed blocks, within a
limit, and hands them out again when a size fits. Results are ordinary arrays that own their data, aligned to 64 bytes.
"""

from __future__ import annotations

import ctypes
import functools
import os
import string
import sys

from xlalite.backends.cpu.native.jit import IrPass, JitOptions, LinkedModule
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.backends.cpu.native.object_code import CodeSummary, IrSource

LARGE_BYTES = 1 << 20
"""From this size on a result has its memory from here."""

_MAX_KEPT_BYTES = 256 << 20
_HUGE_PAGE_ADVICE = 14  # Linux's MADV_HUGEPAGE; it changes nothing where transparent huge pages are off
_OPTIONS = JitOptions(passes=(IrPass.SROA, IrPass.INSTRUCTION_COMBINE, IrPass.SIMPLIFY_CFG))


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
        self._kept_bytes = ctypes.c_int64.from_address(module.address("xlalite_kept_bytes"))
        self._limit = ctypes.c_int64.from_address(module.address("xlalite_kept_limit"))
        self._evict = ctypes.CFUNCTYPE(None, ctypes.c_int64)(module.address("xlalite_evict"))
        functions = [module.address(f"xlalite_result_{name}") for name in ("malloc", "calloc", "realloc", "free")]
        self._handler = _Handler(b"xlalite results", 1, None, *functions)
        new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        create = new_capsule(("PyCapsule_New", ctypes.pythonapi))
        self._capsule = create(ctypes.addressof(self._handler), b"mem_handler", None)
        self.set_limit(default_limit_bytes())

    @property
    def handler_address(self) -> int:
        """Address of the handler object that NumPy's PyDataMem_SetHandler takes."""
        return id(self._capsule)

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept for later results now."""
        return self._kept_bytes.value

    @property
    def limit_bytes(self) -> int:
        """How many bytes may be kept."""
        return self._limit.value

    def set_limit(self, limit_bytes: int) -> None:
        """Sets how many bytes may be kept, and gives back what is over it; 0 keeps nothing."""
        self._limit.value = limit_bytes
        self._evict(limit_bytes)

    def release(self) -> None:
        """Gives everything that is kept back to the system."""
        self._evict(0)


@functools.cache
def result_memory() -> ResultMemory:
    """The store of this process."""
    text = _result_memory_ir()
    return ResultMemory(
        default_cache().get_or_compile(
            (text,), lambda: IrSource(text, summary=CodeSummary("(memory of results)")), _OPTIONS
        )
    )


def default_limit_bytes() -> int:
    """256 MiB, or a sixteenth of the machine's memory where that is less."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return _MAX_KEPT_BYTES
    return min(_MAX_KEPT_BYTES, physical // 16)


def _result_memory_ir() -> str:
    advise = ""
    if sys.platform == "linux":
        advise = f"%unused_advice = call i32 @madvise(ptr %page, i64 %length, i32 {_HUGE_PAGE_ADVICE})"
    return string.Template(_TEXT).substitute(large=LARGE_BYTES, advise=advise)


# A block begins with 64 bytes that hold its capacity; the array's data follows. A slot of the store holds a free block
# or null and changes hands by atomic exchange, so there is no lock.
_TEXT = """
@xlalite_kept_bytes = global i64 0
@xlalite_kept_limit = global i64 0
@slots = internal global [16 x ptr] zeroinitializer
@cursor = internal global i64 0

define ptr @xlalite_result_malloc(ptr %context, i64 %size) {
entry:
  %slack = lshr i64 %size, 2
  %largest = add i64 %size, %slack
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %next_index, %skip ]
  %more = icmp ult i64 %index, 16
  br i1 %more, label %look, label %allocate
look:
  %slot = getelementptr ptr, ptr @slots, i64 %index
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %is_empty = icmp eq ptr %seen, null
  br i1 %is_empty, label %skip, label %take
take:
  %block = atomicrmw xchg ptr %slot, ptr null acquire
  %was_taken = icmp eq ptr %block, null
  br i1 %was_taken, label %skip, label %measure
measure:
  %capacity = load i64, ptr %block
  %is_enough = icmp uge i64 %capacity, %size
  %is_fitting = icmp ule i64 %capacity, %largest
  %fits = and i1 %is_enough, %is_fitting
  br i1 %fits, label %use, label %put_back
use:
  %unused_less = atomicrmw sub ptr @xlalite_kept_bytes, i64 %capacity monotonic
  %kept_data = getelementptr i8, ptr %block, i64 64
  ret ptr %kept_data
put_back:
  %exchange = cmpxchg ptr %slot, ptr null, ptr %block release monotonic
  %is_back = extractvalue { ptr, i1 } %exchange, 1
  br i1 %is_back, label %skip, label %give_up_block
give_up_block:
  %unused_lost = atomicrmw sub ptr @xlalite_kept_bytes, i64 %capacity monotonic
  call void @free(ptr %block)
  br label %skip
skip:
  %next_index = add i64 %index, 1
  br label %next
allocate:
  %memory = alloca ptr
  %total = add i64 %size, 64
  %error = call i32 @posix_memalign(ptr %memory, i64 64, i64 %total)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %nothing, label %fresh
nothing:
  ret ptr null
fresh:
  %new = load ptr, ptr %memory
  store i64 %size, ptr %new
  %is_large = icmp uge i64 %size, $large
  br i1 %is_large, label %prepare, label %hand_out
prepare:
  %over_page = getelementptr i8, ptr %new, i64 4095
  %page = call ptr @llvm.ptrmask.p0.i64(ptr %over_page, i64 -4096)
  %length = and i64 %size, -4096
  %usable_length = sub i64 %length, 4096
  call void @advise(ptr %page, i64 %usable_length)
  br label %hand_out
hand_out:
  %data = getelementptr i8, ptr %new, i64 64
  ret ptr %data
}

define internal void @advise(ptr %page, i64 %length) {
  $advise
  ret void
}

define ptr @xlalite_result_calloc(ptr %context, i64 %count, i64 %element_size) {
entry:
  %product = call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %count, i64 %element_size)
  %size = extractvalue { i64, i1 } %product, 0
  %overflows = extractvalue { i64, i1 } %product, 1
  br i1 %overflows, label %nothing, label %allocate
allocate:
  %data = call ptr @xlalite_result_malloc(ptr %context, i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %nothing, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  ret ptr %data
nothing:
  ret ptr null
}

define ptr @xlalite_result_realloc(ptr %context, ptr %data, i64 %size) {
entry:
  %new = call ptr @xlalite_result_malloc(ptr %context, i64 %size)
  %failed = icmp eq ptr %new, null
  %is_first = icmp eq ptr %data, null
  %is_done = or i1 %failed, %is_first
  br i1 %is_done, label %done, label %move
move:
  %block = getelementptr i8, ptr %data, i64 -64
  %capacity = load i64, ptr %block
  %length = call i64 @llvm.umin.i64(i64 %capacity, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %length, i1 false)
  call void @xlalite_result_free(ptr %context, ptr %data, i64 %capacity)
  br label %done
done:
  ret ptr %new
}

define void @xlalite_result_free(ptr %context, ptr %data, i64 %size) {
entry:
  %is_null = icmp eq ptr %data, null
  br i1 %is_null, label %done, label %measure
measure:
  %block = getelementptr i8, ptr %data, i64 -64
  %capacity = load i64, ptr %block
  %limit = load atomic i64, ptr @xlalite_kept_limit monotonic, align 8
  %is_large = icmp uge i64 %capacity, $large
  %is_allowed = icmp ule i64 %capacity, %limit
  %keeps = and i1 %is_large, %is_allowed
  br i1 %keeps, label %keep, label %give_back
give_back:
  call void @free(ptr %block)
  br label %done
keep:
  %turn = atomicrmw add ptr @cursor, i64 1 monotonic
  %index = and i64 %turn, 15
  %slot = getelementptr ptr, ptr @slots, i64 %index
  %unused_more = atomicrmw add ptr @xlalite_kept_bytes, i64 %capacity monotonic
  %older = atomicrmw xchg ptr %slot, ptr %block acq_rel
  call void @drop(ptr %older)
  call void @xlalite_evict(i64 %limit)
  br label %done
done:
  ret void
}

; Gives blocks back, the one kept for longest first, until no more than the limit is kept.
define void @xlalite_evict(i64 %limit) {
entry:
  %turn = load atomic i64, ptr @cursor monotonic, align 8
  br label %next
next:
  %count = phi i64 [ 0, %entry ], [ %next_count, %evict ]
  %kept = load atomic i64, ptr @xlalite_kept_bytes monotonic, align 8
  %is_over = icmp ugt i64 %kept, %limit
  %more = icmp ult i64 %count, 16
  %goes_on = and i1 %is_over, %more
  br i1 %goes_on, label %evict, label %done
evict:
  %number = add i64 %turn, %count
  %index = and i64 %number, 15
  %slot = getelementptr ptr, ptr @slots, i64 %index
  %block = atomicrmw xchg ptr %slot, ptr null acquire
  call void @drop(ptr %block)
  %next_count = add i64 %count, 1
  br label %next
done:
  ret void
}

define internal void @drop(ptr %block) {
entry:
  %is_null = icmp eq ptr %block, null
  br i1 %is_null, label %done, label %release
release:
  %capacity = load i64, ptr %block
  %unused = atomicrmw sub ptr @xlalite_kept_bytes, i64 %capacity monotonic
  call void @free(ptr %block)
  br label %done
done:
  ret void
}

declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare { i64, i1 } @llvm.umul.with.overflow.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
