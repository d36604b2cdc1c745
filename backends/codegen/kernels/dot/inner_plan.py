"""Plans of products whose vectors run along the terms, which are packed, or read run by run where they lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, finished_plan
from xlalite.backends.codegen.kernels.dot.tilings import Form, inner_tilings
from xlalite.backends.codegen.kernels.dot.transfer import FETCH, OperandCycles, fetch_cycles, is_far, operand_cycles
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.llvm import TargetInfo

_WHOLE = 2.0
"""How many times as long a multiplication with addition of integers takes."""


def inner_plans(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> Iterator[DotPlan]:
    """The plans with the terms of both operands in single lines, and in runs if there are several."""
    yield _plan(view, numbers, lanes, target)
    in_runs = view.in_runs(lanes // 2, numbers.longest_chain * lanes or view.k)
    if in_runs is not None:
        plan = _plan(in_runs, numbers, lanes, target)
        # One function less to compile.
        has_rest = plan.row_run % plan.rows > 0 and plan.depth_units == 1
        yield replace(plan, overlaps=has_rest and in_runs.lhs.looked_up > 0)


def _plan(view: DotView, numbers: Numbers, lanes: int, target: TargetInfo) -> DotPlan:
    best = min(inner_tilings(view, lanes, target), key=lambda tiling: tiling.cycles)
    taken = 0.0 if numbers.is_direct(numbers.lhs) or view.lhs.computing else view.m * -(-view.n // best.columns)
    taken += 0.0 if numbers.is_direct(numbers.rhs) or view.rhs.computing else view.n * -(-view.m // best.rows)
    cycles = best.cycles if numbers.kept.is_float else best.cycles * _WHOLE
    best = replace(best, cycles=cycles + taken * view.k / lanes)
    lhs, rhs = (
        0.0
        if one.looked_up or (one.is_strided and one.has_runs)
        else operand_cycles(one, extent, view.k, lanes, is_direct=True, turns=True)
        for one, extent in ((view.lhs, view.m), (view.rhs, view.n))
    )
    depth, row_run = view.k, view.lhs.outer.run if view.lhs.looked_up else view.m
    if view.rhs.looked_up:
        depth = _near_depth(view, best.rows, numbers, target)
        packing = OperandCycles(lhs, rhs, 0.0 if lhs else fetch_cycles(view.lhs, lanes, numbers, target))
    else:
        fetch = FETCH * view.n * view.k / lanes if is_far(view, numbers, target) else 0.0
        packing = OperandCycles(lhs, rhs, rhs_fetch=fetch)
    plan = finished_plan(Form.DEPTH, view, numbers, lanes, best, packing, depth, row_run)
    return replace(plan, rows_outside=view.rhs.looked_up > 0)


def _near_depth(view: DotView, rows: int, numbers: Numbers, target: TargetInfo) -> int:
    """Terms of a piece of depth of which the rows of a tile stay in the nearest cache; columns see much the same.

    The gradient of a kernel [8,16,3,3] of images [8,16,56,56] takes 1.5 ms of one core with all terms, 1.2 so.
    """
    limit, run = target.cache_bytes[0] * 2 // 3 // (rows * numbers.kept.size_bytes), view.rhs.looked_up
    return view.k if view.k <= 2 * limit else -(-view.k // run // -(-view.k // limit)) * run
