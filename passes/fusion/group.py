"""Groups of instructions that will share a kernel, while they are being put together."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from xlalite.hlo.instruction import HloInstruction
from xlalite.passes.fusion.place import Domain, Place, operand_place


class GroupKind(enum.Enum):
    """What kernel a group becomes."""

    LOOP = "loop"
    ROW = "row"
    COLUMN = "column"
    DOT = "dot"
    PIECES = "pieces"
    UPDATE = "update"
    ALONE = "alone"


@dataclass(eq=False, slots=True)
class Group:
    """Instructions of one kernel.

    Attributes:
        root: The first member, which no other member uses.
        kind: What kernel it becomes.
        domain: The index space; None for a kernel with an index space of its own.
        places: The members and where each is read.
        outputs: Members whose arrays others need, the root first.
        duplicates: Members that other kernels compute for themselves too.
        reductions: Number of members that reduce.
    """

    root: HloInstruction
    kind: GroupKind
    domain: Domain | None
    places: dict[HloInstruction, Place] = field(default_factory=dict)
    outputs: list[HloInstruction] = field(default_factory=list)
    duplicates: set[HloInstruction] = field(default_factory=set)
    reductions: int = 0
    _readers: dict[HloInstruction, list[HloInstruction]] = field(default_factory=dict)

    def __contains__(self, instruction: HloInstruction) -> bool:
        """Whether the instruction is a member."""
        return instruction in self.places

    def __len__(self) -> int:
        """Number of members."""
        return len(self.places)

    def add(self, member: HloInstruction, place: Place) -> None:
        """Takes in a member, or moves it to another place."""
        if member not in self.places:
            self.reductions += member.opcode == "reduce"
            for operand in dict.fromkeys(member.operands):
                self._readers.setdefault(operand, []).append(member)
        self.places[member] = place

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
            if user not in self.places:
                continue
            for number in user.operand_positions(producer):
                place = operand_place(user, number, self.places[user], self.domain)
                found.add(place)
                others += place is Place.OTHER
        reads = others + (1 if found - {Place.OTHER} else 0)
        if len(found - {Place.SCALAR}) > 1:
            return None, reads
        chosen = found - {Place.SCALAR} or found
        return next(iter(chosen)), reads

    def with_domain(self, domain: Domain) -> Group:
        """A copy over another domain: the members' places found anew from the root's."""
        rooted = Place.FULL if self.domain is None or domain.dims == self.domain.dims else Place.ROW
        kind = GroupKind.ROW if domain.has_minor_columns else GroupKind.COLUMN
        twin = Group(self.root, kind, domain, {}, self.outputs, self.duplicates, self.reductions, self._readers)
        for member in self.places:
            place = rooted if member in self.outputs else twin.place_of_operand(member)[0]
            twin.places[member] = place if place is not None else Place.OTHER
        return twin

    def become(self, other: Group) -> None:
        """Takes over everything but the root."""
        self.kind, self.domain, self.places, self._readers = other.kind, other.domain, other.places, other._readers
        self.outputs, self.duplicates, self.reductions = other.outputs, other.duplicates, other.reductions
