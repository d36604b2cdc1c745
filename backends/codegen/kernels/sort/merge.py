"""Sorts positions by asking which of two comes first: runs of 1, 2, 4 ... are merged, stably and without branches."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.llvm import I32, I64, FunctionBuilder, Value

ComesBefore = Callable[[Value, Value], Value]
"""(position, position) -> whether the first must come before the second."""


def merge_sort(fb: FunctionBuilder, count: Value, buffers: tuple[Value, Value], comes_before: ComesBefore) -> Value:
    """Emits the sort of as many positions, which the first buffer holds: where they are then."""
    last = fb.sub(count, 1)
    with fb.while_loop([fb.constant(I64, 1), *buffers]) as runs:
        width, source, target = runs.values
        runs.continue_while(fb.icmp("slt", width, count))
        with fb.loop(0, count, fb.mul(width, 2)) as begin:
            middle = fb.smin(fb.add(begin, width), count)
            end = fb.smin(fb.add(middle, width), count)
            with fb.carried_loop(begin, end, 1, [begin, middle]) as merge:
                left, right = merge.values
                # One of the two may be past its run; then it is not looked at, but must lie in the buffer.
                a, b = (fb.load(I32, fb.gep(I32, source, fb.smin(at, last))) for at in (left, right))
                is_left_done = fb.icmp("sge", left, middle)
                is_right_next = fb.or_(is_left_done, comes_before(b, a))
                takes_right = fb.and_(fb.icmp("slt", right, end), is_right_next)
                fb.store(fb.select(takes_right, b, a), fb.gep(I32, target, merge.index))
                taken = fb.zext(takes_right, I64)
                merge.yield_(fb.add(left, fb.sub(fb.constant(I64, 1), taken)), fb.add(right, taken))
        runs.yield_(fb.mul(width, 2), target, source)
    return runs.results[1]
