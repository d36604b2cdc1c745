"""The dot kernel: products of matrices with the elementwise work after them.

The parallel extent counts pieces of work: blocks of the result, rows fastest. In a piece, operands are packed where that
pays, then tile after tile is computed in registers and stored; where the result is not simply the sums, a tile's sums
are finished line by line while they are in the nearest cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.cpu.index import Affine, IndexMath
from xlalite.backends.cpu.kernels.dot.finish import Finisher
from xlalite.backends.cpu.kernels.dot.inner_tile import InnerTile, inner_tile
from xlalite.backends.cpu.kernels.dot.layout import Layout, Operand, layout_of, tile_of
from xlalite.backends.cpu.kernels.dot.numbers import why_no_numbers
from xlalite.backends.cpu.kernels.dot.outer_tile import outer_tile
from xlalite.backends.cpu.kernels.dot.packing import packer
from xlalite.backends.cpu.kernels.dot.plan import DotPlan, Form, plan_dot
from xlalite.backends.cpu.kernels.dot.view import why_not_viewable
from xlalite.backends.cpu.kernels.frame import Frame, open_kernel, results_of
from xlalite.backends.cpu.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.cpu.kernels.scratch import give_back_slot, take_slot
from xlalite.backends.cpu.llvm import I8, I64, PTR, VOID, Function, ModuleBuilder, Value, array, constant
from xlalite.backends.cpu.types import representation
from xlalite.hlo.computation import HloComputation
from xlalite.hlo.dtype import DType
from xlalite.hlo.instruction import HloInstruction

_STACK_BYTES = 64 << 10
"""Scratch memory up to this lies on the stack."""


def _dots(body: HloComputation) -> list[HloInstruction]:
    return [instruction for instruction in body.instructions if instruction.opcode == "dot"]


def _declines(request: KernelRequest) -> str | None:
    body = request.body
    dots = _dots(body)
    if len(dots) != 1:
        return "there is no product" if not dots else "there are several products"
    dot = dots[0]
    if any(operand.opcode != "parameter" for operand in dot.operands):
        return "an operand of the product is computed in the kernel"
    if any(not result.shape.is_array or result.shape.dims != dot.shape.dims for result in results_of(body)):
        return "a result differs from the product in size"
    if dot.shape.element_count == 0:
        return "the product has no elements"
    if request.in_place:
        return "a result lies in the memory of an operand"
    return why_not_viewable(dot) or why_no_numbers(dot)


def _plan(request: KernelRequest) -> DotPlan:
    return plan_dot(_dots(request.body)[0], request.target)


def _layout(request: KernelRequest) -> Layout:
    return layout_of(_plan(request), stores_result=_stores_result(request))


def _stores_result(request: KernelRequest) -> bool:
    """Whether the kernel gives nothing but the sums as they are."""
    results = results_of(request.body)
    return results == (_dots(request.body)[0],) and _plan(request).numbers.stores_sums


def _extent(request: KernelRequest) -> int:
    return _plan(request).extent


def _scratch_bytes(request: KernelRequest) -> int:
    size = _layout(request).scratch_bytes
    return size if size > _STACK_BYTES else 0


def _estimate_ns(request: KernelRequest) -> float:
    # About three vector operations a nanosecond.
    return _plan(request).cycles / 3


def _emit(module: ModuleBuilder, name: str, request: KernelRequest) -> Function:
    frame = open_kernel(module, name, request.body)
    plan = _plan(request)
    if plan.extent:
        _DotKernel(module, frame, request, plan).emit()
    frame.fb.ret()
    return frame.function


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece of work.

    Attributes:
        lhs: First element of its part of the left operand.
        rhs: First element of its part of the right operand.
        product: Number of the product within the batch.
        row: First row.
        column: First column.
        rows: Number of rows.
        columns: Number of columns.
    """

    lhs: Value
    rhs: Value
    product: Value
    row: Value
    column: Value
    rows: Value
    columns: Value


