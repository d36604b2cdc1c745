"""The cycles that it takes to pack operands of products, or to fetch them where they lie."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.view import DotView, Matrix
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.records import dataclass

_COPY, _TURN, _PICK = 2.0, 5.0, 2.0
"""Cycles to pack a vector that is contiguous, a vector that is turned, and a single element."""

_BEGIN_RUN = 100.0
"""Cycles to begin a run of vectors that are turned, and to turn those that are no four: [2,56,56,1] by 5x5 to 8 takes
75 us of one core if runs of 5 are turned, 35 if none are.
"""

_TAKE = 2.0
"""Cycles more to pack a vector that is converted."""

_FAR, _FETCH_AND_COPY, _FETCH_AND_TURN = 1 << 18, 6.0, 16.0
"""Elements beyond which a vector to be packed comes from the last cache, and the cycles that this takes."""

_CROWDED, _FETCH_CROWDED = 1024, 12.0
"""Elements between lines, and multiples, that share a place in the caches where panels take a part of each, and the
cycles that a vector takes more then.
"""

_PUT_TOGETHER = 2.0
"""How many times as long it takes to pack a vector of words."""

_SCAN, _FETCH_AND_SCAN = 3.0, 8.0
"""Cycles to look at the exponents of a vector, near and from the last cache."""

PACKED_ROWS = 64
"""Rows for which packing the right operand pays even where it stays in the second cache as it lies; with fewer, a
product waits for one that comes from behind that cache.
"""

_QUAD = 4
"""Neighbours that are worth turning together."""

FETCH = 3.0
"""Cycles to fetch a vector from beyond the second cache."""

_FETCH_PARTS = 10.0
"""Cycles to fetch a vector from memory, if tiles read a few elements of each line."""

_FETCH_TERMS = 40.0
"""Cycles to fetch a vector again from behind the second cache, if each term of a tile has a line of its own: 3x3, 12
apart, of [256,33,33] to 256 takes 14.5 ms of one core where eight pieces fetch the image so, 10.0 packed.
"""


@dataclass(frozen=True, slots=True)
class OperandCycles:
    """Cycles to pack each operand once; 0 if it is read where it lies.

    Attributes:
        lhs: The left operand.
        rhs: The right operand.
        lhs_fetch: Cycles to fetch a left operand that is read where it lies.
        rhs_fetch: The same for the right one.
        rhs_far: Vectors of a right operand that comes line by line from behind the second cache.
        lhs_again: Cycles more to fetch the left operand again for pieces of other columns.
    """

    lhs: float
    rhs: float
    lhs_fetch: float = 0.0
    rhs_fetch: float = 0.0
    rhs_far: float = 0.0
    lhs_again: float = 0.0


def operand_cycles(
    matrix: Matrix, extent: int, terms: int, lanes: int, *, is_direct: bool, turns: bool = False
) -> float:
    """Cycles to pack an operand, or to compute it and put it there; target lines are terms if it `turns`."""
    along, across = (matrix.depth, matrix.outer) if turns else (matrix.outer, matrix.depth)
    vectors = extent * terms / lanes
    if matrix.computing:
        # What is computed in the other direction lies in the nearest cache before it is turned.
        return vectors * (matrix.computing + (0.0 if along.is_contiguous else _TURN))
    more = 0.0 if is_direct else _TAKE
    if not turns and along.is_contiguous and across.stride and across.stride % _CROWDED == 0 and extent * terms >= _FAR:
        more += _FETCH_CROWDED
    return packing_cycles(extent * terms, lanes, along, across) + more * vectors


def word_cycles(
    view: DotView, numbers: Numbers, lanes: int, *, packs_lhs: bool, is_near: bool = False
) -> OperandCycles:
    """Cycles to pack the right operand in words, and the left one; or to find how small its numbers are."""
    words = -(-view.k // numbers.word)
    rhs = _PUT_TOGETHER * operand_cycles(view.rhs, view.n, words, lanes, is_direct=True)
    if packs_lhs:
        lhs = operand_cycles(view.lhs, view.m, words, lanes, is_direct=True, turns=numbers.in_matrices)
        return OperandCycles(_PUT_TOGETHER * lhs, rhs)
    scanned = (view.lhs.outer.span + view.lhs.depth.span) / numbers.word if numbers.widened is not None else 0
    return OperandCycles(0.0, rhs, scanned / lanes * (_SCAN if is_near or scanned < _FAR else _FETCH_AND_SCAN))


def packing_cycles(elements: int, lanes: int, along: Walk, across: Walk) -> float:
    """Cycles to pack elements whose target is contiguous in the dimension `along`."""
    if along.is_contiguous and along.is_single:
        return elements / lanes * (_COPY if elements < _FAR else _FETCH_AND_COPY)
    if across.is_contiguous and across.run >= _QUAD:
        begun = 0.0 if across.is_single else _BEGIN_RUN / across.run
        return elements / lanes * (_TURN + begun if elements <= _FAR else _FETCH_AND_TURN)
    # Runs that a vector crosses are taken element by element.
    crossed = min(1.0, lanes / along.run) if along.is_contiguous else 1.0
    return elements * (crossed * _PICK + (1 - crossed) * _COPY / lanes)


def is_far(view: DotView, numbers: Numbers, target: TargetInfo) -> bool:
    """Whether the right operand does not stay in the second cache beside what else is there."""
    return view.n * view.k * representation(numbers.rhs).memory.size_bytes > target.cache_bytes[1] // 2


def fetch_cycles(matrix: Matrix, lanes: int, numbers: Numbers, target: TargetInfo) -> float:
    """Cycles to fetch an operand that is read where it lies."""
    _, second, third = (size // 2 for size in target.cache_bytes)
    elements = matrix.outer.span + matrix.depth.span
    size = elements * numbers.kept.size_bytes
    if size <= second:
        return 0.0
    return elements / lanes * (_FETCH_PARTS if size > third and matrix.outer.stride == 1 else 1.0)


def again_cycles(matrix: Matrix, lanes: int, numbers: Numbers, target: TargetInfo) -> float:
    """Cycles more to fetch an image again whose pixels are rows of a tile, if it does not stay in the second cache."""
    elements = matrix.outer.span + matrix.depth.span
    if not matrix.looked_up or elements * numbers.kept.size_bytes <= target.cache_bytes[1] * 3 // 4:
        return 0.0
    # Neighbours come together.
    return elements / lanes * _FETCH_TERMS / (matrix.depth.run if matrix.depth.is_contiguous else 1)


def far_vectors(view: DotView, lanes: int, numbers: Numbers, target: TargetInfo) -> float:
    """Vectors of a right operand that few rows meet, if they come in lines from behind the second cache; else 0."""
    one = view.rhs
    is_line = one.outer.is_contiguous and not (one.panel or one.looked_up or one.computing)
    waits = is_line and view.m <= PACKED_ROWS and is_far(view, numbers, target)
    return view.n * view.k / lanes if waits else 0.0
