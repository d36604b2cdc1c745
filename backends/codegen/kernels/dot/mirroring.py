"""Products of a matrix with its own transposition: what is above the diagonal of the result is copied from below it.

Every sum there has the terms of its mirror image in the same order, so that the bits are those of the whole product.
BLAS has this as SYRK (Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, 1990).

Pieces are squares, or strips of rows that end at the diagonal where all columns of a step along the depth stay packed:
then rows are packed once. [2000,513] transposed times itself takes two threads 1.8 ms in strips, in squares 2.7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, lcm

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.finish import Area
from xlalite.backends.codegen.kernels.dot.packers import pack
from xlalite.backends.codegen.kernels.dot.packing import Packing
from xlalite.backends.codegen.kernels.dot.piece_order import strip_columns
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.units import most_columns_packed
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import Function, FunctionBuilder, ModuleBuilder, TargetInfo, Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable

_ROWS_PACKED, _COLUMNS_PACKED = 22.0, 4.0
"""Cycles to pack a vector of either operand: [1024,1024] transposed times itself takes 9.0 ms of one core in pieces of
96 rows, 8.4 in such of 192, [2000,2000] 64, 59, and 55 in such of 288; not transposed 6.7 and 7.2, 48, 50 and 53.
"""

_TURNED, _TURNED_AFAR = 16.0, 60.0
"""Cycles to copy a vector of the result to its image, near and where the result is larger than a few second caches:
[1000,16] by itself takes 247 us of one core so instead of 421, but [3000,16] 4.5 ms instead of 2.9.
"""

_NEAR = 4
"""Second caches that such a result fills."""

_WORTHWHILE = 0.92
"""Part of the cycles of the whole product that it may take."""

_MOST_PIECES = 24
"""Pieces along either side: with more, those on the diagonal are few already."""


def mirrored(plan: DotPlan, dot: HloInstruction, body: HloComputation, target: TargetInfo) -> DotPlan:
    """The plan in square pieces, of which those above the diagonal are copied; as it is where that does not pay."""
    if not _is_symmetric(plan, dot, body):
        return plan
    is_near = dot.shape.size_bytes <= _NEAR * target.cache_bytes[1]
    turned = _TURNED if is_near else _TURNED_AFAR
    choices = [(_cycles(plan, size, turned), size) for size in _sizes(plan)]
    cycles, size = min(choices, default=(inf, 0))
    strips = [(_cycles_of_strips(plan, rows, turned), rows) for rows in _heights(plan, target)]
    cycles_of_strips, rows = min(strips, default=(inf, 0))
    if min(cycles, cycles_of_strips) > _WORTHWHILE * plan.cycles:
        return plan
    if cycles_of_strips < cycles:
        return _in_strips(plan, rows, cycles_of_strips)
    # A tile that begins in the one before has all its rows in its own piece.
    overlaps = plan.overlaps and (plan.view.m - 1) % size + 1 >= plan.rows
    return replace(
        plan, unit_rows=size, unit_columns=size, cycles=cycles, overlaps=overlaps, shares_packed=False, mirrors=True
    )


def mirror(
    module: ModuleBuilder,
    fb: FunctionBuilder,
    math: Scalars,
    callee: Callable[[Function], Value],
    plan: DotPlan,
    area: Area,
    end: Scalar,
    place: Callable[[Scalar, Scalar], Value],
) -> None:
    """Copies a piece below the diagonal, turned, to its place above once all terms are in its sums.

    Args:
        module: Where the function that turns is declared.
        fb: Where the copy is called.
        math: How that function knows sizes.
        callee: Where it finds a function.
        plan: The product.
        area: The piece.
        end: How many terms are in its sums.
        place: Where the element of a row and a column of the result is.
    """
    line = plan.view.line
    turning = Packing(None, plan.lanes, Walk(((plan.unit_rows, line),)), Walk(((line, 1),)), line, is_exact=True)
    is_whole = fb.icmp("eq", math.value(end), math.operand(plan.view.k))
    for one in _below(math, plan, area):
        has_rows, has_columns = (fb.icmp("sgt", math.value(size), 0) for size in (one.height, one.width))
        with fb.if_(fb.and_(fb.and_(has_rows, has_columns), is_whole)):
            sizes = map(math.value, (0, 0, one.height, one.width, *turning.strides))
            places = place(one.row, one.column), place(one.column, one.row)
            pack(module, fb, callee, plan.numbers, turning, (*places, *sizes))


def _below(math: Scalars, plan: DotPlan, area: Area) -> list[Area]:
    """What of a piece is below the diagonal and has an image that nobody computes; in either direction maybe nothing.

    Of a strip, that is what lies below the strip before but for its own last columns, and what lies below those before.
    """
    if not plan.in_strips:
        return [replace(area, width=math.least(area.width, math.subtract(area.row, area.column)))]
    before = math.subtract(area.row, plan.unit_rows)
    first = strip_columns(math, plan, math.subtract(math.divide(area.row, plan.unit_rows), 1))
    rows = math.subtract(math.add(area.row, area.height), first)
    return [
        replace(area, width=before),
        Area(area.product, first, before, rows, math.least(area.row, plan.unit_rows)),
    ]


def _is_symmetric(plan: DotPlan, dot: HloInstruction, body: HloComputation) -> bool:
    """Whether a plan gives a result of a symmetric product that is symmetric itself, and whose type is that of sums."""
    view, numbers = plan.view, plan.numbers
    is_plain = (
        plan.form is Form.COLUMNS
        and plan.parts == 1
        and plan.row_run >= view.m
        and not (plan.in_steps or plan.kept_parts or plan.staging)
        and numbers.word == 1
    )
    if dot.opcode != "dot" or dot.operand(0) is not dot.operand(1) or view.lhs != view.rhs or not is_plain:
        return False
    operands = set(reachable(dot.operands, lambda one: one.operands))
    after = [one for one in body.instructions if one not in operands and one is not dot]
    return representation(body.root.shape.dtype).memory == numbers.kept and all(map(_keeps_symmetry, after))


def _keeps_symmetry(instruction: HloInstruction) -> bool:
    """Whether elements of a result that mirror one another are computed alike."""
    if instruction.opcode == "broadcast":
        return instruction.operand(0).shape.is_scalar
    is_alone = instruction.op.is_elementwise or instruction.opcode in ("constant", "parameter")
    return is_alone and (instruction.shape.is_scalar or instruction.opcode != "parameter")


def _sizes(plan: DotPlan) -> range:
    """Rows of square pieces of whole tiles."""
    step = lcm(plan.rows, plan.columns)
    return range(max(-(-plan.view.m // (_MOST_PIECES * step)), 1) * step, plan.view.m, step)


def _cycles(plan: DotPlan, size: int, turned: float) -> float:
    """Cycles in pieces of so many rows, if it takes as many to copy a vector of the result."""
    view, pieces = plan.view, ceil(plan.view.m / size)
    count, last = divmod(view.m, size)
    copied = (view.m**2 - count * size**2 - last**2) / 2
    packed = _ROWS_PACKED * plan.packs_lhs * (pieces + 1) / 2 + _COLUMNS_PACKED * plan.packs_rhs
    more = packed * pieces * size * view.k + turned * copied
    return plan.cycles * (1 - copied / view.m**2) + view.batch_count * more / plan.lanes


def _heights(plan: DotPlan, target: TargetInfo) -> range:
    """Rows of strips of whole tiles, if they can share all columns, packed for a piece of the depth.

    No strip has columns behind the diagonal of the one behind it.
    """
    is_packed = plan.packs_lhs and plan.packs_rhs
    fits = is_packed and plan.view.n * plan.unit_depth <= most_columns_packed(plan.numbers, target)
    least = -(-plan.columns // plan.rows) * plan.rows
    return range(least, plan.view.m if fits else 0, plan.rows)


def _in_strips(plan: DotPlan, rows: int, cycles: float) -> DotPlan:
    return replace(
        plan,
        unit_rows=rows,
        unit_columns=plan.view.n,
        cycles=cycles,
        overlaps=False,
        rows_outside=True,
        shares_packed=True,
        mirrors=True,
        keeps_sums=plan.depth_units > 1,
    )


def _cycles_of_strips(plan: DotPlan, rows: int, turned: float) -> float:
    """Cycles in strips of so many rows, where two threads take half of them each."""
    view = plan.view
    starts = range(0, view.m, rows)
    order = [start for pair in zip(reversed(starts), starts, strict=True) for start in pair][: len(starts)]
    ends = [min(start + rows, view.m) for start in order]
    areas = [
        (end - start) * min(-(-end // plan.columns) * plan.columns, view.n)
        for start, end in zip(order, ends, strict=True)
    ]
    middle = -(-len(areas) // 2)
    computed = 2 * max(sum(areas[:middle]), sum(areas[middle:]))
    copied = sum((end - start) * start for start, end in zip(order, ends, strict=True))
    more = (_ROWS_PACKED + 2 * _COLUMNS_PACKED) * view.m * view.k + turned * copied
    return plan.cycles * computed / view.m**2 + view.batch_count * more / plan.lanes
