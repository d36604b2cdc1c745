"""Operations that give the same values, or the same bits, another type: convert, bitcasts, reduce-precision, copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Memory, OpDef, ShapeContext, Trait
from xlalite.hlo.late import LateFunctions
from xlalite.hlo.numerics.conversion import convert
from xlalite.hlo.ops.evaluation.lifting import arrays_of, identity
from xlalite.hlo.ops.rules.elementwise_rules import is_float, require_type
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import INT
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.numerics import bits
else:
    bits = LateFunctions("xlalite.hlo.numerics.bits")


def _no_flops(instruction: HloInstruction) -> int:
    return 0


# convert


def _convert_shape(context: ShapeContext) -> Shape:
    operand, declared = context.array(0), context.declared_array()
    if operand.dims != declared.dims:
        raise context.error(f"the result must have the operand's sizes, declared is {declared.text()}")
    if not (declared.dtype.is_complex or not operand.dtype.is_complex):
        raise context.error(
            f"complex numbers convert only to complex types, found {declared.dtype.value}; take the real part first"
        )
    return declared


def _convert(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    (operand,) = arrays_of(operands)
    with np.errstate(all="ignore"):
        return np.asarray(convert(operand, instruction.shape.dtype))


# bitcast-convert and bitcast


def _bitcast_convert_shape(context: ShapeContext) -> Shape:
    operand, declared = context.array(0), context.declared_array()
    context.require(
        operand.dtype is declared.dtype or DType.PRED not in (operand.dtype, declared.dtype),
        "the bits of pred are not defined, so only pred can be taken for pred",
    )
    context.require(
        operand.dtype.is_complex == declared.dtype.is_complex,
        "the parts of complex numbers are reached with real and imag, not as bits",
    )
    dims = bits.reinterpreted_dims(operand.dims, operand.dtype, declared.dtype)
    if dims is None:
        raise context.error(f"the last dimension must hold the parts of one {declared.dtype.value}")
    if dims != declared.dims:
        raise context.error(f"the result must have sizes {list(dims)}, declared {declared.text()}")
    return declared


def _bitcast_convert(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    (operand,) = arrays_of(operands)
    return bits.reinterpret(operand, instruction.shape.dtype)


def _bitcast_shape(context: ShapeContext) -> Shape:
    operand, declared = context.array(0), context.declared_array()
    if operand.element_count * operand.dtype.bits != declared.element_count * declared.dtype.bits:
        raise context.error(
            f"the result must have as many bits as the operand, declared is {declared.text(layout=True)}"
        )
    return declared


def _bitcast(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    (operand,) = arrays_of(operands)
    source, result = instruction.operands[0].shape, instruction.shape
    if source.is_scalar and result.is_scalar:  # which may stand for an array
        return bits.reinterpret_flat(operand.reshape(-1), result.dtype).reshape(operand.shape)
    in_memory = operand.transpose(source.minor_to_major[::-1]).reshape(-1)
    order = result.minor_to_major[::-1]
    elements = bits.reinterpret_flat(in_memory, result.dtype).reshape([result.dims[dimension] for dimension in order])
    return elements.transpose(np.argsort(order, kind="stable"))


# reduce-precision


@dataclass(frozen=True, slots=True)
class ReducePrecisionAttrs:
    """The format to round to: one sign bit and these."""

    exponent_bits: int = attribute(INT)
    mantissa_bits: int = attribute(INT)


def _reduce_precision_shape(context: ShapeContext) -> Shape:
    shape, attrs = require_type(context, 0, is_float), context.attrs
    if attrs.exponent_bits < 1:
        raise context.error(f"exponent_bits must be at least 1, found {attrs.exponent_bits}")
    if attrs.mantissa_bits < 0:
        raise context.error(f"mantissa_bits must not be negative, found {attrs.mantissa_bits}")
    return shape


def _reduce_precision(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    (operand,) = arrays_of(operands)
    with np.errstate(all="ignore"):
        return bits.reduce_precision(operand, instruction.attrs.exponent_bits, instruction.attrs.mantissa_bits)


# copy and opt-barrier


def _copy_shape(context: ShapeContext) -> Shape:
    """A copy may change the layout, so a declared shape that differs only there stays."""
    operand, declared = context.operands[0], context.declared
    return declared if declared is not None and declared.compatible(operand) else operand


OPS = (
    OpDef(
        "convert",
        "the value in another element type: rounded to nearest even, truncated and saturated, wrapped, or != 0",
        1,
        _convert_shape,
        _convert,
        traits=Trait.ELEMENTWISE,
        explicit_shape=True,
    ),
    OpDef(
        "bitcast-convert",
        "the bits as another element type; a change of width splits or joins along a new or the last dimension",
        1,
        _bitcast_convert_shape,
        _bitcast_convert,
        traits=Trait.DATA_MOVEMENT,
        explicit_shape=True,
    ),
    OpDef(
        "bitcast",
        "the bytes in memory as another shape and layout",
        1,
        _bitcast_shape,
        _bitcast,
        traits=Trait.DATA_MOVEMENT,
        memory=Memory.NAMES_OPERAND,
        explicit_shape=True,
    ),
    OpDef(
        "reduce-precision",
        "x rounded to a format of exponent_bits and mantissa_bits, whose denormals are flushed to zero; NaN stays NaN",
        1,
        _reduce_precision_shape,
        _reduce_precision,
        attrs=ReducePrecisionAttrs,
        traits=Trait.ELEMENTWISE,
    ),
    OpDef(
        "copy",
        "the value in fresh memory, perhaps in another layout",
        1,
        _copy_shape,
        identity,
        traits=Trait.ELEMENTWISE | Trait.DATA_MOVEMENT,
        flops=_no_flops,
    ),
    OpDef(
        "opt-barrier",
        "the value; nothing is moved, merged or fused across it",
        1,
        _copy_shape,
        identity,
        memory=Memory.NAMES_OPERAND,
    ),
)
