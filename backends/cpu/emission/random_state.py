"""The counter of the process that compiled code draws random numbers from.

The evaluator has another: neither can wait for the other's lock. They count in different halves of 128 bits.
"""

from __future__ import annotations

import numpy as np

from xlalite.backends.codegen.llvm import I8, I128, FunctionBuilder, ModuleBuilder, Value, constant
from xlalite.backends.cpu.native.aligned_memory import aligned

RANDOM_STATE = "xlalite_random_state"
"""The name under which code refers to it."""

_memory = aligned(np.array([0x7012395, 1 << 63], np.uint64).view(np.uint8))


def random_state_address() -> int:
    """Where it is, as long as the process lives."""
    return int(_memory.ctypes.data)


def declare_random_state(module: ModuleBuilder) -> Value:
    """Its address for code."""
    return module.global_variable(RANDOM_STATE, I8, linkage="external", align=16)


def emit_advance(fb: FunctionBuilder, state: Value, result: Value, delta: int) -> None:
    """Stores the counter as it was and moves it on: whoever comes at the same time gets other numbers."""
    fb.store(fb.atomic_rmw("add", state, constant(I128, delta)), result, 8)
