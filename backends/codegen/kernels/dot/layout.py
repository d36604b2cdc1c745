"""Where a product's packed operands and unfinished sums lie in its scratch memory, and how tiles walk through them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xlalite.backends.codegen.kernels.dot.outer_tile import OuterTile
from xlalite.backends.codegen.kernels.dot.packing import WORDS_AT_ONCE, Packing
from xlalite.backends.codegen.kernels.dot.panels import panel_tile
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.reading import words_of_rows
from xlalite.backends.codegen.kernels.dot.tile import Tile
from xlalite.backends.codegen.kernels.dot.tilings import VARIANT, Form, has_few_columns_behind
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.dot.words import BLOCK, MATRIX, SQUARE
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.kernels.scratch import COUNTER_BYTES
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.backends.codegen.kernels.dot.matrix_tile import MatrixTile

LONG_TILE = 256
"""Terms from which on a tile takes so long that what calls it need not be fast, and it need not know its sizes."""

_MASKED_TILE = 64
"""Terms from which on it is told how many columns there are, and how many rows if these are packed."""

_MASKED_BITS = 256
"""Width of the vectors from which on there are masks that are known only when code runs: those of AVX and AVX-512."""

_WIDENED_ROWS = 2
"""Rows of a tile in place of one in registers of matrices."""

_RARE_ROWS, _RARE_VECTORS = 4, 2
"""Rows, and vectors of a row, of a tile in place of one in other words: of bf16, 512 in each dimension take 2.0 ms of
one core so where the other takes 0.6, with 2 rows 3.2. One as large takes 1.05, but 4.5 ms to compile instead of 2.
"""

_ALIGNMENT = 64
_ADDRESS_BYTES = 8


@dataclass(frozen=True, slots=True)
class OperandLayout:
    """How a piece of one operand is read by tiles.

    Attributes:
        packing: How it is packed; None if it is read where it lies.
        outer: Stride of rows of a tile, in elements of what is read.
        depth: Stride of terms.
        tile: Distance from one tile's part to the next one's.
        tile_extent: Rows of a tile that are packed together; 0 if the whole piece is packed at once.
        offset: Place in the scratch memory, in bytes.
        size_bytes: Room there.
        least_offset: Place of the least exponent of what is packed, in bytes; None if nobody asks for it.
        stage: Where what the kernel computes of it is put before it is packed; None if it is in memory, or is put where
            it would be packed.
    """

    packing: Packing | None
    outer: int
    depth: int
    tile: int
    tile_extent: int = 0
    offset: int = 0
    size_bytes: int = 0
    least_offset: int | None = None
    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of an operand in the order in which it is computed, in the nearest cache.

    Attributes:
        offset: Place in the scratch memory, in bytes.
        line: Distance of lines, in elements.
        terms: Terms of it at a time.
    """

    offset: int
    line: int
    terms: int


@dataclass(frozen=True, slots=True)
class DotLayout:
    """The memory of one piece of work.

    Attributes:
        lhs: The left operand.
        rhs: The right operand.
        sums_line: Distance of lines of the result in the memory that tiles store to.
        sums_offset: Place of unfinished sums in the scratch memory, in bytes.
        turning: How a tile's sums, which lie transposed or among others, get there; None if tiles store there
            themselves.
        tile_offset: Place of such a tile in the scratch memory, in bytes; of all of a piece if there are more terms.
        scratch_bytes: Size of the scratch memory.
        parts_offset: Place of the first part's sums in the memory that all pieces share, in bytes; counters, one for
            each piece of the result, are in front.
        part: Distance from the sums of one part of a piece to those of the next, in elements.
        image_offset: Place of the lines of an image that a piece copies, in bytes.
        kept_offset: Place of words that say of which product each part of the right operand is that stays packed, in
            bytes; the parts follow one another.
        panel_offset: Place of the columns that the first tile of rows packs for the others, in bytes.
        remembers: Whether the scratch memory begins with a byte for each piece of the result, which says whether words
            were right for all that was summed.
        shared_tile: A tile that knows no more of this product than of others of the program; None if it shares none.
        has_room: Whether tiles store to memory that has room for sums behind the last row and column.
    """

    lhs: OperandLayout
    rhs: OperandLayout
    sums_line: int
    sums_offset: int
    turning: Packing | None
    tile_offset: int
    scratch_bytes: int
    parts_offset: int = 0
    part: int = 0
    image_offset: int = 0
    kept_offset: int = 0
    panel_offset: int = 0
    remembers: bool = False
    shared_tile: OuterTile | None = None
    has_room: bool = False


