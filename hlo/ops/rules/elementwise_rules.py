"""Shape rules that elementwise operations share.

HLO has no implicit broadcasting: operands of an elementwise operation have the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from xlalite.hlo.ir.op import ShapeContext, ShapeRule
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

TypeTest = Callable[[DType], bool]


def is_float(dtype: DType) -> bool:
    """Real floating point."""
    return dtype.is_floating


def is_float_or_complex(dtype: DType) -> bool:
    """Floating point, real or complex."""
    return dtype.is_floating or dtype.is_complex


def is_integral(dtype: DType) -> bool:
    """Integers without pred."""
    return dtype.is_integral


def is_pred_or_integral(dtype: DType) -> bool:
    """What has bits to combine."""
    return dtype.is_integral or dtype is DType.PRED


def is_number(dtype: DType) -> bool:
    """Everything but pred."""
    return dtype.is_array and dtype is not DType.PRED


def is_real(dtype: DType) -> bool:
    """Everything with an order: pred, integers, real floating point."""
    return dtype.is_array and not dtype.is_complex


def is_real_number(dtype: DType) -> bool:
    """Integers and real floating point."""
    return dtype.is_integral or dtype.is_floating


def is_any(dtype: DType) -> bool:
    """Every array type."""
    return dtype.is_array


def is_signed_number(dtype: DType) -> bool:
    """What can be negative: signed integers, floating point, complex."""
    return dtype.is_signed or dtype.is_floating or dtype.is_complex


_WANTED: dict[TypeTest, str] = {
    is_float: "floating-point",
    is_float_or_complex: "floating-point or complex",
    is_integral: "integral",
    is_pred_or_integral: "pred or integral",
    is_number: "integral, floating-point or complex",
    is_real: "pred, integral or floating-point",
    is_real_number: "integral or floating-point",
    is_any: "array",
    is_signed_number: "signed integral, floating-point or complex",
}


def require_type(context: ShapeContext, position: int, test: TypeTest) -> Shape:
    """The operand, an array whose element type passes the test."""
    shape = context.array(position)
    if not test(shape.dtype):
        raise context.error(f"element type {shape.dtype.value} is not {_WANTED[test]}")
    return shape


def same_sizes(context: ShapeContext) -> Shape:
    """The operands' common sizes, as the first operand's shape; dynamic flags are joined."""
    first = context.array(0)
    dynamic = first.dynamic
    for position in range(1, len(context.operands)):
        other = context.array(position)
        if first.dims != other.dims:
            raise context.error(f"sizes of operands 0 and {position} differ (HLO does not broadcast implicitly)")
        if other.dynamic:
            dynamic = tuple(a or b for a, b in zip(dynamic or (False,) * first.rank, other.dynamic, strict=True))
    return first if dynamic == first.dynamic else Shape(first.dtype, first.dims, first.layout, dynamic)


def common_dtype(lhs: DType, rhs: DType) -> DType | None:
    """The type in which a binary operation computes: that of both, or the wider one of two floating-point types."""
    if lhs is rhs:
        return lhs
    if not (lhs.is_floating and rhs.is_floating) or lhs.bits == rhs.bits:
        return None
    return lhs if lhs.bits > rhs.bits else rhs


def unary_rule(test: TypeTest, result: Callable[[DType], DType] | None = None) -> ShapeRule:
    """Rule of a unary operation: the operand's sizes, its type or one that follows from it."""

    def rule(context: ShapeContext) -> Shape:
        shape = require_type(context, 0, test)
        return shape if result is None else shape.with_dtype(result(shape.dtype))

    return rule


def binary_rule(test: TypeTest, result: Callable[[DType], DType] | None = None) -> ShapeRule:
    """Rule of a binary operation: equal sizes and element types, or floating-point types of which one is wider."""

    def rule(context: ShapeContext) -> Shape:
        lhs, rhs = require_type(context, 0, test), require_type(context, 1, test)
        dtype = common_dtype(lhs.dtype, rhs.dtype)
        if dtype is None:
            raise context.error(f"element types {lhs.dtype.value} and {rhs.dtype.value} differ")
        shape = same_sizes(context)
        if shape.dtype is not dtype:
            shape = shape.with_dtype(dtype)
        return shape if result is None else shape.with_dtype(result(dtype))

    return rule
