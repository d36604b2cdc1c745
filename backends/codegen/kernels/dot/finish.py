"""From sums to results: conversion and the elementwise work after the product, line by line over a tile."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, IndexMath, Position
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.elements.elements import always
from xlalite.backends.codegen.kernels.dot.layout import DotLayout
from xlalite.backends.codegen.kernels.dot.line_finish import Walks, line_finisher, walks_of
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import Value, vector, zero
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import results_of


@dataclass(frozen=True, slots=True)
class Area:
    """A part of a batch of products: a piece of work, or a tile.

    Attributes:
        product: Number of the product within the batch.
        row: First row.
        column: First column.
        height: Number of rows.
        width: Number of columns.
    """

    product: Scalar
    row: Scalar
    column: Scalar
    height: Scalar
    width: Scalar

    def turned(self) -> Area:
        """The area of the transposed result."""
        return Area(self.product, self.column, self.row, self.width, self.height)


class Finisher:
    """Emits the end of a tile: reads its sums, computes the kernel's results from them, and stores those."""

    def __init__(
        self, entry: KernelEntry, body: HloComputation, dot: HloInstruction, plan: DotPlan, layout: DotLayout
    ) -> None:
        self._entry = entry
        self._body = body
        self._dot = dot
        self._plan = plan
        self._layout = layout
        rows_across = plan.form is Form.ROWS
        self._across = plan.view.m if rows_across else plan.view.n
        step = plan.rows if rows_across else plan.columns
        self._lanes = lane_count(entry.fb.module, body, min(step, self._across))
        run = plan.row_run if rows_across else plan.column_run
        is_even = plan.view.seen is None and run % self._lanes == 0
        self._is_masked = not is_even or step % self._lanes != 0
        self._walks = None if plan.view.groups > 1 else walks_of(body, dot, *self._parts())

    @property
    def only_calls(self) -> bool:
        """Whether all that it emits is a call of a function that programs share."""
        return self._walks is not None

    def finish(self, area: Area, sums: Value) -> None:
        """Finishes a tile whose sums are in memory."""
        if self._plan.form is Form.ROWS:
            area = area.turned()
        if self._walks is not None:
            self._finish_lines(area, sums, self._walks)
            return
        fb, math, lanes = self._entry.fb, Scalars(self._entry.fb), self._lanes
        kept = self._plan.numbers.kept
        with math.steps(area.height, 1) as line, math.steps(area.width, lanes) as start:
            mask = lanes_below(fb, start, area.width, lanes) if self._is_masked else None
            address = math.address(kept, sums, math.add(math.multiply(line, self._layout.sums_line), start))
            if lanes == 1:
                total = fb.load(kept, address, kept.size_bytes)
            elif mask is None:
                total = fb.load(vector(kept, lanes), address, kept.size_bytes)
            else:
                wide = vector(kept, lanes)
                total = fb.masked_load(wide, address, mask, zero(wide), kept.size_bytes)
            row, column = math.add(area.row, line), math.add(area.column, start)
            self._store(total, self._index(area.product, row, column), mask)

    def _finish_lines(self, area: Area, sums: Value, walks: Walks) -> None:
        """Calls a function that programs share, which is told where arrays begin and how far apart their lines are."""
        entry, fb, math = self._entry, self._entry.fb, Scalars(self._entry.fb)
        _, _, across = self._parts()
        function = line_finisher(
            fb.module,
            self._body,
            self._dot,
            self._plan.numbers,
            walks,
            self._lanes,
            across.stop - 1,
            is_masked=self._is_masked,
        )
        arrays = [(one.attrs.number, one.shape.dtype, walk) for one, walk in walks.read.items()]
        for number, view in enumerate(entry.outputs, len(self._body.parameters)):
            arrays.append((number, view.dtype, walks.written))
        table: list[int] = []
        for number, dtype, walk in arrays:
            size = representation(dtype).size_bytes
            table += (number, walk.product * size, walk.line * size, walk.step * size)
        data = b"".join(number.to_bytes(8, "little") for number in table)
        given = map(math.value, (area.product, area.row, area.column, area.height, area.width))
        line = math.value(self._layout.sums_line)
        fb.call(function, fb.parameters[0], fb.module.constant_bytes(data), *given, sums, line)

    def _parts(self) -> tuple[int, slice, slice]:
        """The dimensions of the result: how many count products, those that count lines, those along a line."""
        batch, left, rank = len(self._plan.view.batch), self._plan.view.left_rank, self._dot.shape.rank
        lines, across = slice(batch, left), slice(left, rank)
        return (batch, across, lines) if self._plan.flipped else (batch, lines, across)

    def _store(self, total: Value, index: Index, mask: Value | None) -> None:
        entry = self._entry
        result = always(self._plan.numbers.finish(entry.fb, total))
        emitter = entry.emitter(self._lanes, mask, {self._dot: result})
        elements = [emitter.element(result, index) for result in results_of(self._body)]
        for view, element in zip(entry.outputs, elements, strict=True):
            view.write(emitter.math, index, element, mask)

    def _index(self, product: Scalar, line: Scalar, start: Scalar) -> Index:
        """The index in the result: batch, left and right dimensions, each from its joint position."""
        plan = self._plan
        math = IndexMath(self._entry.fb, self._lanes)
        groups, left = plan.view.groups, plan.view.left_rank
        batch = len(plan.view.batch) - (groups > 1)
        dims = self._dot.shape.dims
        across = Affine(start, 1 if self._lanes > 1 else 0)
        rows, columns = (across, ZERO) if plan.flipped else (Affine(line), across)
        place: Position = Affine(product)
        if groups == 1:
            return (
                *split_position(math, place, dims[:batch]),
                *split_position(math, rows, dims[batch:left]),
                *split_position(math, columns, dims[left:]),
            )
        features = self._dot.attrs.dim_labels.output_feature
        count = dims[features] // groups
        dims = (*dims[:features], count, *dims[features + 1 :])
        index = [
            *split_position(math, math.divide(place, groups), dims[:batch]),
            *split_position(math, rows, dims[batch:left]),
            *split_position(math, columns, dims[left:]),
        ]
        index[features] = math.add(math.scale(math.modulo(place, groups), count), index[features])
        return tuple(index)


def split_position(math: IndexMath, joint: Position, dims: tuple[int, ...]) -> Index:
    """The positions in some dimensions of an element counted through all of them."""
    index: list[Position] = []
    for number, size in enumerate(reversed(dims)):
        if number == len(dims) - 1:
            index.append(joint)
        else:
            index.append(math.modulo(joint, size))
            joint = math.divide(joint, size)
    return tuple(reversed(index))
