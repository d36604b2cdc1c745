"""How long a kernel takes on one core, about: what it reads and writes, and all that it evaluates, again or not."""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.codegen.kernels.frame import result_dims, results_of
from xlalite.backends.codegen.kernels.kind import KernelRequest
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.analysis.cost_analysis import CostAnalysis
from xlalite.passes.fusion.place import Domain, Place, find_places
from xlalite.passes.fusion.work import evaluations

BYTES_PER_NS = 8.0
FLOPS_PER_NS = 16.0
TRANSCENDENTALS_PER_NS = 1.0
"""What one core does in a nanosecond, about; only the decision to split rests on these."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one run of a kernel does.

    Attributes:
        flops: Arithmetic operations.
        transcendentals: Evaluations of transcendental functions.
        bytes_moved: Bytes read and written.
    """

    flops: float
    transcendentals: float
    bytes_moved: int

    @property
    def nanoseconds(self) -> float:
        """The time it takes."""
        return (
            self.bytes_moved / BYTES_PER_NS + self.flops / FLOPS_PER_NS + self.transcendentals / TRANSCENDENTALS_PER_NS
        )


def kernel_work(request: KernelRequest, domain: Domain | None) -> Work:
    """The work of a kernel that walks over a domain; None for the sizes of its first result."""
    body = request.body
    if domain is None:
        domain = Domain(result_dims(results_of(body)[0]))
    evaluated = evaluations(reversed(body.post_order()), body_places(body, domain), domain)
    costs = CostAnalysis()
    flops = transcendentals = 0.0
    for instruction in body.instructions:
        cost = costs.of_instruction(instruction)
        times = evaluated.of(instruction) / max(_element_count(instruction), 1)
        flops += cost.flops * times
        transcendentals += cost.transcendentals * times
    moved = sum(_bytes_read(parameter) for parameter in body.parameters) + _bytes_written(request)
    return Work(flops, transcendentals, moved)


def body_places(body: HloComputation, domain: Domain) -> dict[HloInstruction, Place]:
    """Where a kernel over a domain reads the instructions of its body."""
    results = {r: Place.FULL if result_dims(r) == domain.dims else Place.ROW for r in results_of(body)}
    return find_places(reversed(body.post_order()), results, domain)


def _element_count(instruction: HloInstruction) -> int:
    shape = instruction.shape
    return shape.elements[0].element_count if shape.is_tuple and shape.elements else shape.element_count


_READS_A_PART = frozenset({"slice", "dynamic-slice", "gather"})


def _bytes_read(parameter: HloInstruction) -> int:
    """Bytes of a parameter that the kernel reads, about: the parts that slices take, else all of it."""
    size = parameter.shape.size_bytes
    parts = [user.shape.size_bytes for user in parameter.users if user.opcode in _READS_A_PART]
    whole = [user for user in parameter.users if user.opcode not in _READS_A_PART and not _is_updated(parameter, user)]
    return size if whole else min(size, sum(parts))


def _is_updated(parameter: HloInstruction, user: HloInstruction) -> bool:
    return user.opcode == "dynamic-update-slice" and user.operand(0) is parameter


def _bytes_written(request: KernelRequest) -> int:
    root = request.body.root
    is_update = root.opcode == "dynamic-update-slice" and request.in_place
    return root.operand(1).shape.size_bytes if is_update else root.shape.size_bytes