def layout_of(plan: DotPlan, *, stores_result: bool) -> DotLayout:
    """The layout of a plan.

    Args:
        plan: The plan.
        stores_result: Whether sums are stored to the result as they are.
    """
    size = plan.numbers.kept.size_bytes
    unit_rows = _up(plan.unit_rows, plan.rows) if _has_whole_rows(plan) else plan.unit_rows
    unit_columns = _up(plan.unit_columns, plan.columns) if _has_whole_columns(plan) else plan.unit_columns
    remembers = plan.numbers.widened is not None and plan.depth_units > 1
    begin = _up(plan.units, _ALIGNMENT) if remembers else 0
    lhs = _operand(plan, left=True, offset=begin)
    rhs = _operand(plan, left=False, offset=begin + lhs.size_bytes)
    parts_of_rhs = plan.depth_units if plan.holds_rhs else max(plan.kept_parts, 1)
    kept_place = begin + lhs.size_bytes + rhs.size_bytes * parts_of_rhs
    place = kept_place + _up(plan.kept_parts * COUNTER_BYTES, _ALIGNMENT)
    turned, seen = plan.form is Form.ROWS, plan.view.seen
    turning, tile_place, parts_place, part = None, place, 0, 0
    if turned or seen is not None:
        rows, columns = (plan.rows, plan.columns) if plan.depth_units == 1 else (plan.unit_rows, plan.unit_columns)
        place += _up(rows, plan.rows) * _up(columns, _up(plan.columns, plan.lanes)) * size
    if stores_result:
        sums_line, sums_place = plan.view.line, 0
    elif plan.parts > 1 or plan.keeps_sums:
        sums_line, sums_place = _line_of_sums(plan, unit_columns), 0
        parts_place, part = _up(plan.units * COUNTER_BYTES, _ALIGNMENT), unit_rows * sums_line
    else:
        whole = plan.depth_units > 1
        rows = unit_rows if whole else plan.rows
        columns = unit_columns if whole else plan.tile_columns
        lines, line = (columns, rows) if turned else (rows, columns)
        sums_line, sums_place = _line_of_sums(plan, line), place
        # Tiles that end inside of vectors are finished in whole ones.
        behind = plan.lanes if whole and plan.form is not Form.COLUMNS else 0
        place += _up((lines * sums_line + behind) * size, _ALIGNMENT)
    if turned:
        line = _up(plan.columns, plan.lanes)
        turning = Packing(None, plan.lanes, Walk(((plan.rows, line),)), Walk(((line, 1),)), sums_line, is_exact=True)
    elif seen is not None:
        lines_of_tile = Walk(((plan.rows, _up(plan.columns, plan.lanes)),))
        turning = Packing(None, plan.lanes, seen, lines_of_tile, sums_line, is_exact=True)
    image_place = place
    if plan.staging is not None:
        place += _up(plan.staging.size_bytes, _ALIGNMENT)
    panel_place = _up(place, _ALIGNMENT)
    if plan.shares_panels:
        place = panel_place + _up(plan.columns, plan.lanes) * plan.unit_depth * size
    return DotLayout(
        *(lhs, rhs, sums_line, sums_place, turning, tile_place, place, parts_place, part, image_place, kept_place),
        *(panel_place, remembers, None, turning is not None or not stores_result),
    )


