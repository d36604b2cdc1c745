"""The Fourier transform kernel: the lines of one dimension after the other, as many at once as there are lanes.

The last dimension is read from the operand, the others are transformed where the result lies. Lines beside each other
are lanes as they are; lines one after the other are transposed on the way, and a long line becomes a matrix whose
columns and rows are lines (`plan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.fft.butterflies import Complex, multiply
from xlalite.backends.codegen.kernels.fft.moves import (
    Lines,
    load_columns,
    load_rows,
    store_columns,
    store_rows,
    store_turned,
)
from xlalite.backends.codegen.kernels.fft.passes import Lanes, transform_lines
from xlalite.backends.codegen.kernels.fft.plan import LinePlan, SplitPlan, plan_line, split_line
from xlalite.backends.codegen.kernels.fft.twiddles import turns
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import open_kernel
from xlalite.backends.codegen.kernels.scratch import give_back_slot, take_slot
from xlalite.backends.codegen.llvm import I8, I64, PTR, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.hlo.ops.fourier import FftAttrs, FftType
from xlalite.hlo.types.literal import Array
from xlalite.passes.fusion.kernel_shape import KernelShape

_MOST_SCRATCH_BYTES = 1 << 28
_WHOLE_TABLE = 1 << 14
"""Elements of a line from which the factors of a split are products of two, so that tables stay small."""
_FINE = 32
"""Rows of the finer of the two tables; a multiple of every lane count."""


def plan_fft(request: KernelRequest, shape: KernelShape) -> FftKernel | Declined:
    """The kernel of a transform."""
    fft = request.body.root
    attrs: FftAttrs = fft.attrs
    dims, lengths = fft.shape.dims, attrs.fft_length
    if attrs.fft_type not in (FftType.FFT, FftType.IFFT):
        return Declined("it is a real transform")
    outer = len(dims) - len(lengths)
    if fft.shape.element_count and dims[outer:] != lengths:
        return Declined("fft_length is not that of the operand")
    if request.in_place:
        return Declined("the result lies in the memory of the operand")
    batch = math.prod(dims[:outer])
    component = fft.shape.dtype.component
    scalar = representation(component).register
    lanes = Lanes(component, scalar, request.target.lanes(scalar.bits))
    if not fft.shape.element_count:
        return FftKernel(request, lanes, 0, lengths, (), plan_line(1))
    across = tuple(plan_line(length) for length in lengths[:-1])
    rows = math.prod(lengths[:-1]) * (batch if len(lengths) == 1 else 1)
    kernel = FftKernel(request, lanes, batch, lengths, across, _plan_rows(request, lanes, rows, lengths[-1]))
    if kernel.scratch_bytes > _MOST_SCRATCH_BYTES:
        return Declined(f"lines of {max(lengths)} elements need more scratch memory than {_MOST_SCRATCH_BYTES} bytes")
    return kernel


def _plan_rows(request: KernelRequest, lanes: Lanes, rows: int, length: int) -> LinePlan | SplitPlan:
    """Many rows at once or one row as a matrix: what leaves fewer lanes idle and stays in the cache."""
    whole = plan_line(length)
    found = split_line(length, lanes.count)
    if found is None:
        return whole
    split, busy = found
    fits = 2 * whole.size * lanes.element_bytes() <= request.target.cache_bytes[1] // 2
    at_once = rows / (-(-rows // lanes.count) * lanes.count)
    return whole if fits and at_once >= busy else split


@dataclass(frozen=True, slots=True)
class FftKernel(Kernel):
    """A transform of the last dimensions.

    Attributes:
        lanes: How lines lie in lanes.
        batch: How many transforms.
        lengths: Sizes of the dimensions.
        across: How the dimensions but the last are transformed.
        along: How the last one is.
    """

    lanes: Lanes
    batch: int
    lengths: tuple[int, ...]
    across: tuple[LinePlan, ...]
    along: LinePlan | SplitPlan

    @property
    def extent(self) -> int:
        """The transforms, or as many of them as lanes."""
        return -(-self.batch // self._unit)

    @property
    def _unit(self) -> int:
        """Transforms in a unit of the extent."""
        return self.lanes.count if len(self.lengths) == 1 and isinstance(self.along, LinePlan) else 1

    @property
    def scratch_bytes(self) -> int:
        """Two buffers, what lies between the two halves of a split line, and a tile."""
        return sum(self._areas)

    @property
    def _areas(self) -> tuple[int, ...]:
        plans = [*self.across]
        plans += [self.along] if isinstance(self.along, LinePlan) else [self.along.rows, self.along.columns]
        side, element = self.lanes.count, self.lanes.element_bytes()
        buffer = max(_whole(plan.size, side) for plan in plans) * element
        turned = 0
        if isinstance(self.along, SplitPlan):
            turned = _whole(self.along.columns.length, side) * -(-self.along.rows.length // side) * element
        return buffer, buffer, turned, _whole(side * element, 64)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Transforms the units [begin, end)."""
        entry = open_kernel(module, name, self.request)
        fb = entry.fb
        if self.batch:
            area = fb.load(PTR, fb.gep(PTR, fb.parameters[0], 2), 8)
            slot, bit = take_slot(fb, area, self.scratch_bytes)
            places = [fb.gep(I8, slot, sum(self._areas[:number])) for number in range(len(self._areas))]
            _Transform(self, fb, (places[0], places[1]), places[2], places[3]).emit(
                entry.inputs[0].pointer, entry.outputs[0].pointer, entry.begin, entry.end
            )
            give_back_slot(fb, area, bit)
        fb.ret()
        return entry.function


