"""Steps that need nothing of one another and are too small to be split: threads share them out, each step whole.

Kernels that follow one another wait here until something needs what one of them writes, or writes what one of them
touches; then they are called one after the other, or, if they are worth it, as one job of the thread pool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

from xlalite.backends.codegen.llvm import I64, PTR, VOID, Function, ModuleBuilder
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.passes.memory.buffers import BufferSlice


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a kernel.

    Attributes:
        instruction: What it computes.
        kind: The kind of kernel.
        kernel: What computes it.
        extent: The whole of the kernel's extent.
        arguments: How many addresses the kernel takes.
        estimate_ns: How long it takes, about.
    """

    instruction: HloInstruction
    kind: str
    kernel: Function
    extent: int
    arguments: int
    estimate_ns: float


class TouchedMemory:
    """What memory some steps read and write."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._ranges: defaultdict[int, list[tuple[int, int, bool]]] = defaultdict(list)

    def add(self, read: Iterable[BufferSlice], written: Iterable[BufferSlice]) -> None:
        """Counts a step's operands and results."""
        for pieces, is_written in ((read, False), (written, True)):
            for piece in pieces:
                found = (piece.offset, piece.offset + piece.size_bytes, is_written)
                self._ranges[piece.allocation.number].append(found)

    def must_precede(self, read: Iterable[BufferSlice], written: Iterable[BufferSlice]) -> bool:
        """Whether another step reads what these wrote, or writes what they touched."""
        return any(self._meets(piece, wanted=True) for piece in read) or any(
            self._meets(piece, wanted=False) for piece in written
        )

    def _meets(self, piece: BufferSlice, *, wanted: bool) -> bool:
        end = piece.offset + piece.size_bytes
        return any(
            start < end and piece.offset < stop and is_written >= wanted
            for start, stop, is_written in self._ranges.get(piece.allocation.number, ())
        )


def emit_region(module: ModuleBuilder, steps: Sequence[Step]) -> Function:
    """The function `void(ptr args, i64 begin, i64 end)` that runs the steps of those numbers.

    The addresses of each step follow those of the step before. Steps of one kernel share a loop.
    """
    fb = module.function(module.unique_name("region"), VOID, (PTR, I64, I64), linkage="hidden")
    fb.only_calls()
    arguments, begin, end = fb.parameters
    first = address = 0
    for (kernel, extent, count), equal in groupby(steps, lambda step: (step.kernel, step.extent, step.arguments)):
        last = first + len(list(equal))
        with fb.loop(fb.smax(begin, first), fb.smin(end, last)) as number:
            place = fb.add(fb.mul(fb.sub(number, first), count), address)
            fb.call(kernel, fb.gep(PTR, arguments, place), 0, extent)
        address += (last - first) * count
        first = last
    fb.ret()
    return fb.function


def region_decision(steps: Sequence[Step], grain: int) -> Decision:
    """The record of a region."""
    names = tuple(step.instruction.name for step in steps)
    numbers = {"estimate_ns": round(sum(step.estimate_ns for step in steps)), "steps": len(steps), "grain": abs(grain)}
    return Decision("parallel region", names, "side by side", "none needs another, and each is small", numbers)
