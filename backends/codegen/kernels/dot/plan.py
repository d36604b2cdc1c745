"""How a product is computed: the form of its tiles, their sizes, what is packed, and the pieces that threads share.

Forms are compared by the cycles they would take, in units of one vector multiply-add; all sizes are known. Everything
here depends on sizes, types and the target only, never on the number of threads, and so do the results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.matrix_units import MOST_WORDS, WHOLE_WORDS, matrix_units, walked_words
from xlalite.backends.codegen.kernels.dot.numbers import Numbers, in_words, numbers_of
from xlalite.backends.codegen.kernels.dot.reading import (
    LEAST_RUN,
    depth_limit,
    depth_of_rows,
    depth_where_it_lies,
    in_panels,
    is_fetched_ahead,
    packed_depth,
    packs_rhs,
    reads_lhs,
    words_of_rows,
)
from xlalite.backends.codegen.kernels.dot.tilings import (
    FEW_ROWS,
    SHORT_RUN,
    Form,
    Tiling,
    best_tiling,
    matrix_tiling,
    outer_tilings,
)
from xlalite.backends.codegen.kernels.dot.transfer import (
    OperandCycles,
    again_cycles,
    far_vectors,
    fetch_cycles,
    operand_cycles,
    word_cycles,
)
from xlalite.backends.codegen.kernels.dot.units import (
    MAX_PACKED_ELEMENTS,
    PACKED_AGAIN,
    PIECES,
    most_columns_packed,
    packed_again,
    packed_elements,
    pieces_of,
    units_of,
)
from xlalite.backends.codegen.kernels.dot.view import DotView, view_of
from xlalite.backends.codegen.kernels.dot.words import BLOCK, MATRIX
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.backends.codegen.kernels.dot.staging import Staging

_MOST_WORDS = 768
"""Words of a row that are packed at a time."""

_HELD_BYTES = 3 << 19
"""What may be packed of a right operand beyond a piece of the depth, so that other rows find it packed: of f32, the
convolution of [8,14,14,256] by 3x3 takes 10.4 ms so instead of 10.7, of bf16 [8,7,7,512] by 3x3 2.2 instead of 2.85.
"""

_TERMS_A_RESULT = 8
"""Elements of the operands, for each sum of a part, from which on sums are divided into parts."""


@dataclass(frozen=True, slots=True)
class DotPlan:
    """How a product is computed. With form ROWS the view is swapped: its rows are columns of the result.

    Attributes:
        form: Along what vectors run.
        view: The product.
        numbers: Its element types, of the swapped operands if the view is swapped.
        lanes: Lanes of a vector.
        rows: Rows of a tile.
        columns: Columns of a tile; a multiple of the lanes unless one tile has all columns.
        chains: Sums that an element is split into.
        unit_rows: Rows of a piece of work, a multiple of `rows` (or all).
        unit_columns: Columns of a piece of work, a multiple of `columns` (or all).
        unit_depth: Terms that are summed before the next piece of depth is packed.
        part_depth: Terms that a piece of work sums; the sums of parts are added when all are there.
        packs_lhs: Whether pieces of the left operand are packed.
        packs_rhs: Whether pieces of the right operand are packed.
        row_run: Rows between which one stride leads in what tiles read; none lies in two such runs.
        cycles: Vector multiply-adds that the whole takes, about.
        rows_outside: Whether a tile of rows meets all columns of a piece before the next one does; else the reverse.
        walks_columns: Whether a tile goes through all columns of a piece, panels of `columns` one after the other.
        overlaps: Whether the last tile of rows of a piece begins in the one before where there are too few rows: sums
            are stored twice, other results are not.
        flipped: Whether the view is that of a single column as a row.
        streams: Rows of the right operand that are read side by side with form STREAM.
        rhs_is_far: Whether tiles read a few columns of many rows of a right operand that comes from far away.
        in_steps: Whether the pieces along the depth that follow one another are counted like others, so that who calls
            for them can make what they are computed of meanwhile.
        shares_packed: Whether packing for every piece anew takes a while.
        staging: Which lines of an image each piece copies, with zeros around them, and reads then; None if the left
            operand is in memory as a whole. Its walks are those through such a copy.
        kept_parts: Into how many parts a right operand is packed that stays in scratch memory between calls; 0 if none.
        mirrors: Whether pieces above the diagonal are copied from those below it; these are squares or strips.
        shares_panels: Whether the first tile of rows packs columns of the right operand for the others.
        keeps_sums: Whether sums of all pieces are in memory while these take a piece of the depth after the other.
    """

    form: Form
    view: DotView
    numbers: Numbers
    lanes: int
    rows: int
    columns: int
    chains: int
    unit_rows: int
    unit_columns: int
    unit_depth: int
    part_depth: int
    packs_lhs: bool
    packs_rhs: bool
    row_run: int
    cycles: float
    rows_outside: bool = False
    walks_columns: bool = False
    overlaps: bool = False
    flipped: bool = False
    streams: int = 0
    rhs_is_far: bool = False
    in_steps: bool = False
    shares_packed: bool = False
    staging: Staging | None = None
    kept_parts: int = 0
    mirrors: bool = False
    shares_panels: bool = False
    keeps_sums: bool = False

    @property
    def packed_elements(self) -> int:
        """Elements of operands that are packed at a time."""
        return packed_elements(self.packs_lhs, self.packs_rhs, self.unit_rows, self.unit_columns, self.unit_depth)

    @property
    def tile_columns(self) -> int:
        """Columns that one call of a tile computes."""
        return self.unit_columns if self.walks_columns else self.columns

    @property
    def overlaps_columns(self) -> bool:
        """Whether the last tile of columns begins in the one before: of either, only its own results are stored."""
        return self.view.seen is not None and self.view.n > self.columns

    @property
    def column_run(self) -> int:
        """Columns between which one stride leads; no tile has some of two such runs."""
        return self.view.rhs.outer.run if self.view.rhs.looked_up else self.view.n

    @property
    def row_units(self) -> int:
        """Pieces along the rows."""
        return -(-self.view.m // self.unit_rows)

    @property
    def column_units(self) -> int:
        """Pieces along the columns."""
        return -(-self.view.n // self.unit_columns)

    @property
    def products_inside(self) -> bool:
        """Whether pieces of the same columns follow one another, of all products: where these share what is packed."""
        is_shared = self.packs_rhs and not self.packs_lhs and self.depth_units == 1 and not any(self.view.rhs.batch)
        return is_shared and self.view.batch_count > 1 and self.column_units > 1

    @property
    def extent(self) -> int:
        """Pieces in all."""
        return self.units * self.parts * (self.depth_units if self.in_steps else 1)

    @property
    def units(self) -> int:
        """Pieces of the result."""
        return self.view.batch_count * self.row_units * self.column_units

    @property
    def parts(self) -> int:
        """Pieces along the depth that need not follow one another."""
        return max(1, -(-self.view.k // self.part_depth))

    @property
    def in_strips(self) -> bool:
        """Whether pieces are strips of a mirrored product, from the first column to the diagonal."""
        return self.mirrors and self.column_units == 1

    @property
    def row_step(self) -> int:
        """Rows of which those of a piece are a multiple; tiles in registers of matrices have any number."""
        if self.row_run < self.view.m:
            return self.row_run
        return min(self.rows, MATRIX) if self.numbers.in_matrices else self.rows

    @property
    def depth_step(self) -> int:
        """Terms of which those of a piece along the depth are a multiple."""
        return self.numbers.word * (MATRIX if self.numbers.in_matrices else 1)

    @property
    def holds_rhs(self) -> bool:
        """Whether a right operand is packed for all pieces along the depth at once, so that pieces of rows share it."""
        if not self.packs_rhs or self.depth_units == 1 or self.row_units == 1 or self.in_steps or self.kept_parts:
            return False
        if self.keeps_sums:
            return False
        words = self.unit_columns * -(-self.part_depth // self.numbers.word)
        return words * self.numbers.kept.size_bytes <= _HELD_BYTES

    @property
    def depth_units(self) -> int:
        """Pieces along the depth of a part, which follow one another."""
        return -(-self.part_depth // self.unit_depth)


def plan_dot(
    dot: HloInstruction,
    target: TargetInfo,
    *,
    may_overlap: bool = False,
    computing: tuple[float, float] = (0.0, 0.0),
    in_blocks: bool = False,
    view: DotView | None = None,
) -> DotPlan:
    """The cheapest plan for a dot, or for a convolution that has a view.

    Args:
        dot: The product.
        target: The machine.
        may_overlap: Whether results are sums as they are, which may be stored twice.
        computing: Cycles to compute a vector of each operand; 0 for one in memory.
        in_blocks: Whether blocks of rows of the left operand follow one another that the second cache holds.
        view: Where its operands and results lie, if that is not for the dot to say.
    """
    view = view or view_of(dot)
    if any(computing):
        lhs, rhs = (replace(one, computing=each) for one, each in zip((view.lhs, view.rhs), computing, strict=True))
        view = replace(view, lhs=lhs, rhs=rhs)
    numbers = swapped_numbers(numbers_of(dot)) if view.exchanged else numbers_of(dot)
    walks = view.lhs.depth, view.rhs.depth
    numbers = in_words(numbers, target, lambda terms: all(one.is_single or one.run % terms == 0 for one in walks))
    if view.n == 1 and view.m > 1:
        # A column is a row that lies otherwise.
        plan = replace(_plan(view.swapped(), swapped_numbers(numbers), target, may_overlap, in_blocks), flipped=True)
    else:
        plan = _plan(view, numbers, target, may_overlap, in_blocks)
    is_spread = view.exchanged or view.rows is not None
    if dot.opcode != "convolution" or is_spread or view.lhs.outer.stride != 1 or view.n > plan.lanes:
        return plan
    from xlalite.backends.codegen.kernels.dot.apart import plans_apart  # which few convolutions need

    return min((plan, *plans_apart(dot, numbers, target)), key=lambda plan: plan.cycles)


@cache
def _plan(view: DotView, numbers: Numbers, target: TargetInfo, may_overlap: bool, in_blocks: bool) -> DotPlan:
    lanes = target.lanes(numbers.kept.bits)
    if _is_stream(view, numbers, lanes, target):
        from xlalite.backends.codegen.kernels.dot.stream_plan import stream_plan  # of products with few rows

        return stream_plan(view, replace(numbers, words=None), lanes, target)
    if numbers.word > 1:
        if numbers.in_matrices:
            choices = [*_in_matrices(view, numbers, lanes, in_blocks=in_blocks)]
        else:
            choices = [_in_words(view, numbers, lanes, target)]
        if numbers.kept.is_float or view.m <= FEW_ROWS:
            # Integers that are used often are never quicker one by one.
            choices.append(_plan(view, replace(numbers, words=None), target, may_overlap, in_blocks))
        return min(choices, key=lambda plan: plan.cycles)
    plans = [*outer_plans(Form.COLUMNS, view, numbers, lanes, target, may_overlap=may_overlap)]
    is_costly = all(one.packs_lhs for one in plans) or view.lhs.depth.run < SHORT_RUN
    image = view.with_rows_looked_up() if numbers.is_direct(numbers.lhs) and is_costly else None
    if image is not None:
        plans += outer_plans(Form.COLUMNS, image, numbers, lanes, target)
    looked_up = view.looked_up() if numbers.is_direct(numbers.rhs) else None
    if looked_up is not None:
        plans += outer_plans(Form.COLUMNS, looked_up, numbers, lanes, target)
    if view.n <= lanes and view.m > 1 and not view.rhs.panel:
        plans += outer_plans(Form.ROWS, view.swapped(), swapped_numbers(numbers), lanes, target)
    turned_image = view.turned()
    if turned_image is not None and numbers.is_direct(numbers.rhs):
        plans += outer_plans(Form.ROWS, turned_image, swapped_numbers(numbers), lanes, target)
    turned = any(one.computing and one.depth.stride != 1 for one in (view.lhs, view.rhs))
    if view.k >= 2 * lanes and min(view.m, view.n) <= lanes and not view.rhs.panel and not turned:
        from xlalite.backends.codegen.kernels.dot.inner_plan import inner_plans  # of products with few columns or rows

        plans += inner_plans(view, numbers, lanes, target)
    # Only the first form can take the depth piece by piece.
    fitting = (p for p in plans if p.form is Form.COLUMNS or p.packed_elements <= MAX_PACKED_ELEMENTS)
    return min(fitting, key=lambda plan: plan.cycles)


def swapped_numbers(numbers: Numbers) -> Numbers:
    """The types of the transposed product."""
    return replace(numbers, lhs=numbers.rhs, rhs=numbers.lhs)


def _in_words(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> DotPlan:
    """Both operands in words, tiles as if a word were a term."""
    word = numbers.word
    pieces = -(-view.k // (_MOST_WORDS * word))
    depth = max(1, -(-view.k // (pieces * word)) * word) if view.k else 1
    of_words = replace(view, k=-(-view.k // word))
    tilings = outer_tilings(Form.COLUMNS, of_words, lanes, target, view.m, 0, depth // word, packs_lhs=True)
    best = best_tiling(tilings)
    packing = word_cycles(view, numbers, lanes, packs_lhs=True)
    return finished_plan(Form.COLUMNS, view, numbers, lanes, best, packing, depth, view.m)


def _in_matrices(view: DotView, numbers: Numbers, lanes: int, *, in_blocks: bool) -> Iterator[DotPlan]:
    """Both operands in words that registers of matrices hold; the left one packed, and where it lies, if they may."""
    row, words = numbers.word * MATRIX, -(-view.k // numbers.word)
    most = WHOLE_WORDS if view.m > 4 * BLOCK and words <= WHOLE_WORDS else MOST_WORDS
    pieces = max(-(-words // most), 1)
    depth = max(-(-view.k // (pieces * row)) * row if pieces > 1 else view.k, 1)
    walked = 0 if in_blocks else walked_words(view, words)
    packed_depth = min(walked * numbers.word, view.k) if walked else depth
    depths = {True: (packed_depth, view.m), False: (depth_of_rows(view, numbers, depth), view.lhs.outer.run)}
    for packs_lhs, (depth, row_run) in depths.items():
        if depth:
            words_of_row = MATRIX if packs_lhs else words_of_rows(view, numbers)
            row_bytes = 0 if packs_lhs else view.lhs.outer.stride * representation(numbers.lhs).memory.size_bytes
            walks = packs_lhs and walked > 0
            tiling = matrix_tiling(replace(view, k=words), row_run, words_of_row, row_bytes, walks=walks)
            packing = word_cycles(view, numbers, lanes, packs_lhs=packs_lhs, is_near=in_blocks)
            yield finished_plan(Form.COLUMNS, view, numbers, lanes, tiling, packing, depth, row_run, walks=walks)


def _is_stream(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> bool:
    """Whether the right operand is read once, row after row, and does not come from the nearest caches."""
    size = view.k * view.n * representation(numbers.rhs).memory.size_bytes
    return (
        view.m <= FEW_ROWS
        and view.n >= 2 * lanes
        and view.lhs.is_strided
        and view.rhs.is_strided
        and view.rhs.outer.stride == 1
        and not view.rhs.panel
        and not (view.lhs.computing or view.rhs.computing)
        and view.batch_count * size > target.cache_bytes[1] // 4
    )


def outer_plans(
    form: Form,
    view: DotView,
    numbers: Numbers,
    lanes: int,
    target: TargetInfo,
    *,
    may_overlap: bool = False,
    whole: int = 0,
) -> Iterator[DotPlan]:
    """The plans that read the left operand where it lies, or pack it, as far as either comes into question."""
    if form is Form.COLUMNS and not whole and in_panels(view, numbers, lanes, target):
        from xlalite.backends.codegen.kernels.dot.panel_plan import panel_plan  # of products with few rows

        yield panel_plan(view, numbers, lanes, target)
        return
    limit = depth_limit(view, numbers, lanes, target)
    if form is Form.ROWS or view.lhs.looked_up or view.rhs.looked_up:
        whole = whole or max(view.k, 1)
    depth = whole or depth_where_it_lies(view, limit)
    has_room = form is Form.ROWS or not (may_overlap and numbers.stores_sums)
    is_read = depth > 0 and reads_lhs(view, numbers, lanes, target, depth)
    if is_read:
        # What is added to sums of earlier terms is not added twice.
        sizes = form, view, numbers, lanes, target, depth
        plan = _outer_plan(*sizes, packs_lhs=False, may_overlap=depth >= view.k, has_room=has_room)
        if plan.overlaps and (view.m - 1) % plan.unit_rows + 1 < plan.rows:
            plan = _outer_plan(*sizes, packs_lhs=False, has_room=has_room)
        yield plan
    outer, walk = view.lhs.outer, view.lhs.depth
    if view.lhs.looked_up:
        return
    if not is_read or not outer.is_single or walk.run < min(depth, LEAST_RUN) or outer.stride == 1 != walk.stride:
        depth = whole or packed_depth(view, numbers, lanes, target, limit)
        shares_steps = may_overlap and depth < view.k and numbers.stores_sums
        sizes = form, view, numbers, lanes, target, depth
        yield _outer_plan(*sizes, packs_lhs=True, shares_steps=shares_steps, has_room=has_room)


def _outer_plan(
    form: Form,
    view: DotView,
    numbers: Numbers,
    lanes: int,
    target: TargetInfo,
    depth: int,
    *,
    packs_lhs: bool,
    may_overlap: bool = False,
    shares_steps: bool = False,
    has_room: bool = False,
) -> DotPlan:
    row_run = view.m if packs_lhs else view.lhs.outer.run
    restarts = 0 if packs_lhs or view.lhs.looked_up or view.lhs.depth.run >= depth else view.k // view.lhs.depth.run
    lhs, rhs = packs_lhs, packs_rhs(view, numbers, lanes, target, depth)
    sizes, fills = (view, lanes, target, row_run, restarts, depth), rhs and has_room
    best = best_tiling(outer_tilings(form, *sizes, packs_lhs=lhs, may_overlap=may_overlap, fills_columns=fills))
    direct_lhs, direct_rhs = numbers.is_direct(numbers.lhs), numbers.is_direct(numbers.rhs)
    packing = OperandCycles(
        operand_cycles(view.lhs, view.m, view.k, lanes, is_direct=direct_lhs, turns=view.lhs.is_computed_in_rows)
        if lhs
        else 0.0,
        operand_cycles(view.rhs, view.n, view.k, lanes, is_direct=direct_rhs) if rhs else 0.0,
        0.0 if lhs else fetch_cycles(view.lhs, lanes, numbers, target),
        0.0 if rhs else fetch_cycles(view.rhs, lanes, numbers, target),
        far_vectors(view, lanes, numbers, target),
        again_cycles(view.lhs, lanes, numbers, target),
    )
    most_columns = most_columns_packed(numbers, target)
    most = most_columns if view.rhs.is_strided and not packs_lhs else MAX_PACKED_ELEMENTS
    plan = finished_plan(form, view, numbers, lanes, best, packing, depth, row_run, most, shares_steps=shares_steps)
    # Rows of a tile that are packed, or far away, stay in the nearest cache for all columns.
    rows_outside = (packs_lhs or packing.lhs_fetch > 0) and plan.unit_columns * depth <= most_columns
    return replace(plan, rows_outside=rows_outside, rhs_is_far=not rhs and is_fetched_ahead(view, numbers, target))


def finished_plan(
    form: Form,
    view: DotView,
    numbers: Numbers,
    lanes: int,
    tiling: Tiling,
    packing: OperandCycles,
    unit_depth: int,
    row_run: int,
    most_packed: int = MAX_PACKED_ELEMENTS,
    *,
    walks: bool = False,
    shares_steps: bool = False,
) -> DotPlan:
    """The plan of a tiling in pieces of work."""
    most_parts = min(PIECES, view.k * (view.m + view.n) // (_TERMS_A_RESULT * view.m * view.n), view.k // unit_depth)
    most_parts = most_parts if form is Form.COLUMNS else 1
    words = -(-unit_depth // numbers.word)
    if numbers.in_matrices:
        rows, columns, parts = matrix_units(view, tiling, packing, words, row_run, most_parts, PIECES, walks=walks)
    else:
        rows, columns, parts = units_of(
            view, lanes, tiling, packing, words, row_run, most_parts, most_packed, shares_steps=shares_steps
        )
    down, across = pieces_of(view, rows, columns)
    again = packed_again(packing, down, across)
    cycles = tiling.cycles + packing.lhs + packing.rhs + again + packing.lhs_fetch * across
    cycles += packing.lhs_again * (across - 1)
    if walks or shares_steps:
        # Of many pieces of rows, those of a thread share what is packed; all of them if others have other columns.
        cycles -= packing.rhs * max(down - (1 if walks and across > 1 else 2), 0)
    products, shared = view.batch_count, 0.0
    if unit_depth >= view.k and not any(view.rhs.batch) and not (packing.lhs and across > 1):
        # All products share what is packed.
        shared = packing.rhs * (products - 1) / products
    return DotPlan(
        form,
        view,
        numbers,
        lanes,
        tiling.rows,
        tiling.columns,
        tiling.chains,
        rows,
        columns,
        unit_depth,
        -(-max(1, -(-view.k // unit_depth)) // parts) * unit_depth,
        packing.lhs > 0,
        packing.rhs > 0,
        row_run,
        (cycles - shared) * products,
        walks_columns=walks,
        overlaps=tiling.overlaps and not packing.lhs,
        shares_packed=again + shared * (across > 1) > PACKED_AGAIN * tiling.cycles,
        keeps_sums=walks and parts == 1 and unit_depth < view.k,
    )
