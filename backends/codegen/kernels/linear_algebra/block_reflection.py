"""Householder reflections of a panel as one: H1 * H2 * ... = 1 - V * T * V^H (Schreiber and Van Loan, 1989).

Column j of V is the vector of the j-th reflection, one at row j of the block and zero above. What is multiplied comes
panel by panel, too, so that the three products are those of panels: rows minus multiples of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import Affine
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.registers import Registers
from xlalite.backends.codegen.kernels.fork import Fork
from xlalite.backends.codegen.kernels.linear_algebra.numbers import chosen, conjugate, negative, one_like, product
from xlalite.backends.codegen.kernels.linear_algebra.panel import Panel, PanelForm, in_blocks
from xlalite.backends.codegen.kernels.linear_algebra.panel_matrix import PanelMatrix
from xlalite.backends.codegen.kernels.scratch import parts_of, slot_in
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value, constant

Packed = Callable[[Value, Affine], Element]
"""(row, first of the columns of a vector in the block) -> what is stored there; what is above V is not looked at."""

Tau = Callable[[Value], Element]
"""The number of a reflection in the block -> its tau."""


class BlockReflection:
    """Room for the reflections of one panel after the other."""

    def __init__(
        self, fb: FunctionBuilder, form: PanelForm, others: PanelForm, pointer: Value, products: Value | None = None
    ) -> None:
        """Emits into `fb`.

        Args:
            fb: The builder.
            form: Panels of reflections.
            others: Panels of what is multiplied.
            pointer: Where there are `block_bytes` bytes.
            products: Where there are `product_bytes`, if not there.
        """
        forms = _forms(form, others)
        parts = parts_of(fb, pointer, [one.size_bytes for one in forms])
        if products is not None:
            parts[2:] = parts_of(fb, products, [one.size_bytes for one in forms[2:]])
        self.fb = fb
        self.forms = form, others
        self.pointer = pointer
        self._v, self._t, self._seen, self._turned = (Panel(fb, *each) for each in zip(forms, parts, strict=True))

    def take(self, first: Value, count: Value, packed: Packed, tau: Tau) -> None:
        """Takes `count` reflections whose vectors begin at row `first` and the rows behind it."""
        self._take_vectors(first, count, packed)
        fb, v, t, together = self.fb, self._v, self._t, self._v.form.rows_together
        with fb.loop(0, count, together) as at:
            rows = v.take_from([t.zeros()] * together, self._conjugate(at), fb.add(first, at), v.form.rows)
            for number, row in enumerate(rows):
                t.set_row(fb.add(at, number), row)
        # Row j of t, which holds column j of T in the end, holds -(v_j^H * V) until it is its turn.
        with fb.loop(0, count) as j:
            (row,) = t.take_from([t.zeros()], lambda _, k: conjugate(fb, t.number(j, k)), 0, j)
            own = tau(j)
            factor = t.spread(negative(fb, own))
            spread, edge = t.spread(own), fb.splat(j, t.form.lanes)
            masks = [fb.icmp("eq", t.column_numbers(place), edge) for place in t.columns()]
            t.set_row(
                j,
                tuple(
                    chosen(fb, mask, spread, product(fb, factor, part)) for mask, part in zip(masks, row, strict=True)
                ),
            )

    def apply_to(
        self, matrix: PanelMatrix, behind: Value | int, first: Value, count: Value, fork: Fork | None, *, adjoint: bool
    ) -> None:
        """Multiplies the panels of a matrix from one on, each a turn of a loop that threads may share."""
        fb, forms, form, columns = self.fb, self.forms, matrix.form, matrix.columns
        if fork is None:
            with matrix.each_panel(behind) as panel:
                self.apply(panel, first, count, adjoint=adjoint)
            return

        def task(inner: FunctionBuilder, words: Sequence[Value], begin: Value, end: Value) -> None:
            area, block, pointer, start, first, count = words
            with slot_in(inner, area, product_bytes(*forms)) as slot, inner.loop(begin, end) as number:
                panel = PanelMatrix(inner, form, columns, pointer).panel(inner.add(start, number))
                BlockReflection(inner, *forms, block, slot).apply(panel, first, count, adjoint=adjoint)

        start = constant(I64, behind) if isinstance(behind, int) else behind
        held = [fork.area, self.pointer, matrix.pointer, start, first, count]
        fork.loop(fb, fb.sub(constant(I64, matrix.panels), start), held, task)

    def apply(self, target: Panel, first: Value, count: Value, *, adjoint: bool) -> None:
        """Multiplies a panel with the reflections, or with their adjoint, from the left."""
        fb, v, t, together = self.fb, self._v, self._t, self._v.form.rows_together
        with fb.loop(0, count, together) as at:
            rows = target.take_from([target.zeros()] * together, self._conjugate(at), fb.add(first, at), v.form.rows)
            for number, row in enumerate(rows):
                self._seen.set_row(fb.add(at, number), row)
        with fb.loop(0, count, together) as at:

            def of_t(number: int, k: Value) -> Element:
                j = fb.add(at, number)
                return conjugate(fb, t.number(j, k)) if adjoint else t.number(k, j)

            span = (0, fb.add(at, together)) if adjoint else (at, count)
            rows = self._seen.take_from([target.zeros()] * together, of_t, *span)
            for number, row in enumerate(rows):
                self._turned.set_row(fb.add(at, number), row)

        def block(row: Value, rows: int, carried: Registers) -> Registers:
            numbers = [fb.add(row, number) for number in range(rows)]
            held = [target.row(number) for number in numbers]
            left = self._turned.take_from(held, lambda number, j: v.number(numbers[number], j), 0, count)
            for number, one in zip(numbers, left, strict=True):
                target.set_row(number, one)
            return carried

        in_blocks(fb, v.form, (), block, first)

    def _take_vectors(self, first: Value, count: Value, packed: Packed) -> None:
        fb, v = self.fb, self._v
        lanes = v.form.lanes
        bound = fb.splat(count, lanes)
        with fb.loop(first, v.form.rows) as row:
            edge = fb.splat(fb.sub(row, first), lanes)
            vectors = []
            for place, nothing in zip(v.columns(), v.zeros(), strict=True):
                numbers = v.column_numbers(place)
                is_below = fb.and_(fb.icmp("slt", numbers, edge), fb.icmp("slt", numbers, bound))
                is_one = fb.and_(fb.icmp("eq", numbers, edge), fb.icmp("slt", numbers, bound))
                unit = one_like(nothing)
                vectors.append(chosen(fb, is_one, unit, chosen(fb, is_below, packed(row, place), nothing)))
            v.set_row(row, tuple(vectors))

    def _conjugate(self, at: Value) -> Callable[[int, Value], Element]:
        """Coefficients of V^H, the rows from `at` on."""
        fb, v = self.fb, self._v
        return lambda number, row: conjugate(fb, v.number(row, fb.add(at, number)))


def block_bytes(form: PanelForm, others: PanelForm) -> int:
    """Bytes of the room for a block."""
    return sum(each.size_bytes for each in _forms(form, others))


def product_bytes(form: PanelForm, others: PanelForm) -> int:
    """Bytes of it that are for one panel after the other."""
    return sum(each.size_bytes for each in _forms(form, others)[2:])


def _forms(form: PanelForm, others: PanelForm) -> tuple[PanelForm, ...]:
    """Those of V, T, V^H times a panel, and T times that."""
    return form, replace(form, rows=form.width), *(replace(others, rows=form.width),) * 2
