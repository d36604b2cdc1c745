"""Compiles modules and runs them in guarded memory: pickled requests on standard input, answers on standard output.

Arguments are how many bytes the caches are to have, whatever the machine has: which kernels there are depends on them.

A request is (HLO text, instruction set, whether to optimise, flat arguments, whether kinds are wanted), of programs for
several devices the arguments of one after the other. The answer is (results, overruns, kinds of kernels if wanted: they
take another compilation), or an exception that compiling raised. Each module runs twice: all arrays and the scratch
area end at a guard page, then all begin at one. On a fault the process dies, and whoever waits for the answer finds the
pipe closed.
"""

import ctypes
import pickle
import sys
from threading import Thread

import numpy as np
from guarded_memory import GuardedMemory

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import target
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.backends.cpu.native.letters import native_mailbox
from xlalite.backends.cpu.native.rendezvous import Rendezvous
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.surroundings.host_transfers import HostTransfers
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions

Arrays = list[np.ndarray]

_Entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
_ARENA_ALIGNMENT = 64


def serve() -> None:
    """Answers requests until there are no more."""
    memory = GuardedMemory()
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: object
        try:
            answer = compile_and_run(memory, *request)
        except XlaliteError as error:
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def compile_and_run(
    memory: GuardedMemory, text: str, isa: str, optimize: bool, arguments: Arrays, wants_kinds: bool
) -> tuple[Arrays, list[str], set[str]]:
    options = CompileOptions(num_threads=1, optimize=optimize, use_cache=False, debug=DebugOptions(cpu_max_isa=isa))
    module = parse(text)
    executable = get_backend("cpu").compile(module, options)
    assert isinstance(executable, CpuExecutable)
    overruns: list[str] = []
    devices = module.config.replica_count
    each = len(arguments) // devices
    given = [arguments[rank * each : (rank + 1) * each] for rank in range(devices)]
    for at_end in (True, False):
        results = _run(memory, executable, given, at_end, overruns)
    decisions = executable.decisions() if wants_kinds else ()
    kinds = {d.verdict for d in decisions if d.decided_by == "kernel planner"}
    return results, overruns, kinds


def _run(
    memory: GuardedMemory, executable: CpuExecutable, devices: list[Arrays], at_end: bool, overruns: list[str]
) -> Arrays:
    """The results of all devices, which run side by side."""
    hosts = [HostTransfers() for _ in devices]
    rendezvous = Rendezvous([native_mailbox(host).address for host in hosts], 0) if len(devices) > 1 else None
    runs = [_Run(memory, executable, arguments, at_end, overruns) for arguments in devices]
    if rendezvous is None:
        runs[0].run(executable.call.entry.pool.context_address)
    else:
        threads = [Thread(target=run.run, args=(rendezvous.context(rank),)) for rank, run in enumerate(runs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rendezvous.close()
    found = [result for run in runs for result in run.results()]
    memory.release()
    return found


class _Run:
    """The code on one device, in guarded memory."""

    def __init__(
        self, memory: GuardedMemory, executable: CpuExecutable, arguments: Arrays, at_end: bool, overruns: list[str]
    ) -> None:
        self._entry, self._shapes = executable.call.entry, executable.call.signature.outputs
        self._arguments, self._overruns = arguments, overruns
        self._inputs = [memory.place(array.nbytes, array.itemsize, at_end) for array in arguments]
        for place, array in zip(self._inputs, arguments, strict=True):
            place.bytes[:] = array.reshape(-1).view(np.uint8)
        self._outputs = [memory.place(s.size_bytes, s.dtype.numpy.itemsize, at_end) for s in self._shapes]
        self._arena = memory.place(self._entry.arena_bytes, _ARENA_ALIGNMENT, at_end)

    def run(self, context: int) -> None:
        params, results = (
            (ctypes.c_void_p * len(places))(*[place.address for place in places])
            for places in (self._inputs, self._outputs)
        )
        status = _Entry(self._entry.address)(params, results, self._arena.address, context)
        if status:
            self._overruns.append(f"the code gave {status}: {self._entry.failures[status - 1].explain()[0]}")

    def results(self) -> Arrays:
        kinds = (("argument", self._inputs), ("result", self._outputs), ("scratch area", [self._arena]))
        for name, places in kinds:
            for number, place in enumerate(places):
                where = place.overrun()
                if where:
                    self._overruns.append(f"{name} {number}: {where}")
        for number, (place, array) in enumerate(zip(self._inputs, self._arguments, strict=True)):
            if place.bytes.tobytes() != array.tobytes():
                self._overruns.append(f"argument {number}: it was written")
        return [
            place.bytes.copy().view(shape.dtype.numpy).reshape(shape.dims)
            for place, shape in zip(self._outputs, self._shapes, strict=True)
        ]


if __name__ == "__main__":
    cache_bytes = tuple(map(int, sys.argv[1:]))
    target.host_cache_bytes = lambda: cache_bytes
    serve()
