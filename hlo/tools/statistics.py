"""Numbers about modules: which operations, how many bytes, how deep, how shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Memory
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers about a computation, or about all computations of a module together.

    Attributes:
        name: Of the module or computation.
        computation_count: Number of computations.
        instruction_count: Number of instructions.
        opcodes: How often each operation occurs, the most frequent first.
        parameter_bytes: Bytes of the parameters of the computation, or of the entry.
        result_bytes: Bytes of the result of the computation, or of the entry.
        constant_bytes: Bytes of all constants.
        value_bytes: Bytes of the values of all instructions; tuples and what only renames a value count nothing.
        depth: Instructions on the longest way from a parameter or constant to a root, in one computation.
        largest_fan_out: The greatest number of users that an instruction has.
        mean_fan_out: Users by instruction, on average.
    """

    name: str
    computation_count: int
    instruction_count: int
    opcodes: Mapping[str, int]
    parameter_bytes: int
    result_bytes: int
    constant_bytes: int
    value_bytes: int
    depth: int
    largest_fan_out: int
    mean_fan_out: float

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.instruction_count} instructions in {self.computation_count} computations",
            f"  parameters {self.parameter_bytes} B, result {self.result_bytes} B, "
            f"constants {self.constant_bytes} B, values {self.value_bytes} B",
            f"  depth {self.depth}, users: at most {self.largest_fan_out}, {self.mean_fan_out:.2f} on average",
        ]
        width = max(map(len, self.opcodes), default=0)
        lines += [f"  {opcode:<{width}}  {count}" for opcode, count in self.opcodes.items()]
        return "\n".join(lines)


_HOLDS_ARRAYS = (Memory.WRITES, Memory.GIVEN)


def collect_statistics(subject: HloModule | HloComputation) -> Statistics:
    """The numbers of a module or of one computation."""
    match subject:
        case HloModule():
            computations, main = subject.computations(), subject.entry_computation
        case HloComputation():
            computations, main = (subject,), subject
    instructions = [one for computation in computations for one in computation.instructions]
    counts = Counter(one.opcode for one in instructions)
    users = [one.user_count for one in instructions]
    return Statistics(
        name=subject.name,
        computation_count=len(computations),
        instruction_count=len(instructions),
        opcodes=MappingProxyType(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))),
        parameter_bytes=sum(parameter.shape.size_bytes for parameter in main.parameters),
        result_bytes=main.root.shape.size_bytes,
        constant_bytes=sum(one.shape.size_bytes for one in instructions if one.opcode == "constant"),
        value_bytes=sum(one.shape.size_bytes for one in instructions if one.op.memory in _HOLDS_ARRAYS),
        depth=max(_depth(computation) for computation in computations),
        largest_fan_out=max(users, default=0),
        mean_fan_out=sum(users) / len(users) if users else 0.0,
    )


def _depth(computation: HloComputation) -> int:
    depths: dict[HloInstruction, int] = {}
    for one in computation.post_order():
        depths[one] = 1 + max((depths[before] for before in (*one.operands, *one.control_predecessors)), default=0)
    return max(depths.values(), default=0)