def tile_of(plan: DotPlan, layout: DotLayout, rows: int, columns: int, *, packs_panel: bool = False) -> Tile:
    """The tile of some sizes, of a kind that is imported now: a program has one or two; perhaps one that packs."""
    is_short = plan.unit_depth < LONG_TILE
    if plan.form is Form.DEPTH:
        from xlalite.backends.codegen.kernels.dot.inner_tile import InnerTile

        is_in_runs = _run_of_places(plan) > 0
        return InnerTile(
            rows=rows,
            columns=columns,
            lanes=plan.lanes,
            chains=plan.chains,
            a_row=layout.lhs.outer if is_short else None,
            b_row=layout.rhs.outer if is_short else None,
            c_row=layout.sums_line if is_short else None,
            depth=plan.view.k if is_short and plan.depth_units == 1 else None,
            a_type=None if layout.lhs.packing is not None else plan.numbers.lhs,
            b_type=None if layout.rhs.packing is not None else plan.numbers.rhs,
            looks_up_a=plan.view.lhs.looked_up > 0,
            looks_up_b=plan.view.rhs.looked_up > 0,
            has_rests=not is_in_runs or _run_of_places(plan) % (plan.lanes * plan.chains) > 0,
            begins_anew=0 < plan.numbers.longest_chain * plan.lanes * plan.chains < plan.unit_depth * is_in_runs,
            adds=plan.depth_units > 1,
        )
    if plan.form is Form.STREAM:
        from xlalite.backends.codegen.kernels.dot.stream_tile import StreamTile

        return StreamTile(
            rows=rows,
            columns=plan.lanes,
            lanes=plan.lanes,
            chains=plan.chains,
            a_type=plan.numbers.lhs,
            b_type=plan.numbers.rhs,
            streams=plan.streams,
        )
    if plan.numbers.in_matrices:
        from xlalite.backends.codegen.kernels.dot.matrix_tile import MatrixTile

        return _matrix_tile(MatrixTile, plan, columns, BLOCK)
    return _outer_tile(plan, layout, rows, columns, packs_panel=packs_panel)


def widened_tile_of(plan: DotPlan) -> Tile:
    """The tile of any rows and columns for numbers that words are not right for.

    Lines of packed operands are as long behind the last row or column.
    """
    if not plan.numbers.in_matrices:
        return OuterTile(
            rows=_RARE_ROWS,
            columns=_RARE_VECTORS * plan.lanes,
            lanes=plan.lanes,
            chains=plan.chains,
            a_row=None,
            a_depth=None,
            b_depth=None,
            b_filled=False,
            looks_up_a=False,
            looks_up_b=False,
            narrows=True,
            shortens=True,
            has_runs=False,
            adds=True,
            begins_anew=True,
        )
    from xlalite.backends.codegen.kernels.dot.widened_matrix_tile import WidenedMatrixTile

    return _matrix_tile(WidenedMatrixTile, plan, plan.columns, _WIDENED_ROWS)


def _matrix_tile(kind: type[MatrixTile], plan: DotPlan, columns: int, rows: int) -> MatrixTile:
    return kind(
        rows=rows,
        columns=_up(columns, plan.lanes),
        lanes=plan.lanes,
        chains=1,
        walks_columns=plan.walks_columns,
        is_packed=plan.packs_lhs,
        has_runs=_run(plan) > 0,
        words=MATRIX if plan.packs_lhs else words_of_rows(plan.view, plan.numbers),
    )


