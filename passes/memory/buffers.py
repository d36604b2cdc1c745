"""What buffer assignment gives: for every array of a scheduled module, the memory it lies in.

These are the data that backends read; `buffer_assignment.py` computes them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import ShapeIndex

ALIGNMENT_BYTES = 64
"""Every slice of the arena starts at a multiple of this."""


class AllocationKind(enum.Enum):
    """Where an allocation comes from."""

    PARAMETER = "parameter"
    OUTPUT = "output"
    CONSTANT = "constant"
    ARENA = "arena"


@dataclass(frozen=True, slots=True)
class Allocation:
    """A piece of memory that outlives single values.

    Attributes:
        number: Position in the assignment.
        kind: Where it comes from.
        size_bytes: Its size.
        leaf: For a parameter or an output, the number of the array among the flattened parameters or outputs.
        literal: For a constant, its value.
    """

    number: int
    kind: AllocationKind
    size_bytes: int
    leaf: int = 0
    literal: Literal | None = None


@dataclass(frozen=True, slots=True)
class BufferSlice:
    """The bytes of one value."""

    allocation: Allocation
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Donation:
    """An output that lies in the memory of a parameter: both are leaf numbers."""

    parameter: int
    output: int


@dataclass(frozen=True, slots=True)
class BufferAssignment:
    """Memory of every array of a module.

    Attributes:
        allocations: All of them; at most one is the arena.
        slices: For each (instruction, shape index) that is an array, its bytes.
        donations: Outputs in the memory of parameters.
        report: Makes the assignment as text, in the manner of XLA's.
    """

    allocations: tuple[Allocation, ...]
    slices: Mapping[tuple[HloInstruction, ShapeIndex], BufferSlice]
    donations: tuple[Donation, ...]
    report: Callable[[], str]

    def slice_of(self, instruction: HloInstruction, index: ShapeIndex = ()) -> BufferSlice:
        """The bytes of an array."""
        return self.slices[instruction, index]

    def in_place(self, instruction: HloInstruction, operands: Sequence[HloInstruction]) -> tuple[tuple[int, int], ...]:
        """Numbers of the results that lie where an operand does, and of the operands."""
        numbers = {self.slice_of(operand): number for number, operand in enumerate(operands)}
        results = [self.slice_of(instruction, index) for index, _ in instruction.shape.leaves()]
        return tuple((number, numbers[piece]) for number, piece in enumerate(results) if piece in numbers)

    @property
    def arena_bytes(self) -> int:
        """Size of the scratch memory that a call needs."""
        return sum(a.size_bytes for a in self.allocations if a.kind is AllocationKind.ARENA)
