"""The sizes that a tile may have, and the cycles that a product takes in tiles of a size."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.kernels.dot.words import BLOCK, MATRIX
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.records import dataclass

MAX_ROWS = 12
"""Rows of a tile; more gain nothing and cost code."""

_MORE_ROWS = 13
"""Rows of packed tiles, if few are behind the last one and 12 leave more: 64, 128 and 256 rows of bf16, f16 and s8 take
as long so as in tiles of 11 or 12 rows and one of fewer, which takes 2 ms to compile.
"""

_FEW_BEHIND = 0.016
"""Part of the vectors of columns that may be summed for nothing, so that no tile of fewer needs to be compiled."""

_TALL_ROWS = 14
"""Rows that fill 32 registers with two vectors each, for images of which these are a part: 28 rows of 1,152 terms take
0.8 of the time in two tiles that they take in four, on a machine that reads its second cache slowly.
"""

FEW_ROWS = 4
"""Rows up to which a product is bound by memory if the other operand is large."""

_FAR_STREAMS = 4
"""Columns that are read side by side at most, each a run of its own, where all of them come from far away.

With 16, [1,4096] by [4096,4096] transposed takes 1150 us, with 8 940, with 4 830, with 1 1050.
"""

_NEAR_STREAMS = 6
"""The same where they come from the second cache and several rows meet them: [16,512] by [512,512] transposed takes
147 us of one core with 13, 114 with 10, 83 with 6, 87 with 4.
"""

_LATENCY = 8
"""Multiply-adds that must be under way to keep the units busy."""

_WIDE = 3
"""Vectors of a tile that many rows meet, if its columns stay in the nearest cache: fewer rows fit into registers, but
often no narrower tile is left. [784,128] by [128,48] takes 46 us of one core so, in tiles of two vectors and of one 53.
"""

_NARROW = 0.15
"""How much longer tiles of one vector take where there are several, as each reads all rows: 784 in each dimension take
6.6 ms of one core so, in tiles of two vectors 4.7.
"""

_LOAD, _LOADS = 0.5, 13 / 16
"""Cycles that a load takes beyond so many for each multiply-add, those of 8 rows of two vectors, where vectors lie
across lines of the cache and each term begins with a load of its place.
"""

_LOAD_OF_PANEL = 0.3
"""Cycles of a load where columns are fetched meanwhile: three vectors and 8 rows need fewer than two and 12."""

_SECOND, _SECOND_OF_IMAGE = 2.0, 1.0
"""Cycles more that a vector of columns takes from the second cache, where those of a tile do not stay in the nearest,
which has other things to keep, too: 2048 in each dimension take 92 ms of one core in tiles of 8 rows, 86 in such of 12,
but of 192 terms as long; the convolution [2,32,21,21,21] by 3x3x3 6.5 ms in tiles of 7 rows, 5.9 in such of 11.
"""

_NEXT_RUN = 6.0
"""Cycles to find the next run of terms, where vectors lie along these."""

_WITH_LOADS = 1.4
"""Multiply-adds and loads in the time of each multiply-add where 6 rows meet 4 columns in runs: [4,64,64,64] by 3x3 to
8 takes 1.06 ms of one core in such tiles, 1.2 in those of 2 rows and all columns.
"""

_MANY_ROWS, _FEW_TURNED, _CALL_OF_FEW = 7, 1.25, 40.0
"""Rows in a run below which a tile waits for its sums and for what it loads, how much longer a step takes then if they
are turned, and the cycles of each call: [8,256,9,9] by 4x4, 2 apart, to 256 in 16 groups takes 0.27 ms of one core in
tiles of 4 such rows, 0.21 where all that windows see is packed.
"""

_RESTART, SHORT_RUN, _RESTART_SHORT = 8.0, 16, 16.0
"""Cycles to begin a run of terms, and one of fewer than so many, of which only lines of images are read: [192,289] by
7x1 to 128 takes 5.9 ms of one core if the kernel is read where it lies, in runs of 7, and 5.4 packed.
"""

_SELECT, _PICK = 8.0, 4.0
"""Cycles to take a vector, or an element, out of a tile that has others between those that count."""

VARIANT = 0.03
"""Speed worth giving up for one function fewer: every size of tile takes a few milliseconds to compile."""

_MATRIX_ROWS = 128
"""Rows for which registers of matrices are shaped once."""

_SPREAD_BYTES, _SHARED_BYTES, _SPREAD = 1024, 512, 0.4
"""Distances from which on, and of which multiples, rows of registers crowd out one another in the nearest cache if they
are not packed, and how much longer a product takes then: [1024,960] by [960,512] of bf16 takes 1300 us instead of 935,
of 512 terms 680 instead of 530, but of 480 as long.
"""

_CALL = 200.0
"""Cycles to shape registers of matrices, twice, and to let them go."""

_STORED, _STORED_IN_LINES = 8.0, 4.0
"""Cycles to store a row of a register of sums and to make results of it, a few columns at a time or many."""

_FEWER_ROWS = 0.01
"""Speed that tiles of fewer rows lose, about, if these divide all rows."""


class Form(enum.Enum):
    """What the lanes of a vector run along."""

    COLUMNS = "vectors along the columns of the result"
    ROWS = "vectors along the rows of the result, turned when stored"
    DEPTH = "vectors along the contracted dimension"
    STREAM = "vectors along the columns of the result, a few rows of the right operand after others"


@dataclass(frozen=True, slots=True)
class Tiling:
    """A choice of tile and its price without packing.

    Attributes:
        rows: Rows of a tile.
        columns: Columns of a tile.
        chains: Sums that an element is split into.
        cycles: Vector multiply-adds.
        overlaps: Whether the last tile of rows begins in the one before, so that there are none of fewer rows.
        waits: Cycles more to fetch columns from beyond the nearest cache.
    """

    rows: int
    columns: int
    chains: int
    cycles: float
    overlaps: bool = False
    waits: float = 0.0


def best_tiling(tilings: Iterable[Tiling]) -> Tiling:
    """The one that takes least; waits count among tiles, but say nothing for another way to read the rows."""
    choices = list(tilings)
    best = min(choices, key=lambda tiling: tiling.cycles + tiling.waits)
    return replace(best, cycles=min(tiling.cycles for tiling in choices))


def outer_tilings(
    form: Form,
    view: DotView,
    lanes: int,
    target: TargetInfo,
    row_run: int,
    restarts: int,
    depth: int,
    *,
    packs_lhs: bool,
    may_overlap: bool = False,
    in_panels: bool = False,
    fills_columns: bool = False,
) -> Iterator[Tiling]:
    """Tiles of a depth whose vectors run along columns or rows; rows lie in runs, and terms begin anew so often.

    There may be room for the sums of columns behind the last one, which `fills_columns`.
    """
    registers = target.vector_registers - 2
    is_matrix = form is Form.COLUMNS and not view.rhs.looked_up
    has_few, has_short = (
        row_run < min(_MANY_ROWS, view.m),
        is_matrix and restarts > 0 and view.lhs.depth.run < SHORT_RUN,
    )
    restart = _RESTART_SHORT if has_short else _RESTART
    calls_again = (has_few or has_short) * _CALL_OF_FEW * -(-view.k // max(depth, 1))
    # Few tiles of rows are best equal.
    may_wait = not is_matrix or view.m > 3 * MAX_ROWS
    for vectors in (1, 2, 3, 4, 8):
        limit = min((registers - vectors) // vectors, MAX_ROWS)
        # Wide tiles are for few rows, for panels that fit into the nearest cache, and for what is in none.
        is_near = is_matrix and not packs_lhs and _WIDE * depth * target.vector_bits // 8 <= target.cache_bytes[0]
        most = _WIDE if is_near or view.rhs.looked_up or view.rhs.panel else 2
        if limit < 1 or (vectors > 1 and (vectors - 1) * lanes >= view.n) or (vectors > most and view.m > limit):
            continue
        columns = min(vectors * lanes, view.n)
        if view.rhs.panel and view.rhs.panel != vectors * lanes:
            continue
        tall = _TALL_ROWS if (_TALL_ROWS + 1) * vectors <= registers and row_run % _TALL_ROWS == 0 else 0
        heights = [*_heights(row_run, limit, packs_lhs=packs_lhs, may_overlap=may_overlap)]
        heights += [(tall, False, 0.0)] if tall else []
        if view.rhs.looked_up:
            # Pieces of few such rows are best equal.
            heights = [one for one in heights if row_run % one[0] == 0] or heights
        panel_bytes = _bytes_of_panel(form, view, columns, depth, lanes, target)
        is_far = may_wait and panel_bytes > target.cache_bytes[0] * 3 // 4
        for rows, overlaps, loss in heights:
            chains = max(1, min(4, _LATENCY // (rows * vectors))) if view.k >= 16 else 1
            work = waits = 0.0
            pieces = list(_pieces(view, rows, columns, row_run, overlaps=overlaps))
            for height, width, times in pieces:
                used = -(-width // lanes)
                step = max(height * used, _LATENCY / 2 / chains, 0.5 * height + used)
                waits += times * view.k * _LOAD_OF_PANEL * (height + 2 * used) * in_panels
                step *= 1 + _NARROW * (vectors == 1 and view.n > lanes)
                if is_matrix:
                    waits += times * view.k * _SECOND * used * is_far
                else:
                    step += _SECOND_OF_IMAGE * used * is_far
                if view.rhs.looked_up:
                    step += max(0.0, _LOAD * (height + 2 * used + 1 - _LOADS * height * used))
                elif view.lhs.looked_up and form is Form.COLUMNS:
                    step = max(step, height + used + 1.0)
                elif has_few:
                    step = max(step, height + used + 1.0, _LATENCY / chains) * (_FEW_TURNED if form is Form.ROWS else 1)
                    step += _SECOND * used * (panel_bytes > target.cache_bytes[1] // 4)
                turning = 2.0 * lanes * used + 30 if form is Form.ROWS else 0.0
                if view.seen is not None:
                    turning = height * used * (_SELECT if view.seen.run >= lanes else _PICK * lanes) + 30
                again = restarts * restart + calls_again
                work += times * (step * view.k + height * used * 2 + turning + 10 + again)
            # Among other columns, the last tile begins in the one before.
            has_one_width = view.seen is not None or (fills_columns and has_few_columns_behind(view.n, columns, lanes))
            functions = len({height for height, _, _ in pieces}) if has_one_width else len(pieces)
            yield Tiling(rows, columns, chains, work * (1 + loss + VARIANT * (functions - 1)), overlaps, waits)


def _bytes_of_panel(form: Form, view: DotView, columns: int, terms: int, lanes: int, target: TargetInfo) -> int:
    """Memory of the right operand that a tile reads; of a matrix as if all had two vectors: none is favoured."""
    size, line = target.vector_bits // 8 // lanes, target.cache_line_bytes
    depth = view.rhs.depth
    if view.rhs.looked_up:
        span = columns + (depth.run - 1) * abs(depth.stride)
        return view.k // depth.run * (span * size // line + 2) * line
    return view.k * columns * size if form is Form.ROWS else terms * min(view.n, 2 * lanes) * size


def _heights(row_run: int, limit: int, *, packs_lhs: bool, may_overlap: bool) -> Iterator[tuple[int, bool, float]]:
    """Rows that a tile may have, whether the last one overlaps, and the speed that is lost.

    Nearly equal tiles come first. Where they leave a rest, the last may overlap, or all have fewer rows: not where the
    operand is packed, for panels of few rows are half empty.
    """
    rows = -(-row_run // -(-row_run // limit))
    if packs_lhs and limit == MAX_ROWS and -row_run % rows > VARIANT * row_run:
        rows = _MORE_ROWS if 0 < -row_run % _MORE_ROWS <= _FEW_BEHIND * row_run else rows
    yield rows, False, 0.0
    if row_run % rows and may_overlap:
        yield rows, True, 0.0
    if row_run % rows and not packs_lhs:
        rows = max(number for number in range(1, limit + 1) if row_run % number == 0)
        if 2 * rows > limit:
            yield rows, False, _FEWER_ROWS


def has_few_columns_behind(n: int, columns: int, lanes: int) -> bool:
    """Whether whole tiles of so many columns have few vectors behind the last one, or some lanes."""
    vectors = -(-n // lanes)
    return n % columns > 0 and -vectors % -(-columns // lanes) <= _FEW_BEHIND * vectors


def inner_tilings(view: DotView, lanes: int, target: TargetInfo) -> Iterator[Tiling]:
    """Tiles whose vectors run along the contracted dimension."""
    registers = target.vector_registers - 4
    size = view.batch_count * view.k * view.n * target.vector_bits // 8 // lanes
    is_far = view.m <= FEW_ROWS and size > target.cache_bytes[1] // 4
    is_near = view.m > 2 and size > target.cache_bytes[0]
    most = _FAR_STREAMS if is_far else _NEAR_STREAMS if is_near else lanes
    most = lanes if view.rhs.looked_up else most
    row_run = view.lhs.outer.run if view.lhs.looked_up else view.m
    column_run = view.rhs.outer.run if view.rhs.looked_up else view.n
    run = max(view.lhs.looked_up, view.rhs.looked_up) or view.k
    steps = view.k // run * -(-run // lanes)
    for columns in range(1, min(column_run, most, lanes) + 1):
        # Where each run is short, all that a step reads of one operand stays in registers.
        limit = (target.vector_registers - 1 - columns) // columns if run < view.k else registers // (columns + 1)
        rows = min(limit, MAX_ROWS, row_run)
        if rows < 1:
            continue
        rows = -(-row_run // -(-row_run // rows))
        chains = max(1, min(4, _LATENCY // (rows * columns)))
        work = 0.0
        pieces = list(_pieces(view, rows, columns, row_run, column_run))
        for height, width, times in pieces:
            step = max(height * width, _LATENCY / 2 / chains, height + width)
            if run < view.k:
                step = max(step, (height * width + height + width) / _WITH_LOADS)
            folding = height * (2.5 * (1 << (width - 1).bit_length()) + 8)
            work += times * (step * steps + (view.k // run - 1) * _NEXT_RUN + folding + 10)
        yield Tiling(rows, columns, chains, work * (1 + VARIANT * (len(pieces) - 1)))


def matrix_tiling(view: DotView, row_run: int, words: int, row_bytes: int, *, walks: bool) -> Tiling:
    """The tile in registers of matrices, whose rows have some words; the depth is in words, and rows lie in runs.

    Rows of a run are some bytes apart; 0 if they are packed. Whole panels of columns follow one another if it `walks`.
    """
    rows = -(-row_run // -(-row_run // _MATRIX_ROWS))
    rows = rows if rows == row_run else -(-rows // BLOCK) * BLOCK
    columns, steps, panels = min(view.n, BLOCK), -(-view.k // words), -(-view.n // MATRIX)
    # Each step takes as long as its rows, or as it takes to read the columns.
    step = sum(max(2 * min(row_run - first, MATRIX), MATRIX) for first in range(0, row_run, MATRIX))
    calls = -(-row_run // rows) * -(-view.n // columns)
    is_spread = row_bytes >= _SPREAD_BYTES or (row_bytes > 0 and row_bytes % _SHARED_BYTES == 0)
    slowness = 1 + _SPREAD * is_spread
    stored = _STORED_IN_LINES if walks else _STORED
    work = panels * (step * steps * slowness + stored * row_run) + calls * _CALL
    return Tiling(BLOCK if walks else rows, columns, 1, work * (view.m // row_run))


def _pieces(
    view: DotView, rows: int, columns: int, row_run: int, column_run: int = 0, *, overlaps: bool = False
) -> Iterator[tuple[int, int, int]]:
    """(rows, columns, number) of the tiles of each size."""
    runs, column_run = view.m // row_run, column_run or view.n
    heights = ((rows, row_run // rows * runs), (row_run % rows, runs))
    if overlaps:
        heights = ((rows, -(-row_run // rows) * runs), (0, 0))
    times = view.n // column_run
    widths = ((columns, column_run // columns * times), (column_run % columns, times))
    for height, down in heights:
        for width, across in widths:
            if height and width and down and across:
                yield height, width, down * across
