"""Where a program keeps the scalars that it computes between kernels: on its stack, hence in registers.

Arrays of one element are scalars here, whatever their rank: a step of a loop takes such slices, and updates such.

LLVM must take every kernel to write anywhere in the arena, but knows all about a slot of the stack whose address goes
nowhere. What lies in the memory of a slot is written there before a kernel runs that reads it, and read back after one
that writes it. Slots belong to one native function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xlalite.backends.codegen.elements.rules import SEVERAL_ELEMENTS
from xlalite.backends.codegen.kernels.loop import LoopKernel
from xlalite.backends.codegen.kernels.planner import KernelPlan
from xlalite.backends.codegen.llvm import FunctionBuilder, Value, integer
from xlalite.backends.cpu.emission.step_chunks import StepChunks
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.shape import Shape
from xlalite.passes.memory.buffers import AllocationKind, BufferAssignment, BufferSlice

_LARGEST = 8


class ScalarSlots:
    """The slots of a function, by the memory that they stand for."""

    def __init__(
        self, fb: FunctionBuilder, pieces: Iterable[BufferSlice], address: Callable[[BufferSlice], Value]
    ) -> None:
        """Gives each piece of memory a slot; `address` says where a piece lies."""
        self._fb = fb
        self._address = address
        self._slots = {piece: fb.alloca(integer(8 * piece.size_bytes)) for piece in pieces}

    def get(self, piece: BufferSlice) -> Value | None:
        """The slot for some memory, if it has one."""
        return self._slots.get(piece)

    def write_back(self, pieces: Iterable[BufferSlice]) -> None:
        """Puts the contents of slots where kernels read them."""
        for piece in self._with_slots(pieces):
            self._move(piece, self._slots[piece], self._address(piece))

    def read_back(self, pieces: Iterable[BufferSlice]) -> None:
        """Takes what kernels have written into the slots."""
        for piece in self._with_slots(pieces):
            self._move(piece, self._address(piece), self._slots[piece])

    def write_back_results(self) -> None:
        """Puts the contents of slots into the results of the program."""
        self.write_back(piece for piece in self._slots if piece.allocation.kind is AllocationKind.OUTPUT)

    def _with_slots(self, pieces: Iterable[BufferSlice]) -> list[BufferSlice]:
        return [piece for piece in dict.fromkeys(pieces) if piece in self._slots]

    def _move(self, piece: BufferSlice, source: Value, target: Value) -> None:
        type_ = integer(8 * piece.size_bytes)
        self._fb.store(self._fb.load(type_, source, 1), target, 1)


def scalars_with_slots(module: HloModule, assignment: BufferAssignment, chunks: StepChunks) -> list[BufferSlice]:
    """The memory of scalars of a program that has loops and is one function; else none, as slots would gain little."""
    has_loop = any(instruction.opcode == "while" for instruction in module.instructions())
    if not has_loop or not chunks.are_one_function:
        return []
    found: dict[BufferSlice, None] = {}
    for (instruction, index), piece in assignment.slices.items():
        if has_one_element(instruction.shape.subshape(index)) and 0 < piece.size_bytes <= _LARGEST and _is_own(piece):
            found[piece] = None
    return list(found)


def _is_own(piece: BufferSlice) -> bool:
    """Whether nobody but the program writes there, and of a result nobody writes more."""
    kind, whole = piece.allocation.kind, piece.allocation.size_bytes
    return kind is AllocationKind.ARENA or (kind is AllocationKind.OUTPUT and piece.size_bytes == whole)


def is_scalar_work(plan: KernelPlan) -> bool:
    """Whether a kernel only computes scalars, or puts one into an array, so that no call of it is needed."""
    body = plan.kernel.request.body
    steps = [step for step in body.instructions if step.opcode not in ("parameter", "constant") or step.is_root]
    if plan.kernel.request.is_update:
        steps[steps.index(body.root)] = body.root.operand(1)
    elif not isinstance(plan.kernel, LoopKernel):
        return False
    return all(
        step.opcode not in (*SEVERAL_ELEMENTS, "dot") and all(has_one_element(leaf) for _, leaf in step.shape.leaves())
        for step in steps
    )


def has_one_element(shape: Shape) -> bool:
    """Whether the value is an array of one element."""
    return shape.is_array and shape.element_count == 1
