"""The part of a native call that looks at its arguments; see `dispatch_ir.py`.

An argument passes when it is exactly an ndarray, of the wanted dtype in this machine's byte order, of the wanted dims,
row-major and aligned. Nothing is converted here: whatever does not pass goes to Python.
"""

from __future__ import annotations

import ctypes
import sys

from xlalite.backends.codegen.llvm import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Block,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    constant,
)
from xlalite.backends.cpu.native.call.call_records import CallRecord, InputRecord
from xlalite.backends.cpu.native.call.numpy_interface import ObjectLayout
from xlalite.backends.cpu.native.heap import PLAIN_ALIGNMENT_BYTES, allocate, release
from xlalite.backends.cpu.native.record import NULL, Record, pointer_at

_MANY_INPUTS = 96
_QUIET = ("nounwind", "noinline")
_FOREIGN_BYTE_ORDER = ord(">" if sys.byteorder == "little" else "<")


def check_arguments(
    fb: FunctionBuilder, call: Record, layout: ObjectLayout, arguments: Value, params: Value, unusual: Block
) -> None:
    """Writes the addresses of the arguments' data; goes to `unusual` unless all arguments are as wanted."""
    inputs, array_type = call.load("inputs"), call.load("array_type")
    with fb.loop(0, call.load("num_inputs")) as index:
        wanted = Record.item(fb, InputRecord, inputs, index)
        array = Record(fb, layout.array, pointer_at(fb, arguments, index))
        fb.guard(fb.icmp("eq", array.load("type"), array_type), unusual)
        _check_dtype(fb, Record(fb, layout.descriptor, array.load("descriptor")), wanted, unusual)
        rank = array.load("rank")
        fb.guard(fb.icmp("eq", rank, wanted.load("rank")), unusual)
        required_flags = wanted.load("required_flags")
        present_flags = fb.and_(array.load("flags"), required_flags)
        fb.guard(fb.icmp("eq", present_flags, required_flags), unusual)
        dims, wanted_dims = array.load("dims"), wanted.load("dims")
        with fb.loop(0, fb.zext(rank, I64)) as dim:
            size, wanted_size = (fb.load(I64, fb.gep(I64, sizes, dim)) for sizes in (dims, wanted_dims))
            fb.guard(fb.icmp("eq", size, wanted_size), unusual)
        fb.store(array.load("data"), fb.gep(PTR, params, index))


def _check_dtype(fb: FunctionBuilder, descriptor: Record, wanted: Record, unusual: Block) -> None:
    """Most often it is the wanted object, else one for the same dtype, of this machine's byte order."""
    with fb.if_(fb.icmp("ne", descriptor.pointer, wanted.load("descriptor"))):
        is_same_type = fb.icmp("eq", descriptor.load("type_number"), wanted.load("type_number"))
        is_native = fb.icmp("ne", descriptor.load("byte_order"), _FOREIGN_BYTE_ORDER)
        fb.guard(fb.and_(is_same_type, is_native), unusual)


class _Extent(ctypes.Structure):
    """The memory of an input."""

    _fields_ = (("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("is_donated", ctypes.c_int64))


def write_donation_overlaps(module: ModuleBuilder) -> Function:
    """Whether an input that will be overwritten shares memory with another input.

    A few inputs are compared with each other, many are sorted first: then one that begins before another has ended, and
    one of the two overwritten, is all there is to find.
    """
    overlaps_sorted = _write_overlaps_sorted(module)
    fb = module.function("donation_overlaps", I1, (PTR, PTR), linkage="internal", attributes=_QUIET)
    address, params = fb.parameters
    call = Record(fb, CallRecord, address)
    num_inputs, inputs = call.load("num_inputs"), call.load("inputs")
    with fb.if_(fb.icmp("sge", num_inputs, _MANY_INPUTS)):
        fb.ret(fb.call(overlaps_sorted, address, params))

    with fb.loop(0, num_inputs) as index, fb.if_(Record.item(fb, InputRecord, inputs, index).is_set("is_donated")):
        begin, end = _extent(fb, inputs, params, index)
        with fb.loop(0, num_inputs) as other, fb.if_(fb.icmp("ne", other, index)):
            other_begin, other_end = _extent(fb, inputs, params, other)
            with fb.if_(fb.and_(fb.icmp("ult", begin, other_end), fb.icmp("ult", other_begin, end))):
                fb.ret(1)
    fb.ret(0)
    return fb.function


def _extent(fb: FunctionBuilder, inputs: Value, params: Value, index: Value) -> tuple[Value, Value]:
    begin = pointer_at(fb, params, index)
    return begin, fb.gep(I8, begin, Record.item(fb, InputRecord, inputs, index).load("size_bytes"))


def _write_overlaps_sorted(module: ModuleBuilder) -> Function:
    """`donation_overlaps` in n log n; without memory to sort in the answer is yes, which is safe."""
    order = _write_order(module)
    fb = module.function("donation_overlaps_sorted", I1, (PTR, PTR), linkage="internal", attributes=_QUIET)
    address, params = fb.parameters
    call = Record(fb, CallRecord, address)
    num_inputs, inputs = call.load("num_inputs"), call.load("inputs")
    size_bytes = ctypes.sizeof(_Extent)
    extents = allocate(fb, fb.mul(num_inputs, size_bytes), PLAIN_ALIGNMENT_BYTES)
    with fb.if_(fb.icmp("eq", extents, NULL)):
        fb.ret(1)
    with fb.loop(0, num_inputs) as index:
        extent = Record.item(fb, _Extent, extents, index)
        for name, value in zip(("begin", "end"), _extent(fb, inputs, params, index), strict=True):
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
    return fb.function


def _write_order(module: ModuleBuilder) -> Function:
    """For `qsort`: extents by where they begin."""
    fb = module.function("extent_order", I32, (PTR, PTR), linkage="internal", attributes=("nounwind",))
    first, second = (Record(fb, _Extent, each).load("begin") for each in fb.parameters)
    below, above = (fb.zext(fb.icmp(predicate, first, second), I32) for predicate in ("ult", "ugt"))
    fb.ret(fb.sub(above, below))
    return fb.function