class _DotKernel:
    """Emits the loops of one kernel."""

    def __init__(self, module: ModuleBuilder, frame: Frame, request: KernelRequest, plan: DotPlan) -> None:
        self._module = module
        self._frame = frame
        self._fb = frame.fb
        self._plan = plan
        self._dot = _dots(request.body)[0]
        self._stores_result = _stores_result(request)
        self._layout = layout_of(plan, stores_result=self._stores_result)
        self._slot_bytes = _scratch_bytes(request)
        swapped = plan.flipped != (plan.form is Form.ROWS)
        left, right = self._dot.operands
        self._lhs, self._rhs = (self._input(right), self._input(left)) if swapped else (
            self._input(left),
            self._input(right),
        )
        self._finisher = Finisher(frame, request.body, self._dot, plan, self._layout)
        self._scratch: Value | None = None

    def _input(self, parameter: HloInstruction) -> Value:
        number: int = parameter.attrs.number
        return self._frame.inputs[number].pointer

    def emit(self) -> None:
        fb = self._fb
        if self._slot_bytes:
            frame = self._frame
            place = fb.gep(PTR, fb.parameters[0], len(frame.inputs) + len(frame.outputs))
            area = fb.load(PTR, place, 8)
            self._scratch, bit = take_slot(fb, area, self._slot_bytes)
            self._pieces()
            give_back_slot(fb, area, bit)
            return
        if self._layout.scratch_bytes:
            self._scratch = fb.alloca(array(I8, self._layout.scratch_bytes), align=64)
        self._pieces()

    def _pieces(self) -> None:
        """All pieces; the right operand stays packed as long as pieces share it."""
        fb, plan = self._fb, self._plan
        with fb.carried_loop(self._frame.begin, self._frame.end, 1, [constant(I64, -1)]) as loop:
            row_unit = fb.urem(loop.index, plan.row_units)
            block = fb.udiv(loop.index, plan.row_units)
            column_unit = fb.urem(block, plan.column_units)
            product = fb.udiv(block, plan.column_units)
            piece = self._piece(product, row_unit, column_unit)
            if plan.depth_units == 1:
                depth = constant(I64, plan.view.k)
                if plan.packs_rhs:
                    with fb.if_(fb.icmp("ne", block, loop.values[0])):
                        self._pack(self._layout.rhs, plan.numbers.rhs, piece.rhs, piece.columns, depth)
                self._block(piece, constant(I64, 0), depth, repack=False)
            else:
                with fb.loop(0, plan.view.k, plan.unit_depth) as start:
                    depth = fb.smin(fb.sub(constant(I64, plan.view.k), start), plan.unit_depth)
                    self._block(piece, start, depth, repack=True)
            loop.yield_(block)

    def _piece(self, product: Value, row_unit: Value, column_unit: Value) -> _Piece:
        fb, plan, view = self._fb, self._plan, self._plan.view
        row, column = fb.mul(row_unit, plan.unit_rows), fb.mul(column_unit, plan.unit_columns)
        math = IndexMath(fb, 1)
        lhs, rhs = fb.mul(row, view.lhs.outer), fb.mul(column, view.rhs.outer)
        rest = product
        for size, a, b in zip(reversed(view.batch), reversed(view.lhs.batch), reversed(view.rhs.batch), strict=True):
            position = fb.urem(rest, size)
            rest = fb.udiv(rest, size)
            lhs = fb.add(lhs, fb.mul(position, a))
            rhs = fb.add(rhs, fb.mul(position, b))
        numbers = plan.numbers
        return _Piece(
            fb.gep(representation(numbers.lhs).memory, self._lhs, math.vector(Affine(lhs))),
            fb.gep(representation(numbers.rhs).memory, self._rhs, math.vector(Affine(rhs))),
            product,
            row,
            column,
            fb.smin(fb.sub(constant(I64, view.m), row), plan.unit_rows),
            fb.smin(fb.sub(constant(I64, view.n), column), plan.unit_columns),
        )

    def _pack(self, operand: Operand, dtype: DType, source: Value, extent: Value, depth: Value) -> None:
        """Packs a part of an operand into its place, tile by tile."""
        fb, numbers = self._fb, self._plan.numbers
        packing = operand.packing
        assert packing is not None, "the caller asked"
        pack = packer(self._module, numbers, packing)
        target = self._place(operand.offset)
        if not operand.tile_extent:
            fb.call(pack, source, target, depth, extent)
            return
        memory, step = representation(dtype).memory, operand.tile_extent
        with fb.loop(0, extent, step) as start:
            here = fb.gep(memory, source, fb.mul(start, packing.source_x))
            panel = fb.gep(numbers.kept, target, fb.mul(fb.udiv(start, step), operand.tile))
            fb.call(pack, here, panel, fb.smin(fb.sub(extent, start), step), depth)

    def _place(self, offset: int) -> Value:
        assert self._scratch is not None, "a layout that needs scratch memory has some"
        return self._fb.gep(I8, self._scratch, offset) if offset else self._scratch

    def _block(self, piece: _Piece, start: Value, depth: Value, *, repack: bool) -> None:
        """All tiles of a piece for a part of the depth."""
        fb, plan, layout = self._fb, self._plan, self._layout
        numbers, view = plan.numbers, plan.view
        lhs, rhs = piece.lhs, piece.rhs
        if repack:
            lhs = fb.gep(representation(numbers.lhs).memory, lhs, fb.mul(start, view.lhs.depth))
            rhs = fb.gep(representation(numbers.rhs).memory, rhs, fb.mul(start, view.rhs.depth))
        if plan.packs_rhs and repack:
            self._pack(layout.rhs, numbers.rhs, rhs, piece.columns, depth)
        if plan.packs_lhs:
            self._pack(layout.lhs, numbers.lhs, lhs, piece.rows, depth)
        a_type = numbers.kept if plan.packs_lhs else representation(numbers.lhs).memory
        b_type = numbers.kept if plan.packs_rhs else representation(numbers.rhs).memory
        a = self._place(layout.lhs.offset) if plan.packs_lhs else lhs
        b = self._place(layout.rhs.offset) if plan.packs_rhs else rhs
        adds = fb.icmp("ne", start, 0)
        with fb.loop(0, piece.columns, plan.columns) as column:
            panel = fb.gep(b_type, b, fb.mul(fb.udiv(column, plan.columns), layout.rhs.tile))
            width = fb.smin(fb.sub(piece.columns, column), plan.columns)
            with fb.loop(0, piece.rows, plan.rows) as row:
                part = fb.gep(a_type, a, fb.mul(fb.udiv(row, plan.rows), layout.lhs.tile))
                height = fb.smin(fb.sub(piece.rows, row), plan.rows)
                sums = self._sums(piece, row, column)
                self._call_tile(height, width, (part, panel, sums, depth, adds))
                if not self._stores_result:
                    last = fb.icmp("eq", fb.add(start, depth), view.k)
                    with fb.if_(last):
                        self._finisher.finish(
                            piece.product, fb.add(piece.row, row), fb.add(piece.column, column), height, width, sums
                        )

    def _sums(self, piece: _Piece, row: Value, column: Value) -> Value:
        """Where a tile's sums go: the result, the place of a whole piece, or that of one tile."""
        fb, plan, layout = self._fb, self._plan, self._layout
        kept = plan.numbers.kept
        turned = plan.form is Form.ROWS
        if self._stores_result:
            line, across = fb.add(piece.row, row), fb.add(piece.column, column)
            if turned:
                line, across = across, line
            offset = fb.add(fb.mul(line, layout.sums_line), across)
            offset = fb.add(offset, fb.mul(piece.product, plan.view.m * plan.view.n))
            return fb.gep(kept, self._frame.outputs[0].pointer, offset)
        base = self._place(layout.sums_offset)
        if plan.depth_units == 1:
            return base
        line, across = (column, row) if turned else (row, column)
        return fb.gep(kept, base, fb.add(fb.mul(line, layout.sums_line), across))

    def _call_tile(self, height: Value, width: Value, arguments: tuple[Value, Value, Value, Value, Value]) -> None:
        """Calls the tile of the right size: there is a whole one, and one for the rest of each dimension."""
        fb, plan = self._fb, self._plan
        heights = [size for size in (plan.rows, plan.view.m % plan.rows) if 0 < size <= plan.view.m]
        widths = [size for size in (plan.columns, plan.view.n % plan.columns) if 0 < size <= plan.view.n]

        def choose(sizes: list[int], size: Value, options: list[Value]) -> Value:
            if len(options) == 1:
                return options[0]
            return fb.select(fb.icmp("eq", size, sizes[0]), options[0], options[1])

        tiles = [choose(heights, height, [self._tile(h, w) for h in heights]) for w in widths]
        fb.call_pointer(choose(widths, width, tiles), VOID, arguments)

    def _tile(self, rows: int, columns: int) -> Function:
        tile = tile_of(self._plan, self._layout, rows, columns)
        if isinstance(tile, InnerTile):
            return inner_tile(self._module, self._plan.numbers, tile)
        return outer_tile(self._module, self._plan.numbers, tile)


DOT = KernelKind("dot", _declines, _extent, _emit, _scratch_bytes, _estimate_ns)
