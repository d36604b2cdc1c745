"""The machine code of the memory of results: an allocator in NumPy's sense, and the store behind it.

A block begins with 64 bytes that hold its capacity; the array's data follows. A slot of the store holds a free block
or null and changes hands by atomic exchange, so there is no lock.
"""

from __future__ import annotations

import ctypes
import sys

from xlalite.backends.codegen.llvm import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    array,
)
from xlalite.backends.cpu.native.call.call_records import (
    CALLOC,
    EVICT,
    FREE,
    LARGE_BYTES,
    MALLOC,
    NUM_SLOTS,
    REALLOC,
    STORE,
    Store,
)
from xlalite.backends.cpu.native.heap import allocate, release
from xlalite.backends.cpu.native.record import NULL, Record

_HEADER_BYTES = 64
_PAGE_BYTES = 4096
_HUGE_PAGE_ADVICE = 14  # Linux's MADV_HUGEPAGE; it changes nothing where transparent huge pages are off


def result_memory_ir() -> str:
    """The module: the store, its eviction, and the four functions of NumPy's handler."""
    module = ModuleBuilder("result_memory")
    store = module.global_variable(STORE, array(I64, ctypes.sizeof(Store) // 8), linkage="")
    malloc = _write_malloc(module, store)
    _write_calloc(module, malloc)
    drop = _write_drop(module, store)
    free = _write_free(module, store, drop, _write_evict(module, store, drop))
    _write_realloc(module, malloc, free)
    return module.text()


def _write_malloc(module: ModuleBuilder, store_address: Value) -> Function:
    """A kept block that is large enough and wastes no more than a quarter, else a fresh one, else null."""
    fb = module.function(MALLOC, PTR, (PTR, I64))
    store = Record(fb, Store, store_address)
    _, size = fb.parameters
    largest = fb.add(size, fb.lshr(size, 2))
    with fb.loop(0, NUM_SLOTS) as index:
        slot = fb.gep(PTR, store.address("slots"), index)
        skip = fb.new_block("skip")
        fb.guard(fb.icmp("ne", fb.atomic_load(PTR, slot, "monotonic"), NULL), skip)
        block = fb.atomic_rmw("xchg", slot, NULL, "acquire")
        fb.guard(fb.icmp("ne", block, NULL), skip)
        capacity = fb.load(I64, block)
        with fb.if_(fb.and_(fb.icmp("uge", capacity, size), fb.icmp("ule", capacity, largest))):
            store.atomic_rmw("sub", "kept_bytes", capacity, "monotonic")
            fb.ret(fb.gep(I8, block, _HEADER_BYTES))
        _, is_back = fb.compare_exchange(slot, NULL, block, "release", "monotonic")
        fb.guard(fb.not_(is_back), skip)
        _give_back(fb, store, block, capacity)
        fb.br(skip)
        fb.position_at(skip)
    new = allocate(fb, fb.add(size, _HEADER_BYTES))
    with fb.if_(fb.icmp("eq", new, NULL)):
        fb.ret(NULL)
    fb.store(size, new)
    if sys.platform == "linux":
        with fb.if_(fb.icmp("uge", size, LARGE_BYTES)):
            _advise_huge_pages(fb, new, size)
    fb.ret(fb.gep(I8, new, _HEADER_BYTES))
    return fb.function


def _advise_huge_pages(fb: FunctionBuilder, block: Value, size: Value) -> None:
    """Asks for huge pages over the whole pages that lie within a block."""
    over_page = fb.gep(I8, block, _PAGE_BYTES - 1)
    page = fb.intrinsic("ptrmask", PTR, (over_page, fb.constant(I64, -_PAGE_BYTES)), (PTR, I64))
    length = fb.sub(fb.and_(size, -_PAGE_BYTES), _PAGE_BYTES)
    fb.call(fb.module.declare("madvise", I32, (PTR, I64, I32)), page, length, _HUGE_PAGE_ADVICE)


def _write_calloc(module: ModuleBuilder, malloc: Function) -> None:
    fb = module.function(CALLOC, PTR, (PTR, I64, I64))
    context, count, element_size = fb.parameters
    nothing = fb.new_block("nothing")
    size, overflows = fb.with_overflow("umul", count, element_size)
    fb.guard(fb.not_(overflows), nothing)
    data = fb.call(malloc, context, size)
    fb.guard(fb.icmp("ne", data, NULL), nothing)
    fb.memset(data, 0, size)
    fb.ret(data)
    fb.position_at(nothing)
    fb.ret(NULL)


def _write_realloc(module: ModuleBuilder, malloc: Function, free: Function) -> None:
    fb = module.function(REALLOC, PTR, (PTR, PTR, I64))
    context, data, size = fb.parameters
    new = fb.call(malloc, context, size)
    with fb.if_(fb.and_(fb.icmp("ne", new, NULL), fb.icmp("ne", data, NULL))):
        capacity = fb.load(I64, fb.gep(I8, data, -_HEADER_BYTES))
        fb.memcpy(new, data, fb.umin(capacity, size))
        fb.call(free, context, data, capacity)
    fb.ret(new)


def _write_free(module: ModuleBuilder, store_address: Value, drop: Function, evict: Function) -> Function:
    """Keeps the block, in place of an older one, when it is large and not larger than all that may be kept."""
    fb = module.function(FREE, VOID, (PTR, PTR, I64))
    store = Record(fb, Store, store_address)
    _, data, _ = fb.parameters
    with fb.if_(fb.icmp("eq", data, NULL)):
        fb.ret()
    block = fb.gep(I8, data, -_HEADER_BYTES)
    capacity, limit = fb.load(I64, block), store.atomic_load("limit_bytes", "monotonic")
    with fb.if_(fb.or_(fb.icmp("ult", capacity, LARGE_BYTES), fb.icmp("ugt", capacity, limit))):
        release(fb, block)
        fb.ret()
    turn = store.atomic_rmw("add", "cursor", 1, "monotonic")
    slot = fb.gep(PTR, store.address("slots"), fb.and_(turn, NUM_SLOTS - 1))
    store.atomic_rmw("add", "kept_bytes", capacity, "monotonic")
    fb.call(drop, fb.atomic_rmw("xchg", slot, block, "acq_rel"))
    fb.call(evict, limit)
    fb.ret()
    return fb.function


def _write_evict(module: ModuleBuilder, store_address: Value, drop: Function) -> Function:
    """Gives blocks back, the one kept for longest first, until no more than the limit is kept."""
    fb = module.function(EVICT, VOID, (I64,))
    store = Record(fb, Store, store_address)
    (limit,) = fb.parameters
    turn = store.atomic_load("cursor", "monotonic")
    with fb.while_loop([fb.constant(I64, 0)]) as loop:
        (count,) = loop.values
        kept = store.atomic_load("kept_bytes", "monotonic")
        loop.continue_while(fb.and_(fb.icmp("ugt", kept, limit), fb.icmp("ult", count, NUM_SLOTS)))
        slot = fb.gep(PTR, store.address("slots"), fb.and_(fb.add(turn, count), NUM_SLOTS - 1))
        fb.call(drop, fb.atomic_rmw("xchg", slot, NULL, "acquire"))
        loop.yield_(fb.add(count, 1))
    fb.ret()
    return fb.function


def _write_drop(module: ModuleBuilder, store_address: Value) -> Function:
    """Gives back what was in a slot."""
    fb = module.function("drop", VOID, (PTR,), linkage="internal")
    (block,) = fb.parameters
    with fb.if_(fb.icmp("ne", block, NULL)):
        _give_back(fb, Record(fb, Store, store_address), block, fb.load(I64, block))
    fb.ret()
    return fb.function


def _give_back(fb: FunctionBuilder, store: Record, block: Value, capacity: Value) -> None:
    store.atomic_rmw("sub", "kept_bytes", capacity, "monotonic")
    release(fb, block)
