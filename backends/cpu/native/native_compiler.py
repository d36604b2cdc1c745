"""Object code of modules, made without the interpreter: some of it while others of the program are still written.

A Python thread gets the interpreter back between LLVM's steps only when whoever has it gives it up, every five
milliseconds. So threads that know nothing of Python (`native_compiler_ir.py`), and the caller at last, take modules out
of a queue until it ends. What LLVM refuses is left to the caller.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Collection, Iterable, Mapping

from xlalite.backends.codegen.llvm import BRIEF
from xlalite.backends.codegen.llvm.library import address_of, bytes_of
from xlalite.backends.cpu.native.content_names import ContentNames
from xlalite.backends.cpu.native.fork_lock import hold_over_forks
from xlalite.backends.cpu.native.jit import (
    KEPT,
    LEVELS,
    GeneratedCode,
    Keeper,
    exported_names,
    give_machine_back,
    level_of,
    take_machine,
)
from xlalite.backends.cpu.native.jit_options import IrPass, JitOptions
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.native_compiler_ir import (
    CLEAR,
    END,
    HOLD,
    JOIN,
    LET_GO,
    LIBRARY_FUNCTIONS,
    OFFER,
    OPEN,
    START,
    WORK,
    Job,
    Queue,
    Worker,
    native_compiler_ir,
)
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.runtime_code import runtime_code
from xlalite.backends.cpu.native.threads import available_cpus

_FEWEST_CHARACTERS = 1_500
"""What must be left beside the longest module for a thread to be sooner there than the caller."""


class NativeCompiler:
    """Compiles the modules of one program: in a thread of its own those that are offered one by one, then all.

    Attributes:
        found: What the keeper had of each that was offered; that is not compiled.
        names: The names of what they define, if there is a keeper.
        options: How all are compiled.
    """

    __slots__ = ("_jobs", "_keeper", "_passes", "_queue", "_workers", "found", "names", "options")

    def __init__(self, options: JitOptions, keeper: Keeper | None) -> None:
        """The thread starts when there is something to do."""
        self.found: dict[str, bytes | None] = {}
        self.names = ContentNames()
        self.options = options
        self._keeper = keeper
        self._queue: Queue | None = None
        self._jobs: dict[str, Job] = {}
        self._workers: list[_Worker] = []
        self._passes = _adding(options.passes)

    def offer(self, text: str) -> None:
        """Takes a module, after those whose functions it calls, as `generate_code` will get it."""
        if self._keeper is not None:
            self.names.learn(text)
            text = self.names.renamed(text)
        if text in self.found:
            return
        keeper = self._keeper if text.startswith(KEPT) else None
        image = self.found[text] = keeper.find(text) if keeper is not None else None
        # Two programs at once have enough to do.
        if image is None and (self._workers or all(each.record.is_done for each in _running.copy())):
            if not self._workers:
                self._start(1)
            self._hand(text)

    @property
    def begun(self) -> Collection[str]:
        """The modules that it has begun so far, as `generate_code` will get them."""
        return {text for text, job in self._jobs.items() if job.is_taken}

    def finish(self, texts: Iterable[str], threads: int) -> Mapping[str, GeneratedCode]:
        """The code of modules, but for what LLVM refuses, made by the caller and others, so many threads in all."""
        queue = self._opened()
        _runtime().clear(queue)
        waiting = sorted(dict.fromkeys(texts).keys() - self.begun, key=_length, reverse=True)
        if sum(map(len, waiting[1:])) > _FEWEST_CHARACTERS:
            self._start(min(len(waiting), threads, available_cpus()) - 1 - len(self._workers))
        own = _Worker(self, queue)
        own.prepare(waiting)
        try:
            for text in waiting:
                self._hand(text)
            _runtime().end(queue)
            own.work()
        finally:
            codes = self.end()
        return codes

    def end(self) -> Mapping[str, GeneratedCode]:
        """Begins no more; the code of all that was begun since the last time, but for what LLVM refuses."""
        if self._queue is None:
            return {}
        _runtime().clear(self._queue)
        _runtime().end(self._queue)
        for worker in self._workers:
            worker.join()
        self._workers.clear()
        codes = {text: _code(text, job) for text, job in self._jobs.items()}
        self._jobs.clear()
        return {text: code for text, code in codes.items() if code is not None}

    def _opened(self) -> Queue:
        if self._queue is None:
            self._queue = Queue()
            _runtime().open(self._queue)
        return self._queue

    def _start(self, count: int) -> None:
        for _ in range(count):
            worker = _Worker(self, self._opened())
            self._workers.append(worker)
            worker.start()

    def _hand(self, text: str) -> None:
        for worker in self._workers:
            worker.prepare((text,))
        level = level_of(text, self.options)
        job = self._jobs[text] = Job(level=level)
        job.text = text.encode()
        job.passes = ctypes.addressof(self._passes) if level == 2 else None
        _runtime().offer(self._opened(), job)


class _Worker:
    """One who takes jobs out of a queue: a thread of machine code, or whoever calls `work`.

    Attributes:
        queue: The queue.
        record: What machine code knows of it.
    """

    __slots__ = ("_compiler", "_machines", "_table", "queue", "record")

    def __init__(self, compiler: NativeCompiler, queue: Queue) -> None:
        # The jobs are there as long as somebody works on them, even if who waits for that is interrupted.
        self._compiler = compiler
        self._machines: dict[int, int] = {}
        self._table = (ctypes.c_void_p * LEVELS)()
        self.queue = queue
        self.record = Worker(queue=ctypes.addressof(queue), machines=ctypes.addressof(self._table))

    def prepare(self, texts: Iterable[str]) -> None:
        """Takes the machines that the modules need."""
        options = self._compiler.options
        for level in {level_of(text, options) for text in texts} - self._machines.keys():
            self._machines[level] = self._table[level] = take_machine(level, options)

    def start(self) -> None:
        """Lets a thread work; none is made while a process forks."""
        start = _runtime().start
        with _all.starting:
            _running[self] = None
            start(self.record)

    def work(self) -> None:
        """Works until the queue ends."""
        try:
            _running[self] = None
            _runtime().work(self.record)
        finally:
            self._leave()

    def join(self) -> None:
        """Waits for the thread, also after an interruption of that; a forked child has none."""
        if self in _running:
            _runtime().join(self.record)
            self._leave()

    def _leave(self) -> None:
        while self._machines:
            level, machine = self._machines.popitem()
            give_machine_back(machine, level, self._compiler.options)
        _running.pop(self, None)


class _Runtime:
    """The native functions, callable from Python (ctypes releases the interpreter lock around each)."""

    def __init__(self, module: LinkedModule) -> None:
        self._module = module
        queue, job, worker = ctypes.POINTER(Queue), ctypes.POINTER(Job), ctypes.POINTER(Worker)
        self.offer = ctypes.CFUNCTYPE(None, queue, job)(module.address(OFFER))
        self.work, self.start, self.join = (
            ctypes.CFUNCTYPE(None, worker)(module.address(name)) for name in (WORK, START, JOIN)
        )
        self.open, self.clear, self.end, self.hold, self.let_go = (
            ctypes.CFUNCTYPE(None, queue)(module.address(name)) for name in (OPEN, CLEAR, END, HOLD, LET_GO)
        )


@once
def _runtime() -> _Runtime:
    addresses = {f"LLVMPY_{name}": address_of(name) for name in LIBRARY_FUNCTIONS}
    return _Runtime(runtime_code("compiler", native_compiler_ir, addresses))


def _length(text: str) -> tuple[bool, int]:
    """How modules compare in the time that they take."""
    return BRIEF not in text, len(text)


def _code(text: str, job: Job) -> GeneratedCode | None:
    """What became of a job, once."""
    buffer, job.code = job.code, None
    if not buffer:
        return None
    return GeneratedCode(image=bytes_of(buffer), exports=exported_names(text), compile_ms=1e-6 * job.nanoseconds)


@functools.cache
def _adding(passes: tuple[IrPass, ...]) -> ctypes.Array[ctypes.c_void_p]:
    """Functions that add passes to a pass manager, and null."""
    addresses = [address_of(f"module_Add{each.value}Pass") for each in passes]
    return (ctypes.c_void_p * (len(addresses) + 1))(*addresses)


class _Running:
    """All queues from which somebody may be in LLVM, as a lock that forks wait for.

    A child that was forked while another thread made one frees that one's memory twice (glibc 2.36).

    Attributes:
        starting: Held while a thread is made.
    """

    def __init__(self) -> None:
        self.starting = threading.RLock()
        self._held: list[Queue] = []

    def __enter__(self) -> None:
        self.starting.acquire()
        self._held = list({id(each.queue): each.queue for each in _running.copy()}.values())
        for queue in self._held:
            _runtime().hold(queue)

    def __exit__(self, *exception: object) -> None:
        while self._held:
            _runtime().let_go(self._held.pop())
        self.starting.release()


_running: dict[_Worker, None] = {}
_all = _Running()
hold_over_forks(_all)  # within the locks of `jit.py`
atexit.register(_all.__enter__)  # the library must not go while a thread is in it
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)
