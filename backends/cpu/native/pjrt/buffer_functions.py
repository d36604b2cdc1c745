"""Errors, events and buffers as machine code."""

from __future__ import annotations

import ctypes

from xlalite.backends.codegen.llvm import I1, I8, I32, I64, PTR, VOID, Function, FunctionBuilder, Value
from xlalite.backends.cpu.native.heap import release
from xlalite.backends.cpu.native.pjrt.abi import ELEMENT_TYPES, ErrorCode, Semantics
from xlalite.backends.cpu.native.pjrt.records import Awaiter, Block, Buffer, ErrorRecord, Event, Place
from xlalite.backends.cpu.native.pjrt.writer import (
    NO_MEMORY,
    Writer,
    fill_block,
    forget_event,
    narrow,
    new_record,
)
from xlalite.backends.cpu.native.record import NULL, Record

ALIGNMENT = 16
"""A host's memory is used where it is if its address is a multiple of this."""

_OUTSIDE = "bytes outside an array were asked for"
_UNKNOWN_TYPE = "arrays with elements of this type are not known"


def write_buffer_functions(writer: Writer) -> None:
    """Adds the functions to a module."""
    _write_errors(writer)
    _write_events(writer)
    _write_queries(writer)
    _write_lifetimes(writer)
    _write_copies(writer)
    _write_from_host(writer)


def _write_errors(writer: Writer) -> None:
    with (
        writer.function("Error_Destroy") as (fb, arguments),
        fb.if_(fb.icmp("ne", arguments.load("error"), writer.no_memory_error)),
    ):
        release(fb, arguments.load("error"))
    with writer.function("Error_Message") as (fb, arguments):
        error = Record(fb, ErrorRecord, arguments.load("error"))
        arguments.store("message", error.end)
        arguments.store("message_size", error.load("length"))
    with writer.function("Error_GetCode") as (fb, arguments):
        arguments.store("code", fb.trunc(Record(fb, ErrorRecord, arguments.load("error")).load("code"), I32))


def _write_events(writer: Writer) -> None:
    with writer.function("Event_Destroy") as (fb, arguments):
        forget_event(fb, Record(fb, Event, arguments.load("event")))
    with writer.function("Event_IsReady") as (fb, arguments):
        event = Record(fb, Event, arguments.load("event"))
        arguments.store("is_ready", fb.zext(fb.icmp("eq", _awaiting(event), event.pointer), I8))
    with writer.function("Event_Error") as (fb, arguments):
        pass
    with writer.function("Event_Await") as (fb, arguments):
        event = Record(fb, Event, arguments.load("event"))
        with fb.while_loop([fb.constant(I64, 0)]) as loop:
            loop.continue_while(fb.icmp("ne", _awaiting(event), event.pointer))
            fb.call(writer.module.declare("sched_yield", I32, ()))
            loop.yield_(loop.values[0])
    with writer.function("Event_OnReady") as (fb, arguments):
        event = Record(fb, Event, arguments.load("event"))
        callback, user_arg = arguments.load("callback"), arguments.load("user_arg")
        with fb.if_(fb.icmp("ne", _awaiting(event), event.pointer)):
            awaiter = Record(fb, Awaiter, new_record(fb, fb.constant(I64, ctypes.sizeof(Awaiter))))
            _require_memory(writer, fb, awaiter.pointer)
            awaiter.store("callback", callback)
            awaiter.store("user_arg", user_arg)
            with fb.while_loop([_awaiting(event)]) as loop:
                (before,) = loop.values
                loop.continue_while(fb.icmp("ne", before, event.pointer))
                awaiter.store("next", before)
                with fb.if_(event.compare_exchange("awaiting", before, awaiter.pointer, "acq_rel")):
                    fb.ret(NULL)
                loop.yield_(_awaiting(event))
            release(fb, awaiter.pointer)
        fb.call_pointer(callback, VOID, (NULL, user_arg))


def _awaiting(event: Record) -> Value:
    return event.atomic_load("awaiting", "acquire")


