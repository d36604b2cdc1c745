"""What code generation gives to the linker."""

from __future__ import annotations

from dataclasses import field

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.literal import Literal

ENTRY = "xlalite_entry"
"""Name of a module's native function."""

COUNTERS = "xlalite_profile_counters"
"""Name of the calls and nanoseconds of each kernel, where code takes times."""

ClockedKernel = tuple[str, str, int, int, str, int]
"""Name, kind, arithmetic operations of one call, bytes of one call, element type, threads."""


@dataclass(slots=True)
class EmittedModule:
    """The code of a module.

    Attributes:
        text: LLVM IR.
        constants: Values that the linker must find under the names `constant_pool.symbol_of` gives.
        decisions: Kernels chosen, with reasons.
        evaluator_calls: HLO text of what the evaluator computes, by the name that the code calls.
        kernel_count: Number of distinct kernels.
        meets: Whether devices meet in it.
        forks: Whether it hands work to other threads.
        scratch_bytes: Memory for kernels behind the arena.
        clocked: Whose times the code takes.
    """

    text: str
    constants: list[Literal] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    evaluator_calls: dict[str, str] = field(default_factory=dict)
    kernel_count: int = 0
    meets: bool = False
    forks: bool = False
    scratch_bytes: int = 0
    clocked: tuple[ClockedKernel, ...] = ()
