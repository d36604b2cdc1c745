"""The dot kernel: products of matrices with the elementwise work after them.

The parallel extent counts pieces of work: blocks of the result, rows fastest. In a piece, operands are packed where
that pays, then tile after tile is computed in registers and stored; where the result is not simply the sums, a tile's
sums are finished line by line while they are in the nearest cache.

Long sums with few results are divided, too: each part has sums of its own, which whoever is done last adds in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.computed_operand import (
    ComputedOperand,
    computed_operands,
    computing_cycles,
    is_computed_operand,
    why_not_computed,
)
from xlalite.backends.codegen.kernels.dot.finish import Area, Finisher
from xlalite.backends.codegen.kernels.dot.layout import DotLayout, arguments_of, layout_of, tile_of
from xlalite.backends.codegen.kernels.dot.numbers import why_no_numbers
from xlalite.backends.codegen.kernels.dot.packed_operand import memory_of
from xlalite.backends.codegen.kernels.dot.packers import packer
from xlalite.backends.codegen.kernels.dot.part_packing import PartPacker
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, plan_dot
from xlalite.backends.codegen.kernels.dot.tile import TileBuilder
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.view import Matrix
from xlalite.backends.codegen.kernels.dot.words import is_exact
from xlalite.backends.codegen.kernels.estimate import Work, bytes_read
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.scratch import own_slot, shared_memory
from xlalite.backends.codegen.kernels.throughput import (
    DOT_BYTES_PER_NS,
    FLOPS_PER_NS,
    MULTIPLY_ADDS_PER_NS,
    TRANSCENDENTALS_PER_NS,
)
from xlalite.backends.codegen.llvm import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    ModuleBuilder,
    Type,
    Value,
    array,
    constant,
    zero,
)
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.types.decision import Number
from xlalite.passes.analysis.cost_analysis import CostAnalysis
from xlalite.passes.analysis.matrix_products import is_matrix_product
from xlalite.passes.fusion.kernel_shape import KernelShape, results_of

_LONG_TILE = 256
"""Terms from which on a tile takes so long that what calls it need not be fast."""

_STACK_BYTES = 64 << 10
"""Scratch memory up to this lies on the stack."""


def plan_dot_kernel(request: KernelRequest, shape: KernelShape) -> DotKernel | Declined:
    """The kernel that computes a product in tiles."""
    body = request.body
    dot, *others = filter(is_matrix_product, body.instructions)
    if others:
        return Declined("there are several products")
    if any(not result.shape.is_array or result.shape.dims != dot.shape.dims for result in results_of(body)):
        return Declined("a result differs from the product in size")
    if dot.shape.element_count == 0:
        return Declined("the product has no elements")
    reason = why_no_numbers(dot) or why_not_computed(dot)
    if reason is not None:
        return Declined(reason)
    read = set(reachable(memory_of(dot), lambda one: one.operands))
    if any(body.parameters[number] in read for _, number in request.in_place):
        return Declined("a result lies in the memory of the product's operand")
    computing = computing_cycles(dot, request.target)
    plan = plan_dot(dot, request.target, may_overlap=results_of(body) == (dot,), computing=computing)
    return dot_kernel(request, dot, plan)


def dot_kernel(request: KernelRequest, dot: HloInstruction, plan: DotPlan) -> DotKernel:
    """The kernel that computes a product as it is planned."""
    stores_result = results_of(request.body) == (dot,) and plan.numbers.stores_sums and plan.parts == 1
    return DotKernel(request, dot, plan, layout_of(plan, stores_result=stores_result), stores_result)


@dataclass(frozen=True, slots=True)
class DotKernel(Kernel):
    """A product.

    Attributes:
        dot: The instruction.
        plan: How it is computed.
        layout: The memory of a piece of work.
        stores_result: Whether the kernel gives nothing but the sums as they are.
    """

    dot: HloInstruction
    plan: DotPlan
    layout: DotLayout
    stores_result: bool

    @property
    def extent(self) -> int:
        """Pieces of work."""
        return self.plan.extent

    @property
    def scratch_bytes(self) -> int:
        """What is too large for the stack."""
        size = self.layout.scratch_bytes
        return size if size > _STACK_BYTES else 0

    @property
    def counters(self) -> int:
        """One for each piece of the result that is computed in parts."""
        return self.plan.units if self.plan.parts > 1 else 0

    @property
    def shared_bytes(self) -> int:
        """Counters and the sums of parts."""
        plan, layout = self.plan, self.layout
        return layout.parts_offset + plan.extent * layout.part * plan.numbers.kept.size_bytes

    def estimate_ns(self, work: Work) -> float:
        """The product's multiply-adds or its traffic, whichever takes longer, and what follows it."""
        body = self.request.body
        moved = sum(map(bytes_read, body.parameters)) + body.root.shape.size_bytes
        # What operands are computed with is in the plan's cycles.
        before = set(reachable((self.dot,), lambda one: one.operands))
        costs = [CostAnalysis().of_instruction(one) for one in body.instructions if one not in before]
        after = sum(cost.flops / FLOPS_PER_NS + cost.transcendentals / TRANSCENDENTALS_PER_NS for cost in costs)
        return max(self.plan.cycles / MULTIPLY_ADDS_PER_NS, moved / DOT_BYTES_PER_NS) + after

    @property
    def figures(self) -> dict[str, Number]:
        """Form, tile, piece of work, and what is packed."""
        plan = self.plan
        packed = [side for side, is_packed in (("lhs", plan.packs_lhs), ("rhs", plan.packs_rhs)) if is_packed]
        if plan.view.exchanged:
            packed = [{"lhs": "rhs", "rhs": "lhs"}[side] for side in packed]
        if plan.view.rhs.panel:
            packed.append("rhs before")
        return {
            "form": plan.form.value,
            "tile": f"{plan.rows}x{plan.columns}",
            "piece": f"{plan.unit_rows}x{plan.unit_columns}x{plan.unit_depth}",
            **({"parts": plan.parts} if plan.parts > 1 else {}),
            "packed": ", ".join(packed) or "nothing",
            **({"computed": computed} if (computed := computed_operands(self.dot)) else {}),
            "scratch_bytes": self.layout.scratch_bytes,
        }

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over pieces of work."""
        calls_only = self.stores_result and self.plan.unit_depth >= _LONG_TILE and not computed_operands(self.dot)
        entry = open_kernel(module, name, self.request, calls_only=calls_only)
        if self.plan.extent:
            _DotEmitter(module, entry, self).emit()
        entry.fb.ret()
        return entry.function


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece of work.

    Attributes:
        lhs: First element of its product's left operand.
        rhs: First element of its product's right operand.
        area: What it computes.
        start: First term.
        unit: Number of the piece of the result, of which this is a part.
        sums: Where a part's sums go, if there are several.
    """

    lhs: Value
    rhs: Value
    area: Area
    start: Scalar
    unit: Scalar
    sums: Value | None


