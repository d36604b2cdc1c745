"""The worker threads that generated code forks its loops over.

A pool of n threads is n - 1 native workers and the caller. The workers start with the first job, run with all signals
blocked, never need the interpreter lock, and stop when the pool is dropped or the interpreter exits. A pool serves one
fork-join at a time: a nested call, or a call of a second thread while the pool is taken, runs its whole extent in its
own thread. A forked child finds its pools idle and starts their workers anew.

The machine code is in `thread_pool_ir`; compiled code calls `xlalite_parallel_for` by name (`runtime_imports`).
"""

from __future__ import annotations

import ctypes
import functools
import os
import time
import weakref
from collections.abc import Mapping

from xlalite.backends.cpu.native.fork_lock import ForkLock, hold_over_forks
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.runtime_code import runtime_code
from xlalite.backends.cpu.native.threads import (
    PARALLEL_FOR,
    available_cpus,
    has_native_pool,
    resolve_num_threads,
)

__all__ = ["PARALLEL_FOR", "SPIN_MICROSECONDS", "ThreadPool", "get_pool", "runtime_imports"]

SPIN_MICROSECONDS = 30.0
"""How long an idle worker watches for the next kernel before it sleeps; waking a sleeper costs more than 5 µs."""

_CONTEXT_WORDS = 8


class ThreadPool:
    """Threads for `xlalite_parallel_for`; use `get_pool` to share one by size.

    Attributes:
        num_threads: How many threads take part, the caller included.
        address: The native pool; 0 when the caller is alone.
    """

    __slots__ = ("__weakref__", "_context", "_finalizer", "address", "num_threads")

    def __init__(self, num_threads: int | None = None) -> None:
        """Makes a pool; see `resolve_num_threads` for None and for errors."""
        self.num_threads = resolve_num_threads(num_threads)
        self.address = 0
        if self.num_threads > 1 and has_native_pool():
            runtime = _runtime()
            spin = 0 if self.num_threads > available_cpus() else _spin_turns()
            self.address = runtime.create(self.num_threads, spin) or 0
            self._finalizer = weakref.finalize(self, runtime.destroy, self.address)
            _live_pools.add(self)
        self._context = (ctypes.c_void_p * _CONTEXT_WORDS)(self.address)

    @property
    def context_address(self) -> int:
        """What an entry function takes as its context: a block whose first word is the native pool, the rest zero."""
        return ctypes.addressof(self._context)

    def parallel_for(self, kernel: int, arguments: int, extent: int, grain: int = 1) -> None:
        """Runs `kernel(arguments, begin, end)` over slices of `[0, extent)`, without the interpreter lock.

        Args:
            kernel: Address of a `void(ptr, i64, i64)`; the order and the number of its calls are not defined.
            arguments: Address that every call gets.
            extent: Length of the range.
            grain: Every slice begins at a multiple of it; shorter ranges are not divided. It is negative if the job is
                short, and not worth a worker that has no processor of its own.
        """
        _runtime().parallel_for(self.context_address, kernel, arguments, extent, grain)

    def __repr__(self) -> str:
        return f"ThreadPool({self.num_threads})"


def get_pool(num_threads: int | None = None) -> ThreadPool:
    """The pool of a size, one a process; it lives as long as somebody holds it.

    Raises:
        FlagError: The number is not from 1 to 512.
    """
    number = resolve_num_threads(num_threads)
    with _pools_lock:
        pool = _pools.get(number)
        if pool is None:
            pool = _pools[number] = ThreadPool(number)
        return pool


def runtime_imports() -> Mapping[str, int]:
    """Addresses of what generated code may call by name, for `jit.link`; valid as long as the process."""
    return {PARALLEL_FOR: _runtime().module.address(PARALLEL_FOR)}


class _Runtime:
    """The native functions, callable from Python (ctypes releases the interpreter lock around each)."""

    def __init__(self, module: LinkedModule) -> None:
        self.module = module
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        self.parallel_for = self._function(PARALLEL_FOR, None, pointer, pointer, pointer, word, word)
        if has_native_pool():
            self.create = self._function("xlalite_pool_create", pointer, ctypes.c_int32, ctypes.c_int32)
            self.destroy = self._function("xlalite_pool_destroy", None, pointer)
            self.reset = self._function("xlalite_pool_reset", None, pointer)
            self.hold = self._function("xlalite_pool_hold", ctypes.c_int32, pointer)
            self.let_go = self._function("xlalite_pool_let_go", None, pointer)
            self.spin = self._function("xlalite_spin", None, word)

    def _function(self, name: str, result: type | None, *arguments: type) -> ctypes._CFunctionType:
        return ctypes.CFUNCTYPE(result, *arguments)(self.module.address(name))


@once
def _runtime() -> _Runtime:
    runtime = _Runtime(runtime_code("thread pool", _thread_pool_ir))
    if has_native_pool():
        hold_over_forks(_starts)
        os.register_at_fork(after_in_child=_reset_pools)
    return runtime


def _thread_pool_ir() -> str:
    from xlalite.backends.cpu.native.thread_pool_ir import serial_pool_ir, thread_pool_ir

    return thread_pool_ir() if has_native_pool() else serial_pool_ir()


@functools.cache
def _spin_turns() -> int:
    """Turns of the idle loop in `SPIN_MICROSECONDS`; what a turn costs differs tenfold between CPUs."""
    turns = 500
    best = min(_timed_spin(turns) for _ in range(3))
    return max(1, int(SPIN_MICROSECONDS * 1e-6 / max(best, 1e-9) * turns))


def _timed_spin(turns: int) -> float:
    begin = time.perf_counter()
    _runtime().spin(turns)
    return time.perf_counter() - begin


def _reset_pools() -> None:
    """In a forked child: the workers of its parent do not exist here."""
    for pool in list(_live_pools):
        _runtime().reset(pool.address)


class _Starts:
    """The start of workers, as a lock that forks wait for: see `native_compiler.py`."""

    def __init__(self) -> None:
        self._held: list[ThreadPool] = []

    def __enter__(self) -> None:
        self._held = [pool for pool in list(_live_pools) if _runtime().hold(pool.address)]

    def __exit__(self, *exception: object) -> None:
        while self._held:
            _runtime().let_go(self._held.pop().address)


_starts = _Starts()
_pools_lock = ForkLock()
_pools: weakref.WeakValueDictionary[int, ThreadPool] = weakref.WeakValueDictionary()
_live_pools: weakref.WeakSet[ThreadPool] = weakref.WeakSet()
