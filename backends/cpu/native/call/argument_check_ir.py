"""The part of a native call that looks at its arguments; see `dispatch_ir.py`.

An argument passes when it is exactly an ndarray, of the wanted dtype in this machine's byte order, of the wanted dims,
row-major and aligned. Nothing is converted here: whatever does not pass goes to Python.
"""

from __future__ import annotations

import sys

from xlalite.backends.codegen.llvm import I1, I8, I64, PTR, Block, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.backends.cpu.native.call.call_records import CallRecord, InputRecord
from xlalite.backends.cpu.native.call.numpy_interface import ObjectLayout
from xlalite.backends.cpu.native.record import Record, pointer_at

_MANY_INPUTS = 96
_QUIET = ("nounwind", "noinline")
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


def write_donation_overlaps(module: ModuleBuilder) -> Function:
    """Whether an input that will be overwritten shares memory with another input; many are asked about elsewhere."""
    fb = module.function("donation_overlaps", I1, (PTR, PTR), linkage="internal", attributes=_QUIET)
    address, params = fb.parameters
    call = Record(fb, CallRecord, address)
    num_inputs, inputs = call.load("num_inputs"), call.load("inputs")
    with fb.if_(call.is_set("many_overlap")):
        fb.ret(fb.call_pointer(call.load("many_overlap"), I1, (address, params)))

    with fb.loop(0, num_inputs) as index, fb.if_(Record.item(fb, InputRecord, inputs, index).is_set("is_donated")):
        begin, end = extent_of(fb, inputs, params, index)
        with fb.loop(0, num_inputs) as other, fb.if_(fb.icmp("ne", other, index)):
            other_begin, other_end = extent_of(fb, inputs, params, other)
            with fb.if_(fb.and_(fb.icmp("ult", begin, other_end), fb.icmp("ult", other_begin, end))):
                fb.ret(1)
    fb.ret(0)
    return fb.function


def extent_of(fb: FunctionBuilder, inputs: Value, params: Value, index: Value) -> tuple[Value, Value]:
    """Where the memory of an input begins and ends."""
    begin = pointer_at(fb, params, index)
    return begin, fb.gep(I8, begin, Record.item(fb, InputRecord, inputs, index).load("size_bytes"))
