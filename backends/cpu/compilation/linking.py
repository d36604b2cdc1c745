"""Links code with the constants and callbacks that it names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xlalite.backends.codegen.elements.random_state import RANDOM_STATE
from xlalite.backends.cpu.compilation.code_record import CodeRecord
from xlalite.backends.cpu.compilation.evaluator_calls import BoundCall, bind_evaluator_calls
from xlalite.backends.cpu.emission.constant_pool import find_constants, keep_alive, pooled
from xlalite.backends.cpu.emission.emitted_module import COUNTERS
from xlalite.backends.cpu.emission.random_state import random_state_address
from xlalite.backends.cpu.native.linker import LinkedModule, link
from xlalite.backends.cpu.native.object_code import ObjectCode
from xlalite.backends.cpu.native.thread_pool import runtime_imports
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class LinkedCode:
    """Machine code ready to be called.

    Attributes:
        module: The code.
        record: What a call needs to know.
        code_bytes: Size of the object code.
        failures: What the code's nonzero results mean, that of 1 first.
        counters: Calls and nanoseconds of each of the record's clocked kernels, to which calls of the code add.
    """

    module: LinkedModule
    record: CodeRecord
    code_bytes: int
    failures: tuple[BoundCall, ...]
    counters: NDArray[np.int64]


def link_code(code: ObjectCode, given: HloModule | None) -> LinkedCode:
    """The code of a module in memory; None for the module if the code takes no constants from it.

    Raises:
        CodegenError: A symbol is missing.
        KeyError: Its record or a constant is missing.
        TypeError: The record holds something of another type.
        ValueError: The record holds a pair that is none.
    """
    record = CodeRecord.from_json(code.record)
    of_module = find_constants(record.given_constants, given) if given is not None else {}
    constants = pooled({**code.constants, **of_module})
    calls = bind_evaluator_calls(record.evaluator_calls)
    imports = {RANDOM_STATE: random_state_address()}
    if record.forks:
        imports |= runtime_imports()
    if record.meets:
        from xlalite.backends.cpu.native.rendezvous import rendezvous_imports

        imports |= rendezvous_imports()
    imports |= {name: constant.address for name, constant in constants.items()}
    imports |= {name: call.address for name, call in calls.items()}
    counters = np.zeros((len(record.clocked), 2), np.int64)
    if record.clocked:
        imports[COUNTERS] = counters.ctypes.data
    linked = link([code], imports)
    keep_alive(linked, (*constants.values(), *calls.values(), *([counters] if record.clocked else ())))
    return LinkedCode(linked, record, len(code.image), tuple(calls.values()), counters)
