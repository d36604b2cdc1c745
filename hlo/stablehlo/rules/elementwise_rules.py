"""Operations on elements: most have a twin in HLO of the same name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction, default_comparison_type
from xlalite.hlo.spelling.attributes import NoAttrs
from xlalite.hlo.stablehlo.reading.syntax import Dense, Word
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext
from xlalite.hlo.types.dtype import DType

_FORMAT = re.compile(r"e(\d{1,3})m(\d{1,3})")


def twin(opcode: str) -> ImportRule:
    """The rule of an operation that HLO has in the same form."""
    arity = OPS[opcode].arity

    def rule(context: OperationContext) -> Handle:
        return context.builder.op(opcode, context.operands if arity is None else context.take(arity))

    return rule


def _convert(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    if operand.dtype.is_complex and not context.result.dtype.is_complex:
        operand = context.builder.op("real", (operand,))
    return context.builder.convert(operand, context.result.dtype)


def _greater_or_less(direction: str, real: ImportRule) -> ImportRule:
    """The rule of an extreme of two; HLO has none of complex numbers."""

    def rule(context: OperationContext) -> Handle | Sequence[Handle]:
        x, y = context.take(2)
        return _first(x, y, direction) if x.dtype.is_complex else real(context)

    return rule


def _clamp(context: OperationContext) -> Handle:
    low, x, high = context.take(3)
    if not x.dtype.is_complex:
        return context.builder.op("clamp", (low, x, high))
    least, most = (bound if bound.dims == x.dims else context.builder.broadcast(bound, x.dims) for bound in (low, high))
    return _first(_first(least, x, "GT"), most, "LT")


def _first(x: Handle, y: Handle, direction: str) -> Handle:
    """The first of two complex numbers if it is greater (or less), by the imaginary parts of equal real ones."""
    builder = x.builder
    real, other_real, imag, other_imag = (builder.op(part, (each,)) for part in ("real", "imag") for each in (x, y))
    by_real, by_imag = builder.compare(real, other_real, direction), builder.compare(imag, other_imag, direction)
    return builder.select(builder.select(builder.compare(real, other_real, "EQ"), by_imag, by_real), x, y)


def _bitcast_convert(context: OperationContext) -> Handle:
    return context.op("bitcast-convert", context.take(1))


def _compare(context: OperationContext) -> Handle:
    lhs, rhs = context.take(2)
    direction = context.member(Direction, "comparison_direction")
    kind: ComparisonType | None = None
    if context.get("compare_type", Word, Word("NOTYPE")).text != "NOTYPE":
        kind = context.member(ComparisonType, "compare_type")
        if kind is default_comparison_type(lhs.dtype) or lhs.dtype is DType.PRED:
            kind = None
    return context.builder.op("compare", (lhs, rhs), CompareAttrs(direction, kind))


def _reduce_precision(context: OperationContext) -> Handle:
    if context.has("format"):
        match = _FORMAT.fullmatch(context.get("format", Word).text)
        if match is None:
            raise context.error("the format is written as e5m10")
        bits = (int(match[1]), int(match[2]))
    else:
        bits = (context.get("exponent_bits", int), context.get("mantissa_bits", int))
    return context.builder.op("reduce-precision", context.take(1), OPS["reduce-precision"].attrs(*bits))


def constant(context: OperationContext) -> Handle:
    """A constant; one number for all elements stays one number and is broadcast."""
    value = context.attribute("value")
    if not isinstance(value, Dense):
        raise context.error("the value must be written as dense<...>")
    array, shape = context.dense(value), value.shape or context.result
    scalar = array.ndim == 0 and shape.rank > 0
    literal = context.builder.constant(array, shape.dtype)
    return context.builder.broadcast(literal, shape.dims) if scalar else literal


def _iota(context: OperationContext) -> Handle:
    shape = context.result
    dimension = context.get("iota_dimension", int)
    if shape.dtype is DType.PRED:
        raise context.error("counts in numbers, not in i1")
    return context.builder.iota(shape.dtype, shape.dims, dimension)


def _dimension_size(context: OperationContext) -> Handle:
    (operand,) = context.take(1)
    dimension = context.get("dimension", int)
    if not 0 <= dimension < operand.shape.rank:
        raise context.error(f"dimension {dimension} is not in [0, {operand.shape.rank})")
    return context.builder.constant(operand.dims[dimension], DType.S32)


TWINS: dict[str, ImportRule] = {
    name.replace("-", "_"): twin(name)
    for name, op in OPS.items()
    if Trait.ELEMENTWISE in op.traits and op.attrs is NoAttrs and not op.explicit_shape
}
"""Operations that say all by name and operands, under MLIR's spelling of the name; no dialect has all of them."""

RULES: dict[str, ImportRule] = {
    **TWINS,
    "maximum": _greater_or_less("GT", TWINS["maximum"]),
    "minimum": _greater_or_less("LT", TWINS["minimum"]),
    "clamp": _clamp,
    "compare": _compare,
    "convert": _convert,
    "bitcast_convert": _bitcast_convert,
    "reduce_precision": _reduce_precision,
    "constant": constant,
    "iota": _iota,
    "dynamic_iota": _iota,
    "get_dimension_size": _dimension_size,
}
