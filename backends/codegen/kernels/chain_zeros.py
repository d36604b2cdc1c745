"""Columns of zeros at the end of rows, which products in a chain leave out.

Masks make them. Times finite values they give 0, so that a product of fewer columns is the same; one that sums over
rows has nothing to add to as many rows of its result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel, dot_kernel
from xlalite.backends.codegen.kernels.dot.layout import LONG_TILE
from xlalite.backends.codegen.kernels.dot.plan import DotPlan
from xlalite.backends.codegen.kernels.dot.view import DotView
from xlalite.backends.codegen.kernels.dot.walk import Walk
from xlalite.backends.codegen.kernels.number_checks import finite, zeros
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I64, FunctionBuilder, Value, constant
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

MASKED_COLUMNS = 128
"""Columns that are computed together, or not at all, where a mask hides what lies beyond a row's own position; rows are
computed together in blocks of no more."""

_MOST_SIZES = 8
"""How many numbers of columns a product is made for where rows end in zeros."""


@dataclass(frozen=True, slots=True)
class RowZeros:
    """What a product of rows leaves out.

    Attributes:
        shorter: What computes it with so many of the first columns.
        values: The kernel's parameter that the rows are multiplied with; columns follow one another.
        columns: Columns of the rows.
        view: The product.
        sums_rows: Whether it sums over rows, and not over columns.
    """

    shorter: Mapping[int, DotKernel]
    values: HloInstruction
    columns: int
    view: DotView
    sums_rows: bool

    @classmethod
    def of(cls, product: DotKernel, step: int, *, sums_rows: bool) -> RowZeros | None:
        """Those of a product with rows on its left; None if it cannot leave any out.

        Args:
            product: With all columns.
            step: Of how many columns it should have a multiple.
            sums_rows: Whether it sums over rows.
        """
        plan, values = product.plan, product.dot.operand(1)
        view = plan.view
        follow = view.rhs.is_strided and not (view.rhs.origin or view.rhs.panel or view.rhs.looked_up)
        follow = follow and view.rhs.outer.stride == 1
        is_float = values.shape.dtype in (DType.F16, DType.BF16, DType.F32, DType.F64)
        # Loops that products of all sizes share make the others little more than a call.
        is_shared = plan.unit_depth >= LONG_TILE or plan.in_steps
        if not (follow and is_float and values.opcode == "parameter" and is_shared):
            return None
        columns = view.m if sums_rows else view.k
        step = math.lcm(step, MASKED_COLUMNS, plan.rows if sums_rows else 1)
        step *= -(-columns // (_MOST_SIZES * step))
        cut = _with_rows if sums_rows else _with_terms
        shorter = {
            size: dot_kernel(product.request, product.dot, cut(plan, size)) for size in range(step, columns, step)
        }
        return cls(shorter, values, columns, view, sums_rows) if shorter else None

    @property
    def step(self) -> int:
        """What the numbers of columns are multiples of."""
        return min(self.shorter)

    def known(self, fb: FunctionBuilder, last: Scalar) -> Value:
        """How many columns are enough, as those behind a column are zeros."""
        kept = fb.smax(fb.add(Scalars(fb).value(last), 1), 1)
        return fb.smin(fb.mul(fb.udiv(fb.add(kept, self.step - 1), self.step), self.step), self.columns)

    def found(self, fb: FunctionBuilder, rows: Value, dtype: DType, begin: Scalar, end: Scalar) -> Value:
        """How many columns are enough of some rows, where zeros at the end are looked for."""
        first, last = map(Scalars(fb).value, (begin, end))
        line, height = constant(I64, self.columns), fb.sub(last, first)
        with fb.while_loop([line]) as found:
            (kept,) = found.values
            before = fb.mul(fb.udiv(fb.sub(kept, 1), self.step), self.step)
            place = fb.gep(representation(dtype).memory, rows, fb.add(fb.mul(first, line), before), inbounds=False)
            are_zero = fb.call(zeros(fb.module, dtype), place, height, line, fb.sub(kept, before))
            found.continue_while(fb.and_(are_zero, fb.icmp("ne", before, 0)))
            found.yield_(before)
        return found.results[0]

    def if_finite(
        self, fb: FunctionBuilder, values: Value, product: Scalar, rows: tuple[Scalar, Scalar], kept: Value
    ) -> Value:
        """So many columns if the others of a block of rows are times finite values; else all."""
        numbers, rhs, dtype = Scalars(fb), self.view.rhs, self.values.shape.dtype
        first, last = rows if self.sums_rows else (kept, self.view.k)
        place, rest = numbers.multiply(first, rhs.depth.stride), product
        for size, stride in zip(reversed(self.view.batch), reversed(rhs.batch), strict=True):
            place = numbers.add(place, numbers.multiply(numbers.remainder(rest, size), stride))
            rest = numbers.divide(rest, size)
        begin = numbers.address(representation(dtype).memory, values, place)
        count = numbers.subtract(last, first)
        given: tuple[Scalar, ...] = count, rhs.depth.stride, self.view.n
        if rhs.depth.stride == self.view.n:
            given = 1, 0, numbers.multiply(count, self.view.n)
        are_finite = fb.call(finite(fb.module, dtype), begin, *map(numbers.value, given))
        return fb.select(are_finite, kept, constant(I64, self.columns))


def _with_terms(plan: DotPlan, terms: int) -> DotPlan:
    view = plan.view
    lhs, rhs = (replace(one, depth=Walk(((terms, one.depth.stride),))) for one in (view.lhs, view.rhs))
    return replace(plan, view=replace(view, k=terms, lhs=lhs, rhs=rhs), part_depth=terms)


def _with_rows(plan: DotPlan, rows: int) -> DotPlan:
    lhs = replace(plan.view.lhs, outer=Walk(((rows, plan.view.lhs.outer.stride),)))
    return replace(plan, view=replace(plan.view, m=rows, lhs=lhs), unit_rows=rows, row_run=rows)
