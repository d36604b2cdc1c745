"""Indices as element generators see them: per dimension, a position that is known for every lane.

A position is affine (a scalar base plus a constant step per lane), a pattern (a scalar base plus a number for each
lane) or, after other arithmetic, a vector of its own. Affine positions make reads into plain loads: step 0 is one
scalar load, step 1 a contiguous vector load. Patterns make them into loads of what lies around, and shuffles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TypeAlias

from xlalite.backends.codegen.llvm import (
    I8,
    I32,
    I64,
    PTR,
    FunctionBuilder,
    Type,
    Value,
    constant,
    vector,
    vector_constant,
)
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Sum:
    """Registers times numbers, and a number: what is not computed until somebody needs it.

    Attributes:
        terms: Different i64 registers with what multiplies them; at least one.
        constant: The number.
    """

    terms: tuple[tuple[Value, int], ...]
    constant: int


Base: TypeAlias = Value | Sum | int
"""An i64 register, what is computed of some, or a number known now."""


@dataclass(frozen=True, slots=True)
class Affine:
    """Lane k is at base + k * step.

    Attributes:
        base: Position of the first lane.
        step: Distance from one lane to the next.
        bounds: The least and the greatest position that a lane which counts can have, if they are known.
        spacing: What divides the distance of the base from the least position.
    """

    base: Base
    step: int = 0
    bounds: tuple[int, int] | None = None
    spacing: int = 1


@dataclass(frozen=True, slots=True)
class Pattern:
    """Lane k is at base + places[k]; steps are not all the same."""

    base: Base
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Each lane's position is in a vector of i64."""

    vector: Value


Position: TypeAlias = Affine | Pattern | Lanes
Index: TypeAlias = tuple[Position, ...]

ZERO = Affine(0)


def index_key(index: Index) -> tuple[object, ...]:
    """Something hashable that is equal for indices which are the same registers and steps."""
    return tuple(
        [
            ("lanes", position.vector.text)
            if isinstance(position, Lanes)
            else (_base_key(position.base), position.step if isinstance(position, Affine) else position.places)
            for position in index
        ]
    )


def _base_key(base: Base) -> object:
    if isinstance(base, Sum):
        return tuple((register.text, factor) for register, factor in base.terms), base.constant
    return base if isinstance(base, int) else base.text


