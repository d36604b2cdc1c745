"""Object code of modules, made by a thread of its own while the other modules of the program are still written.

A Python thread would get the interpreter's lock between LLVM's steps only when the thread that writes gives it up,
every five milliseconds. So the thread enters machine code once (`early_code_ir.py`), which takes modules out of a
queue, and leaves it when the queue is closed. What it has not begun by then is the caller's, and so is what LLVM
refuses.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Collection, Mapping

import llvmlite.binding as llvm

from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.native.content_names import ContentNames
from xlalite.backends.cpu.native.early_code_ir import (
    CLOSE,
    HOLD,
    LET_GO,
    LIBRARY_FUNCTIONS,
    OFFER,
    OPEN,
    WORK,
    Job,
    Queue,
    early_code_ir,
)
from xlalite.backends.cpu.native.fork_lock import hold_over_forks
from xlalite.backends.cpu.native.jit import GeneratedCode, Keeper, bytes_of, idle_machines, level_of, library
from xlalite.backends.cpu.native.jit_options import IrPass, JitOptions
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.runtime_code import runtime_code

_PASSES = {IrPass.SROA: "SROA", IrPass.INSTRUCTION_COMBINE: "InstCombine", IrPass.SIMPLIFY_CFG: "SimplifyCFG"}
"""What llvmlite's library calls them."""


class EarlyCode:
    """Modules of one program that are offered one by one, and the thread that compiles them.

    Attributes:
        found: What the keeper had of each; that is not compiled.
        names: The names of what they define, if there is a keeper.
    """

    __slots__ = (
        "_codes",
        "_jobs",
        "_keeper",
        "_machines",
        "_options",
        "_passes",
        "_queue",
        "_thread",
        "found",
        "names",
    )

    def __init__(self, options: JitOptions, keeper: Keeper | None) -> None:
        """The thread starts when there is something to do."""
        self.found: dict[str, bytes | None] = {}
        self.names = ContentNames()
        self._options = options
        self._keeper = keeper
        self._queue: Queue | None = None
        self._jobs: dict[str, Job] = {}
        self._machines: dict[int, llvm.TargetMachine] = {}
        self._codes: dict[str, GeneratedCode] = {}
        self._passes = _adding(options.passes)
        self._thread = threading.Thread(target=self._work, daemon=True)

    def offer(self, text: str) -> None:
        """Takes a module, after those whose functions it calls, as `generate_code` will get it."""
        if self._keeper is not None:
            self.names.learn(text)
            text = self.names.renamed(text)
        if text in self.found:
            return
        image = self.found[text] = self._keeper.find(text) if self._keeper is not None else None
        if image is None and (self._queue is not None or self._start()):
            job = self._jobs[text] = self._job(text)
            _runtime().offer(self._queue, job)

    @property
    def begun(self) -> Collection[str]:
        """The modules that it has begun so far, as `generate_code` will get them."""
        return {text for text, job in self._jobs.items() if job.is_taken}

    def end(self) -> Collection[str]:
        """The modules that it has begun; it begins no more."""
        if self._queue is not None:
            _runtime().close(self._queue)
        return self.begun

    def codes(self) -> Mapping[str, GeneratedCode]:
        """The code of what it has begun, but for what LLVM refuses; waits until all is made."""
        if self._queue is not None:
            self._thread.join()
        return self._codes

    def _start(self) -> bool:
        """Whether there is a thread now: two programs at once have enough to do."""
        if _running:
            return False
        queue = Queue()
        _runtime().open(queue)
        self._queue = queue
        self._thread.start()
        return True

    def _job(self, text: str) -> Job:
        level = level_of(text, self._options)
        if level not in self._machines:
            idle = idle_machines.setdefault((self._options.max_isa, level), [])
            machine = idle.pop() if idle else TargetInfo.host(self._options.max_isa).create_machine(level)
            self._machines[level] = machine
        job = Job(machine=ctypes.cast(self._machines[level]._ptr, ctypes.c_void_p).value)
        job.text = text.encode()
        job.passes = ctypes.addressof(self._passes) if level == 2 else None
        return job

    def _work(self) -> None:
        _running[self] = None
        try:
            _runtime().work(self._queue)
            for text, job in list(self._jobs.items()):
                if job.code:
                    self._codes[text] = GeneratedCode(image=bytes_of(job.code), compile_ms=1e-6 * job.nanoseconds)
            for level, machine in self._machines.items():
                idle_machines[self._options.max_isa, level].append(machine)
        finally:
            _running.pop(self, None)

    def hold(self) -> None:
        """Waits until nobody is in LLVM, or changes the queue, and keeps others from it."""
        _runtime().hold(self._queue)

    def let_go(self) -> None:
        """Ends what `hold` began, in a forked child too."""
        _runtime().let_go(self._queue)


class _Runtime:
    """The native functions, callable from Python (ctypes releases the interpreter lock around each)."""

    def __init__(self, module: LinkedModule) -> None:
        self._module = module
        queue, job = ctypes.POINTER(Queue), ctypes.POINTER(Job)
        self.offer = ctypes.CFUNCTYPE(None, queue, job)(module.address(OFFER))
        self.open, self.work, self.close, self.hold, self.let_go = (
            ctypes.CFUNCTYPE(None, queue)(module.address(name)) for name in (OPEN, WORK, CLOSE, HOLD, LET_GO)
        )


@once
def _runtime() -> _Runtime:
    addresses = {name: _address(name) for name in LIBRARY_FUNCTIONS}
    return _Runtime(runtime_code("early code", early_code_ir, addresses))


def _adding(passes: tuple[IrPass, ...]) -> ctypes.Array[ctypes.c_void_p]:
    """Functions that add passes to a pass manager, and null."""
    addresses = [_address(f"LLVMPY_module_Add{_PASSES[each]}Pass") for each in passes]
    return (ctypes.c_void_p * (len(addresses) + 1))(*addresses)


def _address(name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


class _Running:
    """All threads, as a lock that forks wait for."""

    def __init__(self) -> None:
        self._held: list[EarlyCode] = []

    def __enter__(self) -> None:
        self._held = list(_running)
        for each in self._held:
            each.hold()

    def __exit__(self, *exception: object) -> None:
        while self._held:
            self._held.pop().let_go()


def _end_all() -> None:
    """The library must not go while a thread is in it."""
    for each in list(_running):
        each.end()
        each.codes()


_running: dict[EarlyCode, None] = {}
hold_over_forks(_Running())  # within the locks of `jit.py`
atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)