def _outer_tile(plan: DotPlan, layout: DotLayout, rows: int, columns: int, *, packs_panel: bool = False) -> OuterTile:
    narrows = columns % plan.lanes > 0 and _has_masks(plan)
    looks_up_lhs = plan.view.lhs.looked_up > 0
    knows_rows = looks_up_lhs or (plan.packs_lhs and layout.lhs.depth != 1) or layout.lhs.outer == 1
    is_even = plan.chains == 1 and _is_even(plan)
    tile = OuterTile(
        rows=rows,
        columns=_up(columns, plan.lanes) if narrows else columns,
        lanes=plan.lanes,
        chains=plan.chains,
        a_row=layout.lhs.outer if knows_rows else None,
        a_depth=layout.lhs.depth if plan.packs_lhs or (layout.lhs.depth == 1 and not looks_up_lhs) else None,
        b_depth=layout.rhs.depth if plan.packs_rhs and not knows_rows else None,
        b_filled=plan.packs_rhs or plan.view.rhs.panel > 0,
        looks_up_a=looks_up_lhs,
        looks_up_b=plan.view.rhs.looked_up > 0,
        narrows=narrows,
        shortens=shortens_tiles(plan, layout),
        has_runs=_run(plan) > 0,
        adds=plan.depth_units > 1 or _chain_piece(plan) > 0,
        begins_anew=_chain_piece(plan) > 0,
        b_is_far=plan.rhs_is_far,
        in_pairs=is_even and plan.unit_depth >= LONG_TILE,
        may_pair=is_even,
        may_shorten=plan.form is Form.COLUMNS and plan.view.seen is None and _has_panel(plan),
    )
    if plan.shares_panels:
        tile = panel_tile(plan, tile, packs=packs_panel)
    return tile if layout.shared_tile is None else tile.as_general_as(layout.shared_tile)


def _is_even(plan: DotPlan) -> bool:
    """Whether tiles have an even number of terms, or words of them, whenever they sum some.

    What comes next of their operands is on its way sooner if two terms follow one another without a jump: 1024 in each
    dimension take 10.2 ms of one core so, and 10.7 otherwise, 512 of f64 2.98 and 3.17.
    """
    parts = plan.view.k, plan.unit_depth, _run(plan), _chain_piece(plan) * plan.numbers.word
    return all(part % (2 * plan.numbers.word) == 0 for part in parts)


def _has_masks(plan: DotPlan) -> bool:
    is_long = plan.unit_depth >= _MASKED_TILE or plan.numbers.in_matrices
    return plan.lanes * plan.numbers.kept.bits >= _MASKED_BITS and is_long


def tile_place(plan: DotPlan, layout: DotLayout, first: tuple[Scalar, Scalar], math: Scalars) -> Scalar:
    """Where the sums of a tile from a row and a column of a piece on are before they are turned, in bytes."""
    if plan.depth_units == 1:
        return layout.tile_offset
    line = _up(plan.unit_columns, _up(plan.columns, plan.lanes))
    place = math.add(math.multiply(first[0], line), math.multiply(first[1], plan.rows))
    return math.add(math.multiply(place, plan.numbers.kept.size_bytes), layout.tile_offset)


def narrows_tiles(plan: DotPlan) -> bool:
    """Whether tiles of fewer columns are the others, told so: where they have as many vectors."""
    rest = plan.view.n % plan.columns
    return plan.form is Form.COLUMNS and rest > plan.columns - plan.lanes and _has_masks(plan)


def fills_rows(plan: DotPlan, layout: DotLayout) -> bool:
    """Whether tiles of fewer rows are the others: the rows behind the last one are in a panel, too."""
    return shortens_tiles(plan, layout) or (layout.has_room and _has_whole_rows(plan))


def fills_columns(plan: DotPlan, layout: DotLayout) -> bool:
    """Whether tiles of fewer columns are the others, which store what is behind the last column, too."""
    return layout.has_room and _has_whole_columns(plan)


def shortens_tiles(plan: DotPlan, layout: DotLayout) -> bool:
    """Whether tiles of fewer rows are the others, told so, as there is no room for the sums of more."""
    is_told = not layout.has_room and plan.unit_depth >= _MASKED_TILE
    return plan.numbers.in_matrices or (is_told and _has_whole_rows(plan))


