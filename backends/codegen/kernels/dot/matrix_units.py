"""The pieces of work of products in registers of matrices, where packing is large beside the work itself."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.tilings import Tiling
from xlalite.backends.codegen.kernels.dot.transfer import OperandCycles
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.kernels.dot.words import BITS, BLOCK, MATRIX

MOST_WORDS = 1024
"""Words of a row that are packed at a time."""

WHOLE_WORDS = 2048
"""Words up to which whole rows are packed where there are several pieces of rows, which share the right operand then:
of bf16, [1568,2304] by [2304,256] takes 1.76 ms of one core so, in two pieces of the depth 2.70, [2048,4096] by
[4096,2048] 42 instead of 49. Of more, pieces have too few rows: [1024,8192] by [8192,1024] takes 33 instead of 29.
"""

_PACKED_BYTES, _MOST_RHS_BYTES = 512 << 10, 2 << 20
"""What is packed of an operand for a piece of work. Tiles read the left one again and again; the right one may be
larger where there are several pieces of rows, each of which is packed anew for other columns."""

_LEAST_ROWS, _LEAST_COLUMNS, _LEAST_WORDS = 96, 96, 64
"""Rows, columns and words of a row from which on tiles go through columns. What is packed of their rows stays in the
nearest cache then, and the second one has place for the columns. Of bf16, 1024 in each dimension take 1.52 ms of one
core so, and 1.95 in tiles that go through rows; two threads take [128,4096] by [4096,1024] in 0.53 ms, and in 1.1, but
[64,2048] by [2048,1024] in 0.31, and in 0.22.
"""

_MANY_ROWS, _FEW_COLUMNS = 576, 64
"""Rows from which on so many columns are enough: [1024,1024] by [1024,64] takes two threads 76 us so, and 126 in tiles
that go through rows, but 12 of [512,512] by [512,64] 310, and 290.
"""

_MANY_RESULTS, _FEW_WORDS = 1 << 19, 16
"""Results from which on so many words are enough, since whole lines of results are stored: [25088,64] by [64,256] takes
two threads 0.65 ms so, and 1.6 in tiles that go through rows, but [512,64] by [64,512] 29 us, and 26.
"""

_WALKED_ROWS, _WALKED_BYTES, _WHOLE_BYTES = 32, 1 << 20, 1152 << 10
"""Rows of a piece whose tiles go through columns, and what is packed of these for many such pieces, or of all of them:
1536 in each dimension take 5.5 ms of one core in pieces of 320 columns, and 6.5 in such of 384, but [1568,2304] by
[2304,256] 1.45 in whole rows, and 1.80 in halves.
"""

_WALKED_WORDS, _WORDS_OF_STEP, _MOST_SUMS = 512, 256, 1 << 25
"""Words of a row up to which tiles take all of them, those of a piece of the depth where there are more, and sums that
may be in memory meanwhile. With fewer words, pieces have more columns and rows are packed less often: of bf16,
[2048,4096] by [4096,2048] takes two threads 11.5 ms so, 12.4 with 512, 14.8 with 1,024, and 22 in whole rows; 2048 in
each dimension 6.0 and 6.5 in whole rows, 1536 2.35 and 2.5, but 1024 0.78 and 0.71.
"""

_ROWS_OF_PARTS = 128
"""Rows up to which long products had better have parts of the depth: [128,20000] by [20000,128] takes two threads 0.47
ms so, and 0.84 in pieces of rows.
"""

_UNIT_CYCLES = 48_000.0
"""A piece is not divided into two that have less, since both pack an operand."""

_PART_CYCLES = 10_000.0
"""Nor into two parts of the depth, which pack nothing twice, that have less, packing included."""


def walked_words(view: DotView, words: int) -> int:
    """Of how many words of packed rows at a time tiles had better go through columns; 0 if they had not."""
    least_columns = _LEAST_COLUMNS if view.m < _MANY_ROWS else _FEW_COLUMNS
    results = view.batch_count * view.m * view.n
    least_words = _LEAST_WORDS if results < _MANY_RESULTS else _FEW_WORDS
    is_large = view.m >= _LEAST_ROWS and view.n >= least_columns and words >= least_words
    if not is_large or view.seen is not None:
        return 0
    is_whole = view.m > _ROWS_OF_PARTS and view.n * words * BITS // 8 <= _WHOLE_BYTES
    if words <= _WALKED_WORDS or is_whole:
        return words
    if results <= _MOST_SUMS:
        return _part(words, -(-words // _WORDS_OF_STEP), MATRIX)
    return words if words <= MOST_WORDS else 0


def matrix_units(
    view: DotView,
    tiling: Tiling,
    packing: OperandCycles,
    words: int,
    row_run: int,
    most_parts: int,
    most_pieces: int,
    *,
    walks: bool,
) -> tuple[int, int, int]:
    """Rows and columns of a piece of work, and parts of its depth.

    Pieces of a thread that have the same columns, or of which there is one of rows only, share what is packed.

    Args:
        view: The product.
        tiling: Its tiles.
        packing: The cycles to pack each operand once.
        words: What is packed of a row at a time.
        row_run: Rows of which those of a piece are a multiple, if there are several such.
        most_parts: Parts that the depth may have.
        most_pieces: Pieces that are enough.
        walks: Whether tiles go through columns.
    """

    def limited(size: int, most_bytes: int, step: int) -> int:
        most = max(most_bytes // (words * BITS // 8) // step, 1) * step
        return _part(size, -(-size // most), step)

    def may_halve(pieces: int, cycles: float, least: float) -> bool:
        count = view.batch_count * pieces
        return count < most_pieces and cycles * view.batch_count >= 2 * count * least

    step = row_run if row_run < view.m else BLOCK
    rows = _WALKED_ROWS if walks else limited(view.m, _PACKED_BYTES, step)
    most_rhs_bytes = _PACKED_BYTES if rows == view.m else _MOST_RHS_BYTES
    if walks:
        is_whole = view.n * words * BITS // 8 <= _WHOLE_BYTES
        most_rhs_bytes = _WHOLE_BYTES if is_whole else _WALKED_BYTES
    columns = limited(view.n, most_rhs_bytes, BLOCK)
    if walks and columns == view.n > view.m and view.batch_count == 1:
        columns = _part(view.n, 2, BLOCK)  # of which two threads pack half each
    down, across = -(-view.m // rows), -(-view.n // columns)
    if walks and view.m <= _ROWS_OF_PARTS and across == 1 < most_parts:
        rows, down = view.m, 1  # so that no columns are packed twice
    while not walks and may_halve(down * across, tiling.cycles, _UNIT_CYCLES):
        fewer_rows, fewer_columns = _part(view.m, 2 * down, step), _part(view.n, 2 * across, BLOCK)
        if fewer_columns < columns and (across == 1 or columns > rows or fewer_rows == rows):
            columns, across = fewer_columns, -(-view.n // fewer_columns)
        elif fewer_rows < rows:
            rows, down = fewer_rows, -(-view.m // fewer_rows)
        else:
            break
    parts, whole = 1, tiling.cycles + packing.lhs + packing.rhs
    while 2 * parts <= most_parts and may_halve(down * across * parts, whole, _PART_CYCLES):
        parts *= 2
    return rows, columns, parts


def _part(size: int, parts: int, step: int) -> int:
    """One of so many parts of a size in whole steps, or all of it if there is one."""
    return size if parts == 1 else min(-(-size // (parts * step)) * step, size)
