"""Patterns for instructions: what to look for as a value that nests, binds names and says why it did not match.

>>> pattern = op("add", op("multiply", any_value("x"), any_value("y")).with_one_user(), constant().bind("c"))
>>> match = pattern.match(instruction)
>>> match["x"]

Operands of commutative operations match in any order. A name that stands twice must be the same instruction. The rules
of the algebraic simplifier go without: they ask more about numbers and types than about form, and run at every place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

# Says what is wrong with an instruction; "" when nothing is.
Check = Callable[[HloInstruction], str]


@dataclass(frozen=True, slots=True)
class Match(Mapping[str, HloInstruction]):
    """A match: instructions by the names that the pattern binds.

    Attributes:
        root: What the whole pattern matched.
        bound: Instructions by name.
    """

    root: HloInstruction
    bound: Mapping[str, HloInstruction]

    def __getitem__(self, name: str) -> HloInstruction:
        return self.bound[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bound)

    def __len__(self) -> int:
        return len(self.bound)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an attempt failed: the instruction, the way to it from the root, and what is wrong with it."""

    instruction: HloInstruction
    path: tuple[int, ...]
    reason: str

    def __str__(self) -> str:
        way = "".join(f"operand {position} of " for position in reversed(self.path))
        where = f" ({way}the root)" if way else ""
        return f"%{self.instruction.name}{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """What an instruction must be like; made by the functions below and refined by the methods.

    Attributes:
        checks: What must hold for the instruction itself.
        operands: Patterns of its operands; None when they do not matter.
        any_order: Whether two operands may be swapped; None means where the operation is commutative.
        name: What a match binds it to, or "".
        alternatives: Patterns of which one must match, none when there is no choice.
    """

    checks: tuple[Check, ...] = ()
    operands: tuple[Pattern, ...] | None = None
    any_order: bool | None = None
    name: str = ""
    alternatives: tuple[Pattern, ...] = ()

    def match(self, instruction: HloInstruction) -> Match | None:
        """The first way in which the instruction matches, or None."""
        return next(self.matches(instruction), None)

    def matches(self, instruction: HloInstruction) -> Iterator[Match]:
        """Every way in which the instruction matches."""
        for bound in _attempts(self, instruction, {}, (), []):
            yield Match(instruction, bound)

    def explain(self, instruction: HloInstruction) -> str:
        """Why the instruction does not match: what the attempts that came furthest stumbled over; "" when it does."""
        found: list[Mismatch] = []
        if next(_attempts(self, instruction, {}, (), found), None) is not None:
            return ""
        depth = max(len(mismatch.path) for mismatch in found)
        return "; or ".join(dict.fromkeys(str(one) for one in found if len(one.path) == depth))

    def find(self, where: HloModule | HloComputation) -> Iterator[Match]:
        """The first match of each instruction in a module or computation that matches, operands before users."""
        computations = where.computations() if isinstance(where, HloModule) else (where,)
        for computation in computations:
            for instruction in computation.post_order():
                match = self.match(instruction)
                if match is not None:
                    yield match

    def bind(self, name: str) -> Pattern:
        """The pattern with a name for what it matches."""
        return replace(self, name=name)

    def where(self, holds: Callable[[HloInstruction], bool], expected: str) -> Pattern:
        """The pattern with a condition of one's own; `expected` completes "expected ..." in explanations."""
        return self._with(lambda one: "" if holds(one) else f"expected {expected}")

    def with_users(self, count: int) -> Pattern:
        """The pattern for instructions that so many instructions use."""
        return self._with(lambda one: _unless_equal("number of users", one.user_count, count))

    def with_one_user(self) -> Pattern:
        """The pattern for instructions with one user, so that they can be changed together."""
        return self.with_users(1)

    def with_one_use(self) -> Pattern:
        """The pattern for instructions that stand in one operand place."""
        return self._with(lambda one: _unless_equal("number of uses", one.use_count, 1))

    def with_shape(self, shape: Shape) -> Pattern:
        """The pattern for values of a shape, layouts aside."""
        return self._with(
            lambda one: "" if one.shape.compatible(shape) else f"shape is {one.shape.text()}, expected {shape.text()}"
        )

    def with_dtype(self, *dtypes: DType) -> Pattern:
        """The pattern for arrays of one of some element types."""
        names = " or ".join(dtype.value for dtype in dtypes)
        return self._with(
            lambda one: (
                "" if one.shape.dtype in dtypes else f"element type is {one.shape.dtype.value}, expected {names}"
            )
        )

    def with_rank(self, rank: int) -> Pattern:
        """The pattern for arrays with so many dimensions."""
        return self._with(
            lambda one: _unless_equal("rank", one.shape.rank, rank) if one.shape.is_array else "expected an array"
        )

    def with_attribute(self, field: str, value: object) -> Pattern:
        """The pattern for operations with an attribute of a value; `field` as in the attributes dataclass."""

        def check(one: HloInstruction) -> str:
            if not hasattr(one.attrs, field):
                return f"{one.opcode} has no attribute {field}"
            return _unless_equal(field, getattr(one.attrs, field), value)

        return self._with(check)

    def __or__(self, other: Pattern) -> Pattern:
        return one_of(self, other)

    def _with(self, check: Check) -> Pattern:
        return replace(self, checks=(*self.checks, check))


