"""The pieces of work that threads share of a product: few, none of them small or mostly packing."""

from __future__ import annotations

import itertools
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

UNIT_CYCLES = 9000.0
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
So of lines of a left operand whose neighbours are rows: [4225,256] transposed
times [4225,21] takes 810 us in pieces of 12 rows, 525 in parts of all rows.
"""

_PACKED_BY_OTHERS = 0.25
"""Part of the columns that pieces of other rows pack again if those of a thread share them step by step: [1024,1024]
transposed times as much takes 11.8 ms of one core in pieces of all columns, 13.0 in such of 256 and 516 rows.
"""

_MAX_UNIT_ELEMENTS = 1 << 19
"""Elements of the result in a piece of work: with more, packed operands leave the caches."""

_MAX_WASTE = 0.15
"""Part of a piece of work that may go into packing what other pieces pack too, or into adding their sums."""

_UNEVEN = 0.05
"""What the busier of two threads may have beyond half of the work: 777 in each dimension take 2.55 ms in pieces of 224
columns, of which one thread has all of 448, and 2.3 in such of 160.
"""

PACKED_AGAIN = 0.01
"""Part of a product that may go into packing what pieces before have packed."""

_ADD = 4.0
"""Cycles to store a vector of a part of the sums and to add it to those of the other parts."""


def packed_elements(lhs: bool, rhs: bool, rows: int, columns: int, depth: int) -> int:
    """Elements of the operands that are packed for a piece of work."""
    return depth * (rows * lhs + columns * rhs)


def pieces_of(view: DotView, rows: int, columns: int) -> tuple[int, int]:
    """How many pieces there are down and across."""
    return -(-view.m // rows), -(-view.n // columns)


def packed_again(packing: OperandCycles, down: int, across: int) -> float:
    """Cycles to pack for every piece of work what others pack, too."""
    return packing.lhs * (across - 1) + packing.rhs * (down - 1)


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

    fetched = packing.lhs_again + packing.lhs_fetch * (_FETCH_AGAIN if view.lhs.is_strided else 1.0)
    packed_rhs = packing.rhs * (_PACKED_BY_OTHERS if shares_steps and most_parts < 2 else 1.0)
    lhs_far = view.m * view.k / lanes if view.lhs.outer.stride == 1 and packing.lhs_fetch else 0.0
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
        rows, columns, parts = piece
        sides = (columns, view.n, packing.rhs_far), (rows, view.m, lhs_far)
        slower = sum(
            far * size / whole * max(0.0, 1 - size / lanes / _LONG_RUN) for size, whole, far in sides if size < whole
        )
        return _SHORT_RUN * slower / parts / work(*piece)

    def unevenness(piece: tuple[int, int, int]) -> float:
        # Of an operand that is read where it lies, long runs are worth more than even pieces.
        if not (packing.lhs and packing.rhs):
            return 0.0
        return math.prod(piece[:2]) * 2 * count / (piece[2] * view.m * view.n * view.batch_count) - 1

    def cost(piece: tuple[int, int, int]) -> float:
        return waste(piece) + unevenness(piece) + shortness(piece)

    def evened(piece: tuple[int, int, int]) -> tuple[int, int, int]:
        rows, columns, parts = piece
        down, across = pieces_of(view, rows, columns)
        # Many pieces are even, and one is to stay one.
        if parts > 1 or view.batch_count > 1 or not 1 < down * across <= 2 * PIECES:
            return piece
        shares = packed_again(packing, down, across) > PACKED_AGAIN * tiling.cycles
        if busier(view, rows, columns, helps=not shares) <= _UNEVEN:
            return piece
        more = [(part_of(view.m, count, step), columns, 1) for count in range(down + 1, 3 * down)]
        more += [(rows, part_of(view.n, count, step_across), 1) for count in range(across + 1, 3 * across)]
        choices = [piece, *(choice for choice in more if work(*choice) >= UNIT_CYCLES)]
        return min(choices, key=lambda piece: busier(view, *piece[:2]) + waste(piece))

    count, step = view.batch_count, row_run if row_run < view.m else tiling.rows
    step_across = view.rhs.outer.run if view.rhs.looked_up and not view.rhs.outer.is_single else tiling.columns
    while True:
        crowded = packed(rows, columns) > most_packed
        large = rows * columns > _MAX_UNIT_ELEMENTS or crowded
        if not large and (count >= PIECES or work(rows, columns, parts) < 2 * UNIT_CYCLES):
            return evened((rows, columns, parts))
        choices = [(_half(rows, step), columns, parts), (rows, _half(columns, step_across), parts)]
        if 2 * parts <= most_parts and not large:
            choices.append((rows, columns, 2 * parts))
        choices = [choice for choice in choices if choice != (rows, columns, parts)]
        if crowded:
            choices = [choice for choice in choices if packed(*choice[:2]) < packed(rows, columns)]
        best = min(choices, key=lambda piece: (cost(piece), piece[0] != rows), default=None)
        if best is None or (waste(best) > _MAX_WASTE and not large):
            return evened((rows, columns, parts))
        rows, columns, parts = best
        count *= 2


def busier(view: DotView, rows: int, columns: int, *, helps: bool = False) -> float:
    """What the busier of two threads has beyond half of the work; who `helps` takes pieces of the other's half."""
    starts = itertools.product(range(0, view.n, columns), range(0, view.m, rows))
    sizes = [min(columns, view.n - column) * min(rows, view.m - row) for column, row in starts]
    middle = -(-len(sizes) // 2)
    halves = [sizes[:middle], sizes[middle:]]
    busy = [0, 0] if helps else [sum(half) for half in halves]
    while helps and any(halves):
        thread = busy.index(min(busy))
        busy[thread] += (halves[thread] or halves[1 - thread]).pop(0)
    return 2 * max(busy) / sum(sizes) - 1


def _half(size: int, step: int) -> int:
    """Half of a size in whole tiles, or all of it if that is one tile."""
    return part_of(size, 2, step) if size > step else size


def part_of(size: int, count: int, step: int) -> int:
    """One of so many parts of a size, in whole tiles."""
    return min(-(-size // (count * step)) * step, size)
