"""Panels: some neighbouring columns of a matrix in scratch memory, a few registers wide, and what rows do to rows.

A panel lies row after row, so that elimination walks through memory in one direction. Numbers are those of registers:
f32 for narrower types; a row of complex numbers is its real parts, then its imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.arrays.index import Affine, Index, IndexMath
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation, zero_element
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.kernels.linear_algebra.numbers import minus_product, plus_product, total
from xlalite.backends.codegen.kernels.scratch import aligned
from xlalite.backends.codegen.llvm import F64, I64, FunctionBuilder, TargetInfo, Value, constant
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

_ROWS = 4
"""Rows that are eliminated together: each row that is subtracted is loaded once for all of them."""

_CHAINS = 4
"""Rows whose products are added up apart: an addition waits for the one before it."""

Row = tuple[Element, ...]
"""A row of a panel, in vectors."""

Coefficient = Callable[[int, Value], Element]
"""(one of the rows that are eliminated together, an earlier row) -> how much of the earlier row is taken away."""

Block = Callable[[Value, int, Registers], Registers]
"""(first of some rows, how many, what is carried from block to block) -> what is carried on."""


@dataclass(frozen=True, slots=True)
class PanelForm:
    """The form of the panels of a matrix.

    Attributes:
        dtype: Type of the matrix.
        rows: Its rows.
        lanes: Lanes of a vector.
        vectors: Vectors of a row.
    """

    dtype: DType
    rows: int
    lanes: int
    vectors: int

    @staticmethod
    def of(target: TargetInfo, dtype: DType, rows: int, columns: int) -> PanelForm:
        """What suits the registers of a machine, no wider than the columns need."""
        held = representation(dtype)
        lanes = min(target.lanes(held.register.bits), _power_of_two(columns))
        vectors = target.vector_registers // 8 // held.parts
        return PanelForm(dtype, rows, lanes, min(vectors, _power_of_two(-(-columns // lanes))))

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.lanes * self.vectors

    @property
    def rows_together(self) -> int:
        """Rows of a block; it divides the width."""
        return min(_ROWS, self.width)

    @property
    def size_bytes(self) -> int:
        """Bytes of a panel, a multiple of the alignment."""
        held = representation(self.dtype)
        size = self.rows * self.width * held.parts * held.register.size_bytes
        return aligned(size)


class Panel:
    """A panel at an address."""

    def __init__(self, fb: FunctionBuilder, form: PanelForm, pointer: Value) -> None:
        """Emits into `fb`."""
        self.fb = fb
        self.form = form
        held = representation(form.dtype)
        part, stride = DType.F64 if held.register is F64 else DType.F32, form.width * held.parts
        self._views = [
            ArrayView(fb.gep(held.register, pointer, number * form.width), part, (form.rows, form.width), (stride, 1))
            for number in range(held.parts)
        ]

    def read(self, math: IndexMath, index: Index, mask: Value | None = None) -> Element:
        """The elements at (row, column)."""
        parts = flatten(view.read(math, index, mask) for view in self._views)
        return parts[0] if len(parts) == 1 else (parts[0], parts[1])

    def write(self, math: IndexMath, index: Index, element: Element) -> None:
        """Stores elements at (row, column)."""
        for view, part in zip(self._views, flatten([element]), strict=True):
            view.write(math, index, part)

    def number(self, row: Value, column: Value) -> Element:
        """One number."""
        return self.read(IndexMath(self.fb, 1), (Affine(row), Affine(column)))

    def row(self, row: Value, first: int = 0) -> Row:
        """A row, or its vectors from one on."""
        math = IndexMath(self.fb, self.form.lanes)
        return tuple(self.read(math, (Affine(row), at)) for at in self.columns()[first:])

    def set_row(self, row: Value, vectors: Row, first: int = 0) -> None:
        """Stores a row, or those of its vectors from one on."""
        math = IndexMath(self.fb, self.form.lanes)
        for at, vector in zip(self.columns()[first:], vectors, strict=True):
            self.write(math, (Affine(row), at), vector)

    def columns(self) -> list[Affine]:
        """Where the vectors of a row lie."""
        return [Affine(number * self.form.lanes, 1) for number in range(self.form.vectors)]

    def column_numbers(self, place: Affine) -> Value:
        """The columns of a vector's lanes."""
        return IndexMath(self.fb, self.form.lanes).vector(place)

    def eliminate(self, first: Value, count: int, coefficient: Coefficient, until: Value | None = None) -> list[Row]:
        """The rows from `first` on without what all rows before them, or before `until`, contribute."""
        rows = [self.row(self.fb.add(first, number)) for number in range(count)]
        return self.take_from(rows, coefficient, 0, first if until is None else until)

    def take_from(
        self, rows: Sequence[Row], coefficient: Coefficient, begin: Value | int, end: Value | int
    ) -> list[Row]:
        """Some rows minus multiples of this panel's rows [begin, end)."""
        kinds = [vector for row in rows for vector in row]
        with self.fb.carried_loop(begin, end, 1, flatten(kinds)) as loop:
            taken = self.row(loop.index)
            held = unflatten(loop.values, kinds)
            left: list[Element] = []
            for number in range(len(rows)):
                factor = coefficient(number, loop.index)
                left += self.without(held[number * len(taken) : (number + 1) * len(taken)], factor, taken)
            loop.yield_(*flatten(left))
        found, length = unflatten(loop.results, kinds), len(rows[0])
        return [found[number * length : (number + 1) * length] for number in range(len(rows))]

    def combination(
        self, coefficient: Callable[[Value], Element], begin: Value, end: Value | int, first: int = 0
    ) -> Row:
        """The sum of multiples of the rows [begin, end), or of their vectors from one on."""
        fb, length = self.fb, self.form.vectors - first
        kinds = self.zeros()[first:] * _CHAINS
        stop = constant(I64, end) if isinstance(end, int) else end
        whole = fb.sub(stop, fb.urem(fb.sub(stop, begin), _CHAINS))

        def more(held: Row, row: Value) -> Row:
            spread = self.spread(coefficient(row))
            return tuple(plus_product(fb, a, spread, b) for a, b in zip(held, self.row(row, first), strict=True))

        with fb.carried_loop(begin, whole, _CHAINS, flatten(kinds)) as loop:
            held = unflatten(loop.values, kinds)
            chains = [held[chain * length : (chain + 1) * length] for chain in range(_CHAINS)]
            chains = [more(one, fb.add(loop.index, chain)) for chain, one in enumerate(chains)]
            loop.yield_(*flatten(vector for one in chains for vector in one))
        held = unflatten(loop.results, kinds)
        with fb.carried_loop(whole, stop, 1, flatten(held[:length])) as rest:
            rest.yield_(*flatten(more(unflatten(rest.values, kinds[:length]), rest.index)))
        sums = unflatten(rest.results, kinds[:length])
        for chain in range(1, _CHAINS):
            others = held[chain * length : (chain + 1) * length]
            sums = tuple(total(fb, a, b) for a, b in zip(sums, others, strict=True))
        return sums

    def zeros(self) -> Row:
        """A row of zeros."""
        return (zero_element(self.form.dtype, self.form.lanes),) * self.form.vectors

    def without(self, row: Row, factor: Element, taken: Row) -> Row:
        """The row minus a multiple of another."""
        spread = self.spread(factor)
        return tuple(minus_product(self.fb, a, spread, b) for a, b in zip(row, taken, strict=True))

    def spread(self, element: Element) -> Element:
        """A number in all lanes."""
        if isinstance(element, tuple):
            return self.fb.splat(element[0], self.form.lanes), self.fb.splat(element[1], self.form.lanes)
        return self.fb.splat(element, self.form.lanes)


def in_blocks(
    fb: FunctionBuilder, form: PanelForm, carried: Registers, block: Block, first: Value | int = 0
) -> Registers:
    """Goes through all rows, or those from the first of a block on, in whole blocks, then row by row; the end."""
    whole = form.rows - form.rows % form.rows_together
    for begin, end, count in ((first, whole, form.rows_together), (whole, form.rows, 1)):
        if isinstance(begin, Value) or begin < end:
            with fb.carried_loop(begin, end, count, carried) as loop:
                loop.yield_(*block(loop.index, count, loop.values))
            carried = loop.results
    return carried


def _power_of_two(number: int) -> int:
    """The least one that is not below a positive number."""
    return 1 << (number - 1).bit_length()
