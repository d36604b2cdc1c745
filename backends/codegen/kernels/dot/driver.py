"""The loops of a product's kernel: over pieces of work, what is packed for each, and its tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.computed_operand import is_computed_operand
from xlalite.backends.codegen.kernels.dot.exactness import Exactness
from xlalite.backends.codegen.kernels.dot.finish import Area
from xlalite.backends.codegen.kernels.dot.layout import arguments_of, tile_place
from xlalite.backends.codegen.kernels.dot.next_product import next_product
from xlalite.backends.codegen.kernels.dot.packed_operand import memory_of
from xlalite.backends.codegen.kernels.dot.packers import pack
from xlalite.backends.codegen.kernels.dot.panels import place_ahead, reads_panel
from xlalite.backends.codegen.kernels.dot.part_packing import PartPacker
from xlalite.backends.codegen.kernels.dot.piece_order import (
    most_strip_columns,
    operand_piece,
    part_of,
    product_and_columns,
    row_unit,
    strip_columns,
)
from xlalite.backends.codegen.kernels.dot.places import write_places
from xlalite.backends.codegen.kernels.dot.product import Piece, Product, TileArea, own_part
from xlalite.backends.codegen.kernels.dot.tile import TileBuilder
from xlalite.backends.codegen.kernels.dot.tile_choice import TileChoice
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.view import Matrix
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.scratch import own_slot, shared_memory
from xlalite.backends.codegen.llvm import (
    I8,
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


class Driver:
    """Emits the loops of one kernel."""

    def __init__(
        self,
        module: ModuleBuilder,
        entry: KernelEntry,
        product: Product,
        math: Scalars,
        callee: Callable[[Function], Value],
        finish: Callable[[Area, Value], None] | None,
        computing: Sequence[Function | None] = (None, None),
    ) -> None:
        """Begins.

        Args:
            module: Where tiles and functions that pack are declared.
            entry: The function that the loops go to.
            product: What is computed.
            math: How that function knows sizes.
            callee: Where it finds a function.
            finish: Emits what makes results of the sums of an area; None if they need nothing but to be converted.
            computing: Functions that compute a part of an operand where it would be packed, of those in no memory.
        """
        self._module = module
        self._entry = entry
        self._fb = entry.fb
        self._math = math
        self._callee = callee
        self._plan = plan = product.plan
        self._stores_result = product.stores_result
        self._layout = product.layout
        self._slot_bytes = product.slot_bytes
        operands = list(enumerate(memory_of(product.dot)))[:: -1 if plan.view.exchanged else 1]
        self._lhs, self._rhs = (
            zero(PTR) if is_computed_operand(one) else entry.inputs[one.attrs.number].pointer for _, one in operands
        )
        computing_lhs, computing_rhs = computing[:: -1 if plan.view.exchanged else 1]
        self._finish = finish or self._convert
        self._tiles = TileChoice(module, entry.fb, math, callee, plan, product.layout)
        self._packs_lhs = PartPacker(module, entry.fb, math, callee, plan, self._place, computing_lhs)
        self._packs_rhs = PartPacker(module, entry.fb, math, callee, plan, self._rhs_place, computing_rhs)
        self._exactness = Exactness(module, entry.fb, math, callee, plan, product.layout)
        self._scratch: Value | None = None
        self._rhs_scratch: Value | None = None
        self._is_exact: Value | None = None
        self._next = next_product(plan) if math.simplifies else None
        self._after: Piece | None = None

    def emit(self) -> None:
        """Writes the loops."""
        self._tiles.declare_first()
        if self._slot_bytes:
            with own_slot(self._entry, self._math.operand(self._slot_bytes)) as self._scratch:
                self._pieces()
            return
        if self._layout.scratch_bytes:
            self._scratch = self._fb.alloca(array(I8, self._layout.scratch_bytes), align=64)
        self._pieces()

    def _pieces(self) -> None:
        """All pieces; operands stay packed as long as pieces after others share them."""
        fb, plan, math = self._fb, self._plan, self._math
        if plan.in_steps:
            with fb.loop(self._entry.begin, self._entry.end) as step:
                piece = self._piece(math.divide(step, plan.depth_units))
                first = math.multiply(math.remainder(step, plan.depth_units), plan.unit_depth)
                self._step(piece, first, (None, None))
            return
        if plan.extent == 1:
            self._piece_of(0, (None, None))
            return
        if not self._shares_steps:
            with self._each_piece() as (number, is_new):
                self._piece_of(number, is_new)
            return
        ends = map(math.operand, (0, plan.view.k, plan.unit_depth))
        with fb.loop(*ends) as first, self._each_piece() as (number, is_new):
            self._step(self._piece(number), first, is_new)

    @property
    def _shares_steps(self) -> bool:
        """Whether pieces take a step along the depth one after the other, so that they share what is packed for it."""
        plan = self._plan
        shares_rhs = plan.packs_rhs and plan.row_units > 1 and not plan.holds_rhs
        is_shared = shares_rhs or (plan.packs_lhs and plan.column_units > 1 and plan.row_units == 1)
        is_split = plan.depth_units > 1 and plan.parts == 1 and plan.staging is None
        is_kept = self._stores_result or plan.keeps_sums
        return is_kept and is_shared and is_split and not plan.view.rhs.looked_up

    @contextmanager
    def _each_piece(self) -> Iterator[tuple[Value, tuple[Value, Value]]]:
        """The pieces of a task, and whether their operands are others than those of the piece before."""
        fb, plan, math = self._fb, self._plan, self._math
        none = constant(I64, -1)
        with fb.carried_loop(self._entry.begin, self._entry.end, 1, [none, none]) as loop:
            part, number = (0, loop.index) if plan.parts == 1 else part_of(math, plan, loop.index)
            row, (product, column) = row_unit(math, plan, number), product_and_columns(math, plan, number)
            now = (
                operand_piece(math, plan.view, plan.view.lhs, (part, product), row, plan.row_units),
                operand_piece(math, plan.view, plan.view.rhs, (part, product), column, plan.column_units),
            )
            is_new = tuple(fb.icmp("ne", one, before) for one, before in zip(now, loop.values, strict=True))
            is_square = plan.mirrors and not plan.in_strips
            is_computed = fb.icmp("sge", math.value(row), math.value(column)) if is_square else None
            if is_computed is not None:  # nothing is packed for what is copied
                now = fb.select(is_computed, now[0], none), fb.select(is_computed, now[1], none)
            with self._where(is_computed, is_always=False):
                yield loop.index, (is_new[0], is_new[1])
            loop.yield_(*now)

    def _piece_of(self, number: Scalar, is_new: tuple[Value | None, Value | None]) -> None:
        """One piece; its operands are packed unless they are those of the piece before."""
        fb, plan, math, k = self._fb, self._plan, self._math, self._plan.view.k
        piece = self._piece(number)
        if self._next is not None:
            self._after = self._piece(math.least(math.add(number, 1), plan.units - 1))
        start, depth = piece.start, math.piece(piece.start, plan.part_depth, k) if plan.parts > 1 else k
        if plan.staging is not None:
            images = plan.view.m // plan.staging.image_rows
            with self._where(is_new[0], is_always=plan.row_units > 1 or any(plan.view.lhs.batch)):
                plan.staging.emit(
                    *(self._module, fb, math, self._callee),
                    math.multiply(piece.area.product, images),
                    (piece.area.row, piece.area.height),
                    (self._lhs, self._place(self._layout.image_offset)),
                )
        if plan.depth_units > 1:
            if plan.holds_rhs:
                self._hold_rhs(piece, start, depth, is_new[1])
            with fb.loop(*map(math.operand, (start, math.add(start, depth), plan.unit_depth))) as first:
                self._step(piece, first, (None, None))
        else:
            self._pack(piece, start, depth, is_new)
            self._block(piece, start, depth)
        if plan.parts > 1:
            self._join_parts(piece)

    def _step(self, piece: Piece, first: Scalar, is_new: tuple[Value | None, Value | None]) -> None:
        """A piece along the depth."""
        terms = self._math.piece(first, self._plan.unit_depth, self._plan.view.k)
        self._pack(piece, first, terms, is_new)
        self._block(piece, first, terms)

    def _hold_rhs(self, piece: Piece, start: Scalar, depth: Scalar, is_new: Value | None) -> None:
        """Packs a right operand for all pieces along the depth, unless it is that of the piece before."""
        fb, plan, math = self._fb, self._plan, self._math
        bounds = map(math.operand, (start, math.add(start, depth), plan.unit_depth))
        with self._where(is_new, is_always=False), fb.loop(*bounds) as first:
            self._pack_rhs(piece, first, math.piece(first, plan.unit_depth, plan.view.k))

    def _join_parts(self, piece: Piece) -> None:
        """Where all parts of a piece are done, adds their sums in order and finishes the piece."""
        fb, plan, layout, math = self._fb, self._plan, self._layout, self._math
        kept, area, shared = plan.numbers.kept, piece.area, shared_memory(self._entry)
        before = fb.atomic_rmw("add", fb.gep(I64, shared, piece.unit), constant(I64, 1), "acq_rel")
        with fb.if_(fb.icmp("eq", before, math.operand(plan.parts - 1))):
            sums = self._part(shared, math.multiply(piece.unit, plan.parts))
            wide = TileBuilder(fb, plan.numbers, plan.lanes)
            with math.steps(area.height, 1) as line, math.steps(area.width, plan.lanes) as column:
                first = math.address(kept, sums, math.add(math.multiply(line, layout.sums_line), column))
                places = [math.address(kept, first, number * layout.part) for number in range(plan.parts)]
                (total,) = wide.joined([wide.load(place, None) for place in places], 1)
                wide.store(total, first, None)
            self._finish(area, sums)

    def _part(self, shared: Value, number: Scalar) -> Value:
        """Where the sums of a part go."""
        place = self._math.address(I8, shared, self._layout.parts_offset)
        return self._math.address(self._plan.numbers.kept, place, self._math.multiply(number, self._layout.part))

    def _piece(self, number: Scalar) -> Piece:
        plan, view, math = self._plan, self._plan.view, self._math
        part: Scalar = 0
        sums = None
        if self._layout.part:
            part, number = part_of(math, plan, number)
            sums = self._part(shared_memory(self._entry), math.add(math.multiply(number, plan.parts), part))
        strip, (product, column_piece) = row_unit(math, plan, number), product_and_columns(math, plan, number)
        row, column = math.multiply(strip, plan.unit_rows), math.multiply(column_piece, plan.unit_columns)
        lhs: Scalar = view.lhs.origin
        rhs: Scalar = view.rhs.origin
        rest, is_staged = product, plan.staging is not None
        for size, a, b in zip(reversed(view.batch), reversed(view.lhs.batch), reversed(view.rhs.batch), strict=True):
            position = math.remainder(rest, size)
            rest = math.divide(rest, size)
            lhs = lhs if is_staged else math.add(lhs, math.multiply(position, a))
            rhs = math.add(rhs, math.multiply(position, b))
        image = self._place(self._layout.image_offset) if is_staged else self._lhs
        return Piece(
            math.address(representation(plan.numbers.lhs).memory, image, lhs),
            math.address(representation(plan.numbers.rhs).memory, self._rhs, rhs),
            Area(
                product,
                row,
                column,
                math.piece(row, plan.unit_rows, view.m),
                strip_columns(math, plan, strip) if plan.in_strips else math.piece(column, plan.unit_columns, view.n),
            ),
            math.multiply(part, plan.part_depth),
            number,
            sums,
            0 if is_staged else row,
        )

    def _pack(self, piece: Piece, start: Scalar, depth: Scalar, is_new: tuple[Value | None, Value | None]) -> None:
        """Packs operands for a part of the depth, if they are others than those of the piece before."""
        plan, layout, area = self._plan, self._layout, piece.area
        is_lhs_new = plan.row_units > 1 or (plan.column_units == 1 and any(plan.view.lhs.batch))
        if plan.holds_rhs:
            self._seek_rhs(piece, start)
        elif plan.packs_rhs:
            with self._where_rhs_is_new(area, start, is_new[1]):
                self._pack_rhs(piece, start, depth)
        if plan.packs_lhs:
            rows = piece.first_row, area.height
            with self._where(is_new[0], is_always=is_lhs_new):
                self._packs_lhs.pack(layout.lhs, piece.lhs, rows, (start, depth), area.product)
        elif layout.lhs.least_offset is not None:
            with self._where(is_new[0], is_always=is_lhs_new):
                place = self._place(layout.lhs.least_offset)
                self._exactness.scan(piece, piece.first_row, start, depth, place)

    def _pack_rhs(self, piece: Piece, start: Scalar, depth: Scalar) -> None:
        area = piece.area
        if self._plan.holds_rhs:
            self._seek_rhs(piece, start)
        width = most_strip_columns(self._math, self._plan, piece.unit) if self._plan.in_strips else area.width
        self._packs_rhs.pack(self._layout.rhs, piece.rhs, (area.column, width), (start, depth), area.product)

    def _seek_rhs(self, piece: Piece, start: Scalar) -> None:
        """Turns to what is packed of a right operand from a term on."""
        number = self._math.divide(self._math.subtract(start, piece.start), self._plan.unit_depth)
        self._rhs_scratch = self._place(self._math.multiply(number, self._layout.rhs.size_bytes))

    def _where(self, condition: Value | None, *, is_always: bool) -> AbstractContextManager[None]:
        """A branch, but where a condition always holds and the code is for these sizes alone."""
        if condition is None or (is_always and self._math.simplifies):
            return nullcontext()
        return self._fb.if_(condition)

    @contextmanager
    def _where_rhs_is_new(self, area: Area, start: Scalar, is_new: Value | None) -> Iterator[None]:
        """A branch for what is packed of a right operand, where it is not there yet."""
        fb, plan, math, layout = self._fb, self._plan, self._math, self._layout
        if not plan.kept_parts:
            with self._where(is_new, is_always=plan.row_units == 1 and any(plan.view.rhs.batch)):
                yield
            return
        part = math.multiply(math.divide(start, plan.unit_depth), plan.column_units)
        part = math.add(part, math.divide(area.column, plan.unit_columns))
        self._rhs_scratch = self._place(math.multiply(part, layout.rhs.size_bytes))
        word, product = math.address(I64, self._place(layout.kept_offset), part), math.value(area.product)
        with fb.if_(fb.icmp("ne", fb.load(I64, word, 8), product)):
            fb.store(product, word, 8)
            yield

    def _rhs_place(self, offset: int) -> Value:
        """A place in the scratch memory for what is packed of the right operand now."""
        return self._place(offset) if self._rhs_scratch is None else self._math.address(I8, self._rhs_scratch, offset)

    def _place(self, offset: Scalar) -> Value:
        assert self._scratch is not None, "a layout that needs scratch memory has some"
        return self._math.address(I8, self._scratch, offset)

    def _block(self, piece: Piece, start: Scalar, depth: Scalar) -> None:
        """All tiles of a piece for a part of the depth."""
        plan, layout, math = self._plan, self._layout, self._math
        numbers, view = plan.numbers, plan.view
        a_type, b_type = representation(numbers.lhs).memory, representation(numbers.rhs).memory
        if plan.packs_rhs:
            b_type, b = numbers.kept, self._rhs_place(layout.rhs.offset)
        elif view.rhs.looked_up:
            b = self._places(b_type, piece.rhs, view.rhs, layout.rhs.offset, (start, piece.start))
        else:
            b = self._address(b_type, piece.rhs, view.rhs.depth, start)
            b = self._address(b_type, b, view.rhs.outer, piece.area.column)
        if plan.packs_lhs:
            a_type, a = numbers.kept, self._place(layout.lhs.offset)
        elif view.lhs.looked_up:
            a = self._places(a_type, piece.lhs, view.lhs, layout.lhs.offset, (start, piece.start))
        else:
            a = self._address(a_type, piece.lhs, view.lhs.depth, start)
            if plan.row_run == view.m:
                a = self._address(a_type, a, view.lhs.outer, piece.first_row)
        if layout.lhs.least_offset is not None and layout.rhs.least_offset is not None:
            places = self._place(layout.lhs.least_offset), self._rhs_place(layout.rhs.least_offset)
            self._is_exact = self._exactness.of(piece, start, places, self._place(0))
        with ExitStack() as loops:
            if not plan.rows_outside:
                column, width, panel = loops.enter_context(self._columns(piece, b_type, b))
            row, height, line, behind = loops.enter_context(self._rows(piece, a_type, a))
            if plan.rows_outside:
                column, width, panel = loops.enter_context(self._columns(piece, b_type, b))
            tile = TileArea(Area(piece.area.product, row, column, height, width), start, depth, behind)
            self._seen_tile(piece, tile, line, panel)
        if plan.mirrors:
            from xlalite.backends.codegen.kernels.dot.mirroring import mirror  # which few programs need

            place = partial(self._result_place, numbers.kept, piece.area.product)
            mirror(self._module, self._fb, math, self._callee, plan, piece.area, math.add(start, depth), place)

    @contextmanager
    def _columns(self, piece: Piece, memory: Type, b: Value) -> Iterator[tuple[Scalar, Scalar, Value]]:
        """The columns of each tile: the first one in the piece, how many, and where they lie."""
        math, columns, run = self._math, self._plan.tile_columns, self._plan.column_run
        stride = 0 if self._plan.view.rhs.looked_up else self._layout.rhs.tile
        with math.steps(piece.area.width, run) if run < self._plan.view.n else nullcontext() as first:
            width = piece.area.width if first is None else math.piece(first, run, piece.area.width)
            with math.steps_along(width, columns, memory, b, stride) as (column, place):
                yield column if first is None else math.add(first, column), math.piece(column, columns, width), place

    @contextmanager
    def _rows(self, piece: Piece, memory: Type, a: Value) -> Iterator[tuple[Scalar, Scalar, Value, Scalar]]:
        """The rows of each tile: the first one in the piece, how many, where they lie, how many the one before has."""
        plan, lhs, math = self._plan, self._plan.view.lhs, self._math
        with math.steps(piece.area.height, plan.row_run) as first:
            run = math.piece(first, plan.row_run, piece.area.height)
            if plan.row_run < plan.view.m and not lhs.looked_up:
                a = self._address(memory, a, lhs.outer, math.add(piece.first_row, first))
            stride = 0 if lhs.looked_up else self._layout.lhs.tile
            with math.steps_along(run, plan.rows, memory, a, stride) as (row, line):
                if not plan.overlaps:
                    yield math.add(first, row), math.piece(row, plan.rows, run), line, 0
                    return
                whole = self._fb.smin(math.value(row), math.value(math.subtract(run, plan.rows)))
                line = math.address(memory, a, math.multiply(whole, 0 if lhs.looked_up else lhs.outer.stride))
                yield math.add(first, whole), plan.rows, line, 0 if self._stores_result else math.subtract(row, whole)

    def _address(self, memory: Type, base: Value, walk: Walk, position: Scalar) -> Value:
        """A position behind the first one of a dimension that is read where it lies."""
        return self._math.address(memory, base, walk.place(self._math, position))

    def _places(self, memory: Type, first: Value, matrix: Matrix, offset: int, terms: tuple[Scalar, Scalar]) -> Value:
        """The entry of a term in the table of an operand's places, which is written with the first term of a piece."""
        math, table = self._math, self._place(offset)
        is_first = None if self._plan.depth_units == 1 else self._fb.icmp("eq", *map(math.value, terms))
        with self._where(is_first, is_always=False):
            write_places(self._fb, math, memory, matrix, first, table)
        return math.address(PTR, table, terms[0] if matrix.looked_up == 1 else math.divide(terms[0], matrix.looked_up))

    def _seen_tile(self, piece: Piece, tile: TileArea, lhs: Value, rhs: Value) -> None:
        """One tile, if there are columns of the result among its own."""
        math, plan, seen, area = self._math, self._plan, self._plan.view.seen, tile.area
        if seen is None:
            self._tile(piece, tile, lhs, rhs, area)
            return
        first = math.add(piece.area.column, area.column)
        column, end = (seen.count_before(math, place) for place in (first, math.add(first, area.width)))
        width = math.subtract(end, column)
        whole = area
        if plan.overlaps_columns:
            last = math.subtract(plan.view.n - plan.columns, piece.area.column)
            whole = replace(area, column=math.least(area.column, last), width=plan.columns)
        with self._fb.if_(self._fb.icmp("ne", math.value(width), 0)):
            column = math.subtract(column, piece.area.column)
            seen_area = replace(area, column=column, width=width)
            self._tile(piece, replace(tile, area=whole), lhs, rhs, seen_area)

    def _tile(self, piece: Piece, tile: TileArea, lhs: Value, rhs: Value, seen: Area) -> None:
        """One tile: sums, then results."""
        fb, plan, layout, math, area = self._fb, self._plan, self._layout, self._math, tile.area
        sums = self._sums(piece, seen)
        own = sums if layout.turning is None else self._place(tile_place(plan, layout, (area.row, area.column), math))
        adds = fb.icmp("ne", math.value(tile.start), math.value(piece.start))
        depth = math.divide(math.add(tile.depth, plan.numbers.word - 1), plan.numbers.word)
        first = math.add(piece.area.column, area.column)
        rows, columns = plan.view.lhs, plan.view.rhs
        row_place = rows.outer.place(math, math.add(piece.first_row, area.row)) if rows.looked_up else 0
        column_place = columns.outer.place(math, first) if columns.looked_up else 0
        given = map(math.value, arguments_of(plan, layout, row_place, column_place, area.width, area.height))
        if self._next is not None and self._after is not None:
            self._next.fetch(fb, math, plan, self._after, area)
        is_first, pointers = None, tuple[Value, ...]()
        if plan.shares_panels:
            panel = self._place(layout.panel_offset)
            is_first = fb.icmp("eq", math.value(area.row), 0)
            pointers = panel, place_ahead(fb, math, plan, rhs, (area.row, area.column), piece.area.width)
            rhs = fb.select(reads_panel(fb, math, plan, is_first, area.width), panel, rhs)
        function = self._tiles.function(area.height, area.width, self._is_exact, is_first)
        fb.call_pointer(function, VOID, (lhs, rhs, own, math.value(depth), adds, *given, *pointers))
        is_stored = self._stores_result or plan.parts > 1
        if is_stored and layout.turning is None:
            return
        is_last = None
        if plan.depth_units > 1:
            is_last = fb.icmp("eq", math.value(math.add(tile.start, tile.depth)), math.operand(plan.view.k))
        with self._where(is_last, is_always=False):
            if layout.turning is not None:
                sizes: tuple[Scalar, ...] = 0, 0, area.height, area.width
                if plan.view.seen is not None:
                    own = math.address(plan.numbers.kept, own, math.subtract(0, first))
                    sizes = math.add(piece.area.column, seen.column), 0, seen.width, area.height
                arguments = (own, sums, *map(math.value, (*sizes, *layout.turning.strides)))
                pack(self._module, fb, self._callee, plan.numbers, layout.turning, arguments)
            if not is_stored:
                row, column = math.add(piece.area.row, seen.row), math.add(piece.area.column, seen.column)
                results = Area(piece.area.product, row, column, seen.height, seen.width)
                self._finish(*own_part(math, plan, layout, tile, results, sums))

    def _convert(self, area: Area, sums: Value) -> None:
        """Finishes a tile whose sums need nothing but to be converted."""
        plan, math, numbers = self._plan, self._math, self._plan.numbers
        area = area.turned() if plan.form is Form.ROWS else area
        if plan.view.rows is None:
            self._convert_lines(area, sums)
            return
        fb, run, behind = self._fb, plan.view.rows.run, math.add(area.row, area.height)
        ends = math.divide(area.row, run), math.add(math.divide(math.subtract(behind, 1), run), 1)
        with fb.loop(*map(math.operand, ends)) as number:
            begin, end = math.multiply(number, run), math.multiply(math.add(number, 1), run)
            row = fb.smax(*map(math.value, (begin, area.row)))
            line = math.multiply(math.subtract(row, area.row), self._layout.sums_line)
            part = replace(area, row=row, height=math.subtract(math.least(end, behind), row))
            self._convert_lines(part, math.address(numbers.kept, sums, line))

    def _convert_lines(self, area: Area, sums: Value) -> None:
        from xlalite.backends.codegen.kernels.dot.converter import converter  # which few programs need

        plan, math, numbers = self._plan, self._math, self._plan.numbers
        place = self._result_place(representation(numbers.result).memory, area.product, area.row, area.column)
        sizes = area.height, area.width, self._layout.sums_line, plan.view.line
        convert = self._callee(converter(self._module, numbers, plan.lanes))
        self._fb.call_pointer(convert, VOID, (sums, place, *map(math.value, sizes)))

    def _sums(self, piece: Piece, area: Area) -> Value:
        """Where a tile's sums go: the result, the place of a whole piece or of a part of it, or that of one tile."""
        plan, layout, math = self._plan, self._layout, self._math
        if piece.sums is not None:
            place = math.add(math.multiply(area.row, layout.sums_line), area.column)
            return math.address(plan.numbers.kept, piece.sums, place)
        row, column = area.row, area.column
        if self._stores_result:
            row, column = math.add(piece.area.row, row), math.add(piece.area.column, column)
        line, across = (column, row) if plan.form is Form.ROWS else (row, column)
        if self._stores_result:
            return self._result_place(plan.numbers.kept, piece.area.product, line, across)
        if plan.depth_units == 1:
            return self._place(layout.sums_offset)
        offset = math.add(math.multiply(line, layout.sums_line), across)
        return math.address(plan.numbers.kept, self._place(layout.sums_offset), offset)

    def _result_place(self, memory: Type, product: Scalar, row: Scalar, column: Scalar) -> Value:
        """An element of the kernel's result."""
        view, math = self._plan.view, self._math
        line = math.multiply(row, view.line) if view.rows is None else view.rows.place(math, row)
        offset = math.add(math.add(line, column), view.products.place(math, product))
        return math.address(memory, self._entry.outputs[0].pointer, offset)
