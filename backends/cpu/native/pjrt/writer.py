"""Writes the functions of the PJRT table that are machine code.

No Python runs in them, so they need no interpreter lock, any thread may call them, and a destructor may do so while a
Python exception is pending, where a function made by ctypes fails.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xlalite.backends.codegen.llvm import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Type,
    Value,
    array,
)
from xlalite.backends.cpu.native.call.call_records import FREE, MALLOC
from xlalite.backends.cpu.native.heap import PLAIN_ALIGNMENT_BYTES, allocate, release
from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ErrorCode
from xlalite.backends.cpu.native.pjrt.records import Awaiter, Block, Buffer, ErrorRecord, Event, Place, Shared
from xlalite.backends.cpu.native.record import NULL, Record
from xlalite.hlo.records import dataclass

SHARED = "xlalite_pjrt"
NEW_ERROR, NEW_BLOCK, NEW_BUFFER = (f"xlalite_pjrt_new_{what}" for what in ("error", "block", "buffer"))
HOLD, LET_GO = "xlalite_pjrt_hold", "xlalite_pjrt_let_go"
DROP_BLOCK, DROP_BUFFER = "xlalite_pjrt_drop_block", "xlalite_pjrt_drop_buffer"
DELETED = "an array was deleted or donated before"
NO_MEMORY = "there is no memory for an array"
_MOST_INLINE_BYTES = 512


@dataclass
class Writer:
    """A module with what all its functions use.

    Attributes:
        module: The module.
    """

    module: ModuleBuilder

    def __post_init__(self) -> None:
        """Writes the functions that others call."""
        self.shared_address = self.module.global_variable(SHARED, array(I64, ctypes.sizeof(Shared) // 8), linkage="")
        self.malloc = self.module.declare(MALLOC, PTR, (PTR, I64))
        self.free = self.module.declare(FREE, VOID, (PTR, PTR, I64))
        text = NO_MEMORY.encode()
        record = bytes(ErrorRecord(ErrorCode.INTERNAL, len(text)))
        self.no_memory_error = self.module.constant_bytes(record + text)
        self.new_error = self._write_new_error()
        self.fire = self._write_fire()
        self.new_block = self._write_new_block()
        self.drop_block = self._write_drop_block()
        self.new_buffer = self._write_new_buffer()
        self.let_go = self._write_let_go()
        self.hold = self._write_hold()
        self.drop_buffer = self._write_drop_buffer()

    @contextmanager
    def function(self, name: str) -> Iterator[tuple[FunctionBuilder, Record]]:
        """A function of the table: its builder and its arguments; unless it returns an error it returns none."""
        fb = self.module.function(name, PTR, (PTR,))
        yield fb, Record(fb, ARGUMENTS[name], fb.parameters[0])
        if not fb.is_terminated:
            fb.ret(NULL)

    @contextmanager
    def helper(
        self, name: str, result: Type, parameters: Sequence[Type], *, public: bool = False
    ) -> Iterator[FunctionBuilder]:
        """A function that others call."""
        yield self.module.function(name, result, parameters, linkage="" if public else "internal")

    def shared(self, fb: FunctionBuilder) -> Record:
        """What Python and machine code tell each other."""
        return Record(fb, Shared, self.shared_address)

    def ready_event(self, fb: FunctionBuilder) -> Value:
        """The event that has always happened."""
        return self.shared(fb).address("ready")

    def return_error(self, fb: FunctionBuilder, code: ErrorCode, text: str) -> None:
        """Ends a function with an error."""
        data = text.encode()
        fb.ret(fb.call(self.new_error, fb.constant(I64, code), self.module.constant_bytes(data), len(data)))

    @contextmanager
    def reading(self, fb: FunctionBuilder, buffer: Value) -> Iterator[Record]:
        """A buffer whose memory stays as long as it is read; an error ends the function if it was deleted."""
        with fb.if_(fb.icmp("eq", fb.call(self.hold, buffer), 0)):
            self.return_error(fb, ErrorCode.INVALID_ARGUMENT, DELETED)
        yield Record(fb, Buffer, buffer)
        fb.call(self.let_go, buffer)

    def _write_new_error(self) -> Function:
        with self.helper(NEW_ERROR, PTR, (I64, PTR, I64), public=True) as fb:
            code, text, length = fb.parameters
            error = Record(fb, ErrorRecord, new_record(fb, fb.add(length, ctypes.sizeof(ErrorRecord))))
            with fb.if_(fb.icmp("eq", error.pointer, NULL)):
                fb.ret(self.no_memory_error)
            error.store("code", code)
            error.store("length", length)
            fb.memcpy(error.end, text, length)
            fb.ret(error.pointer)
        return fb.function

    def _write_fire(self) -> Function:
        """Lets an event happen, calls those who want to know, and forgets it."""
        with self.helper("fire", VOID, (PTR,)) as fb:
            event = Record(fb, Event, fb.parameters[0])
            with fb.while_loop([event.atomic_rmw("xchg", "awaiting", event.pointer, "acq_rel")]) as loop:
                loop.continue_while(fb.icmp("ne", loop.values[0], NULL))
                awaiter = Record(fb, Awaiter, loop.values[0])
                following = awaiter.load("next")
                fb.call_pointer(awaiter.load("callback"), VOID, (NULL, awaiter.load("user_arg")))
                release(fb, awaiter.pointer)
                loop.yield_(following)
            forget_event(fb, event)
            fb.ret()
        return fb.function

    def _write_new_block(self) -> Function:
        """Memory of its own, or null; what is small lies behind the record."""
        with self.helper(NEW_BLOCK, PTR, (I64,), public=True) as fb:
            (size,) = fb.parameters
            is_inline = fb.icmp("ule", size, _MOST_INLINE_BYTES)
            behind = fb.select(is_inline, size, fb.constant(I64, 0))
            block = Record(fb, Block, new_record(fb, fb.add(behind, ctypes.sizeof(Block))))
            with fb.if_(fb.icmp("eq", block.pointer, NULL)):
                fb.ret(NULL)
            with fb.if_(is_inline):
                fill_block(block, block.end, size, NULL)
            with fb.if_(fb.not_(is_inline)):
                data = fb.call(self.malloc, NULL, size)
                with fb.if_(fb.icmp("eq", data, NULL)):
                    release(fb, block.pointer)
                    fb.ret(NULL)
                fill_block(block, data, size, NULL)
            self.shared(fb).atomic_rmw("add", "bytes_in_use", size, "monotonic")
            fb.ret(block.pointer)
        return fb.function

    def _write_drop_block(self) -> Function:
        with self.helper(DROP_BLOCK, VOID, (PTR,), public=True) as fb:
            block = Record(fb, Block, fb.parameters[0])
            before = block.atomic_rmw("sub", "references", 1, "acq_rel")
            with fb.if_(fb.icmp("ne", before, 1)):
                fb.ret()
            event = block.load("host_event")
            is_own = fb.if_else(fb.icmp("eq", event, NULL))
            with is_own.then():
                self.shared(fb).atomic_rmw("sub", "bytes_in_use", block.load("size_bytes"), "monotonic")
                with fb.if_(fb.icmp("ne", block.load("data"), block.end)):
                    fb.call(self.free, NULL, block.load("data"), 0)
            with is_own.otherwise():
                fb.call(self.fire, event)
            release(fb, block.pointer)
            fb.ret()
        return fb.function

    def _write_new_buffer(self) -> Function:
        """A buffer over a whole block, which it takes over, or null."""
        with self.helper(NEW_BUFFER, PTR, (PTR, I64, I32, I64, PTR, PTR), public=True) as fb:
            block, size, kind, rank, dims, memory = fb.parameters
            dims_bytes = fb.shl(rank, 3)
            buffer = Record(fb, Buffer, new_record(fb, fb.add(dims_bytes, ctypes.sizeof(Buffer))))
            with fb.if_(fb.icmp("eq", buffer.pointer, NULL)):
                fb.call(self.drop_block, block)
                fb.ret(NULL)
            values = {
                "block": block,
                "size_bytes": size,
                "type": kind,
                "rank": rank,
                "device": Record(fb, Place, memory).load("other"),
                "memory": memory,
            }
            for name, value in values.items():
                buffer.store(name, value)
            buffer.store("data", Record(fb, Block, block).load("data"))
            buffer.store("is_deleted", 0)
            buffer.store("holds", 1)
            fb.memcpy(buffer.end, dims, dims_bytes)
            fb.ret(buffer.pointer)
        return fb.function

    def _write_let_go(self) -> Function:
        """Ends what `hold` began."""
        with self.helper(LET_GO, VOID, (PTR,), public=True) as fb:
            buffer = Record(fb, Buffer, fb.parameters[0])
            with fb.if_(fb.icmp("eq", buffer.atomic_rmw("sub", "holds", 1, "acq_rel"), 1)):
                fb.call(self.drop_block, buffer.load("block"))
            fb.ret()
        return fb.function

    def _write_hold(self) -> Function:
        """Keeps the memory of a buffer, whoever deletes it meanwhile; 0 if it was deleted before.

        It counts first and looks then, `donate` the other way round, so one of two sees the other.
        """
        with self.helper(HOLD, I32, (PTR,), public=True) as fb:
            buffer = Record(fb, Buffer, fb.parameters[0])
            with fb.while_loop([fb.constant(I1, 1)]) as loop:
                loop.continue_while(loop.values[0])
                count = buffer.atomic_load("holds")
                with fb.if_(fb.icmp("eq", count, 0)):
                    fb.ret(0)
                loop.yield_(fb.not_(buffer.compare_exchange("holds", count, fb.add(count, 1), "seq_cst")))
            with fb.if_(fb.icmp("eq", buffer.atomic_load("is_deleted"), 0)):
                fb.ret(1)
            fb.call(self.let_go, buffer.pointer)
            fb.ret(0)
        return fb.function

    def _write_drop_buffer(self) -> Function:
        with self.helper(DROP_BUFFER, VOID, (PTR,), public=True) as fb:
            buffer = Record(fb, Buffer, fb.parameters[0])
            with fb.if_(fb.icmp("eq", buffer.load("is_deleted"), 0)):
                fb.call(self.let_go, buffer.pointer)
            release(fb, buffer.pointer)
            fb.ret()
        return fb.function


def fill_block(block: Record, data: Value, size: Value, event: Value) -> None:
    """Makes a record a block with one owner."""
    for name, value in (("references", 1), ("data", data), ("size_bytes", size), ("host_event", event)):
        block.store(name, value)


def new_record(fb: FunctionBuilder, size: Value) -> Value:
    """Memory for what handles stand for."""
    return allocate(fb, size, PLAIN_ALIGNMENT_BYTES)


def forget_event(fb: FunctionBuilder, event: Record) -> None:
    """Gives up one of the references to an event."""
    with fb.if_(fb.icmp("eq", event.atomic_rmw("sub", "references", 1, "acq_rel"), 1)):
        release(fb, event.pointer)


def narrow(fb: FunctionBuilder, value: Value) -> Value:
    """A flag as the C API has it."""
    return fb.trunc(value, I8)
