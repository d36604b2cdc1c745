"""How long a kernel takes on one core, about: what it reads and writes, and all that it evaluates, again or not."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.kernels.throughput import FLOPS_PER_NS, TRANSCENDENTALS_PER_NS, bytes_per_ns
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape
from xlalite.passes.analysis.cost_analysis import CostAnalysis
from xlalite.passes.fusion.kernel_shape import KernelKind, KernelShape
from xlalite.passes.fusion.work import evaluations


@dataclass(frozen=True, slots=True)
class Work:
    """What one run of a kernel does.

    Attributes:
        flops: Arithmetic operations.
        transcendentals: Evaluations of transcendental functions.
        bytes_moved: Bytes read and written.

    Operations are on elements of f32 or narrower; one on a wider element counts for several.
    """

    flops: float
    transcendentals: float
    bytes_moved: int

    def nanoseconds(self, cache_bytes: Sequence[int]) -> float:
        """The time it takes, what it moves being in the nearest cache that holds it."""
        moving = self.bytes_moved / bytes_per_ns(self.bytes_moved, cache_bytes)
        return moving + self.flops / FLOPS_PER_NS + self.transcendentals / TRANSCENDENTALS_PER_NS


def kernel_work(body: HloComputation, shape: KernelShape) -> Work:
    """The work of a kernel that computes a body."""
    evaluated = evaluations(reversed(body.post_order()), shape.places, shape.domain)
    costs = CostAnalysis()
    flops = transcendentals = 0.0
    for instruction in body.instructions:
        cost = costs.of_instruction(instruction)
        times = _width(instruction) * evaluated.of(instruction) / max(_element_count(instruction), 1)
        flops += cost.flops * times
        transcendentals += cost.transcendentals * times
    moved = sum(bytes_read(parameter) for parameter in body.parameters) + written(body.root, shape).size_bytes
    return Work(flops, transcendentals, moved)


def _width(instruction: HloInstruction) -> float:
    """How many f32 take as much of a register as an element, at least one."""
    if instruction.shape.is_array:
        return max(1.0, instruction.shape.dtype.bits / 32)
    return max(1.0, *(shape.dtype.bits / 32 for _, shape in instruction.shape.leaves() if shape.is_array), 1.0)


def _element_count(instruction: HloInstruction) -> int:
    shape = instruction.shape
    return shape.elements[0].element_count if shape.is_tuple and shape.elements else shape.element_count


_READS_A_PART = frozenset({"slice", "dynamic-slice", "gather"})


def bytes_read(parameter: HloInstruction) -> int:
    """Bytes of a parameter that the kernel reads, about: the parts that slices take, else all of it."""
    size = parameter.shape.size_bytes
    parts = [user.shape.size_bytes for user in parameter.users if user.opcode in _READS_A_PART]
    whole = [user for user in parameter.users if user.opcode not in _READS_A_PART and not _is_updated(parameter, user)]
    return size if whole else min(size, sum(parts))


def _is_updated(parameter: HloInstruction, user: HloInstruction) -> bool:
    return user.opcode == "dynamic-update-slice" and user.operand(0) is parameter


def written(root: HloInstruction, shape: KernelShape) -> Shape:
    """What a kernel writes: its results, or the part of one that it updates."""
    return root.operand(1).shape if shape.kind is KernelKind.UPDATE else root.shape
