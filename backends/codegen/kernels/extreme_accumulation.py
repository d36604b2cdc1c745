"""How arg max and its kin accumulate: lanes take every so-many-th column, and ties are settled by position.

Inside a lane columns come in order, so comparing values is enough; where lanes come together, equals are told apart by
their positions. The result is that of combining all columns in order, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Self

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.kernels.accumulation import Accumulation
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.extreme import Extreme, recognise_extreme
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind
from xlalite.hlo.numerics.conversion import integer_range
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class ExtremeAccumulation(Accumulation):
    """How a reduction to a value and its position accumulates.

    Where they may come from different elements, accumulators are (value, position, position of the value), otherwise
    (value, position).

    Attributes:
        extreme: What is found.
    """

    extreme: Extreme

    @classmethod
    def recognised(cls, reduce: HloInstruction, unread: frozenset[int]) -> Self | None:
        """The accumulation of a reduction along one dimension, the positions counting up along it; None for others.

        `unread` are numbers of the kernel's results that do not matter: of a value that nobody reads, any of equals
        will do.
        """
        plain = Accumulation.of(reduce)
        if plain.monoids is not None or len(reduce.attrs.dimensions) != 1 or len(plain.arrays) != 2:
            return None
        extreme = recognise_extreme(reduce.called_computations[0])
        if extreme is None or not _counts_up(plain.arrays[1], reduce.attrs.dimensions[0]):
            return None
        if not _value_is_read(reduce, unread):
            extreme = replace(extreme, last_value=extreme.last_position)
        return cls(reduce, plain.function, None, extreme)

    @property
    def is_any_order(self) -> bool:
        """Yes: positions settle what the order would."""
        return True

    def elements(self, emitter: ElementEmitter, index: Index) -> list[Element]:
        """The elements at an index, in every lane."""
        found = Accumulation.elements(self, emitter, index)
        return found if self.extreme.has_one_winner else [*found, found[1]]

    def follow(self, emitter: ElementEmitter, a: Sequence[Element], b: Sequence[Element]) -> list[Element]:
        """Accumulators and elements of later columns combined."""
        return self._apply(_in_order(self.extreme), emitter, a, b)

    def merge(self, emitter: ElementEmitter, a: Sequence[Element], b: Sequence[Element]) -> list[Element]:
        """Two sets of accumulators combined, whichever has the earlier columns."""
        return self._apply(_by_position(self.extreme), emitter, a, b)

    def results(self, scalar: ElementEmitter, registers: Registers, like: Sequence[Element]) -> tuple[Element, ...]:
        """The results out of initial values and of what was accumulated without them."""
        return Accumulation.results(self, scalar, registers[:2], like[:2])

    def _apply(
        self, function: HloComputation, emitter: ElementEmitter, a: Sequence[Element], b: Sequence[Element]
    ) -> list[Element]:
        return [emitter.spread(element) for element in emitter.apply(function, [*a, *b])]


def _value_is_read(reduce: HloInstruction, unread: frozenset[int]) -> bool:
    if reduce.is_root:
        return 0 not in unread
    return any(user.opcode != "get-tuple-element" or user.attrs.index == 0 for user in reduce.users)


def _counts_up(array: HloInstruction, dimension: int) -> bool:
    """Whether the elements of an integer array are the index along a dimension."""
    while True:
        if array.shape.dims[dimension] - 1 > integer_range(array.shape.dtype)[1]:
            return False
        match array.opcode:
            case "iota":
                return bool(array.attrs.iota_dimension == dimension)
            case "broadcast" if dimension in array.attrs.dimensions:
                dimension = array.attrs.dimensions.index(dimension)
            case "transpose":
                dimension = array.attrs.dimensions[dimension]
            case "copy":
                pass
            case "convert" if array.operand(0).shape.dtype.is_integral:
                pass
            case _:
                return False
        array = array.operand(0)


@lru_cache(maxsize=256)
def _in_order(extreme: Extreme) -> HloComputation:
    """(accumulators..., later elements...) -> accumulators."""
    return _choice(extreme, by_position=False)


@lru_cache(maxsize=256)
def _by_position(extreme: Extreme) -> HloComputation:
    """(accumulators..., accumulators...) -> accumulators, in whatever order the two are."""
    return _choice(extreme, by_position=True)


def _choice(extreme: Extreme, *, by_position: bool) -> HloComputation:
    value, position = Shape.array(extreme.value_dtype), Shape.array(extreme.position_dtype)
    kinds = (value, position) if extreme.has_one_winner else (value, position, position)
    builder = Builder("choose")
    a = [builder.parameter(kind) for kind in kinds]
    b = [builder.parameter(kind) for kind in kinds]

    def takes_second(number: int, *, last: bool) -> Handle:
        if not by_position:
            return _wins(extreme, a[0], b[0], ties=last)
        counts = builder.compare(b[number], a[number], "GT" if last else "LT")
        return _wins(extreme, a[0], b[0], ties=False) | (_wins(extreme, a[0], b[0], ties=True) & counts)

    takes = [takes_second(1, last=extreme.last_position)] * 2
    if not extreme.has_one_winner:
        of_value = takes_second(2, last=extreme.last_value)
        takes = [of_value, takes[1], of_value]
    chosen = [builder.select(take, y, x) for take, x, y in zip(takes, a, b, strict=True)]
    return builder.build(builder.tuple(chosen))


def _wins(extreme: Extreme, x: Handle, y: Handle, *, ties: bool) -> Handle:
    """Whether the second of two values is better, or, with `ties`, as good."""
    builder = x.builder
    less = extreme.kind is MonoidKind.MAXIMUM
    if not extreme.value_dtype.is_floating:
        return builder.compare(x, y, ("L" if less else "G") + ("E" if ties else "T"))
    if ties:
        nan = y if extreme.nan_wins else x
        return builder.compare(x, y, "LE" if less else "GE") | builder.compare(nan, nan, "NE")
    number = x if extreme.nan_wins else y
    return ~builder.compare(x, y, "GE" if less else "LE") & builder.compare(number, number, "EQ")
