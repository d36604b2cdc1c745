"""The part of a native call that looks at many inputs, some of which results are written over; see `dispatch_ir.py`."""

from __future__ import annotations

import ctypes

from xlalite.backends.codegen.llvm import I1, I32, I64, PTR, VOID, Function, ModuleBuilder, constant
from xlalite.backends.cpu.native.call.argument_check_ir import extent_of
from xlalite.backends.cpu.native.call.call_records import MANY_OVERLAP, CallRecord, InputRecord
from xlalite.backends.cpu.native.heap import PLAIN_ALIGNMENT_BYTES, allocate, release
from xlalite.backends.cpu.native.record import NULL, Record


class _Extent(ctypes.Structure):
    """The memory of an input."""

    _fields_ = (("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("is_donated", ctypes.c_int64))


def many_donations_ir() -> str:
    """A module with `donation_overlaps` in n log n; without memory to sort in the answer is yes, which is safe.

    Inputs are sorted by where they begin: then one that begins before another has ended, and one of the two
    overwritten, is all there is to find.
    """
    module = ModuleBuilder("many_donations")
    order = _write_order(module)
    fb = module.function(MANY_OVERLAP, I1, (PTR, PTR), attributes=("nounwind",))
    address, params = fb.parameters
    call = Record(fb, CallRecord, address)
    num_inputs, inputs = call.load("num_inputs"), call.load("inputs")
    size_bytes = ctypes.sizeof(_Extent)
    extents = allocate(fb, fb.mul(num_inputs, size_bytes), PLAIN_ALIGNMENT_BYTES)
    with fb.if_(fb.icmp("eq", extents, NULL)):
        fb.ret(1)
    with fb.loop(0, num_inputs) as index:
        extent = Record.item(fb, _Extent, extents, index)
        for name, value in zip(("begin", "end"), extent_of(fb, inputs, params, index), strict=True):
            extent.store(name, value)
        extent.store("is_donated", fb.zext(Record.item(fb, InputRecord, inputs, index).load("is_donated"), I64))
    sort = module.declare("qsort", VOID, (PTR, I64, I64, PTR))
    fb.call(sort, extents, num_inputs, size_bytes, order)
    found, reached = fb.alloca(I1), [fb.alloca(PTR) for _ in range(2)]
    fb.store(constant(I1, 0), found)
    for cell in reached:
        fb.store(NULL, cell)
    with fb.loop(0, num_inputs) as index:
        extent = Record.item(fb, _Extent, extents, index)
        begin, end, is_donated = extent.load("begin"), extent.load("end"), extent.is_set("is_donated")
        with fb.if_(fb.icmp("ult", begin, end)):
            by_any, by_donated = (fb.load(PTR, cell) for cell in reached)
            with fb.if_(fb.icmp("ult", begin, fb.select(is_donated, by_any, by_donated))):
                fb.store(constant(I1, 1), found)
            fb.store(fb.select(fb.icmp("ult", by_any, end), end, by_any), reached[0])
            with fb.if_(fb.and_(is_donated, fb.icmp("ult", by_donated, end))):
                fb.store(end, reached[1])
    release(fb, extents)
    fb.ret(fb.load(I1, found))
    return module.text()


def _write_order(module: ModuleBuilder) -> Function:
    """For `qsort`: extents by where they begin."""
    fb = module.function("extent_order", I32, (PTR, PTR), linkage="internal", attributes=("nounwind",))
    first, second = (Record(fb, _Extent, each).load("begin") for each in fb.parameters)
    below, above = (fb.zext(fb.icmp(predicate, first, second), I32) for predicate in ("ult", "ugt"))
    fb.ret(fb.sub(above, below))
    return fb.function
