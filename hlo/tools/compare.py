"""Compares the structure of two modules: which instructions correspond, which of those differ, and which are alone.

Bottom up first: what computes the same from parameters and constants up corresponds. What is left is matched by place
(the same operand of users that correspond), then by name, then by what its operands correspond to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import field

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import Fingerprints, instruction_key
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.text.printer import print_instruction


@dataclass(frozen=True, slots=True)
class Change:
    """Two instructions that correspond and differ.

    Attributes:
        one: In the first module.
        other: In the second.
        reasons: What differs.
    """

    one: HloInstruction
    other: HloInstruction
    reasons: tuple[str, ...]


@dataclass(slots=True)
class ComputationMatch:
    """Two computations that correspond, or one without counterpart.

    Attributes:
        one: In the first module.
        other: In the second.
        same: Pairs that do the same on operands that correspond.
        changed: Pairs that differ.
        only_one: Instructions of the first without counterpart.
        only_other: Instructions of the second without counterpart.
        roots_differ: Whether the results do not correspond.
    """

    one: HloComputation | None
    other: HloComputation | None
    same: list[tuple[HloInstruction, HloInstruction]] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    only_one: list[HloInstruction] = field(default_factory=list)
    only_other: list[HloInstruction] = field(default_factory=list)
    roots_differ: bool = False

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        paired = self.one is not None and self.other is not None
        return paired and not (self.changed or self.only_one or self.only_other or self.roots_differ)

    def lines(self, one: str = "A", other: str = "B") -> Iterator[str]:
        """What differs, with names for the two modules."""
        if self.other is None:
            assert self.one is not None, "a match has a side"
            yield f"- computation {self.one.name}: only in {one}"
            return
        if self.one is None:
            yield f"+ computation {self.other.name}: only in {other}"
            return
        counts = (
            f"{len(self.same)} same, {len(self.changed)} changed, {len(self.only_one)} only in {one}, "
            f"{len(self.only_other)} only in {other}"
        )
        name = self.one.name if self.one.name == self.other.name else f"{self.one.name} -> {self.other.name}"
        yield f"computation {name}: {counts}"
        if self.roots_differ:
            yield f"  root: %{self.one.root.name} -> %{self.other.root.name}"
        for change in self.changed:
            yield f"  ~ %{change.one.name} -> %{change.other.name}: {', '.join(change.reasons)}"
            yield f"    - {print_instruction(change.one)}"
            yield f"    + {print_instruction(change.other)}"
        yield from (f"  - {print_instruction(instruction)}" for instruction in self.only_one)
        yield from (f"  + {print_instruction(instruction)}" for instruction in self.only_other)


@dataclass(frozen=True, slots=True)
class ModuleComparison:
    """What is the same and what is not in two modules.

    Attributes:
        computations: Pairs of computations, the entries first, and computations without counterpart.
    """

    computations: tuple[ComputationMatch, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return all(match.is_same for match in self.computations)

    def __str__(self) -> str:
        """What differs, a line for each finding; "" when nothing does."""
        return "\n".join(line for match in self.computations if not match.is_same for line in match.lines())


def compare_modules(one: HloModule, other: HloModule) -> ModuleComparison:
    """Compares two modules; names, metadata and the order of lines do not count."""
    return ModuleComparison(tuple(match_modules(one, other)))


def match_modules(one: HloModule, other: HloModule) -> list[ComputationMatch]:
    """The computations of both modules, entries first, then those that corresponding instructions call."""
    fingerprints = Fingerprints()
    matches: list[ComputationMatch] = []
    partner: dict[HloComputation, HloComputation] = {}
    taken: set[HloComputation] = set()
    waiting = deque([(one.entry_computation, other.entry_computation)])
    while waiting:
        left, right = waiting.popleft()
        if left in partner or right in taken:
            continue
        partner[left] = right
        taken.add(right)
        match = _Matcher(left, right, fingerprints).match()
        matches.append(match)
        pairs = [*match.same, *((change.one, change.other) for change in match.changed)]
        for a, b in pairs:
            waiting.extend(zip(a.called_computations, b.called_computations, strict=False))
    left_over = [right for right in other.computations() if right not in taken]
    for left in one.computations():
        if left in partner:
            continue
        counterpart = _counterpart(left, left_over, fingerprints)
        if counterpart is None:
            matches.append(ComputationMatch(left, None))
        else:
            left_over.remove(counterpart)
            matches.append(_Matcher(left, counterpart, fingerprints).match())
    matches += [ComputationMatch(None, right) for right in left_over]
    return matches


def _counterpart(
    computation: HloComputation, candidates: list[HloComputation], fingerprints: Fingerprints
) -> HloComputation | None:
    """The candidate that does the same, else the one with the same name."""
    wanted = fingerprints.of_computation(computation)
    for candidate in candidates:
        if fingerprints.of_computation(candidate) == wanted:
            return candidate
    return next((candidate for candidate in candidates if candidate.name == computation.name), None)


class _Matcher:
    """Matches the instructions of two computations."""

    def __init__(self, one: HloComputation, other: HloComputation, fingerprints: Fingerprints) -> None:
        self._one = one
        self._other = other
        self._fingerprints = fingerprints
        self._partner: dict[HloInstruction, HloInstruction] = {}
        self._taken: set[HloInstruction] = set()

    def match(self) -> ComputationMatch:
        self._match_equal()
        self._match_by_place()
        self._match_by_name()
        self._match_by_operands()
        result = ComputationMatch(self._one, self._other)
        for instruction in self._one.post_order():
            counterpart = self._partner.get(instruction)
            if counterpart is None:
                result.only_one.append(instruction)
                continue
            reasons = self._differences(instruction, counterpart)
            if reasons:
                result.changed.append(Change(instruction, counterpart, tuple(reasons)))
            else:
                result.same.append((instruction, counterpart))
        result.only_other = [each for each in self._other.post_order() if each not in self._taken]
        result.roots_differ = self._partner.get(self._one.root) is not self._other.root
        return result

    def _pair(self, one: HloInstruction, other: HloInstruction) -> None:
        self._partner[one] = other
        self._taken.add(other)

    def _is_free(self, one: HloInstruction, other: HloInstruction) -> bool:
        return one not in self._partner and other not in self._taken

    def _match_equal(self) -> None:
        """Pairs what computes the same from the bottom up."""
        numbers: dict[Hashable, int] = {}
        found: dict[int, list[HloInstruction]] = {}
        for instruction, number in self._numbered(self._other, numbers).items():
            found.setdefault(number, []).append(instruction)
        for instruction, number in self._numbered(self._one, numbers).items():
            candidates = found.get(number)
            if candidates:
                by_name = [each for each in candidates if each.name == instruction.name]
                chosen = (by_name or candidates)[0]
                candidates.remove(chosen)
                self._pair(instruction, chosen)

    def _numbered(self, computation: HloComputation, numbers: dict[Hashable, int]) -> dict[HloInstruction, int]:
        """A number for each instruction; the same number for the same value."""
        result: dict[HloInstruction, int] = {}
        for instruction in computation.post_order():
            key = self._key(instruction, [result[operand] for operand in instruction.operands])
            result[instruction] = numbers.setdefault(key, len(numbers))
        return result

    def _key(self, instruction: HloInstruction, operands: list[int]) -> Hashable:
        called = [self._fingerprints.of_computation(each) for each in instruction.called_computations]
        return instruction_key(instruction, operands, called_ids=called, ignore_layout=True)

    def _match_by_place(self) -> None:
        """From users that correspond, and from the roots, down to operands of the same operation."""
        pairs = deque([*self._partner.items()])
        if self._is_free(self._one.root, self._other.root) and self._one.root.op is self._other.root.op:
            self._pair(self._one.root, self._other.root)
            pairs.append((self._one.root, self._other.root))
        while pairs:
            one, other = pairs.popleft()
            for a, b in zip(one.operands, other.operands, strict=False):
                if self._is_free(a, b) and a.op is b.op:
                    self._pair(a, b)
                    pairs.append((a, b))

    def _match_by_name(self) -> None:
        names = {each.name: each for each in self._other.instructions if each not in self._taken}
        for instruction in self._one.instructions:
            candidate = names.get(instruction.name)
            if candidate is not None and self._is_free(instruction, candidate):
                self._pair(instruction, candidate)

    def _match_by_operands(self) -> None:
        """Pairs instructions of one operation whose first operands correspond."""
        for instruction in self._one.post_order():
            if instruction in self._partner or not instruction.operands:
                continue
            first = self._partner.get(instruction.operands[0])
            for candidate in first.users if first is not None else ():
                if candidate.op is instruction.op and candidate.parent is self._other and candidate not in self._taken:
                    self._pair(instruction, candidate)
                    break

    def _differences(self, one: HloInstruction, other: HloInstruction) -> list[str]:
        reasons = []
        if one.op is not other.op:
            reasons.append(f"operation {one.opcode} -> {other.opcode}")
        elif one.attrs != other.attrs:
            reasons.append("attributes")
        if one.shape.with_default_layout() != other.shape.with_default_layout():
            reasons.append(f"shape {one.shape} -> {other.shape}")
        if len(one.operands) != len(other.operands):
            reasons.append(f"{len(one.operands)} -> {len(other.operands)} operands")
        reasons += [
            f"operand {number}"
            for number, (a, b) in enumerate(zip(one.operands, other.operands, strict=False))
            if self._partner.get(a) is not b
        ]
        if len(one.called_computations) != len(other.called_computations):
            reasons.append("called computations")
        before = [self._partner.get(each) for each in one.control_predecessors]
        if before != list(other.control_predecessors):
            reasons.append("control predecessors")
        annotations = [(each.sharding, each.backend_config, each.frontend_attributes) for each in (one, other)]
        if annotations[0] != annotations[1]:
            reasons.append("annotations")
        return reasons
