"""Compiles modules and runs them in guarded memory: pickled requests on standard input, answers on standard output.

An argument is how many bytes the last cache is to have, so that small arrays are stored past it.

A request is (HLO text, instruction set, whether to optimise, flat arguments). The answer is (results, overruns), or an
exception that compiling raised. Each module runs twice: all arrays and the scratch area end at a guard page, then all
begin at one. On a fault the process dies, and whoever waits for the answer finds the pipe closed.
"""

import ctypes
import pickle
import sys

import numpy as np
from guarded_memory import GuardedMemory

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import target
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.hlo.errors import XlaliteError
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
            text, isa, optimize, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: object
        try:
            answer = compile_and_run(memory, text, isa, optimize, arguments)
        except XlaliteError as error:
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def compile_and_run(
    memory: GuardedMemory, text: str, isa: str, optimize: bool, arguments: Arrays
) -> tuple[Arrays, list[str]]:
    options = CompileOptions(num_threads=1, optimize=optimize, use_cache=False, debug=DebugOptions(cpu_max_isa=isa))
    executable = get_backend("cpu").compile(parse(text), options)
    assert isinstance(executable, CpuExecutable)
    overruns: list[str] = []
    for at_end in (True, False):
        results = _run(memory, executable, arguments, at_end, overruns)
    return results, overruns


def _run(
    memory: GuardedMemory, executable: CpuExecutable, arguments: Arrays, at_end: bool, overruns: list[str]
) -> Arrays:
    entry, signature = executable.call.entry, executable.call.signature
    inputs = [memory.place(array.nbytes, array.itemsize, at_end) for array in arguments]
    for place, array in zip(inputs, arguments, strict=True):
        place.bytes[:] = array.reshape(-1).view(np.uint8)
    outputs = [memory.place(s.size_bytes, s.dtype.numpy.itemsize, at_end) for s in signature.outputs]
    arena = memory.place(entry.arena_bytes, _ARENA_ALIGNMENT, at_end)
    params, results = (
        (ctypes.c_void_p * len(places))(*[place.address for place in places]) for places in (inputs, outputs)
    )
    status = _Entry(entry.address)(params, results, arena.address, entry.pool.context_address)
    if status:
        overruns.append(f"the code gave {status}: {entry.failures[status - 1].explain()[0]}")
    for name, places in (("argument", inputs), ("result", outputs), ("scratch area", [arena])):
        for number, place in enumerate(places):
            where = place.overrun()
            if where:
                overruns.append(f"{name} {number}: {where}")
    for number, (place, array) in enumerate(zip(inputs, arguments, strict=True)):
        if place.bytes.tobytes() != array.tobytes():
            overruns.append(f"argument {number}: it was written")
    found = [
        place.bytes.copy().view(shape.dtype.numpy).reshape(shape.dims)
        for place, shape in zip(outputs, signature.outputs, strict=True)
    ]
    memory.release()
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        first, second, _ = target.host_cache_bytes()
        target.host_cache_bytes = lambda: (first, second, int(sys.argv[1]))
    serve()
