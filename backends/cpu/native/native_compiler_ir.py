"""The machine code behind `native_compiler.py`: threads that compile what comes into a queue, without the interpreter.

Each job is parsed, verified, optimised and compiled by functions of llvmlite's library in a context of its own. Whoever
forks waits until nobody is in LLVM, and keeps the lock meanwhile, so that the child finds a queue that it can use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
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
    constant,
)
from xlalite.backends.cpu.native.native_threads_ir import (
    allow_processors,
    join_thread,
    start_thread,
    without_signals,
)
from xlalite.backends.cpu.native.record import NULL, Record, pointer_at

OPEN, WORK, START, JOIN, OFFER, CLEAR, END, HOLD, LET_GO = (
    f"xlalite_compiler_{name}" for name in ("open", "work", "start", "join", "offer", "clear", "end", "hold", "let_go")
)

LIBRARY_FUNCTIONS = (
    "ContextCreate",
    "ContextDispose",
    "ParseAssembly",
    "VerifyModule",
    "CreatePipelineTuningOptions",
    "DisposePipelineTuningOptions",
    "CreatePassBuilder",
    "DisposePassBuilder",
    "CreateNewModulePassManager",
    "DisposeNewModulePassManger",
    "RunNewModulePassManager",
    "TargetMachineEmitToMemory",
    "DisposeModule",
    "DisposeString",
)
"""What the code calls of llvmlite's library, by name."""

_CLOCK_MONOTONIC = 1
_LOCK_BYTES = 64


