"""Which instruction calls which computation as control flow, and the order in which everything runs.

Only computations that run as part of the program count: the entry and what `while`, `conditional` and `call` reach from
there. Bodies of fusions and functions applied to elements belong to the instruction that uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """When an instruction runs: from `start` to `end`, inclusive, in the flattened schedule."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FlatSchedule:
    """The whole program as one sequence; an instruction that calls spans all that it calls.

    Attributes:
        spans: When each instruction runs.
        callers: The calling instruction of each computation but the entry.
        computation_spans: When each computation runs.
        length: One past the last time.
    """

    spans: Mapping[HloInstruction, Span]
    callers: Mapping[HloComputation, HloInstruction]
    computation_spans: Mapping[HloComputation, Span]
    length: int

    def enclosing_loops(self, instruction: HloInstruction) -> list[HloInstruction]:
        """The `while` instructions in whose condition or body an instruction runs, innermost first."""
        loops = []
        computation = instruction.parent
        while computation is not None and computation in self.callers:
            caller = self.callers[computation]
            if caller.opcode == "while":
                loops.append(caller)
            computation = caller.parent
        return loops


def flatten_schedule(module: HloModule) -> FlatSchedule:
    """The order of everything in a scheduled module.

    Raises:
        PassError: A computation is called from two places.
    """
    spans: dict[HloInstruction, Span] = {}
    callers: dict[HloComputation, HloInstruction] = {}
    computation_spans: dict[HloComputation, Span] = {}

    time = 0

    def visit(computation: HloComputation) -> Iterator[HloComputation]:
        nonlocal time
        first = time
        for instruction in computation.instructions:
            start = time
            if instruction.op.has(Trait.CONTROL_FLOW):
                for called in instruction.called_computations:
                    if called in callers:
                        raise PassError(
                            f"flattening the schedule of {module.name}: computation {called.name} is called by "
                            f"%{callers[called].name} and by %{instruction.name}, expected one caller"
                        )
                    callers[called] = instruction
                    yield called
            spans[instruction] = Span(start, time)
            time += 1
        computation_spans[computation] = Span(first, time)
        time += 1

    visits = [visit(module.entry_computation)]
    while visits:
        called = next(visits[-1], None)
        if called is None:
            visits.pop()
        else:
            visits.append(visit(called))
    return FlatSchedule(spans, callers, computation_spans, time)