@dataclass(frozen=True, slots=True)
class _Tile:
    """A tile within a piece.

    Attributes:
        area: What it computes, counted from the first row and column of the piece.
        start: First term.
        depth: Number of terms.
    """

    area: Area
    start: Scalar
    depth: Scalar


class _DotEmitter:
    """Emits the loops of one kernel."""

    def __init__(self, module: ModuleBuilder, entry: KernelEntry, kernel: DotKernel) -> None:
        self._module = module
        self._entry = entry
        self._fb = entry.fb
        self._math = Scalars(entry.fb)
        self._plan = plan = kernel.plan
        self._stores_result = kernel.stores_result
        self._layout = kernel.layout
        self._slot_bytes = kernel.scratch_bytes
        operands = list(enumerate(memory_of(kernel.dot)))[:: -1 if plan.view.exchanged else 1]
        self._lhs, self._rhs = (
            zero(PTR) if is_computed_operand(one) else entry.inputs[one.attrs.number].pointer for _, one in operands
        )
        self._computed_lhs, self._computed_rhs = (
            ComputedOperand(entry, kernel.request.body, kernel.dot, number, plan.numbers, plan.lanes)
            if is_computed_operand(one)
            else None
            for number, one in operands
        )
        self._finisher = Finisher(entry, kernel.request.body, kernel.dot, plan, self._layout)
        self._packs = PartPacker(module, entry.fb, plan, self._place)
        self._scratch: Value | None = None
        self._is_exact: Value | None = None

    def emit(self) -> None:
        fb, entry = self._fb, self._entry
        if self._slot_bytes:
            with own_slot(entry, self._slot_bytes) as self._scratch:
                self._pieces()
            return
        if self._layout.scratch_bytes:
            self._scratch = fb.alloca(array(I8, self._layout.scratch_bytes), align=64)
        self._pieces()

    def _pieces(self) -> None:
        """All pieces; the right operand stays packed as long as pieces share it."""
        fb, plan, math = self._fb, self._plan, self._math
        if plan.extent == 1:
            self._piece_of(0, None)
            return
        with fb.carried_loop(self._entry.begin, self._entry.end, 1, [constant(I64, -1)]) as loop:
            block = math.divide(loop.index, plan.row_units)
            self._piece_of(loop.index, fb.icmp("ne", math.value(block), loop.values[0]))
            loop.yield_(math.value(block))

    def _piece_of(self, number: Scalar, is_new_block: Value | None) -> None:
        """One piece; its right operand is packed unless it is that of the piece before."""
        fb, plan, math, k = self._fb, self._plan, self._math, self._plan.view.k
        piece = self._piece(number)
        start, depth = piece.start, math.piece(piece.start, plan.part_depth, k) if plan.parts > 1 else k
        if plan.depth_units > 1:
            with fb.loop(start, math.add(start, depth), plan.unit_depth) as first:
                self._block(piece, first, math.piece(first, plan.unit_depth, k))
        else:
            if plan.packs_rhs and (is_new_block is None or plan.row_units == 1):
                self._pack_rhs(piece, start, depth)
            elif plan.packs_rhs and is_new_block is not None:
                with fb.if_(is_new_block):
                    self._pack_rhs(piece, start, depth)
            self._block(piece, start, depth)
        if plan.parts > 1:
            self._join_parts(piece)

    def _join_parts(self, piece: _Piece) -> None:
        """Where all parts of a piece are done, adds their sums in order and finishes the piece."""
        fb, plan, layout, math = self._fb, self._plan, self._layout, self._math
        kept, area, shared = plan.numbers.kept, piece.area, shared_memory(self._entry)
        before = fb.atomic_rmw("add", fb.gep(I64, shared, piece.unit), constant(I64, 1), "acq_rel")
        with fb.if_(fb.icmp("eq", before, plan.parts - 1)):
            sums = self._part(shared, math.multiply(piece.unit, plan.parts))
            wide = TileBuilder(fb, plan.numbers, plan.lanes)
            with math.steps(area.height, 1) as line, math.steps(area.width, plan.lanes) as column:
                first = math.address(kept, sums, math.add(math.multiply(line, layout.sums_line), column))
                places = [math.address(kept, first, number * layout.part) for number in range(plan.parts)]
                (total,) = wide.joined([wide.load(place, plan.lanes) for place in places], 1)
                wide.store(total, first, plan.lanes)
            self._finisher.finish(area, sums)

    def _part(self, shared: Value, number: Scalar) -> Value:
        """Where the sums of a part go."""
        place = self._math.address(I8, shared, self._layout.parts_offset)
        return self._math.address(self._plan.numbers.kept, place, self._math.multiply(number, self._layout.part))

    def _piece(self, number: Scalar) -> _Piece:
        plan, view, math = self._plan, self._plan.view, self._math
        part: Scalar = 0
        sums = None
        if plan.parts > 1:
            part, number = math.divide(number, plan.units), math.remainder(number, plan.units)
            sums = self._part(shared_memory(self._entry), math.add(math.multiply(number, plan.parts), part))
        block = math.divide(number, plan.row_units)
        row = math.multiply(math.remainder(number, plan.row_units), plan.unit_rows)
        column = math.multiply(math.remainder(block, plan.column_units), plan.unit_columns)
        product = math.divide(block, plan.column_units) if plan.view.batch_count > 1 else 0
        lhs: Scalar = view.lhs.origin
        rhs: Scalar = view.rhs.origin
        rest = product
        for size, a, b in zip(reversed(view.batch), reversed(view.lhs.batch), reversed(view.rhs.batch), strict=True):
            position = math.remainder(rest, size)
            rest = math.divide(rest, size)
            lhs, rhs = math.add(lhs, math.multiply(position, a)), math.add(rhs, math.multiply(position, b))
        return _Piece(
            math.address(representation(plan.numbers.lhs).memory, self._lhs, lhs),
            math.address(representation(plan.numbers.rhs).memory, self._rhs, rhs),
            Area(
                product,
                row,
                column,
                math.piece(row, plan.unit_rows, view.m),
                math.piece(column, plan.unit_columns, view.n),
            ),
            math.multiply(part, plan.part_depth),
            number,
            sums,
        )

    def _pack_lhs(self, piece: _Piece, start: Scalar, depth: Scalar) -> None:
        compute = self._computed_lhs and partial(self._computed_lhs.compute, piece.area.product)
        self._packs.pack(self._layout.lhs, compute or piece.lhs, (piece.area.row, piece.area.height), (start, depth))

    def _pack_rhs(self, piece: _Piece, start: Scalar, depth: Scalar) -> None:
        compute = self._computed_rhs and partial(self._computed_rhs.compute, piece.area.product)
        self._packs.pack(self._layout.rhs, compute or piece.rhs, (piece.area.column, piece.area.width), (start, depth))

    def _place(self, offset: int) -> Value:
        assert self._scratch is not None, "a layout that needs scratch memory has some"
        return self._math.address(I8, self._scratch, offset)

    def _block(self, piece: _Piece, start: Scalar, depth: Scalar) -> None:
        """All tiles of a piece for a part of the depth."""
        plan, layout = self._plan, self._layout
        numbers, view = plan.numbers, plan.view
        a_type, b_type = representation(numbers.lhs).memory, representation(numbers.rhs).memory
        if plan.packs_rhs:
            if plan.depth_units > 1:
                self._pack_rhs(piece, start, depth)
            b_type, b = numbers.kept, self._place(layout.rhs.offset)
        elif view.rhs.looked_up:
            b = self._places(b_type, piece.rhs, view.rhs)
        else:
            b = self._address(b_type, piece.rhs, view.rhs, piece.area.column, start)
        if plan.packs_lhs:
            self._pack_lhs(piece, start, depth)
            a_type, a = numbers.kept, self._place(layout.lhs.offset)
        else:
            a = self._address(a_type, piece.lhs, view.lhs, piece.area.row, start)
        if layout.lhs.least_offset is not None and layout.rhs.least_offset is not None:
            places = self._place(layout.lhs.least_offset), self._place(layout.rhs.least_offset)
            self._is_exact = is_exact(self._fb, *(self._fb.load(I32, place, 4) for place in places))
        with ExitStack() as loops:
            if not plan.rows_outside:
                column, width, panel = loops.enter_context(self._columns(piece, b_type, b))
            row, height, line = loops.enter_context(self._rows(piece, start, a_type, a))
            if plan.rows_outside:
                column, width, panel = loops.enter_context(self._columns(piece, b_type, b))
            self._seen_tile(
                piece, _Tile(Area(piece.area.product, row, column, height, width), start, depth), line, panel
            )

    @contextmanager
    def _columns(self, piece: _Piece, memory: Type, b: Value) -> Iterator[tuple[Scalar, Scalar, Value]]:
        """The columns of each tile: the first one in the piece, how many, and where they lie."""
        math, columns = self._math, self._plan.columns
        with math.steps(piece.area.width, columns) as column:
            offset = math.multiply(math.divide(column, columns), self._layout.rhs.tile)
            if self._plan.view.rhs.looked_up:
                offset = 0
            yield column, math.piece(column, columns, piece.area.width), math.address(memory, b, offset)

    @contextmanager
    def _rows(self, piece: _Piece, start: Scalar, memory: Type, a: Value) -> Iterator[tuple[Scalar, Scalar, Value]]:
        """The rows of each tile: the first one in the piece, how many, and where they lie."""
        plan, view, math = self._plan, self._plan.view, self._math
        with math.steps(piece.area.height, plan.row_run) as first:
            run = math.piece(first, plan.row_run, piece.area.height)
            if plan.row_run < view.m:
                a = self._address(memory, piece.lhs, view.lhs, math.add(piece.area.row, first), start)
            with math.steps(run, plan.rows) as place:
                height = math.piece(place, plan.rows, run)
                offset = math.multiply(math.divide(place, plan.rows), self._layout.lhs.tile)
                if plan.overlaps:
                    place = self._fb.smin(math.value(place), math.value(math.subtract(run, plan.rows)))
                    height, offset = plan.rows, math.multiply(place, view.lhs.outer.stride)
                yield math.add(first, place), height, math.address(memory, a, offset)

    def _address(self, memory: Type, base: Value, matrix: Matrix, outer: Scalar, depth: Scalar) -> Value:
        """An element of a matrix that is read where it lies."""
        math = self._math
        return math.address(memory, base, math.add(matrix.outer.place(math, outer), matrix.depth.place(math, depth)))

    def _places(self, memory: Type, base: Value, matrix: Matrix) -> Value:
        """A table of where terms lie at the first position."""
        fb, math, places = self._fb, self._math, self._place(self._layout.rhs.offset)
        with fb.loop(0, self._plan.view.k) as term:
            place = math.address(memory, base, matrix.depth.place(math, term))
            fb.store(place, fb.gep(PTR, places, term), 8)
        return places

    def _seen_tile(self, piece: _Piece, tile: _Tile, lhs: Value, rhs: Value) -> None:
        """One tile, if there are columns of the result among its own."""
        math, seen, area = self._math, self._plan.view.seen, tile.area
        if seen is None:
            self._tile(piece, tile, lhs, rhs, area)
            return
        first = math.add(piece.area.column, area.column)
        column, end = (seen.count_before(math, place) for place in (first, math.add(first, area.width)))
        width = math.subtract(end, column)
        with self._fb.if_(self._fb.icmp("ne", math.value(width), 0)):
            column = math.subtract(column, piece.area.column)
            self._tile(piece, tile, lhs, rhs, replace(area, column=column, width=width))

    def _tile(self, piece: _Piece, tile: _Tile, lhs: Value, rhs: Value, seen: Area) -> None:
        """One tile: sums, then results."""
        fb, plan, layout, math = self._fb, self._plan, self._layout, self._math
        area = tile.area
        sums = self._sums(piece, seen)
        own = sums if layout.turning is None else self._place(layout.tile_offset)
        adds = fb.icmp("ne", math.value(tile.start), math.value(piece.start))
        word = plan.numbers.word
        depth = math.divide(math.add(tile.depth, word - 1), word)
        first = math.add(piece.area.column, area.column)
        given = map(math.value, arguments_of(plan, layout, first))
        function = self._tile_function(area.height, area.width)
        fb.call_pointer(function, VOID, (lhs, rhs, own, math.value(depth), adds, *given))
        if layout.turning is not None:
            turn = packer(self._module, plan.numbers, layout.turning)
            sizes: tuple[Scalar, ...] = 0, 0, area.height, area.width
            if plan.view.seen is not None:
                own = math.address(plan.numbers.kept, own, math.subtract(0, first))
                sizes = math.add(piece.area.column, seen.column), 0, seen.width, area.height
            fb.call(turn, own, sums, *map(math.value, (*sizes, *layout.turning.strides)))
        if self._stores_result or plan.parts > 1:
            return
        row, column = math.add(piece.area.row, seen.row), math.add(piece.area.column, seen.column)
        area = Area(piece.area.product, row, column, seen.height, seen.width)
        if plan.depth_units == 1:
            self._finisher.finish(area, sums)
            return
        with fb.if_(fb.icmp("eq", math.value(math.add(tile.start, tile.depth)), plan.view.k)):
            self._finisher.finish(area, sums)

    def _sums(self, piece: _Piece, area: Area) -> Value:
        """Where a tile's sums go: the result, the place of a whole piece or of a part of it, or that of one tile."""
        plan, layout, math = self._plan, self._layout, self._math
        turned = plan.form is Form.ROWS
        if piece.sums is not None:
            place = math.add(math.multiply(area.row, layout.sums_line), area.column)
            return math.address(plan.numbers.kept, piece.sums, place)
        if not self._stores_result and plan.depth_units == 1:
            return self._place(layout.sums_offset)
        row, column = area.row, area.column
        if self._stores_result:
            row, column = math.add(piece.area.row, row), math.add(piece.area.column, column)
        line, across = (column, row) if turned else (row, column)
        offset = math.add(math.multiply(line, layout.sums_line), across)
        if not self._stores_result:
            return math.address(plan.numbers.kept, self._place(layout.sums_offset), offset)
        offset = math.add(offset, plan.view.products.place(math, piece.area.product))
        return math.address(plan.numbers.kept, self._entry.outputs[0].pointer, offset)

    def _tile_function(self, height: Scalar, width: Scalar) -> Value:
        """The tile of the right size: there is a whole one, and one for the rest of each dimension."""
        plan, view = self._plan, self._plan.view
        return self._choice(
            width,
            plan.columns,
            view.n % plan.columns,
            lambda columns: self._choice(
                height, plan.rows, plan.row_run % plan.rows, lambda rows: self._function(rows, columns)
            ),
        )

    def _choice(self, size: Scalar, whole: int, rest: int, option: Callable[[int], Value]) -> Value:
        if isinstance(size, int) or not rest:
            return option(size if isinstance(size, int) else whole)
        return self._fb.select(self._fb.icmp("eq", size, whole), option(whole), option(rest))

    def _function(self, rows: int, columns: int) -> Value:
        tile, numbers = tile_of(self._plan, self._layout, rows, columns), self._plan.numbers
        function = tile.function(self._module, numbers)
        if self._is_exact is None or numbers.widened is None:
            return function
        return self._fb.select(self._is_exact, function, tile.function(self._module, numbers.widened))