def sum_of(a: Base, b: Base) -> Base:
    """The sum of two bases."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int):
        return a if b == 0 else a + b if isinstance(a, int) else _simplest(_terms(a), _number(a) + b)
    terms: dict[str, tuple[Value, int]] = {}
    for register, factor in (*_terms(a), *_terms(b)):
        before = terms.get(register.text, (register, 0))
        terms[register.text] = register, before[1] + factor
    return _simplest(tuple(term for term in terms.values() if term[1]), _number(a) + _number(b))


def patterned(base: Base, places: Sequence[int]) -> Affine | Pattern:
    """Lanes at a base and so much behind it each."""
    step = places[1] - places[0] if len(places) > 1 else 0
    if all(place == places[0] + lane * step for lane, place in enumerate(places)):
        return Affine(sum_of(base, places[0]), step)
    return Pattern(base, tuple(places))


def parted(base: Base) -> tuple[Base, int, int]:
    """The registers of a base, what divides all multiples of them (0 if there are none), and its number."""
    return _simplest(_terms(base), 0), math.gcd(*(factor for _, factor in _terms(base))), _number(base)


def remainder_of(base: Base, divisor: int) -> int | None:
    """The remainder of a base by a positive number, if it is the same for all values of the registers."""
    return _number(base) % divisor if all(factor % divisor == 0 for _, factor in _terms(base)) else None


def _scaled(a: Base, factor: int) -> Base:
    if isinstance(a, int):
        return a * factor
    return _simplest(tuple((register, times * factor) for register, times in _terms(a) if factor), _number(a) * factor)


def _quotient(base: Base, divisor: int) -> Base:
    """The quotient by a number that divides all multiples of registers, rounded down."""
    terms = tuple((register, factor // divisor) for register, factor in _terms(base))
    return _simplest(terms, _number(base) // divisor)


def _terms(base: Base) -> tuple[tuple[Value, int], ...]:
    if isinstance(base, int):
        return ()
    return base.terms if isinstance(base, Sum) else ((base, 1),)


def _number(base: Base) -> int:
    return base if isinstance(base, int) else base.constant if isinstance(base, Sum) else 0


def _simplest(terms: tuple[tuple[Value, int], ...], number: int) -> Base:
    if not terms:
        return number
    return terms[0][0] if not number and len(terms) == 1 and terms[0][1] == 1 else Sum(terms, number)


class IndexMath:
    """Arithmetic on positions of a given lane count; stays affine as long as it can."""

    def __init__(self, fb: FunctionBuilder, lanes: int) -> None:
        """Emits into `fb` for vectors of `lanes` lanes (1: scalars)."""
        self.fb = fb
        self.lanes = lanes

    def vector(self, position: Position) -> Value:
        """The position as a register: an i64, or a vector of them."""
        if isinstance(position, Lanes):
            return position.vector
        base = self.scalar(position.base)
        if self.lanes == 1:
            return base
        spread = self.fb.splat(base, self.lanes)
        if isinstance(position, Pattern):
            return self.fb.add(spread, vector_constant(vector(I64, self.lanes), position.places))
        if position.step == 0:
            return spread
        return self.fb.add(spread, self.fb.lane_numbers(I64, self.lanes, position.step))

    def scalar(self, base: Base) -> Value:
        """A base as a register."""
        if not isinstance(base, Sum):
            return constant(I64, base) if isinstance(base, int) else base
        total = self._total(self._aged(base.terms))
        return self._nsw("add", total, constant(I64, base.constant)) if base.constant else total

    def address(self, element: Type, pointer: Value, base: Base) -> Value:
        """The address of an element: what changes in the innermost loop only, and a number, are added last.

        Multiples of numbers that are held are steps from the first address of those that only differ in them.
        """
        if isinstance(base, int):
            return self.fb.gep(element, pointer, base) if base else pointer
        if isinstance(base, Value):
            return self._moved(element, pointer, base)
        innermost, terms = self.fb.innermost, self._aged(base.terms)
        early, late, held = (
            [term for term in terms if 0 <= term[0] < innermost],
            [term for term in terms if term[0] >= innermost],
            [term for term in terms if term[0] < 0],
        )
        if early:
            pointer = self._moved(element, pointer, self._total(early))
        offset = self._total(late) if late else None
        counts = {one.text: (one, count) for _, one, count in held}
        firsts = self.fb.block.firsts.setdefault((pointer.text, offset and offset.text), counts)
        if firsts:
            total = self._total([(-1, one, count) for one, count in firsts.values()])
            pointer = self._moved(element, pointer, total)
        if offset is not None:
            pointer = self._moved(element, pointer, offset)
        for name, (one, count) in {**firsts, **counts}.items():
            steps = count * (name in counts) - (firsts[name][1] if name in firsts else 0)
            if steps:
                pointer = self._stepped(element, pointer, one, steps)
        if base.constant:
            text = f"getelementptr {element.text}, ptr {pointer.text}, i64 {base.constant}"
            pointer = self.fb.placed(PTR, text, pointer)
        return pointer

    def _stepped(self, element: Type, pointer: Value, held: Value, count: int) -> Value:
        """So many steps behind a pointer, or before it, few instructions from what the block has of the same."""
        step = self._nsw("mul", held, constant(I64, element.size_bytes if count > 0 else -element.size_bytes))
        known = self.fb.block.steps.setdefault((pointer.text, step.text), {0: pointer})

        def place(distance: int) -> Value:
            if distance not in known:
                # By a multiple that addresses have room for.
                power = min(distance.bit_length() - 1, 3)
                multiple = self.fb.shl(step, power) if power else step
                known[distance] = self.fb.gep(I8, place(distance - (1 << power)), multiple)
            return known[distance]

        return place(abs(count))

    def _moved(self, element: Type, pointer: Value, offset: Value) -> Value:
        text = f"getelementptr {element.text}, ptr {pointer.text}, i64 {offset.text}"
        return self.fb.placed(PTR, text, pointer, offset)

    def _aged(self, terms: Sequence[tuple[Value, int]]) -> list[tuple[int, Value, int]]:
        """Terms with the numbers of their registers, what is known early first."""
        return sorted([(self.fb.born(register), register, factor) for register, factor in terms], key=itemgetter(0))

    def _total(self, terms: Sequence[tuple[int, Value, int]]) -> Value:
        """The sum of at least one term, in order."""
        total: Value | None = None
        for _, register, factor in terms:
            part = register if factor == 1 else self._nsw("mul", register, constant(I64, factor))
            total = part if total is None else self._nsw("add", total, part)
        assert total is not None, "a sum has registers"
        return total

    def _nsw(self, opcode: str, a: Value, b: Value) -> Value:
        return self.fb.placed(I64, f"{opcode} nsw i64 {a.text}, {b.text}", a, b)

    def bounds(self, position: Position) -> tuple[int, int] | None:
        """The least and the greatest position that a lane which counts can have, if they are known."""
        if isinstance(position, Affine) and position.bounds is not None:
            return position.bounds
        if isinstance(position, Lanes) or not isinstance(position.base, int):
            return None
        ends = position.places if isinstance(position, Pattern) else (0, position.step * (self.lanes - 1))
        return position.base + min(ends), position.base + max(ends)

    def add(self, a: Position, b: Position) -> Position:
        """Sum."""
        if a is ZERO:
            return b
        if isinstance(a, Affine) and isinstance(b, Affine):
            bounds, spacing = _sum(self.bounds(a), self.bounds(b)), math.gcd(_spacing(a), _spacing(b))
            return Affine(sum_of(a.base, b.base), a.step + b.step, bounds, spacing)
        if isinstance(a, Lanes) or isinstance(b, Lanes):
            return Lanes(self.fb.add(self.vector(a), self.vector(b)))
        return patterned(sum_of(a.base, b.base), [*map(sum, zip(self._places(a), self._places(b), strict=True))])

    def add_constant(self, a: Position, offset: int) -> Position:
        """Sum with a number known now."""
        if offset == 0 or not isinstance(a, Affine):
            return a if offset == 0 else self.add(a, Affine(offset))
        bounds = self.bounds(a)
        moved = None if bounds is None else (bounds[0] + offset, bounds[1] + offset)
        return Affine(sum_of(a.base, offset), a.step, moved, _spacing(a))

    def scale(self, a: Position, factor: int) -> Position:
        """Product with a number known now."""
        if factor == 1:
            return a
        if isinstance(a, Lanes):
            return Lanes(self.fb.mul(a.vector, factor))
        if isinstance(a, Pattern):
            return patterned(_scaled(a.base, factor), [place * factor for place in a.places])
        bounds = _product(self.bounds(a), factor)
        return Affine(_scaled(a.base, factor), a.step * factor, bounds)

    def remainder_of_base(self, a: Affine, divisor: int) -> int | None:
        """The remainder of the first lane's position by a positive number, if it is known."""
        if isinstance(a.base, int):
            return a.base % divisor
        return a.bounds[0] % divisor if a.bounds is not None and a.spacing % divisor == 0 else None

    def divide(self, a: Position, divisor: int) -> Position:
        """Quotient of a position that is not negative, by a positive number."""
        if divisor == 1:
            return a
        quotient = self._only_quotient(a, divisor)
        if quotient is not None:
            return Affine(quotient)
        if isinstance(a, Affine) and self._is_within_one(a, divisor):
            bounds = self.bounds(a)
            quotients = None if bounds is None else (bounds[0] // divisor, bounds[1] // divisor)
            return Affine(self.fb.udiv(self.scalar(a.base), divisor), 0, quotients)
        if isinstance(a, Pattern) and (rest := remainder_of(a.base, divisor)) is not None:
            return patterned(_quotient(a.base, divisor), [(rest + place) // divisor for place in a.places])
        return Lanes(self._narrowed(a, divisor, self.fb.udiv))

    def modulo(self, a: Position, divisor: int) -> Position:
        """Remainder of a position that is not negative, by a positive number."""
        if divisor == 1:
            return ZERO
        quotient = self._only_quotient(a, divisor)
        if quotient is not None:
            return self.add_constant(a, -quotient * divisor)
        if isinstance(a, Affine) and self._is_within_one(a, divisor):
            spacing = math.gcd(divisor, a.step * self.lanes or 1)
            return Affine(self.fb.urem(self.scalar(a.base), divisor), a.step, (0, divisor - 1), spacing)
        if isinstance(a, Pattern) and (rest := remainder_of(a.base, divisor)) is not None:
            return patterned(0, [(rest + place) % divisor for place in a.places])
        return Lanes(self._narrowed(a, divisor, self.fb.urem))

    def linear(self, index: Index, strides: Sequence[Value | int]) -> Position:
        """The offset of an index in an array with the given strides, in elements."""
        offset: Position = ZERO
        for position, stride in zip(index, strides, strict=True):
            if isinstance(stride, Value):
                offset = self.add(offset, self._times(position, stride))
            elif stride:
                offset = self.add(offset, self.scale(position, stride))
        return offset

    def _times(self, a: Position, factor: Value) -> Position:
        """Product with a number known when the kernel runs."""
        if not isinstance(a, Affine) or (a.step and self.lanes > 1):
            return Lanes(self.fb.mul(self.vector(a), self.fb.splat(factor, self.lanes)))
        terms = tuple((self._nsw("mul", register, factor), times) for register, times in _terms(a.base))
        return Affine(sum_of(_simplest(terms, 0), _scaled(factor, _number(a.base))))

    def _places(self, a: Affine | Pattern) -> Sequence[int]:
        """How far behind its base each lane is."""
        return a.places if isinstance(a, Pattern) else [lane * a.step for lane in range(self.lanes)]

    def _is_within_one(self, a: Affine, divisor: int) -> bool:
        """Whether all lanes have the same quotient by a number: those of a vector that begins at a whole one."""
        span = a.step * self.lanes
        return not span or (span > 0 and divisor % span == 0 and self.remainder_of_base(a, span) == 0)

    def _narrowed(self, a: Position, divisor: int, divide: Callable[[Value, int], Value]) -> Value:
        """What a division gives for each lane, in half the bits if they suffice: vectors can multiply those."""
        dividends, bounds = self.vector(a), self.bounds(a)
        if bounds is None or bounds[0] < 0 or bounds[1] >= 1 << 32:
            return divide(dividends, divisor)
        narrow = self.fb.trunc(dividends, dividends.type.with_scalar(I32))
        return self.fb.zext(divide(narrow, divisor), I64)

    def _only_quotient(self, a: Position, divisor: int) -> int | None:
        """The quotient by a number that all lanes have, if there is one and it is known."""
        bounds = self.bounds(a)
        if bounds is None or bounds[0] < 0 or bounds[0] // divisor != bounds[1] // divisor:
            return None
        return bounds[0] // divisor


def _sum(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    return (a[0] + b[0], a[1] + b[1]) if a is not None and b is not None else None


def _spacing(a: Affine) -> int:
    return (0 if a.step >= 0 else 1) if isinstance(a.base, int) else a.spacing


def _product(a: tuple[int, int] | None, factor: int) -> tuple[int, int] | None:
    return (min(a[0] * factor, a[1] * factor), max(a[0] * factor, a[1] * factor)) if a is not None else None


def row_major_strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Strides in elements of an array in row-major order; a dimension of size 1 has stride 0."""
    strides, step = [], 1
    for size in reversed(dims):
        strides.append(step if size != 1 else 0)
        step *= size
    return tuple(reversed(strides))
