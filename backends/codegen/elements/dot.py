"""Elements of products, by a loop over the contracted dimensions.

The dot kernel is the fast way; this rule serves element types and places in a kernel that it does not take.
"""

from __future__ import annotations

import math

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, Position
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.conversion import convert_element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.registers import flatten, unflatten
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.dot import DotAttrs, free_dimensions
from xlalite.hlo.types.dtype import DType
from xlalite.passes.fusion.read_steps import FEW


def accumulator_dtype(lhs: DType, rhs: DType, result: DType) -> DType:
    """The type that sums are kept in: f32 for narrow floats, else the widest type involved."""
    if result.is_floating:
        return DType.F64 if DType.F64 in (lhs, rhs, result) else DType.F32
    return result


def _dot(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    lhs, rhs = instruction.operands
    attrs: DotAttrs = instruction.attrs
    kept = accumulator_dtype(lhs.shape.dtype, rhs.shape.dtype, instruction.shape.dtype)
    lhs_index, rhs_index = _operand_indices(instruction, index)
    sizes = [lhs.shape.dims[dimension] for dimension in attrs.lhs_contracting_dims]

    def nest(level: int, total: Element, outer: ElementEmitter) -> Element:
        if level == len(sizes):
            left = convert_element(emitter.fb, outer.vector(lhs, tuple(lhs_index)), lhs.shape.dtype, kept)
            right = convert_element(emitter.fb, outer.vector(rhs, tuple(rhs_index)), rhs.shape.dtype, kept)
            return multiply_add(outer, kept, total, left, right)
        if sizes[level] == 0:
            return total
        if math.prod(sizes) <= FEW:
            for place in range(sizes[level]):
                lhs_index[attrs.lhs_contracting_dims[level]] = Affine(place)
                rhs_index[attrs.rhs_contracting_dims[level]] = Affine(place)
                total = nest(level + 1, total, outer)
            return total
        with emitter.fb.carried_loop(0, sizes[level], 1, flatten([total])) as loop:
            lhs_index[attrs.lhs_contracting_dims[level]] = Affine(loop.index)
            rhs_index[attrs.rhs_contracting_dims[level]] = Affine(loop.index)
            inside = nest(level + 1, unflatten(loop.values, [total])[0], outer.inner())
            loop.yield_(*flatten([inside]))
        return unflatten(loop.results, [total])[0]

    total = nest(0, zero_element(kept, emitter.lanes), emitter)
    return convert_element(emitter.fb, total, kept, instruction.shape.dtype)


def _operand_indices(instruction: HloInstruction, index: Index) -> tuple[list[Position], list[Position]]:
    """The operands' indices for a result index; contracted positions are to be filled in."""
    attrs: DotAttrs = instruction.attrs
    lhs, rhs = instruction.operands
    lhs_index: list[Position] = [ZERO] * lhs.shape.rank
    rhs_index: list[Position] = [ZERO] * rhs.shape.rank
    positions = iter(index)
    for a, b in zip(attrs.lhs_batch_dims, attrs.rhs_batch_dims, strict=True):
        lhs_index[a] = rhs_index[b] = next(positions)
    for dimension in free_dimensions(lhs.shape.rank, attrs.lhs_batch_dims, attrs.lhs_contracting_dims):
        lhs_index[dimension] = next(positions)
    for dimension in free_dimensions(rhs.shape.rank, attrs.rhs_batch_dims, attrs.rhs_contracting_dims):
        rhs_index[dimension] = next(positions)
    return lhs_index, rhs_index


def multiply_add(emitter: ElementEmitter, kept: DType, total: Element, left: Element, right: Element) -> Element:
    """Total + left * right in the type that sums are kept in."""
    fb = emitter.fb
    if isinstance(total, tuple):
        assert isinstance(left, tuple), "both operands were converted to the complex type"
        assert isinstance(right, tuple), "both operands were converted to the complex type"
        from xlalite.backends.codegen.elements import complex_arithmetic

        return complex_arithmetic.add(fb, total, complex_arithmetic.multiply(fb, left, right))
    assert not isinstance(left, tuple), "both operands were converted to the real type"
    assert not isinstance(right, tuple), "both operands were converted to the real type"
    if kept is DType.PRED:
        return fb.or_(total, fb.and_(left, right))
    if kept.is_floating:
        return fb.fadd(total, fb.fmul(left, right))
    return fb.add(total, fb.mul(left, right))


ELEMENT_RULES: dict[str, ElementRule] = {"dot": _dot}