def _has_whole_rows(plan: DotPlan) -> bool:
    """Whether rows behind the last one may be summed: they are in a panel, too, and few."""
    return _has_panel(plan) and 0 < -plan.row_run % plan.rows <= VARIANT * plan.row_run


def _has_panel(plan: DotPlan) -> bool:
    """Whether tiles read their rows, and those behind the last one, in a panel."""
    is_panel = plan.packs_lhs and (plan.numbers.word > 1 or not plan.view.lhs.is_computed_in_rows)
    return is_panel and _is_in_panels(plan)


def _has_whole_columns(plan: DotPlan) -> bool:
    """Whether columns behind the last one may be summed: they are in a panel, too, and few more vectors."""
    has_few = has_few_columns_behind(plan.view.n, plan.columns, plan.lanes)
    return plan.packs_rhs and _is_in_panels(plan) and has_few


def _is_in_panels(plan: DotPlan) -> bool:
    return plan.form in (Form.COLUMNS, Form.ROWS) and not plan.numbers.in_matrices


def arguments_of(
    plan: DotPlan, layout: DotLayout, row_place: Scalar, column_place: Scalar, width: Scalar, height: Scalar
) -> tuple[Scalar, ...]:
    """Strides and other numbers that are arguments of a tile, so wide and so high; see `OuterTile`.

    Terms that are looked up lie there at the first row and column: those of the tile are a place behind it.
    """
    c_row = _up(plan.columns, plan.lanes) if layout.turning is not None else layout.sums_line
    if plan.form is Form.DEPTH:
        places = (_run_of_places(plan), row_place, column_place) if _run_of_places(plan) else ()
        return layout.lhs.outer, layout.rhs.outer, c_row, *places
    a_depth = row_place if plan.view.lhs.looked_up else layout.lhs.depth
    b_depth = column_place if plan.view.rhs.looked_up else layout.rhs.depth
    strides = layout.lhs.outer, a_depth, b_depth, c_row
    if plan.form is Form.STREAM:
        return *strides, width
    run, shared = _run(plan), layout.shared_tile
    runs: tuple[int, ...] = (run, plan.view.lhs.depth.jump) if run else ()
    piece = layout.rhs.tile if plan.numbers.in_matrices else _chain_piece(plan) or plan.unit_depth
    if shared is not None:
        # All terms are one run, and one piece, where there are not several.
        runs = runs or (plan.unit_depth, 0) * shared.has_runs
    return *strides, piece, width, height, *runs


def _run_of_places(plan: DotPlan) -> int:
    """Terms that follow one another from each place that tiles look up; 0 if they look up none."""
    return max(plan.view.lhs.looked_up, plan.view.rhs.looked_up)


def _run(plan: DotPlan) -> int:
    """Terms of a run if tiles go through several; else 0."""
    walk = plan.view.lhs.depth
    is_one = plan.packs_lhs or plan.view.lhs.looked_up or walk.is_single or walk.run >= plan.unit_depth
    return 0 if is_one else walk.run


