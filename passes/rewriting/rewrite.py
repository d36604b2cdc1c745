"""Applies rewrite rules until none fires.

A rule is a function that looks at one instruction and gives what may stand in its place; this file finds the
instructions, installs the replacements and keeps count. Rules know nothing of it.
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from xlalite.hlo.building.replacement import remove_dead, replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, tick
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass

# More rewrites an instruction than a sound set of rules needs; rules that undo each other get here.
_MAX_REWRITES_PER_INSTRUCTION = 64

_REACH = 6
"""How far from an instruction rules look: at operands of operands. `is_never_negative_zero` goes furthest."""


@dataclass(frozen=True, slots=True)
class Declined:
    """A rule's answer when it saw its pattern but must not fire; the reason is recorded in explain mode."""

    reason: str


RuleResult: TypeAlias = HloInstruction | Declined | None


class Strictness(enum.Enum):
    """What a rule does to the bits of the result."""

    EXACT = "exact"
    """The same bits for every input (the payload of a NaN aside)."""
    CORRECTLY_ROUNDED = "correctly rounded"
    """Puts a correctly rounded result in the place of an approximated function's; within the function's error bound."""
    REDUCTION_ORDER = "reduction order"
    """Adds the same terms of a floating-point sum in another fixed order."""
    RELAXED = "relaxed"
    """Changes results; runs only when asked for by name."""


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """A named rewrite of one operation.

    Attributes:
        opcode: The operation it looks at.
        apply: Gives the replacement, a reason against it, or None when the pattern is not there. The replacement may
            be a loose instruction on further loose ones; a rule that gives nothing must have made nothing.
        strictness: What it does to bits.
    """

    opcode: str
    apply: Callable[[HloInstruction], RuleResult]
    strictness: Strictness = Strictness.EXACT

    @property
    def name(self) -> str:
        """The function's name."""
        return self.apply.__name__

    @property
    def identity(self) -> str:
        """The identity it applies: the first line of its docstring."""
        return (self.apply.__doc__ or "").strip().split("\n")[0]


