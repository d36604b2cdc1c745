"""The pieces of work that threads share of a product: few, none of them small or mostly packing."""

from __future__ import annotations

import math

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.tilings import Tiling
from xlalite.backends.codegen.kernels.dot.transfer import OperandCycles
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.llvm import TargetInfo

PIECES = 8
"""Pieces that a product is divided into, if they are large enough."""

MAX_PACKED_ELEMENTS = 1 << 19
"""Elements of operands that are packed at a time."""

_UNIT_CYCLES = 9000.0
"""A piece of work below this is not divided further."""

_READ = 0.25
"""Cycles more to read a vector of the left operand where pieces of other columns read it, too: an image of [4,29,29,64]
by 2x2 to 256 takes 1.10 ms in pieces of 32 columns, 1.04 in such of 128.
"""

_FETCH_AGAIN = 6.0
"""How much longer it takes to fetch a matrix for pieces of other columns, too, than one counts where nothing else is
fetched: 768 in each dimension take 5.0 ms of one core in pieces of 96 columns, 4.7 in such of 192 rows and 384 columns.
Of images each vector is read several times.
"""

_LONG_RUN, _SHORT_RUN = 40.0, 16.0
"""Vectors of a part of a line from which on it comes as quickly as whole lines, and the cycles that it takes longer to
fetch a vector of the shortest parts: [16,3072] by [3072,768] takes 980 us of one core in pieces of 96 columns, 720 in
such of 384, 600 in parts of all columns.
"""

_PACKED_BY_OTHERS = 0.25
"""Part of the columns that pieces of other rows pack again if those of a thread share them step by step: [1024,1024]
transposed times as much takes 11.8 ms of one core in pieces of all columns, 13.0 in such of 256 and 516 rows.
"""

_MAX_UNIT_ELEMENTS = 1 << 19
"""Elements of the result in a piece of work: with more, packed operands leave the caches."""

_MAX_WASTE = 0.15
"""Part of a piece of work that may go into packing what other pieces pack too, or into adding their sums."""

_ADD = 4.0
"""Cycles to store a vector of a part of the sums and to add it to those of the other parts."""


def packed_elements(lhs: bool, rhs: bool, rows: int, columns: int, depth: int) -> int:
    """Elements of the operands that are packed for a piece of work."""
    return depth * (rows * lhs + columns * rhs)


def most_columns_packed(numbers: Numbers, target: TargetInfo) -> int:
    """Elements of columns that are packed at a time, so that they stay in the second cache if that is large."""
    stay = target.cache_bytes[1] * 5 // 8 // numbers.kept.size_bytes
    return min(max(stay, MAX_PACKED_ELEMENTS // 2), MAX_PACKED_ELEMENTS)


def units_of(
    view: DotView,
    lanes: int,
    tiling: Tiling,
    packing: OperandCycles,
    depth: int,
    row_run: int,
    most_parts: int,
    most_packed: int,
    *,
    shares_steps: bool = False,
) -> tuple[int, int, int]:
    """Rows and columns of a piece of work, and parts of its depth: few pieces, none of them small or mostly packing.

    Those of a thread may share the columns that are packed for a step along the depth.
    """
    rows, columns, parts = view.m, view.n, 1

    def packed(rows: int, columns: int) -> int:
        return packed_elements(packing.lhs > 0, packing.rhs > 0, rows, columns, depth)

    def work(rows: int, columns: int, parts: int) -> float:
        return tiling.cycles * rows * columns / (view.m * view.n) / parts

    fetched = packing.lhs_fetch * (_FETCH_AGAIN if view.lhs.is_strided else 1.0)
    packed_rhs = packing.rhs * (_PACKED_BY_OTHERS if shares_steps and most_parts < 2 else 1.0)
    read = 0.0 if packing.lhs else max(fetched, _READ * view.m * view.k / lanes)

    def waste(piece: tuple[int, int, int]) -> float:
        rows, columns, parts = piece
        again = (packing.lhs + read) / parts * rows / view.m if columns < view.n else 0.0
        fetched_again = packed_rhs + packing.rhs_fetch + _FETCH_AGAIN * packing.rhs_far
        again += fetched_again / parts * columns / view.n if rows < view.m else 0.0
        again += _ADD * rows * columns / lanes if parts > 1 else 0.0
        return again / work(*piece)

    def shortness(piece: tuple[int, int, int]) -> float:
        # Parts of lines come more slowly than whole ones, which follow one another.
        _, columns, parts = piece
        if columns == view.n:
            return 0.0
        slower = _SHORT_RUN * max(0.0, 1 - columns / lanes / _LONG_RUN)
        return packing.rhs_far / parts * columns / view.n * slower / work(*piece)

    def unevenness(piece: tuple[int, int, int]) -> float:
        # Of an operand that is read where it lies, long runs are worth more than even pieces.
        if not (packing.lhs and packing.rhs):
            return 0.0
        return math.prod(piece[:2]) * 2 * count / (piece[2] * view.m * view.n * view.batch_count) - 1

    def cost(piece: tuple[int, int, int]) -> float:
        return waste(piece) + unevenness(piece) + shortness(piece)

    count = view.batch_count
    while True:
        crowded = packed(rows, columns) > most_packed
        large = rows * columns > _MAX_UNIT_ELEMENTS or crowded
        if not large and (count >= PIECES or work(rows, columns, parts) < 2 * _UNIT_CYCLES):
            return rows, columns, parts
        step = row_run if row_run < view.m else tiling.rows
        choices = [(_half(rows, step), columns, parts), (rows, _half(columns, tiling.columns), parts)]
        if 2 * parts <= most_parts and not large:
            choices.append((rows, columns, 2 * parts))
        choices = [choice for choice in choices if choice != (rows, columns, parts)]
        if crowded:
            choices = [choice for choice in choices if packed(*choice[:2]) < packed(rows, columns)]
        best = min(choices, key=lambda piece: (cost(piece), piece[0] != rows), default=None)
        if best is None or (waste(best) > _MAX_WASTE and not large):
            return rows, columns, parts
        rows, columns, parts = best
        count *= 2


def _half(size: int, step: int) -> int:
    """Half of a size in whole tiles, or all of it if that is one tile."""
    tiles = -(-size // step)
    return size if tiles < 2 else -(-tiles // 2) * step
