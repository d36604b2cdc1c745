"""Which operands tiles read where they lie, which are packed first, and how many terms are summed at a time."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.tilings import MAX_ROWS, SHORT_RUN
from xlalite.backends.codegen.kernels.dot.transfer import PACKED_ROWS, is_far
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.dot.words import MATRIX
from xlalite.backends.codegen.llvm import TargetInfo

RUN_BYTES = 2048
"""Memory that is fetched ahead only if at least so much of it follows one another."""

LEAST_RUN = 48
"""Terms in a row from which on an operand is read run by run."""

_SHORT_LINE = 7
"""Terms of lines of images from which on several runs are read one after the other by a tile: the gradient of a kernel
of 3x3 by [8,14,14,512] to 512 in 32 groups takes 4.0 ms of one core where runs of 14 are packed, 2.3 so.
"""

_LINES = 100
"""Terms at a time of runs in which each has a line of its own in the nearest cache, beside those of the right operand:
the gradient of a kernel of 3x3 by [8,56,56,64] takes 5.55 ms with 784, 5.35 with 112, 5.2 with 56, that of one of 3x3x3
by [2,21,21,21,32] 3.5 with 441, 2.6 with 147 and with 63.
"""

_LEAST_ROWS, _LEAST_NEIGHBOURS = 5, 3
"""Rows that one stride walks through from which on a left operand is read where it lies, and where they touch: the
gradient of a kernel of 3x3 by [8,3,224,224], 2 apart, to 32 takes 2.0 ms of one core so, 4.0 where all that windows see
is packed.
"""

_TURNED_TERMS, _TURNED_VECTORS = 64, 8
"""Terms, and vectors of columns, from which on a left operand is packed whose neighbours are rows: each term of a tile
has a line of its own in the nearest cache. [1024,1024] transposed times as much takes 28 ms of one core so, packed 12;
[784,784] 6.9 and 5.0, [300,400] times [300,600] 0.95 and 0.75. Of one that does not stay in the second cache, two
vectors are enough: [1024,1024] times [1024,64] takes 1.6 ms, packed 0.95.
"""

_PACKED_TERMS = 256
"""Terms of a piece of depth where both operands are packed, so that pieces are large and pack little again: [768,1024]
transposed by [1024,3072] takes 27 ms of one core in such of 256, 35 in one of 1,024.
"""

_FAR_DEPTH = 64
"""Terms of a piece of depth where the right operand is read where it lies, and that is far away.

With 683, each in a page of its own, [12,4096] by [4096,1024] takes 455 us instead of 360, [16,2048] by [2048,2048] 740
instead of 575.
"""

_FAR_ROWS = 3 * MAX_ROWS
"""Rows up to which a right operand that does not stay in the second cache is read where it lies, few terms at a time.

