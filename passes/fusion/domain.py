"""Where in the index space of a kernel an instruction's elements are read.

A kernel walks over a domain of some sizes. Some of its dimensions may be columns, which reductions take away; the
others are rows. The place of a member follows from the places of its users.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass


class Place(enum.Enum):
    """At which index an instruction is read."""

    FULL = "at the kernel's own index"
    ROW = "once a row"
    SCALAR = "as a scalar"
    OTHER = "at another index"

    __hash__ = object.__hash__  # quick, as for element types


@dataclass(frozen=True, slots=True)
class Domain:
    """The sizes that a kernel walks over.

    Attributes:
        dims: All sizes.
        columns: The dimensions that reductions take away, in rising order; empty for a plain loop.
    """

    dims: tuple[int, ...]
    columns: tuple[int, ...] = ()

    @property
    def rows(self) -> tuple[int, ...]:
        """The dimensions that stay."""
        return tuple(d for d in range(len(self.dims)) if d not in self.columns)

    @property
    def row_dims(self) -> tuple[int, ...]:
        """Sizes of what is computed once a row."""
        return tuple(self.dims[d] for d in self.rows)

    @property
    def column_dims(self) -> tuple[int, ...]:
        """Sizes of the columns."""
        return tuple(self.dims[d] for d in self.columns)

    @property
    def has_minor_columns(self) -> bool:
        """Whether the columns are the last dimensions, so that a row lies in one piece."""
        first = len(self.dims) - len(self.columns)
        return bool(self.columns) and self.columns == tuple(range(first, len(self.dims)))

    @property
    def element_count(self) -> int:
        """Number of points."""
        return math.prod(self.dims)

    @property
    def column_count(self) -> int:
        """Number of points of one row."""
        return math.prod(self.column_dims)

    def shape_of(self, place: Place) -> tuple[int, ...] | None:
        """Sizes of an instruction read at a place; None where anything goes."""
        if place is Place.FULL:
            return self.dims
        return self.row_dims if place is Place.ROW else None


def operand_place(user: HloInstruction, number: int, place: Place, domain: Domain) -> Place:
    """The place at which a user that is read at `place` reads its operand."""
    operand = user.operand(number)
    if user.opcode == "reduce" and place is Place.ROW and reduces_columns(user, domain):
        return Place.FULL if number < len(user.operands) // 2 else Place.SCALAR
    if operand.shape.is_scalar and (user.shape.rank or place is Place.SCALAR):
        return Place.SCALAR if place is not Place.OTHER else Place.OTHER
    if user.op.is_elementwise or user.opcode == "copy":
        return place
    if user.opcode == "dynamic-update-slice" and place is Place.FULL and number == 1:
        return Place.FULL if operand.shape.dims == domain.dims else Place.OTHER
    if user.opcode == "scatter" and place is Place.FULL and number < len(user.operands) // 2:
        return Place.FULL
    if user.opcode == "broadcast" and place is Place.FULL and domain.columns:
        return Place.ROW if tuple(user.attrs.dimensions) == domain.rows else Place.OTHER
    return Place.OTHER


def place_of_result(dims: tuple[int, ...], domain: Domain) -> Place:
    """The place of a result of some sizes; every kernel without columns gives its results at its own index."""
    return Place.FULL if not domain.columns or dims == domain.dims else Place.ROW


def find_places(
    users_first: Iterable[HloInstruction], results: Mapping[HloInstruction, Place], domain: Domain
) -> dict[HloInstruction, Place]:
    """The place of each instruction that the results need; one that is read at several is at another index."""
    places = dict(results)
    for instruction in users_first:
        found = {
            operand_place(user, number, places[user], domain)
            for user in instruction.users
            if user in places
            for number in user.operand_positions(instruction)
        }
        if instruction in places:
            found.add(places[instruction])
        chosen = found - {Place.SCALAR} or found
        if chosen:
            places[instruction] = next(iter(chosen)) if len(chosen) == 1 else Place.OTHER
    return places


def reduces_columns(reduce: HloInstruction, domain: Domain) -> bool:
    """Whether a reduce takes exactly the columns of the domain away."""
    return reduce.operand(0).shape.dims == domain.dims and tuple(sorted(reduce.attrs.dimensions)) == domain.columns


def reduced_domain(reduce: HloInstruction) -> Domain:
    """The domain of a kernel around a reduce."""
    return Domain(reduce.operand(0).shape.dims, tuple(sorted(reduce.attrs.dimensions)))
