"""Operations of the chlo dialect: twins of HLO's, compositions, and arithmetic that broadcasts its operands."""

from __future__ import annotations

import math
from collections.abc import Callable

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext
from xlalite.hlo.stablehlo.rules.elementwise_rules import RULES as ELEMENTWISE, TWINS, constant
from xlalite.hlo.stablehlo.special_functions.bessel_functions import bessel_i1e
from xlalite.hlo.stablehlo.special_functions.error_functions import erf_inv, erfc, short_erfc
from xlalite.hlo.stablehlo.special_functions.gamma_functions import (
    digamma,
    lgamma,
    polygamma,
    short_polygamma,
    short_zeta,
    zeta,
)
from xlalite.hlo.stablehlo.special_functions.series import unary
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


def _in_f64(function: Callable[..., Handle], arity: int, short: Callable[..., Handle] | None = None) -> ImportRule:
    """A function that is written for f64; narrower types are converted, so their results are rounded once more.

    For them there may be a shorter one that is accurate enough.
    """

    def rule(context: OperationContext) -> Handle:
        operands, dtype = context.take(arity), context.operands[0].dtype
        if not dtype.is_floating:
            raise context.error(f"takes floating-point numbers, found {dtype.value}")
        builder = context.builder
        chosen = function if dtype is DType.F64 or short is None else short
        return builder.convert(chosen(*(builder.convert(operand, DType.F64) for operand in operands)), dtype)

    return rule


def _erf_inv(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    if not operand.dtype.is_floating:
        raise context.error(f"takes floating-point numbers, found {operand.dtype.value}")
    if operand.dtype is DType.F64:
        return erf_inv(operand)
    return context.builder.convert(erf_inv(context.builder.convert(operand, DType.F32)), operand.dtype)


def _next_after(context: OperationContext) -> Handle:
    """The neighbour of x towards y: its bit pattern, read as an integer, plus or minus 1."""
    x, y = context.take(2)
    if not x.dtype.is_floating or x.dtype.bits < 16:
        raise context.error(f"takes f16, bf16, f32 or f64, found {x.dtype.value}")
    builder = context.builder
    integer = DType.from_name(f"s{x.dtype.bits}")
    bits = _bits(x, integer)
    away = builder.compare(builder.compare(y, x, "GT"), builder.compare(x, 0.0, "GT"), "EQ")
    neighbour = builder.select(away, bits + 1, bits - 1)
    sign = _bits(y, integer) & -(1 << (x.dtype.bits - 1))
    neighbour = builder.select(builder.compare(x, 0.0, "EQ"), sign | 1, neighbour)
    result = _bits(neighbour, x.dtype)
    result = builder.select(builder.compare(x, y, "EQ"), y, result)
    ordered = builder.op("and", (builder.compare(x, x, "EQ"), builder.compare(y, y, "EQ")))
    return builder.select(ordered, result, x + y)


def _bits(operand: Handle, dtype: DType) -> Handle:
    return operand.builder.op("bitcast-convert", (operand,), shape=Shape.array(dtype, operand.dims))


def _square(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    return operand * operand


def _conj(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    if not operand.dtype.is_complex:
        return operand
    return context.builder.op("complex", (unary("real", operand), -unary("imag", operand)))


def _is_infinite(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    return context.builder.compare(unary("abs", operand), math.inf, "EQ")


def _is_value(value: float) -> ImportRule:
    def rule(context: OperationContext) -> Handle:
        (operand,) = context.take(1)
        return context.builder.compare(operand, value, "EQ")

    return rule


def _constant_like(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    value = context.get("value", float)
    exact = int(value) if operand.dtype.is_integral else value
    return context.builder.full(exact, operand.dtype, operand.dims)


def _broadcasting(name: str) -> ImportRule:
    """The operation after its operands have got the sizes of the result, their last dimensions aligned."""

    def rule(context: OperationContext) -> Handle:
        dims = context.result.dims
        widened = []
        for operand in context.operands:
            rank = operand.shape.rank
            places = tuple(range(len(dims) - rank, len(dims)))
            if rank < len(dims) and context.has("broadcast_dimensions"):
                places = context.integers("broadcast_dimensions")
            if len(places) != rank or any(not 0 <= place < len(dims) for place in places):
                raise context.error(f"{operand.shape.text()} cannot be broadcast to {context.result.text()}")
            widened.append(context.builder.broadcast_in_dim(operand, dims, places))
        context.operands = tuple(widened)
        found = RULES.get(name) or ELEMENTWISE[name]
        result = found(context)
        assert isinstance(result, Handle), "these operations have one result"
        return result

    return rule


RULES: dict[str, ImportRule] = {
    **TWINS,
    "bessel_i1e": _in_f64(bessel_i1e, 1),
    "conj": _conj,
    "constant": constant,
    "constant_like": _constant_like,
    "digamma": _in_f64(digamma, 1),
    "erf_inv": _erf_inv,
    "erfc": _in_f64(erfc, 1, short_erfc),
    "is_inf": _is_infinite,
    "is_neg_inf": _is_value(-math.inf),
    "is_pos_inf": _is_value(math.inf),
    "lgamma": _in_f64(lgamma, 1),
    "next_after": _next_after,
    "polygamma": _in_f64(polygamma, 2, short_polygamma),
    "square": _square,
    "zeta": _in_f64(zeta, 2, short_zeta),
}
_OF_SEVERAL = [name for name in TWINS if OPS[name.replace("_", "-")].arity != 1]
RULES |= {
    f"broadcast_{name}": _broadcasting(name) for name in (*_OF_SEVERAL, "compare", "next_after", "polygamma", "zeta")
}
