"""Computations on scalars in more precision than their types have.

What is accumulated in f16 or narrower types is rounded once, not with every element. Evaluator, passes and backends ask
here what a reducer computes meanwhile, when it is not one of the monoids that all of them know.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import Shape

# What depends on how a number is written, or is registered for certain types.
_BOUND_TO_TYPES = frozenset({"bitcast", "bitcast-convert", "stochastic-convert", "custom-call"})


def wide_function(computation: HloComputation) -> HloComputation | None:
    """A loose copy of a computation with f32 in place of all narrower floats; None where it would not mean the same.

    That is where it has none of them, works on more than scalars, looks at their bits, or rounds on purpose: converts
    anything wider to such a type before it computes on.
    """
    parts = computation.root.operands if computation.root.opcode == "tuple" else (computation.root,)
    given = {part for part in parts if part.user_count == int(part is not computation.root)}
    is_narrow = any(_is_narrow(parameter.shape) for parameter in computation.parameters)
    return _widened(computation) if is_narrow and _may_be_wide(computation, given) else None


def _may_be_wide(computation: HloComputation, given: set[HloInstruction]) -> bool:
    """Whether a computation computes the same, but for rounding; what it only gives may be rounded on purpose."""
    return all(
        instruction.opcode not in _BOUND_TO_TYPES
        and all(leaf.is_scalar for _, leaf in instruction.shape.leaves())
        and (instruction in given or not _rounds(instruction))
        and all(_may_be_wide(callee, set()) for callee in instruction.called_computations)
        for instruction in computation.instructions
    )


def _rounds(instruction: HloInstruction) -> bool:
    if instruction.opcode != "convert" or not _is_narrow(instruction.shape):
        return False
    source = instruction.operand(0).shape.dtype
    return source.is_floating and source.bits > instruction.shape.dtype.bits


def _widened(computation: HloComputation) -> HloComputation:
    result = HloComputation(computation.name)
    twins: dict[HloInstruction, HloInstruction] = {}
    for instruction in computation.post_order():
        shape, attrs = _wide_shape(instruction.shape), instruction.attrs
        if instruction.opcode == "constant" and shape != instruction.shape:
            attrs = dataclasses.replace(attrs, literal=Literal(attrs.literal.value.astype(np.float32), shape))
        operands = [twins[operand] for operand in instruction.operands]
        called = [_widened(callee) for callee in instruction.called_computations]
        twin = instruction.clone(operands, shape=shape, attrs=attrs, called_computations=called)
        twins[instruction] = result.add(twin)
    result.set_root(twins[computation.root])
    return result


def _wide_shape(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_wide_shape(element) for element in shape.elements])
    return Shape.array(DType.F32) if _is_narrow(shape) else shape


def _is_narrow(shape: Shape) -> bool:
    """Whether all that is computed of a type has its like in f32; nothing is 0 in f8e8m0fnu."""
    if not shape.is_array:
        return False
    dtype = shape.dtype
    return dtype.is_floating and dtype.bits < DType.F32.bits and dtype is not DType.F8E8M0FNU