def _write_queries(writer: Writer) -> None:
    for name, target, source in (
        ("ElementType", "type", "type"),
        ("Device", "device", "device"),
        ("Memory", "memory", "memory"),
        ("OnDeviceSizeInBytes", "size", "size_bytes"),
        ("UnsafePointer", "pointer", "data"),
        ("OpaqueDeviceMemoryDataPointer", "pointer", "data"),
    ):
        with writer.function(f"Buffer_{name}") as (fb, arguments):
            arguments.store(target, Record(fb, Buffer, arguments.load("buffer")).load(source))
    for name in ("Dimensions", "UnpaddedDimensions"):
        with writer.function(f"Buffer_{name}") as (fb, arguments):
            buffer = Record(fb, Buffer, arguments.load("buffer"))
            arguments.store("dims", buffer.end)
            arguments.store("rank", buffer.load("rank"))
    with writer.function("Buffer_DynamicDimensionIndices") as (fb, arguments):
        arguments.store("indices", NULL)
        arguments.store("count", 0)
    with writer.function("Buffer_IsOnCpu") as (fb, arguments):
        arguments.store("is_on_cpu", 1)
    with writer.function("Buffer_ReadyEvent") as (fb, arguments):
        arguments.store("event", writer.ready_event(fb))
    with writer.function("Buffer_IsDeleted") as (fb, arguments):
        arguments.store("is_deleted", narrow(fb, Record(fb, Buffer, arguments.load("buffer")).load("is_deleted")))
    with writer.function("Memory_Kind") as (fb, arguments):
        memory = Record(fb, Place, arguments.load("memory"))
        arguments.store("text", memory.load("kind"))
        arguments.store("text_size", memory.load("kind_size"))


def _write_lifetimes(writer: Writer) -> None:
    with writer.function("Buffer_Delete") as (fb, arguments):
        buffer = Record(fb, Buffer, arguments.load("buffer"))
        with fb.if_(fb.icmp("eq", buffer.atomic_rmw("xchg", "is_deleted", 1, "acq_rel"), 0)):
            fb.call(writer.let_go, buffer.pointer)
    with writer.function("Buffer_Destroy") as (fb, arguments):
        fb.call(writer.drop_buffer, arguments.load("buffer"))
    with (
        writer.function("Buffer_IncreaseExternalReferenceCount") as (fb, arguments),
        writer.reading(fb, arguments.load("buffer")) as buffer,
    ):
        Record(fb, Block, buffer.load("block")).atomic_rmw("add", "references", 1, "monotonic")
    with writer.function("Buffer_DecreaseExternalReferenceCount") as (fb, arguments):
        fb.call(writer.drop_block, Record(fb, Buffer, arguments.load("buffer")).load("block"))
    for name in ("Executable_Destroy", "Client_Destroy", "TopologyDescription_Destroy"):
        with writer.function(name):
            pass


def _write_copies(writer: Writer) -> None:
    with writer.function("Buffer_ToHostBuffer") as (fb, arguments):
        buffer = Record(fb, Buffer, arguments.load("buffer"))
        size, target = buffer.load("size_bytes"), arguments.load("target")
        with fb.if_(fb.icmp("eq", target, NULL)):
            arguments.store("size", size)
            fb.ret(NULL)
        with fb.if_(fb.icmp("ult", arguments.load("size"), size)):
            writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, _OUTSIDE)
        with writer.reading(fb, buffer.pointer):
            fb.memcpy(target, buffer.load("data"), size)
        arguments.store("event", writer.ready_event(fb))
    with writer.function("Buffer_CopyRawToHost") as (fb, arguments):
        buffer, offset, size = (
            Record(fb, Buffer, arguments.load("buffer")),
            arguments.load("offset"),
            arguments.load("size"),
        )
        is_outside = fb.icmp("ugt", offset, buffer.load("size_bytes"))
        is_beyond = fb.icmp("ugt", size, fb.sub(buffer.load("size_bytes"), offset))
        with fb.if_(fb.or_(is_outside, is_beyond)):
            writer.return_error(fb, ErrorCode.INVALID_ARGUMENT, _OUTSIDE)
        with writer.reading(fb, buffer.pointer):
            fb.memcpy(arguments.load("target"), fb.gep(I8, buffer.load("data"), offset), size)
        arguments.store("event", writer.ready_event(fb))
    for what in ("device", "memory"):
        with writer.function(f"Buffer_CopyTo{what.capitalize()}") as (fb, arguments):
            buffer = Record(fb, Buffer, arguments.load("buffer"))
            place = arguments.load(what)
            memory = Record(fb, Place, place).load("other") if what == "device" else place
            with writer.reading(fb, buffer.pointer):
                block = fb.call(writer.new_block, buffer.load("size_bytes"))
                with fb.if_(fb.icmp("ne", block, NULL)):
                    fb.memcpy(Record(fb, Block, block).load("data"), buffer.load("data"), buffer.load("size_bytes"))
            _require_memory(writer, fb, block)
            described = (buffer.load("size_bytes"), buffer.load("type"), buffer.load("rank"), buffer.end)
            result = fb.call(writer.new_buffer, block, *described, memory)
            _require_memory(writer, fb, result)
            arguments.store("result", result)