@dataclass
class RewriteRun:
    """The rules of one pass run, with what they did.

    Attributes:
        rules: Gives the rules of an operation, in the order in which they are tried; None for none.
        may_change: Asked before each rewrite; False ends the run.
        explain: Whether declined rules are noted.
        fired: How often each rule fired, by name.
        identities: What each rule that fired applied.
        declined: (rule, instruction, reason) of rules that declined.
        stopped: Computations in which the rules did not come to an end and were stopped.
    """

    rules: Callable[[str], Sequence[RewriteRule] | None]
    may_change: Callable[[], bool] = lambda: True
    explain: bool = False
    fired: Counter[str] = field(default_factory=Counter)
    identities: dict[str, str] = field(default_factory=dict)
    declined: dict[tuple[str, str, str], None] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    _count: int = 0

    def rewrite(self, module: HloModule, since: int = 0) -> bool:
        """Rewrites every computation to a fixpoint, or to a limit on rewrites; says whether anything changed.

        Args:
            module: What to rewrite.
            since: A time at which no rule fired anywhere; looked at is what has changed or has come into being since.
        """
        before = self._count
        has_dynamic_shapes = any(instruction.shape.is_dynamic for instruction in module.instructions())
        rewritten: set[HloComputation] = set()
        # Rules may add computations.
        while new := [computation for computation in module.computations() if computation not in rewritten]:
            for computation in new:
                self._rewrite_computation(computation, has_dynamic_shapes, since)
            rewritten.update(new)
        return self._count > before

    def record_on(self, module: HloModule, pass_name: str) -> None:
        """Leaves a record of each rule that fired, with its identity and count, and of each that declined."""
        for rule_name, count in self.fired.items():
            module.record(pass_name, (rule_name,), "applied", self.identities[rule_name], {"times": count})
        for rule_name, instruction, reason in self.declined:
            module.record(pass_name, (rule_name, instruction), "declined", reason)
        often = {name: count for name, count in self.fired.most_common(4)}
        for computation in self.stopped:
            module.record(pass_name, (computation,), "stopped", "rewrite limit reached", often)

    def _rewrite_computation(self, computation: HloComputation, has_dynamic_shapes: bool, since: int) -> None:
        limit = self._count + _MAX_REWRITES_PER_INSTRUCTION * (len(computation) + 16)
        looked_at: dict[HloInstruction, int] = {}
        concerned: Sequence[HloInstruction] = computation.post_order()
        if since:
            concerned = _concerned(computation, since, looked_at)
        while concerned:
            start = tick()
            if not self._sweep(computation, concerned, looked_at, limit, has_dynamic_shapes):
                break
            concerned = _concerned(computation, start, looked_at)

    def _sweep(
        self,
        computation: HloComputation,
        concerned: Sequence[HloInstruction],
        looked_at: dict[HloInstruction, int],
        limit: int,
        has_dynamic_shapes: bool,
    ) -> bool:
        """Visits instructions and whatever changes on the way, and notes when; says whether a rule fired."""
        worklist = deque(concerned)
        queued = set(worklist)
        fired = False
        while worklist:
            instruction = worklist.popleft()
            queued.discard(instruction)
            looked_at[instruction] = tick()
            if instruction.parent is not computation or (has_dynamic_shapes and _touches_dynamic(instruction)):
                continue
            operands = instruction.operands
            touched = self._apply_first(instruction)
            if touched is None:
                continue
            fired = True
            if self._count >= limit:
                self.stopped.append(computation.name)
                return False
            # What a rewrite touches is looked at next: things that move meet before they have moved far.
            for affected in (*operands, *reversed(touched)):
                if affected.parent is computation and affected not in queued:
                    queued.add(affected)
                    worklist.appendleft(affected)
        return fired

    def _apply_first(self, instruction: HloInstruction) -> tuple[HloInstruction, ...] | None:
        """Applies the first rule that fires; gives the new instructions, the replacement, and who used the old one."""
        rules = self.rules(instruction.opcode)
        if not rules or instruction.is_controlled:
            return None
        for rule in rules:
            result = rule.apply(instruction)
            if result is None:
                continue
            if isinstance(result, Declined):
                if self.explain:
                    self.declined[rule.name, instruction.name, result.reason] = None
                continue
            if changes_bitcast(instruction, result) or not self.may_change():
                remove_dead(result)
                return None
            self._note(rule)
            self._count += 1
            users = instruction.users
            return (*replace(instruction, result), result, *users)
        return None

    def _note(self, rule: RewriteRule) -> None:
        if rule.name not in self.fired:
            self.identities[rule.name] = rule.identity
        self.fired[rule.name] += 1


def _concerned(computation: HloComputation, since: int, looked_at: dict[HloInstruction, int]) -> list[HloInstruction]:
    """In post order, what has something in its reach that has changed since a time, and since it was looked at."""
    order = computation.post_order()
    newest = {one: stamp for one in order if (stamp := _last_change(one)) > since}
    wave = dict(newest)
    for _ in range(_REACH):
        following: dict[HloInstruction, int] = {}
        for instruction, stamp in wave.items():
            for user in instruction.users:
                if newest.get(user, 0) < stamp:
                    newest[user] = following[user] = stamp
        wave = following
    return [one for one in order if newest.get(one, 0) > looked_at.get(one, since)]


def _last_change(instruction: HloInstruction) -> int:
    """When it changed, or the function that it applies to elements; rules look at no other callees."""
    if not instruction.called_computations or not instruction.op.calls.applies_to_elements:
        return instruction.stamp
    called = instruction.called_computations
    return max(instruction.stamp, *(inner.stamp for function in called for inner in function.instructions))


def rules_by_opcode(rules: Sequence[RewriteRule]) -> dict[str, tuple[RewriteRule, ...]]:
    """The rules grouped by the operation they look at, in order."""
    table: dict[str, tuple[RewriteRule, ...]] = {}
    for rule in rules:
        table[rule.opcode] = (*table.get(rule.opcode, ()), rule)
    return table


def changes_bitcast(old: HloInstruction, new: HloInstruction) -> bool:
    """Whether a bitcast reads the value: it means something else on another layout."""
    if old.shape.layout is None and new.shape.layout is None:
        return False
    return old.shape.minor_to_major != new.shape.minor_to_major and any(u.opcode == "bitcast" for u in old.users)


def _touches_dynamic(instruction: HloInstruction) -> bool:
    """Whether a size here is known only at run time; rules argue with static sizes."""
    return instruction.shape.is_dynamic or any(operand.shape.is_dynamic for operand in instruction.operands)