With all its terms at a time, or packed, [32,1024] by [1024,1024] takes 805 us of one core, and 546, instead of 473.
"""

_FAR_PACKED_DEPTH = 128
"""Terms of a piece of depth where it is packed for few rows more: [64,768] by [768,3072] takes 2.3 ms of one core with
all at a time, so 2.0, and read where it lies 4.8.
"""

_PANEL_ROWS, _PANEL_VECTORS = 256, 40
"""Rows up to which columns are packed by the first tile that reads them, and vectors of these from which on that is
worth a function more. [64,1024] by [1024,1024] takes 1.08 ms of one core where all columns of a piece are packed first
and 0.88 so, but [512,1024] by [1024,1024], whose rows share places in the second cache, 6.7 and 8.5.
"""

_FAR_PART = 4
"""Part of the last cache that a right operand fills which is fetched ahead: of 4 MB, [12,1024] by [1024,1024] takes 5 %
longer so, of 8 MB [12,768] by [768,3072] is as quick, and takes half as long where others use that cache, too.
"""


def depth_limit(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> int:
    """Terms of which a panel of both operands stays in the nearest cache, and pages are few that are read at a time.

    Where many rows meet several panels one after the other, the rows of a tile take half of that cache.
    """
    shares = 2 * MAX_ROWS if view.m > PACKED_ROWS else 16
    near = max(256, target.cache_bytes[0] // (shares * numbers.kept.size_bytes) // 64 * 64)
    if view.rhs.panel or view.m > PACKED_ROWS or not is_far(view, numbers, target):
        return near
    if not view.rhs.computing and packs_rhs(view, numbers, lanes, target, near):
        return min(near, _FAR_PACKED_DEPTH) if view.rhs.outer.is_contiguous else near
    return _FAR_DEPTH if view.m <= _rows_read(view, numbers, target) else near


def packed_depth(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo, limit: int) -> int:
    """Terms of a piece of depth if the left operand is packed."""
    if packs_rhs(view, numbers, lanes, target, limit):
        limit = min(limit, _PACKED_TERMS)
    return even_depth(view, limit)


def even_depth(view: DotView, limit: int) -> int:
    """Terms of a piece of depth; short depths are not worth a second pass."""
    if view.k <= 2 * limit:
        return max(view.k, 1)
    pieces = -(-view.k // limit)
    return -(-view.k // pieces)


def depth_where_it_lies(view: DotView, limit: int) -> int:
    """Terms of a piece of depth if the left operand is read where it lies: parts of a run, or several; 0 if neither."""
    depth = view.lhs.depth
    if depth.is_single:
        return even_depth(view, limit)
    if depth.run <= limit * 3 // 2:
        touches = view.lhs.outer.stride == 1
        limits = (_LINES, 2 * limit) if touches else (2 * limit,)
        are_near = touches or (abs(depth.stride) <= 2 and not view.exchanged)
        least = _SHORT_LINE if are_near else SHORT_RUN
        wholes = (_whole_runs(depth, most, least) for most in limits)
        return next((whole for whole in wholes if whole), 0)
    pieces = next(count for count in range(-(-depth.run // (limit * 3 // 2)), depth.run + 1) if depth.run % count == 0)
    return depth.run // pieces if depth.run // pieces >= LEAST_RUN else 0


def _whole_runs(depth: Walk, most: int, least: int) -> int:
    """About so many terms at most, in whole runs; 0 if these are too short: several of fewer than so many, or one."""
    whole = max(count for count in range(1, max(most // depth.run, 1) + 1) if depth.steps[-2][0] % count == 0)
    return depth.run * whole if depth.run >= (least if whole > 1 else LEAST_RUN) else 0


def words_of_rows(view: DotView, numbers: Numbers) -> int:
    """Words of a row of a register of matrices, of which a run of terms has whole rows; 0 if it has no whole words."""
    run = view.lhs.depth.run
    if run % numbers.word:
        return 0
    return max(words for words in range(1, MATRIX + 1) if run // numbers.word % words == 0)


def depth_of_rows(view: DotView, numbers: Numbers, most: int) -> int:
    """Terms of a piece of depth, about so many at most, if registers of matrices load rows where they lie; else 0.

    Those must be terms, one after another in runs of whole rows of registers, and long enough ways between them go
    forward, so that all that lies between two elements is memory of the operand.
    """
    outer, depth = view.lhs.outer, view.lhs.depth
    step = words_of_rows(view, numbers) * numbers.word
    if view.lhs.computing or not numbers.is_part(numbers.lhs) or depth.stride != 1 or not step:
        return 0
    if not (outer.is_forward and depth.is_forward) or (not outer.is_single and outer.run < MATRIX):
        return 0
    if depth.is_single:
        return min(most // step * step, depth.run)
    count = max((one for one in range(1, most // depth.run + 1) if depth.steps[-2][0] % one == 0), default=0)
    return depth.run * count


def reads_lhs(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo, unit_depth: int) -> bool:
    """Whether rows can be read element by element where they lie: they need no converting, and a stride reaches them.

    Rows that crowd out one another in the nearest cache cost less than packing them for every block of columns, terms
    in lines of their own more.
    """
    outer, depth = view.lhs.outer, view.lhs.depth
    if view.lhs.computing or not numbers.is_direct(numbers.lhs):
        return False
    if not view.lhs.looked_up and not depth.is_even(unit_depth):
        return False
    if outer.is_single and outer.stride == 1 and depth.stride >= view.m and unit_depth >= _TURNED_TERMS:
        stays = view.m * view.k * numbers.kept.size_bytes <= target.cache_bytes[1] // 2
        if view.n > (_TURNED_VECTORS if stays else 2) * lanes:
            return False
    return outer.is_single or outer.run >= (_LEAST_NEIGHBOURS if outer.stride == 1 else _LEAST_ROWS)


def packs_rhs(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo, unit_depth: int) -> bool:
    """Whether tiles cannot read the right operand where it lies, or so many do that packing it is quicker."""
    if view.rhs.computing or not numbers.is_direct(numbers.rhs) or not view.rhs.is_strided:
        return True
    if view.rhs.outer.stride != 1 and view.n > 1:
        return True
    if view.rhs.looked_up:
        return False
    size = numbers.kept.size_bytes
    # Rows that a large power of two lies between share few places in a cache.
    stride = view.rhs.depth.stride * size
    shared = max(stride & -stride, target.cache_line_bytes)
    if shared > view.n * size and unit_depth * shared > target.cache_bytes[0] and view.m > PACKED_ROWS:
        return True
    if view.rhs.panel or view.n <= 2 * lanes or view.n * view.k * size <= target.cache_bytes[0]:
        return False
    stays_near = unit_depth * shared <= 2 * target.cache_bytes[1] and not is_far(view, numbers, target)
    return view.m > (PACKED_ROWS if stays_near else _rows_read(view, numbers, target))


def in_panels(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> bool:
    """Whether a far right operand is packed by the first tile of rows that reads it, a few columns at a time."""
    lhs, rhs, (depth, outer) = view.lhs, view.rhs, (view.lhs.depth, view.lhs.outer)
    return (
        MAX_ROWS < view.m <= _PANEL_ROWS
        and not numbers.is_precise
        and (view.n >= _PANEL_VECTORS * lanes and view.seen is None)
        and is_far(view, numbers, target)
        and numbers.is_direct(numbers.lhs)
        and numbers.is_direct(numbers.rhs)
        and not (lhs.computing or lhs.looked_up or rhs.computing or rhs.looked_up or rhs.panel)
        and (depth.is_single and outer.is_single and depth.stride == 1)
        and (rhs.is_strided and rhs.outer.stride == 1)
    )


def _rows_read(view: DotView, numbers: Numbers, target: TargetInfo) -> int:
    """Rows up to which a right operand that comes from far away is read where it lies, few terms at a time."""
    is_fetched = is_fetched_ahead(view, numbers, target) and view.n * numbers.kept.size_bytes > RUN_BYTES
    return PACKED_ROWS if is_fetched else _FAR_ROWS


def is_fetched_ahead(view: DotView, numbers: Numbers, target: TargetInfo) -> bool:
    """Whether a right operand that is read where it lies fills much of the last cache."""
    is_read = view.rhs.outer.is_contiguous and not (view.rhs.panel or view.rhs.looked_up)
    return is_read and view.n * view.k * numbers.kept.size_bytes >= target.cache_bytes[2] // _FAR_PART
