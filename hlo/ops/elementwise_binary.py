"""Elementwise arithmetic of two operands."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.ir.op import Evaluator, Memory, OpDef, ShapeContext, Trait
from xlalite.hlo.late import LateFunctions
from xlalite.hlo.numerics.rounding import (
    AnyArray,
    ArrayFunction,
    in_own_precision,
    in_whole_bytes,
    in_wider_precision,
)
from xlalite.hlo.ops.evaluation.lifting import elementwise, identity
from xlalite.hlo.ops.rules.elementwise_rules import (
    TypeTest,
    binary_rule,
    is_any,
    is_float,
    is_float_or_complex,
    is_integral,
    is_number,
    is_pred_or_integral,
    is_real,
    is_real_number,
)
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

complex_functions = LateFunctions("xlalite.hlo.numerics.complex_functions")
integers = LateFunctions("xlalite.hlo.numerics.integers")
real = LateFunctions("xlalite.hlo.numerics.real")

_COMMUTATIVE = Trait.ELEMENTWISE | Trait.COMMUTATIVE
_TRANSCENDENTAL = Trait.ELEMENTWISE | Trait.TRANSCENDENTAL


def _binary(name: str, summary: str, test: TypeTest, evaluate: Evaluator, traits: Trait = Trait.ELEMENTWISE) -> OpDef:
    return OpDef(name, summary, 2, binary_rule(test), evaluate, traits=traits)


def _needs_width(function: ArrayFunction) -> ArrayFunction:
    """An integer function that takes the width of the element type, which storage does not tell for sub-byte types."""

    def apply(x: AnyArray, y: AnyArray) -> AnyArray:
        bits = DType.from_numpy(x.dtype).bits
        return in_whole_bytes(lambda a, b: function(a, b, bits))(x, y)

    return apply


def _real_power(x: AnyArray, y: AnyArray) -> AnyArray:
    """x^y; in the type that has no zero, whose numbers are powers of two, what vanishes is its least number."""
    result: AnyArray = in_wider_precision(real.power)(x, y)
    if DType.from_numpy(x.dtype) is not DType.F8E8M0FNU:
        return result
    wide_x, wide_y, wide = (each.astype(np.float32) for each in (x, y, result))
    vanished = np.isnan(wide) & (wide_x < 1) & ~np.isnan(wide_y)
    return np.where(vanished, np.float32(2.0**-127), wide).astype(x.dtype)


def _complex_shape(context: ShapeContext) -> Shape:
    part = binary_rule(is_float)(context)
    context.require(part.dtype in (DType.F32, DType.F64), f"the parts must be f32 or f64, found {part.dtype.value}")
    return part.with_dtype(DType.C64 if part.dtype is DType.F32 else DType.C128)


def _dependency_shape(context: ShapeContext) -> Shape:
    context.require(context.operands[1].is_token, "operand 1 must be a token")
    return context.operands[0]


OPS = (
    _binary(
        "add",
        "x + y; integers wrap; or of pred",
        is_any,
        elementwise(pred=np.logical_or, integer=in_whole_bytes(np.add), real=in_own_precision(np.add), complex_=np.add),
        _COMMUTATIVE,
    ),
    _binary(
        "subtract",
        "x - y; integers wrap",
        is_number,
        elementwise(integer=in_whole_bytes(np.subtract), real=in_own_precision(np.subtract), complex_=np.subtract),
    ),
    _binary(
        "multiply",
        "x * y; integers wrap; and of pred",
        is_any,
        elementwise(
            pred=np.logical_and,
            integer=in_whole_bytes(np.multiply),
            real=in_own_precision(np.multiply),
            complex_=complex_functions.multiply,
        ),
        _COMMUTATIVE,
    ),
    _binary(
        "divide",
        "x / y; integers truncate toward zero, x/0 has all bits set, the smallest number / -1 is itself; complex "
        "numbers as in the C standard's Annex G, x/0 is infinite and x/inf is 0",
        is_number,
        elementwise(
            integer=in_whole_bytes(integers.divide),
            real=in_own_precision(np.divide),
            complex_=in_wider_precision(complex_functions.divide),
        ),
    ),
    _binary(
        "remainder",
        "x - y * trunc(x / y), with the sign of x; integers: x rem 0 = x",
        is_real_number,
        elementwise(integer=in_whole_bytes(integers.remainder), real=in_own_precision(np.fmod)),
    ),
    _binary(
        "mulhi",
        "upper half of the product of double width",
        is_integral,
        elementwise(integer=_needs_width(integers.multiply_high)),
        _COMMUTATIVE,
    ),
    _binary(
        "power",
        "x^y; 1^y = x^0 = 1; integers wrap, a negative exponent gives 0 unless the base is 1 or -1; complex 0^y is 0 "
        "for y right of the imaginary axis, else NaN, and a zero part of y counts for nothing (XLA: NaN at infinities)",
        is_number,
        elementwise(
            integer=in_whole_bytes(integers.power),
            real=_real_power,
            complex_=in_wider_precision(complex_functions.power),
        ),
        _TRANSCENDENTAL,
    ),
    _binary(
        "maximum",
        "the larger; NaN if either is NaN",
        is_real,
        elementwise(pred=np.logical_or, integer=in_whole_bytes(np.maximum), real=in_own_precision(real.maximum)),
        _COMMUTATIVE,
    ),
    _binary(
        "minimum",
        "the smaller; NaN if either is NaN",
        is_real,
        elementwise(pred=np.logical_and, integer=in_whole_bytes(np.minimum), real=in_own_precision(real.minimum)),
        _COMMUTATIVE,
    ),
    _binary(
        "atan2",
        "angle of the point (y, x) where x is the second operand",
        is_float_or_complex,
        elementwise(real=in_wider_precision(np.arctan2), complex_=in_wider_precision(complex_functions.atan2)),
        _TRANSCENDENTAL,
    ),
    _binary(
        "and",
        "logical and of pred, bitwise and of integers",
        is_pred_or_integral,
        elementwise(pred=np.logical_and, integer=in_whole_bytes(np.bitwise_and)),
        _COMMUTATIVE,
    ),
    _binary(
        "or",
        "logical or of pred, bitwise or of integers",
        is_pred_or_integral,
        elementwise(pred=np.logical_or, integer=in_whole_bytes(np.bitwise_or)),
        _COMMUTATIVE,
    ),
    _binary(
        "xor",
        "logical exclusive or of pred, bitwise of integers",
        is_pred_or_integral,
        elementwise(pred=np.logical_xor, integer=in_whole_bytes(np.bitwise_xor)),
        _COMMUTATIVE,
    ),
    _binary(
        "shift-left",
        "x << y; 0 when y, taken as unsigned, is the width or more",
        is_integral,
        elementwise(integer=_needs_width(integers.shift_left)),
    ),
    _binary(
        "shift-right-logical",
        "x >> y with zeros; 0 when y, taken as unsigned, is the width or more",
        is_integral,
        elementwise(integer=_needs_width(integers.shift_right_logical)),
    ),
    _binary(
        "shift-right-arithmetic",
        "x >> y with copies of the top bit, also when y, taken as unsigned, is the width or more",
        is_integral,
        elementwise(integer=_needs_width(integers.shift_right_arithmetic)),
    ),
    OpDef(
        "complex",
        "x + iy",
        2,
        _complex_shape,
        elementwise(real=complex_functions.combine),
        traits=Trait.ELEMENTWISE,
        flops=lambda instruction: 0,
    ),
    OpDef(
        "add-dependency",
        "the value, once the token exists",
        2,
        _dependency_shape,
        identity,
        memory=Memory.NAMES_OPERAND,
    ),
)
