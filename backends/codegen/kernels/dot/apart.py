"""Plans of gradients of kernels with few output features, features last: a product for each row of the kernel.

The features of the image that elements of a kernel's row see touch, so that vectors run along them where they lie; an
element of the other operand is in all lanes. Sums are turned when all are there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, outer_plans, swapped_numbers
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.view import DotView, view_of_convolution
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs

_MOST_ROWS = 64
"""Rows that are worth a product each."""


def plans_apart(convolution: HloInstruction, numbers: Numbers, target: TargetInfo) -> tuple[DotPlan, ...]:
    """The plans; none for a convolution in groups, or one whose image has single pixels in rows."""
    attrs: ConvolutionAttrs = convolution.attrs
    if max(attrs.feature_group_count, attrs.batch_group_count) > 1:
        return ()
    dims = convolution.operand(0).shape.dims
    views = (view_of_convolution(convolution, dims, apart) for apart in range(convolution.shape.rank - 1))
    view = next((view for view in views if view.lhs.outer.is_single), None)
    return () if view is None or view.batch_count > _MOST_ROWS else _plans(view, numbers, target)


@cache
def _plans(view: DotView, numbers: Numbers, target: TargetInfo) -> tuple[DotPlan, ...]:
    swapped, numbers = view.swapped().looked_up(), swapped_numbers(replace(numbers, words=None))
    if swapped is None or not numbers.is_direct(numbers.rhs):
        return ()
    form = Form.COLUMNS if view.n == 1 else Form.ROWS
    depth = _near_depth(swapped, numbers, target)
    plans = outer_plans(form, swapped, numbers, target.lanes(numbers.kept.bits), target, whole=depth)
    # Neighbours in a row see much the same of an image: one that comes from far away, a piece fetches once for all.
    is_far = depth < view.k and view.batch_count > 1
    return tuple(
        replace(plan, flipped=view.n == 1, unit_columns=swapped.n if is_far else plan.unit_columns) for plan in plans
    )


def _near_depth(view: DotView, numbers: Numbers, target: TargetInfo) -> int:
    """Terms of a piece of depth of which both operands stay in the second cache, where many tiles read them.

    The gradient of a kernel [3,3,64,8] of images [4,64,64,64] takes 2.5 ms of one core with all terms, 1.5 so.
    """
    elements = sum(one.outer.span + one.depth.span for one in (view.lhs, view.rhs))
    pieces = -(-elements * numbers.kept.size_bytes // (target.cache_bytes[1] // 4))
    return -(-view.k // pieces)