def any_value(name: str = "") -> Pattern:
    """Any instruction."""
    return Pattern(name=name)


def op(opcode: str | Sequence[str], *operands: Pattern, any_order: bool | None = None) -> Pattern:
    """An operation, or one of some; with operands given, exactly these."""
    opcodes = (opcode,) if isinstance(opcode, str) else tuple(opcode)

    def check(one: HloInstruction) -> str:
        return "" if one.opcode in opcodes else f"operation is {one.opcode}, expected {' or '.join(opcodes)}"

    return Pattern((check,), operands or None, any_order)


def one_of(*patterns: Pattern) -> Pattern:
    """One of some patterns, tried in order."""
    return Pattern(alternatives=patterns)


def parameter(number: int | None = None) -> Pattern:
    """A parameter, or the one with a number."""
    pattern = op("parameter")
    return pattern if number is None else pattern.with_attribute("number", number)


def constant(value: complex | None = None) -> Pattern:
    """A constant; with a value, an array whose elements all equal it (-0 is not 0)."""
    pattern = op("constant")
    return pattern if value is None else pattern.where(lambda one: _is_all(one, value), f"a constant {value}")


def splat(value: complex | None = None) -> Pattern:
    """A constant, or a scalar constant broadcast to some shape; with a value, all elements of which equal it."""
    scalar = constant(value)
    return one_of(scalar, op("broadcast", scalar))


def _is_all(instruction: HloInstruction, value: Any) -> bool:
    literal = instruction.attrs.literal
    if isinstance(value, complex):
        if not literal.shape.is_array or literal.is_elided:
            return False
        return bool(literal.value.size and np.all(literal.value == value))
    return bool(literal.is_all(value))


def _unless_equal(what: str, found: object, expected: object) -> str:
    return "" if found == expected else f"{what} is {found}, expected {expected}"


Bindings = dict[str, HloInstruction]


def _attempts(
    pattern: Pattern, instruction: HloInstruction, bound: Bindings, path: tuple[int, ...], failed: list[Mismatch]
) -> Iterator[Bindings]:
    """The bindings of every way to match; notes why others failed."""
    for check in pattern.checks:
        reason = check(instruction)
        if reason:
            failed.append(Mismatch(instruction, path, reason))
            return
    if pattern.name:
        known = bound.get(pattern.name, instruction)
        if known is not instruction:
            failed.append(Mismatch(instruction, path, f"expected %{known.name}, which is bound to {pattern.name!r}"))
            return
        bound = {**bound, pattern.name: instruction}
    if pattern.alternatives:
        for alternative in pattern.alternatives:
            yield from _attempts(alternative, instruction, bound, path, failed)
        return
    if pattern.operands is None:
        yield bound
        return
    if len(instruction.operands) != len(pattern.operands):
        reason = f"has {len(instruction.operands)} operands, expected {len(pattern.operands)}"
        failed.append(Mismatch(instruction, path, reason))
        return
    in_order = tuple(range(len(pattern.operands)))
    yield from _operand_attempts(pattern.operands, in_order, instruction, bound, path, failed)
    swaps = pattern.any_order if pattern.any_order is not None else instruction.op.has(Trait.COMMUTATIVE)
    if swaps and len(pattern.operands) == 2:
        yield from _operand_attempts(pattern.operands, (1, 0), instruction, bound, path, failed)


def _operand_attempts(
    patterns: tuple[Pattern, ...],
    places: tuple[int, ...],
    instruction: HloInstruction,
    bound: Bindings,
    path: tuple[int, ...],
    failed: list[Mismatch],
) -> Iterator[Bindings]:
    if not patterns:
        yield bound
        return
    operand = instruction.operands[places[0]]
    for extended in _attempts(patterns[0], operand, bound, (*path, places[0]), failed):
        yield from _operand_attempts(patterns[1:], places[1:], instruction, extended, path, failed)