class Queue(ctypes.Structure):
    """Jobs that wait, and how many are in LLVM; `lock` is held while a field changes.

    There is `news` for whoever waits for a job, and `rest` for whoever waits until nobody is in LLVM.
    """

    _fields_ = [
        ("lock", ctypes.c_int8 * _LOCK_BYTES),
        ("news", ctypes.c_int8 * _LOCK_BYTES),
        ("rest", ctypes.c_int8 * _LOCK_BYTES),
        ("first", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("in_llvm", ctypes.c_int64),
        ("is_ending", ctypes.c_int64),
    ]


class Job(ctypes.Structure):
    """A module: its text and level, functions that add passes or null; its object code, null if LLVM refused it."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("text", ctypes.c_char_p),
        ("level", ctypes.c_int64),
        ("passes", ctypes.c_void_p),
        ("is_taken", ctypes.c_int64),
        ("code", ctypes.c_void_p),
        ("nanoseconds", ctypes.c_int64),
    ]


class Worker(ctypes.Structure):
    """One who takes jobs out of a queue: target machines by level, which nobody else uses meanwhile; a thread or 0."""

    _fields_ = [
        ("queue", ctypes.c_void_p),
        ("machines", ctypes.c_void_p),
        ("thread", ctypes.c_int64),
        ("is_done", ctypes.c_int64),
    ]


def native_compiler_ir() -> str:
    """The module."""
    module = ModuleBuilder("native_compiler")
    _write_open(module)
    work = _write_work(module, _write_compile(module))
    _write_start(module, work)
    _write_join(module)
    _write_offer(module)
    _write_clear(module)
    _write_end(module)
    _write_hold(module)
    _write_let_go(module)
    return module.text()


def _write_open(module: ModuleBuilder) -> None:
    fb = module.function(OPEN, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    for kind, field in (("mutex", "lock"), ("cond", "news"), ("cond", "rest")):
        _pthread(fb, f"{kind}_init", queue.address(field), NULL)
    queue.store("end", queue.address("first"))
    fb.ret()


def _write_work(module: ModuleBuilder, compile_job: Function) -> Function:
    """Compiles one job after the other, and waits for more, until the queue ends."""
    fb = module.function(WORK, PTR, (PTR,))
    worker = Record(fb, Worker, fb.parameters[0])
    queue, machines = Record(fb, Queue, worker.load("queue")), worker.load("machines")
    with _locked(fb, queue), fb.while_loop(()) as turns:
        with fb.while_loop(()) as waits:
            waits.continue_while(fb.xor(fb.or_(queue.is_set("first"), queue.is_set("is_ending")), constant(I1, 1)))
            _pthread(fb, "cond_wait", queue.address("news"), queue.address("lock"))
        job = Record(fb, Job, queue.load("first"))
        worker.store("is_done", fb.zext(fb.icmp("eq", job.pointer, NULL), I64))
        turns.continue_while(fb.icmp("ne", job.pointer, NULL))
        job.store("is_taken", 1)
        behind = job.load("next")
        queue.store("first", behind)
        with fb.if_(fb.icmp("eq", behind, NULL)):
            queue.store("end", queue.address("first"))
        queue.store("in_llvm", fb.add(queue.load("in_llvm"), 1))
        _pthread(fb, "mutex_unlock", queue.address("lock"))
        fb.call(compile_job, job.pointer, pointer_at(fb, machines, job.load("level")))
        _pthread(fb, "mutex_lock", queue.address("lock"))
        queue.store("in_llvm", fb.sub(queue.load("in_llvm"), 1))
        _pthread(fb, "cond_signal", queue.address("rest"))
    fb.ret(NULL)
    return fb.function


def _write_start(module: ModuleBuilder, work: Function) -> None:
    """Lets a thread work, if the system has one."""
    fb = module.function(START, VOID, (PTR,))
    worker = Record(fb, Worker, fb.parameters[0])
    with without_signals(fb):
        start_thread(fb, worker, work)
    _allow_processors(fb, worker, here=False)
    fb.ret()


def _write_join(module: ModuleBuilder) -> None:
    """Waits until the thread has ended, and leaves it the processor meanwhile; there is none from then on."""
    fb = module.function(JOIN, VOID, (PTR,))
    worker = Record(fb, Worker, fb.parameters[0])
    with fb.if_(worker.is_set("thread")):
        _allow_processors(fb, worker, here=True)
        join_thread(fb, worker.load("thread"))
        worker.store("thread", 0)
    fb.ret()


def _allow_processors(fb: FunctionBuilder, worker: Record, *, here: bool) -> None:
    """Lets the thread run on the caller's own processor or not, unless it ends: it cannot while the queue is locked.

    To the system a thread that has ended is the caller itself (glibc 2.36).
    """
    with _locked(fb, Record(fb, Queue, worker.load("queue"))):
        goes_on = fb.xor(worker.is_set("is_done"), constant(I1, 1))
        with fb.if_(fb.and_(worker.is_set("thread"), goes_on)):
            allow_processors(fb, worker.load("thread"), here=here)


def _write_offer(module: ModuleBuilder) -> None:
    """Puts a job behind the others."""
    fb = module.function(OFFER, VOID, (PTR, PTR))
    queue, job = Record(fb, Queue, fb.parameters[0]), Record(fb, Job, fb.parameters[1])
    with _locked(fb, queue):
        fb.store(job.pointer, queue.load("end"))
        queue.store("end", job.address("next"))
        _pthread(fb, "cond_signal", queue.address("news"))
    fb.ret()


def _write_clear(module: ModuleBuilder) -> None:
    """Takes all jobs back that wait."""
    fb = module.function(CLEAR, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    with _locked(fb, queue):
        queue.store("first", NULL)
        queue.store("end", queue.address("first"))
    fb.ret()


def _write_end(module: ModuleBuilder) -> None:
    """Whoever finds no job from here on does not wait for one."""
    fb = module.function(END, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    with _locked(fb, queue):
        queue.store("is_ending", 1)
        _pthread(fb, "cond_broadcast", queue.address("news"))
    fb.ret()


def _write_hold(module: ModuleBuilder) -> None:
    """Waits until nobody is in LLVM, and lets nobody in."""
    fb = module.function(HOLD, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    _pthread(fb, "mutex_lock", queue.address("lock"))
    with fb.while_loop(()) as waits:
        waits.continue_while(queue.is_set("in_llvm"))
        _pthread(fb, "cond_wait", queue.address("rest"), queue.address("lock"))
    fb.ret()


def _write_let_go(module: ModuleBuilder) -> None:
    fb = module.function(LET_GO, VOID, (PTR,))
    _pthread(fb, "mutex_unlock", Record(fb, Queue, fb.parameters[0]).address("lock"))
    fb.ret()


def _write_compile(module: ModuleBuilder) -> Function:
    """One job. Who refuses a module says so in a string, which is dropped: the caller asks LLVM again for an error."""
    fb = module.function("compile", VOID, (PTR, PTR), linkage="internal")
    job, machine = Record(fb, Job, fb.parameters[0]), fb.parameters[1]
    begin = _nanoseconds(fb)
    refused, done = fb.new_block("refused"), fb.new_block("done")
    problem = fb.alloca(PTR, align=8)
    fb.store(NULL, problem)
    context = _llvm(fb, "ContextCreate")
    parsed = _llvm(fb, "ParseAssembly", context, job.load("text"), problem)
    fb.guard(fb.icmp("ne", parsed, NULL), refused)
    with fb.if_(fb.icmp("eq", _llvm(fb, "VerifyModule", parsed, problem, result=I8), 0)):
        with fb.if_(job.is_set("passes")):
            _run_passes(fb, machine, parsed, job.load("passes"))
        job.store("code", _llvm(fb, "TargetMachineEmitToMemory", machine, parsed, constant(I32, 1), problem))
    _llvm(fb, "DisposeModule", parsed, result=VOID)
    fb.br(refused)
    fb.position_at(refused)
    _llvm(fb, "ContextDispose", context, result=VOID)
    said = fb.load(PTR, problem)
    fb.guard(fb.icmp("ne", said, NULL), done)
    _llvm(fb, "DisposeString", said, result=VOID)
    fb.br(done)
    fb.position_at(done)
    job.store("nanoseconds", fb.sub(_nanoseconds(fb), begin))
    fb.ret()
    return fb.function


def _run_passes(fb: FunctionBuilder, machine: Value, parsed: Value, passes: Value) -> None:
    tuning = _llvm(fb, "CreatePipelineTuningOptions")
    builder = _llvm(fb, "CreatePassBuilder", machine, tuning)
    manager = _llvm(fb, "CreateNewModulePassManager")
    with fb.while_loop([passes]) as each:
        (place,) = each.values
        add = fb.load(PTR, place)
        each.continue_while(fb.icmp("ne", add, NULL))
        fb.call_pointer(add, VOID, [manager])
        each.yield_(fb.gep(PTR, place, 1))
    _llvm(fb, "RunNewModulePassManager", manager, parsed, builder, result=VOID)
    _llvm(fb, "DisposeNewModulePassManger", manager, result=VOID)
    _llvm(fb, "DisposePassBuilder", builder, result=VOID)
    _llvm(fb, "DisposePipelineTuningOptions", tuning, result=VOID)


def _nanoseconds(fb: FunctionBuilder) -> Value:
    time = fb.alloca(I64, 2, align=8)
    fb.call(fb.module.declare("clock_gettime", I32, (I32, PTR)), constant(I32, _CLOCK_MONOTONIC), time)
    return fb.add(fb.mul(fb.load(I64, time), 10**9), fb.load(I64, fb.gep(I64, time, 1)))


@contextmanager
def _locked(fb: FunctionBuilder, queue: Record) -> Iterator[None]:
    _pthread(fb, "mutex_lock", queue.address("lock"))
    yield
    _pthread(fb, "mutex_unlock", queue.address("lock"))


def _pthread(fb: FunctionBuilder, name: str, *arguments: Value) -> None:
    fb.call(fb.module.declare(f"pthread_{name}", I32, (PTR,) * len(arguments)), *arguments)


def _llvm(fb: FunctionBuilder, name: str, *arguments: Value, result: Type = PTR) -> Value:
    types = tuple(argument.type for argument in arguments)
    return fb.call(fb.module.declare(f"LLVMPY_{name}", result, types), *arguments)