def _chain_piece(plan: DotPlan) -> int:
    """Terms, or words of them, after which a sum begins anew, in whole runs; 0 if there are not so many."""
    most, depth = plan.numbers.longest_chain // plan.numbers.word, -(-plan.unit_depth // plan.numbers.word)
    return _up(-(-depth // -(-depth // most)), max(_run(plan), 1)) if 0 < most < depth else 0


def _operand(plan: DotPlan, *, left: bool, offset: int) -> OperandLayout:
    matrix = plan.view.lhs if left else plan.view.rhs
    step = plan.rows if left else plan.columns
    if not (plan.packs_lhs if left else plan.packs_rhs):
        room = _up(plan.view.k // matrix.looked_up * _ADDRESS_BYTES, _ALIGNMENT) if matrix.looked_up else 0
        least_offset = offset if plan.numbers.widened is not None else None
        room += _ALIGNMENT if least_offset is not None else 0
        tile = step * matrix.spacing
        return OperandLayout(None, matrix.outer.stride, matrix.depth.stride, tile, 0, offset, room, least_offset)
    dtype = plan.numbers.lhs if left else plan.numbers.rhs
    extent = plan.unit_rows if left else plan.unit_columns
    size, lanes = plan.numbers.kept.size_bytes, plan.lanes
    if plan.form is Form.DEPTH:
        line = _up(plan.view.k, lanes)
        packing = Packing(dtype, lanes, matrix.depth, matrix.outer, line)
        room = _up(_up(extent, lanes) * line * size, _ALIGNMENT)
        return OperandLayout(packing, line, 1, step * line, 0, offset, room)
    word = plan.numbers.word
    if left and matrix.is_computed_in_rows and word == 1:
        # Another line's length than a power of two, so that the rows of a tile share no places in the nearest cache.
        line = _up(plan.unit_depth, lanes) + lanes
        packing = Packing(None, lanes, matrix.depth, matrix.outer, line)
        return OperandLayout(packing, line, 1, step * line, 0, offset, _up(extent * line * size, _ALIGNMENT))
    in_lines, square = left and plan.numbers.in_matrices, SQUARE * word
    # Runs are turned in whole squares, wherever in the panel they begin.
    is_even = matrix.depth.is_single or matrix.depth.run % square == plan.unit_depth % square == 0
    spare = 0 if is_even or in_lines or word == 1 else SQUARE - 1
    words = _up(-(-plan.unit_depth // word) + spare, lanes)
    is_tight = left and word == 1 and step <= lanes
    line = _spread(words + MATRIX) if in_lines else step if is_tight else _up(step, lanes)
    # Lines are written in whole vectors, the last one of a panel, too.
    panel = line * (step if in_lines else words) + (lanes if is_tight else 0)
    flips = left and plan.numbers.flips
    source_x = Walk(matrix.outer.steps[-1:]) if in_lines else matrix.outer
    packing = Packing(dtype, lanes, source_x, matrix.depth, line, word=word, flips=flips, in_lines=in_lines)
    room = _up(-(-extent // step) * panel * size, _ALIGNMENT)
    end, least_offset, stage = offset + room, None, None
    if matrix.computing and (word > 1 or matrix.outer.stride != 1):
        terms = min(WORDS_AT_ONCE, _up(plan.unit_depth, word))
        is_turned = matrix.outer.stride != 1
        lines, line_terms = (step, terms) if is_turned else (terms, step)
        stage = Stage(end, _up(line_terms, lanes), terms)
        end += _up(lines * stage.line * size, _ALIGNMENT)
        along, across = Walk(((line_terms, 1),)), Walk(((lines, stage.line),))
        x, y = (across, along) if is_turned else (along, across)
        # Without words, what is computed is converted at once.
        packing = replace(packing, dtype=dtype if word > 1 else None, source_x=x, source_y=y)
    if plan.numbers.widened is not None:
        least_offset, end = end, end + _ALIGNMENT
    outer, depth = (line, 1) if in_lines else (1, line)
    return OperandLayout(packing, outer, depth, panel, step, offset, end - offset, least_offset, stage)


def _line_of_sums(plan: DotPlan, columns: int) -> int:
    return _spread(columns) if plan.numbers.in_matrices else _up(columns, plan.lanes)


def _spread(words: int) -> int:
    """The length of lines of so many words of which 32 begin at as many places in the nearest cache, evenly apart.

    A line has twice an odd number of lines of the cache: of bf16, 2048 in each dimension take two threads 6.6 ms so,
    and 7.5 where a line has one more than its words.
    """
    return _up(words + 2 * MATRIX, 4 * MATRIX) - 2 * MATRIX


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
