"""Walking over all elements of some sizes, vectors along the minor dimension, split over the parallel extent."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.ir_array import lanes_below
from xlalite.backends.codegen.kernels.frame import Frame, for_lanes
from xlalite.backends.codegen.llvm import Value

BLOCK = 2048
"""Elements of one unit of the parallel extent of a one-dimensional walk; a multiple of every lane count."""

Visit = Callable[[Index, int, "Value | None"], None]
"""(index, lanes, mask) -> emits the work for these lanes."""


def walk_extent(dims: tuple[int, ...]) -> int:
    """The parallel extent: the outermost dimension, or blocks of a one-dimensional array."""
    if not dims:
        return 1
    return -(-dims[0] // BLOCK) if len(dims) == 1 else dims[0]


def walk(frame: Frame, dims: tuple[int, ...], lanes: int, visit: Visit) -> None:
    """Emits the loops over the frame's part of the extent."""
    if not dims:
        visit((), 1, None)
    elif 0 in dims:
        return
    elif len(dims) == 1:
        _walk_line(frame, dims[0], lanes, visit)
    else:
        _walk_nest(frame, dims, lanes, visit)


def _walk_line(frame: Frame, size: int, lanes: int, visit: Visit) -> None:
    fb = frame.fb
    if size <= BLOCK:
        for_lanes(fb, size, lanes, lambda at, width, mask: visit((at,), width, mask))
        return
    full = size - size % lanes
    start = fb.mul(frame.begin, BLOCK, "nsw")
    stop = fb.mul(frame.end, BLOCK, "nsw")
    with fb.loop(start, fb.smin(stop, full), lanes) as position:
        visit((Affine(position, 1 if lanes > 1 else 0),), lanes, None)
    if full < size:
        with fb.if_(fb.icmp("sgt", stop, full)):
            visit((Affine(full, 1),), lanes, lanes_below(fb, full, size, lanes))


def _walk_nest(frame: Frame, dims: tuple[int, ...], lanes: int, visit: Visit) -> None:
    fb = frame.fb

    def nest(outer: Index) -> None:
        level = len(outer)
        if level == len(dims) - 1:
            for_lanes(fb, dims[level], lanes, lambda at, width, mask: visit((*outer, at), width, mask))
            return
        with fb.loop(0, dims[level]) as position:
            nest((*outer, Affine(position)))

    with fb.loop(frame.begin, frame.end) as position:
        nest((Affine(position),))
