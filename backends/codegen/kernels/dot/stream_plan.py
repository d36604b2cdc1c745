"""Plans of products of few rows whose right operand is read once, row after row, as fast as memory gives it."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.reading import RUN_BYTES
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.transfer import FETCH
from xlalite.backends.codegen.kernels.dot.units import PIECES
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.llvm import TargetInfo

_STREAMS = 4
"""Rows that are read side by side at most: with 8, what fetches memory ahead loses sight of some."""

_LEAST_PART = 32
"""Rows that are worth sums of their own: adding those to the others' moves a sixteenth of what the rows hold."""

_SUM_BYTES = 16 << 10
"""Sums that stay in the nearest cache beside the rows that are read."""

_CACHED_BYTES = 3072
"""How much of long rows is read at a time that come from a cache: [1,768] by [768,2304] takes 52 us, in whole rows 87.
From memory whole rows come sooner: [1,4096] by [4096,4096] takes 1.4 ms, in such pieces 2.2."""


def stream_plan(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> DotPlan:
    """One tile to a piece of work: some rows of the right operand from end to end, if sums of all columns stay near.

    Where there are too few rows for other threads to have some, a piece is of fewer columns.
    """
    line_bytes = view.n * numbers.kept.size_bytes
    fits = -(-line_bytes * view.m // _SUM_BYTES)
    parts = max(1, min(PIECES // (view.batch_count * fits), view.k // _LEAST_PART))
    runs = min(PIECES // parts, 1 << max(line_bytes // RUN_BYTES, 1).bit_length() - 1)
    if line_bytes > 2 * RUN_BYTES and 2 * view.k * line_bytes <= target.cache_bytes[2]:
        fits = max(fits, -(-line_bytes // _CACHED_BYTES))
        parts = max(1, min(PIECES // (view.batch_count * fits), view.k // _LEAST_PART))
    pieces = max(runs, 2 if view.batch_count * parts == 1 else 1, fits)
    columns = -(-view.n // (pieces * 2 * lanes)) * 2 * lanes
    depth = max(-(-view.k // parts), 1)
    cycles = max(FETCH, view.m) * view.batch_count * view.k * view.n / lanes
    sizes = view.m, columns, 1, view.m, columns, depth, depth
    streams = max(1, min(_STREAMS, target.vector_registers // 2 // view.m))
    return DotPlan(Form.STREAM, view, numbers, lanes, *sizes, False, False, view.m, cycles, streams=streams)
