"""The machine code behind `early_code.py`: a thread that compiles what comes into a queue, without the interpreter.

Each job is parsed, verified, optimised and compiled by functions of llvmlite's library in a context of its own. Whoever
forks holds both locks meanwhile: nobody is in LLVM then, and the child finds a queue that it can use.
"""

from __future__ import annotations

import ctypes

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
from xlalite.backends.cpu.native.record import NULL, Record

OPEN, WORK, OFFER, CLOSE, HOLD, LET_GO = (
    f"xlalite_early_{name}" for name in ("open", "work", "offer", "close", "hold", "let_go")
)

LIBRARY_FUNCTIONS = tuple(
    f"LLVMPY_{name}"
    for name in (
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
)
"""What the code calls of llvmlite's library, by name."""

_CLOCK_MONOTONIC = 1
_LOCK_BYTES = 64


class Queue(ctypes.Structure):
    """Jobs that wait; `compiling` is locked while a thread is in LLVM, `lock` while the other fields change."""

    _fields_ = [
        ("lock", ctypes.c_int8 * _LOCK_BYTES),
        ("news", ctypes.c_int8 * _LOCK_BYTES),
        ("compiling", ctypes.c_int8 * _LOCK_BYTES),
        ("first", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("is_closed", ctypes.c_int64),
    ]


class Job(ctypes.Structure):
    """A module: its text, the machine, functions that add passes or null; its object code, null if LLVM refused it."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("text", ctypes.c_char_p),
        ("machine", ctypes.c_void_p),
        ("passes", ctypes.c_void_p),
        ("is_taken", ctypes.c_int64),
        ("code", ctypes.c_void_p),
        ("nanoseconds", ctypes.c_int64),
    ]


def early_code_ir() -> str:
    """The module."""
    module = ModuleBuilder("early_code")
    _write_open(module)
    _write_work(module, _write_compile(module))
    _write_offer(module)
    _write_close(module)
    for name, word in ((HOLD, "lock"), (LET_GO, "unlock")):
        fb = module.function(name, VOID, (PTR,))
        for field in ("compiling", "lock"):
            _pthread(fb, f"mutex_{word}", Record(fb, Queue, fb.parameters[0]).address(field))
        fb.ret()
    return module.text()


def _write_open(module: ModuleBuilder) -> None:
    fb = module.function(OPEN, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    for kind, field in (("mutex", "lock"), ("mutex", "compiling"), ("cond", "news")):
        _pthread(fb, f"{kind}_init", queue.address(field), NULL)
    queue.store("end", queue.address("first"))
    fb.ret()


def _write_work(module: ModuleBuilder, compile_job: Function) -> None:
    """Compiles one job after the other, and waits for more, until the queue is closed."""
    fb = module.function(WORK, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    with fb.while_loop(()) as turns:
        _pthread(fb, "mutex_lock", queue.address("lock"))
        with fb.while_loop(()) as waits:
            waits.continue_while(fb.xor(fb.or_(queue.is_set("first"), queue.is_set("is_closed")), constant(I1, 1)))
            _pthread(fb, "cond_wait", queue.address("news"), queue.address("lock"))
        with fb.if_(queue.is_set("is_closed")):
            _pthread(fb, "mutex_unlock", queue.address("lock"))
            fb.ret()
        job = Record(fb, Job, queue.load("first"))
        turns.continue_while(fb.icmp("ne", job.pointer, NULL))
        job.store("is_taken", 1)
        behind = job.load("next")
        queue.store("first", behind)
        with fb.if_(fb.icmp("eq", behind, NULL)):
            queue.store("end", queue.address("first"))
        _pthread(fb, "mutex_unlock", queue.address("lock"))
        _pthread(fb, "mutex_lock", queue.address("compiling"))
        begin = _nanoseconds(fb)
        fb.call(compile_job, job.pointer)
        job.store("nanoseconds", fb.sub(_nanoseconds(fb), begin))
        _pthread(fb, "mutex_unlock", queue.address("compiling"))
    fb.ret()


def _write_offer(module: ModuleBuilder) -> None:
    """Puts a job behind the others."""
    fb = module.function(OFFER, VOID, (PTR, PTR))
    queue, job = Record(fb, Queue, fb.parameters[0]), Record(fb, Job, fb.parameters[1])
    _pthread(fb, "mutex_lock", queue.address("lock"))
    fb.store(job.pointer, queue.load("end"))
    queue.store("end", job.address("next"))
    _pthread(fb, "cond_signal", queue.address("news"))
    _pthread(fb, "mutex_unlock", queue.address("lock"))
    fb.ret()


def _write_close(module: ModuleBuilder) -> None:
    """From here on no job is taken."""
    fb = module.function(CLOSE, VOID, (PTR,))
    queue = Record(fb, Queue, fb.parameters[0])
    _pthread(fb, "mutex_lock", queue.address("lock"))
    queue.store("is_closed", 1)
    _pthread(fb, "cond_signal", queue.address("news"))
    _pthread(fb, "mutex_unlock", queue.address("lock"))
    fb.ret()


def _write_compile(module: ModuleBuilder) -> Function:
    """One job. Who refuses a module says so in a string, which is dropped: the caller asks LLVM again for an error."""
    fb = module.function("compile", VOID, (PTR,), linkage="internal")
    job = Record(fb, Job, fb.parameters[0])
    machine = job.load("machine")
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


def _pthread(fb: FunctionBuilder, name: str, *arguments: Value) -> None:
    fb.call(fb.module.declare(f"pthread_{name}", I32, (PTR,) * len(arguments)), *arguments)


def _llvm(fb: FunctionBuilder, name: str, *arguments: Value, result: Type = PTR) -> Value:
    types = tuple(argument.type for argument in arguments)
    return fb.call(fb.module.declare(f"LLVMPY_{name}", result, types), *arguments)