@dataclass(frozen=True, slots=True)
class _Transform:
    """The code of a kernel.

    Attributes:
        kernel: What it computes.
        fb: Where code goes.
        buffers: Of lines in lanes.
        turned: Memory between the two halves of a split line.
        tile: Memory for a block of elements.
    """

    kernel: FftKernel
    fb: FunctionBuilder
    buffers: tuple[Value, Value]
    turned: Value
    tile: Value

    def emit(self, source: Value, target: Value, begin: Value, end: Value) -> None:
        fb, lengths, kernel = self.fb, self.kernel.lengths, self.kernel
        size, length = math.prod(lengths), lengths[-1]
        if kernel._unit > 1:
            self._rows(source, target, kernel.batch, (begin, end))
            return
        with fb.loop(begin, end) as number:
            origin, to = (self._at(pointer, fb.mul(number, size)) for pointer in (source, target))
            if isinstance(kernel.along, LinePlan):
                self._rows(origin, to, size // length, None)
            else:
                with fb.loop(0, size // length) as row:
                    at = fb.mul(row, length)
                    self._split(kernel.along, self._at(origin, at), self._at(to, at))
            for dimension in reversed(range(len(lengths) - 1)):
                if lengths[dimension] > 1:
                    self._columns(to, dimension)

    def _at(self, pointer: Value, element: Value) -> Value:
        return self.fb.gep(self.kernel.lanes.scalar, pointer, self.fb.mul(element, 2))

    @property
    def _swaps(self) -> bool:
        return self.kernel.request.body.root.attrs.fft_type is FftType.IFFT

    def _scale(self, dimension: int) -> float:
        return 1 / self.kernel.lengths[dimension] if self._swaps else 1.0

    def _groups(self, count: int, bounds: tuple[Value, Value] | None, body: Callable[[Value, int], None]) -> None:
        """Calls the body with (first line, lines): for all that fill lanes, and for the others."""
        fb, side = self.fb, self.kernel.lanes.count
        full = count // side
        begin, end = (0, full) if bounds is None else (bounds[0], fb.smin(bounds[1], full))
        if full:
            with fb.loop(begin, end) as group:
                body(fb.mul(group, side), side)
        if count % side:
            if bounds is None:
                body(fb.constant(I64, full * side), count % side)
                return
            with fb.if_(fb.icmp("sgt", bounds[1], full)):
                body(fb.constant(I64, full * side), count % side)

    def _rows(self, source: Value, target: Value, count: int, bounds: tuple[Value, Value] | None) -> None:
        """Transforms rows; bounds are groups of them."""
        fb, kernel, plan = self.fb, self.kernel, self.kernel.along
        assert isinstance(plan, LinePlan), "a split line is transformed by itself"

        def group(first: Value, lines: int) -> None:
            at = fb.mul(first, plan.length)
            read = Lines(self._at(source, at), plan.length, plan.length, lines, self._swaps)
            load_rows(fb, kernel.lanes, read, self.buffers[0], self.tile)
            found = transform_lines(fb, kernel.lanes, plan, self.buffers, self.buffers[0])
            written = replace(read, place=self._at(target, at), scale=self._scale(-1))
            store_rows(fb, kernel.lanes, written, found, self.tile)

        self._groups(count, bounds, group)

    def _columns(self, array: Value, dimension: int) -> None:
        """Transforms a dimension where it lies."""
        fb, kernel, lengths = self.fb, self.kernel, self.kernel.lengths
        plan, inner = kernel.across[dimension], math.prod(lengths[dimension + 1 :])
        with fb.loop(0, math.prod(lengths[:dimension])) as outer:
            block = self._at(array, fb.mul(outer, plan.length * inner))

            def group(first: Value, lines: int) -> None:
                read = Lines(self._at(block, first), plan.length, inner, lines, self._swaps)
                load_columns(fb, kernel.lanes, read, self.buffers[0])
                found = transform_lines(fb, kernel.lanes, plan, self.buffers, self.buffers[0])
                store_columns(fb, kernel.lanes, replace(read, scale=self._scale(dimension)), found)

            self._groups(inner, None, group)

    def _split(self, plan: SplitPlan, source: Value, target: Value) -> None:
        """Transforms a line of its own."""
        fb, lanes = self.fb, self.kernel.lanes
        rows, columns = plan.rows.length, plan.columns.length
        registers = -(-rows // lanes.count)
        factors = self._factors(rows, columns)

        def down(first: Value, lines: int) -> None:
            load_columns(fb, lanes, Lines(self._at(source, first), rows, columns, lines, self._swaps), self.buffers[0])
            found = transform_lines(fb, lanes, plan.rows, self.buffers, self.buffers[0])
            place = lanes.at(fb, self.turned, fb.mul(first, registers))
            register = fb.udiv(first, lanes.count)
            store_turned(fb, lanes, rows, found, place, self.tile, lambda row: factors(register, row))

        def across(first: Value, lines: int) -> None:
            place = lanes.at(fb, self.turned, fb.udiv(first, lanes.count))
            found = transform_lines(fb, lanes, plan.columns, self.buffers, place, registers)
            written = Lines(self._at(target, first), columns, rows, lines, self._swaps, self._scale(-1))
            store_columns(fb, lanes, written, found)

        self._groups(columns, None, down)
        self._groups(rows, None, across)

    def _factors(self, rows: int, columns: int) -> Callable[[Value, Value], Complex]:
        """(register of columns, row) -> what elements are multiplied by between the halves."""
        fb, lanes = self.fb, self.kernel.lanes
        registers = -(-columns // lanes.count)
        whole = _whole(rows, lanes.count)

        def table(numbers: Array) -> Callable[[Value, Value], Complex]:
            held = fb.module.constant_bytes(turns(numbers, columns, rows * columns, lanes.count, lanes.dtype))
            return lambda register, row: lanes.load(fb, held, fb.add(fb.mul(row, registers), register))

        if whole * columns <= _WHOLE_TABLE:
            return table(np.arange(whole))
        fine, coarse = table(np.arange(_FINE)), table(np.arange(0, whole, _FINE))
        return lambda register, row: multiply(
            fb, fine(register, fb.and_(row, _FINE - 1)), coarse(register, fb.udiv(row, _FINE))
        )


def _whole(count: int, unit: int) -> int:
    return -(-count // unit) * unit