def _write_from_host(writer: Writer) -> None:
    """Dense arrays are copied, or used where they are if the host leaves them alone; others are Python's."""
    is_dense, memory_of = _write_is_dense(writer), _write_memory_of(writer)
    with writer.function("Client_BufferFromHostBuffer") as (fb, arguments):
        kind, dims, rank = (arguments.load(name) for name in ("type", "dims", "rank"))
        shared = writer.shared(fb)
        with fb.if_(fb.icmp("uge", kind, len(ELEMENT_TYPES))):
            writer.return_error(fb, ErrorCode.UNIMPLEMENTED, _UNKNOWN_TYPE)
        item = fb.load(I64, fb.gep(I64, shared.load("item_bytes"), fb.zext(kind, I64)))
        with fb.if_(fb.icmp("eq", item, 0)):
            writer.return_error(fb, ErrorCode.UNIMPLEMENTED, _UNKNOWN_TYPE)
        with fb.if_(fb.not_(fb.call(is_dense, dims, arguments.load("strides"), rank, item))):
            fb.ret(fb.call_pointer(shared.load("buffer_from_strided"), PTR, (arguments.pointer,)))
        with fb.carried_loop(0, rank, 1, [item]) as loop:
            loop.yield_(fb.mul(loop.values[0], fb.load(I64, fb.gep(I64, dims, loop.index))))
        (size,) = loop.results
        data = arguments.load("data")
        is_aligned = fb.icmp("eq", fb.and_(fb.ptrtoint(data, I64), ALIGNMENT - 1), 0)
        may_stay = fb.icmp("sge", arguments.load("semantics"), Semantics.ZERO_COPY)
        stays = fb.if_else(fb.and_(is_aligned, may_stay))
        with stays.then():
            event = Record(fb, Event, new_record(fb, fb.constant(I64, ctypes.sizeof(Event))))
            _require_memory(writer, fb, event.pointer)
            event.store("references", 2)
            event.store("awaiting", NULL)
            arguments.store("done_with_host_buffer", event.pointer)
            block = Record(fb, Block, new_record(fb, fb.constant(I64, ctypes.sizeof(Block))))
            with fb.if_(fb.icmp("eq", block.pointer, NULL)):
                release(fb, event.pointer)
                writer.return_error(fb, ErrorCode.INTERNAL, NO_MEMORY)
            fill_block(block, data, size, event.pointer)
            stays.yield_(block.pointer)
        with stays.otherwise():
            copy = fb.call(writer.new_block, size)
            _require_memory(writer, fb, copy)
            fb.memcpy(Record(fb, Block, copy).load("data"), data, size)
            arguments.store("done_with_host_buffer", writer.ready_event(fb))
            stays.yield_(copy)
        memory = fb.call(memory_of, arguments.load("device"), arguments.load("memory"))
        buffer = fb.call(writer.new_buffer, stays.results[0], size, kind, rank, dims, memory)
        _require_memory(writer, fb, buffer)
        arguments.store("buffer", buffer)


def _require_memory(writer: Writer, fb: FunctionBuilder, block: Value) -> None:
    with fb.if_(fb.icmp("eq", block, NULL)):
        writer.return_error(fb, ErrorCode.INTERNAL, NO_MEMORY)


def _write_memory_of(writer: Writer) -> Function:
    """The memory that is meant by a device, a memory, or neither."""
    with writer.helper("memory_of", PTR, (PTR, PTR)) as fb:
        device, memory = fb.parameters
        with fb.if_(fb.icmp("ne", memory, NULL)):
            fb.ret(memory)
        with fb.if_(fb.icmp("ne", device, NULL)):
            fb.ret(Record(fb, Place, device).load("other"))
        fb.ret(Record(fb, Place, writer.shared(fb).load("default_device")).load("other"))
    return fb.function


def _write_is_dense(writer: Writer) -> Function:
    """Whether strides, if there are any, are those of a row-major array without gaps."""
    with writer.helper("is_dense", I1, (PTR, PTR, I64, I64)) as fb:
        dims, strides, rank, item = fb.parameters
        with fb.if_(fb.icmp("eq", strides, NULL)):
            fb.ret(1)
        with fb.carried_loop(0, rank, 1, [item]) as loop:
            place = fb.sub(fb.sub(rank, loop.index), 1)
            size, stride = (_entry(fb, table, place) for table in (dims, strides))
            is_wrong = fb.and_(fb.icmp("ne", stride, loop.values[0]), fb.icmp("ne", size, 1))
            with fb.if_(is_wrong):
                fb.ret(0)
            loop.yield_(fb.mul(loop.values[0], size))
        fb.ret(1)
    return fb.function


def _entry(fb: FunctionBuilder, table: Value, place: Value) -> Value:
    return fb.load(I64, fb.gep(I64, table, place))
