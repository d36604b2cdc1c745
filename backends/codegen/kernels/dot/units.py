"""The pieces of work that threads share of a product: few, none of them small or mostly packing."""

from __future__ import annotations

import math

from xlalite.backends.codegen.kernels.dot.tilings import Tiling
from xlalite.backends.codegen.kernels.dot.transfer import OperandCycles
from xlalite.backends.codegen.kernels.dot.view import DotView

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

_MAX_UNIT_ELEMENTS = 1 << 19
"""Elements of the result in a piece of work: with more, packed operands leave the caches."""

_MAX_WASTE = 0.15
"""Part of a piece of work that may go into packing what other pieces pack too, or into adding their sums."""

_ADD = 4.0
"""Cycles to store a vector of a part of the sums and to add it to those of the other parts."""


def packed_elements(lhs: bool, rhs: bool, rows: int, columns: int, depth: int) -> int:
    """Elements of the operands that are packed for a piece of work."""
    return depth * (rows * lhs + columns * rhs)


def units_of(
    view: DotView, lanes: int, tiling: Tiling, packing: OperandCycles, depth: int, row_run: int, most_parts: int
) -> tuple[int, int, int]:
    """Rows and columns of a piece of work, and parts of its depth: few pieces, none of them small or mostly packing."""
    rows, columns, parts = view.m, view.n, 1

    def work(rows: int, columns: int, parts: int) -> float:
        return tiling.cycles * rows * columns / (view.m * view.n) / parts

    read = 0.0 if packing.lhs else max(packing.lhs_fetch, _READ * view.m * view.k / lanes)

    def waste(piece: tuple[int, int, int]) -> float:
        rows, columns, parts = piece
        again = (packing.lhs + read) / parts * rows / view.m if columns < view.n else 0.0
        again += (packing.rhs + packing.rhs_fetch) / parts * columns / view.n if rows < view.m else 0.0
        again += _ADD * rows * columns / lanes if parts > 1 else 0.0
        return again / work(*piece)

    def unevenness(piece: tuple[int, int, int]) -> float:
        # Of an operand that is read where it lies, long runs are worth more than even pieces.
        if not (packing.lhs and packing.rhs):
            return 0.0
        return math.prod(piece[:2]) * 2 * count / (piece[2] * view.m * view.n * view.batch_count) - 1

    count = view.batch_count
    while True:
        packed = packed_elements(packing.lhs > 0, packing.rhs > 0, rows, columns, depth)
        large = rows * columns > _MAX_UNIT_ELEMENTS or packed > MAX_PACKED_ELEMENTS
        if not large and (count >= PIECES or work(rows, columns, parts) < 2 * _UNIT_CYCLES):
            return rows, columns, parts
        step = row_run if row_run < view.m else tiling.rows
        choices = [(_half(rows, step), columns, parts), (rows, _half(columns, tiling.columns), parts)]
        if 2 * parts <= most_parts and not large:
            choices.append((rows, columns, 2 * parts))
        choices = [choice for choice in choices if choice != (rows, columns, parts)]
        best = min(choices, key=lambda piece: (waste(piece) + unevenness(piece), piece[0] != rows), default=None)
        if best is None or (waste(best) > _MAX_WASTE and not large):
            return rows, columns, parts
        rows, columns, parts = best
        count *= 2


def _half(size: int, step: int) -> int:
    """Half of a size in whole tiles, or all of it if that is one tile."""
    tiles = -(-size // step)
    return size if tiles < 2 else -(-tiles // 2) * step
