"""Threads that machine code starts; they know nothing of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xlalite.backends.codegen.llvm import I8, I32, I64, PTR, Function, FunctionBuilder, Value, array, constant
from xlalite.backends.cpu.native.record import NULL, Record

_SIG_SETMASK = 2
_SIGNAL_SET = array(I64, 16)
_ATTRIBUTES = array(I64, 16)
_CPU_SET_BYTES = 128
_STACK_BYTES = 8 << 20
"""What LLVM needs, whatever the system gives threads."""


@contextmanager
def without_signals(fb: FunctionBuilder) -> Iterator[None]:
    """Threads that are started meanwhile take no signals: Python's handlers belong to the main thread."""
    module = fb.module
    all_signals, old_signals = fb.alloca(_SIGNAL_SET), fb.alloca(_SIGNAL_SET)
    set_mask = module.declare("pthread_sigmask", I32, (I32, PTR, PTR))
    fb.call(module.declare("sigfillset", I32, (PTR,)), all_signals)
    fb.call(set_mask, _SIG_SETMASK, all_signals, old_signals)
    yield
    fb.call(set_mask, _SIG_SETMASK, old_signals, NULL)


def start_thread(fb: FunctionBuilder, record: Record, function: Function) -> None:
    """Starts a thread that calls a function with a record, whose field `thread` is 0 if the system has none left."""
    module, attributes = fb.module, fb.alloca(_ATTRIBUTES)
    fb.call(module.declare("pthread_attr_init", I32, (PTR,)), attributes)
    fb.call(module.declare("pthread_attr_setstacksize", I32, (PTR, I64)), attributes, constant(I64, _STACK_BYTES))
    create = module.declare("pthread_create", I32, (PTR, PTR, PTR, PTR))
    error = fb.call(create, record.address("thread"), attributes, function, record.pointer)
    fb.call(module.declare("pthread_attr_destroy", I32, (PTR,)), attributes)
    with fb.if_(fb.icmp("ne", error, 0)):
        record.store("thread", 0)


def allow_processors(fb: FunctionBuilder, thread: Value, *, here: bool) -> None:
    """Lets a thread run where the caller may; on the caller's own processor or not.

    The system puts a new thread behind its maker, where it waits for milliseconds if the others are busy for a moment.
    """
    module, allowed = fb.module, fb.alloca(array(I8, _CPU_SET_BYTES), align=8)
    size = constant(I64, _CPU_SET_BYTES)
    unknown = fb.call(module.declare("sched_getaffinity", I32, (I32, I64, PTR)), constant(I32, 0), size, allowed)
    number = fb.call(module.declare("sched_getcpu", I32, ()))
    with fb.if_(fb.and_(fb.icmp("sge", unknown, 0), fb.icmp("ult", number, 8 * _CPU_SET_BYTES))):
        if not here:
            word = fb.gep(I32, allowed, fb.zext(fb.lshr(number, 5), I64))
            bit = fb.shl(constant(I32, 1), fb.and_(number, 31))
            fb.store(fb.and_(fb.load(I32, word), fb.xor(bit, -1)), word)
        # Refused where no processor is left.
        fb.call(module.declare("pthread_setaffinity_np", I32, (I64, I64, PTR)), thread, size, allowed)


def join_thread(fb: FunctionBuilder, thread: Value) -> None:
    """Waits until a thread has ended."""
    fb.call(fb.module.declare("pthread_join", I32, (I64, PTR)), thread, NULL)
