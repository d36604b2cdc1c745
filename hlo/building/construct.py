"""Loose instructions of the commonest operations: each operation with its attributes is spelt here once.

Where nothing is to be done, the operand itself is the result. All raise `ShapeError` when shapes do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xlalite.hlo.building.create import create
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.structural import ConstantAttrs, GetTupleElementAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array, Literal
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.ops.comparison import Direction


def constant(value: Array | Literal) -> HloInstruction:
    """A constant of an array's values, or of a literal."""
    literal = value if isinstance(value, Literal) else Literal(value)
    return create("constant", (), ConstantAttrs(literal), shape=literal.shape)


def scalar(value: Array | int | float | bool, dtype: DType) -> HloInstruction:
    """A scalar constant; integers wrap into the type."""
    with np.errstate(all="ignore"):
        if isinstance(value, int) and dtype.is_integral:
            wrapped = value & ((1 << dtype.bits) - 1)
            if dtype.is_signed and wrapped >> (dtype.bits - 1):
                wrapped -= 1 << dtype.bits
            array = np.asarray(wrapped).astype(dtype.numpy) if wrapped < 2**63 else np.asarray(wrapped, dtype.numpy)
        else:
            array = np.asarray(value).astype(dtype.numpy)
    return constant(array)


def splat(value: Array | int | float | bool, shape: Shape) -> HloInstruction:
    """An array of the shape filled with a number."""
    return broadcast(scalar(value, shape.dtype), shape.dims)


def splat_like(value: Array | int | float | bool, instruction: HloInstruction) -> HloInstruction:
    """An array like the instruction's value, filled with a number."""
    return splat(value, instruction.shape)


def iota(dtype: DType, dims: Sequence[int], dimension: int) -> HloInstruction:
    """The index along one dimension."""
    from xlalite.hlo.ops.reshaping import IotaAttrs

    return create("iota", (), IotaAttrs(dimension), shape=Shape.array(dtype, dims))


def broadcast(operand: HloInstruction, dims: Sequence[int], dimensions: Sequence[int] = ()) -> HloInstruction:
    """The operand replicated: its dimension i becomes dimension dimensions[i] of the result."""
    if operand.shape.dims == tuple(dims) and tuple(dimensions) == tuple(range(len(dims))):
        return operand
    from xlalite.hlo.ops.reshaping import BroadcastAttrs

    attrs = BroadcastAttrs(tuple(dimensions))
    return create("broadcast", (operand,), attrs, shape=Shape.array(operand.shape.dtype, dims))


def reshape(operand: HloInstruction, dims: Sequence[int]) -> HloInstruction:
    """The same elements in row-major order with other sizes."""
    if operand.shape.dims == tuple(dims):
        return operand
    return create("reshape", (operand,), shape=Shape.array(operand.shape.dtype, dims))


def transpose(operand: HloInstruction, permutation: Sequence[int]) -> HloInstruction:
    """The operand with result dimension i taken from dimension permutation[i]."""
    if tuple(permutation) == tuple(range(operand.shape.rank)):
        return operand
    from xlalite.hlo.ops.reshaping import TransposeAttrs

    return create("transpose", (operand,), TransposeAttrs(tuple(permutation)))


def slice_of(operand: HloInstruction, ranges: Sequence[tuple[int, int, int]]) -> HloInstruction:
    """The elements start, start + stride, ... below limit of every dimension, given as (start, limit, stride)."""
    if tuple(ranges) == tuple((0, size, 1) for size in operand.shape.dims):
        return operand
    from xlalite.hlo.ops.slicing import SliceAttrs

    return create("slice", (operand,), SliceAttrs(tuple(ranges)))


def dynamic_slice(operand: HloInstruction, starts: Sequence[HloInstruction], sizes: Sequence[int]) -> HloInstruction:
    """A window of given sizes that begins at scalar indices."""
    from xlalite.hlo.ops.slicing import DynamicSliceAttrs

    return create("dynamic-slice", (operand, *starts), DynamicSliceAttrs(tuple(sizes)))


def pad(operand: HloInstruction, value: HloInstruction, padding: Sequence[tuple[int, int, int]]) -> HloInstruction:
    """The operand with a scalar around and between its elements: (low, high, interior) for every dimension."""
    sizes = operand.shape.dims
    if len(padding) == len(sizes) and all(
        entry == (0, 0, 0) or (entry[:2] == (0, 0) and size <= 1) for entry, size in zip(padding, sizes, strict=True)
    ):
        return operand
    from xlalite.hlo.ops.slicing import PadAttrs

    return create("pad", (operand, value), PadAttrs(tuple(padding)))


def concatenate(operands: Sequence[HloInstruction], dimension: int) -> HloInstruction:
    """The operands one behind the other."""
    from xlalite.hlo.ops.slicing import ConcatenateAttrs

    return operands[0] if len(operands) == 1 else create("concatenate", operands, ConcatenateAttrs((dimension,)))


def reverse(operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    """The operand turned round along dimensions."""
    from xlalite.hlo.ops.reshaping import ReverseAttrs

    return create("reverse", (operand,), ReverseAttrs(tuple(dimensions))) if dimensions else operand


def convert(operand: HloInstruction, dtype: DType) -> HloInstruction:
    """The operand in another element type."""
    if operand.shape.dtype is dtype:
        return operand
    return create("convert", (operand,), shape=Shape.array(dtype, operand.shape.dims))


def compare(lhs: HloInstruction, rhs: HloInstruction, direction: Direction) -> HloInstruction:
    """A comparison with the element type's default order."""
    from xlalite.hlo.ops.comparison import CompareAttrs

    return create("compare", (lhs, rhs), CompareAttrs(direction))


def element(source: HloInstruction, index: int) -> HloInstruction:
    """Element of a tuple."""
    return create("get-tuple-element", (source,), GetTupleElementAttrs(index))


def unary(opcode: str, operand: HloInstruction) -> HloInstruction:
    """A unary operation without attributes."""
    return create(opcode, (operand,))


def binary(opcode: str, lhs: HloInstruction, rhs: HloInstruction) -> HloInstruction:
    """A binary operation without attributes."""
    return create(opcode, (lhs, rhs))
