"""Groups of instructions that will share a kernel, while they are being put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import depends_on_itself, post_order
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.domain import Domain, Place, operand_place, place_of_result
from xlalite.passes.fusion.fusible import is_expensive, is_immediate, is_index_vector, is_spread_immediate
from xlalite.passes.fusion.kernel_shape import KernelKind
from xlalite.passes.fusion.work import (
    EXPENSIVE_FLOPS,
    MAX_INDICES,
    RECOMPUTED_FLOPS,
    Evaluations,
    evaluations,
    recomputed_flops,
)

_FEW = 8
"""An array is worth keeping when it has fewer elements than this for each that is read."""


@dataclass(eq=False, slots=True)
class KernelGroup:
    """Instructions of one kernel.

    Attributes:
        root: The first member, which no other member uses.
        kind: What kernel it becomes.
        domain: What the kernel walks over; None for one that computes its root only, from arrays in memory.
        places: The members and where each is read.
        outputs: Members whose arrays others need, the root first.
        duplicates: Members that other kernels compute for themselves too.
        computed: Number of members but constants.
        reductions: Number of members that reduce.
        has_seams: Whether the kernel is a loop that is split for the sake of a member.
        evaluations: How often the kernel evaluates each member; for a kernel with an index space.
        recomputed_flops: Operations spent on elements that were computed before.
    """

    root: HloInstruction
    kind: KernelKind
    domain: Domain | None
    places: dict[HloInstruction, Place] = field(default_factory=dict)
    outputs: list[HloInstruction] = field(default_factory=list)
    duplicates: set[HloInstruction] = field(default_factory=set)
    computed: int = 0
    reductions: int = 0
    has_seams: bool = False
    evaluations: Evaluations | None = None
    recomputed_flops: int = 0
    _readers: dict[HloInstruction, list[HloInstruction]] = field(default_factory=dict)

    def __contains__(self, instruction: HloInstruction) -> bool:
        return instruction in self.places

    def __len__(self) -> int:
        return len(self.places)

    def add(self, member: HloInstruction, place: Place) -> None:
        """Takes in a member, or moves it to another place."""
        if member not in self.places:
            self.computed += not (is_immediate(member) or is_spread_immediate(member))
            self.reductions += member.opcode == "reduce"
            splits = member.opcode == "concatenate" and not is_index_vector(member, self.readers(member))
            self.has_seams |= splits and self.kind is not KernelKind.CONCATENATE
            self.has_seams |= member.opcode == "dynamic-update-slice" and self.kind is KernelKind.LOOP
            for operand in dict.fromkeys(member.operands):
                self._readers.setdefault(operand, []).append(member)
        self.places[member] = place
        if self.domain is not None:
            if self.evaluations is None:
                self.evaluations = Evaluations(self.domain)
            self.evaluations.add(member, place, self.readers(member))
            self.recomputed_flops += recomputed_flops(member, self.evaluations.of(member))

    def readers(self, producer: HloInstruction) -> Sequence[HloInstruction]:
        """The members that use an instruction, however many users it has elsewhere."""
        return self._readers.get(producer, ())

    def place_of_operand(self, producer: HloInstruction) -> tuple[Place | None, int]:
        """The one place at which members read a producer (None if there are several), and how often it is read.

        Reads at the kernel's own index, a row or a scalar count once together; any other read counts by itself.
        """
        assert self.domain is not None, "kernels without an index space take no producers"
        found: set[Place] = set()
        others = 0
        for user in self.readers(producer):
            at = self.places.get(user)
            if at is None:
                continue
            for number in user.operand_positions(producer):
                place = operand_place(user, number, at, self.domain)
                found.add(place)
                others += place is Place.OTHER
        if len(found) == 1:
            return place, others or 1
        reads = others + (1 if found - {Place.OTHER} else 0)
        if len(found - {Place.SCALAR}) > 1:
            return None, reads
        chosen = found - {Place.SCALAR} or found
        return next(iter(chosen)), reads

    def count_evaluations(self) -> None:
        """Counts anew, after places have changed."""
        assert self.domain is not None, "places are those of an index space"
        members = self.in_post_order()
        self.evaluations = evaluations(reversed(members), self.places, self.domain)
        self.recomputed_flops = sum(recomputed_flops(member, self.evaluations.of(member)) for member in members)

    def why_not_again(self, producer: HloInstruction) -> str | None:
        """Why a producer read at another index than the kernel's would repeat too much; None if it would not."""
        assert self.domain is not None, "kernels without an index space take no producers"
        assert self.evaluations is not None, "the root is a member"
        by_index = self.evaluations.by_index(producer, Place.OTHER, self.readers(producer))
        if len(by_index) > MAX_INDICES:
            return "the kernel would read it at more indices than it should have code for"
        again = self.recomputed_flops + recomputed_flops(producer, sum(by_index.values()))
        if again > self._recomputed_at_most():
            return "the kernel would do more work again than it saves"
        return None

    def _recomputed_at_most(self) -> int:
        """Operations that may be done again; a scatter of narrow windows has nothing that they would hide behind."""
        assert self.domain is not None, "kernels without an index space take no producers"
        if self.kind is KernelKind.SCATTER:
            return self.root.operands[-1].shape.element_count
        return RECOMPUTED_FLOPS * self.domain.element_count

    def needs_few(self, producer: HloInstruction) -> bool:
        """Whether computing the elements that members read costs next to nothing beside keeping all of them.

        The producer is one that kernels can compute element by element.
        """
        if self.domain is None or self.evaluations is None:
            return False
        if self.place_of_operand(producer)[0] is not Place.OTHER:
            return False
        count = sum(self.evaluations.by_index(producer, Place.OTHER, self.readers(producer)).values())
        work = EXPENSIVE_FLOPS if is_expensive(producer) else 1
        return count * work * _FEW <= producer.shape.element_count

    def in_post_order(self) -> tuple[HloInstruction, ...]:
        """The members, operands first."""
        return post_order(self.outputs, lambda one: [o for o in one.operands if o in self.places], depends_on_itself)

    def with_domain(self, domain: Domain) -> KernelGroup:
        """A copy over another domain: the members' places found anew from the root's."""
        kind = KernelKind.ROW if domain.has_minor_columns else KernelKind.COLUMN
        twin = replace(self, kind=kind, domain=domain, places={})
        for member in self.places:
            is_output = member in self.outputs
            place = place_of_result(member.shape.dims, domain) if is_output else twin.place_of_operand(member)[0]
            twin.places[member] = place if place is not None else Place.OTHER
        twin.count_evaluations()
        return twin

    def become(self, other: KernelGroup) -> None:
        """Takes over everything but the root."""
        self.kind, self.domain, self.places, self._readers = other.kind, other.domain, other.places, other._readers
        self.outputs, self.duplicates = other.outputs, other.duplicates
        self.computed, self.reductions, self.has_seams = other.computed, other.reductions, other.has_seams
        self.evaluations, self.recomputed_flops = other.evaluations, other.recomputed_flops
