"""Random elementwise operations, made from their declarations: any type that the shape rule accepts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from random_modules.grower import COMMON, RARE, Grower
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

Maker = Callable[[Grower], Handle]


@cache
def accepted_dtypes(opcode: str) -> tuple[DType, ...]:
    """The element types with which an operation takes operands of one type; common ones as often as all others."""
    op = OPS[opcode]

    def fits(dtype: DType) -> bool:
        try:
            op.infer_shape([Shape.array(dtype)] * (op.arity or 1), op.attrs())
        except ShapeError:
            return False
        return True

    common, rare = filter(fits, COMMON), filter(fits, RARE)
    return (*common, *rare)


def plain(opcode: str, grow: Grower) -> Handle:
    """An operation without attributes on operands of one type."""
    dtypes = accepted_dtypes(opcode)
    value = grow.any(dtypes)
    operands = [value, *(grow.like(value) for _ in range((OPS[opcode].arity or 1) - 1))]
    grow.chance.shuffle(operands)
    return grow.op(opcode, operands)


def compare(grow: Grower) -> Handle:
    value = grow.any()
    directions = (Direction.EQ, Direction.NE) if value.dtype.is_complex else tuple(Direction)
    total = value.dtype.is_floating and grow.chance.random() < 0.1
    attrs = CompareAttrs(grow.chance.choice(directions), ComparisonType.TOTALORDER if total else None)
    return grow.op("compare", (value, grow.like(value)), attrs)


def select(grow: Grower) -> Handle:
    value = grow.any()
    condition = grow.of(DType.PRED, value.dims if grow.chance.random() < 0.8 else ())
    return grow.op("select", (condition, value, grow.like(value)))


def clamp(grow: Grower) -> Handle:
    value = grow.any(tuple(dtype for dtype in (*COMMON, *RARE) if not dtype.is_complex))
    low, high = (grow.of(value.dtype, value.dims if grow.chance.random() < 0.5 else ()) for _ in range(2))
    return grow.op("clamp", (low, value, high))


def convert(grow: Grower) -> Handle:
    value = grow.any()
    targets = COMMON if value.dtype.is_complex or grow.chance.random() < 0.8 else RARE
    target = grow.chance.choice([dtype for dtype in targets if dtype.is_complex or not value.dtype.is_complex])
    return grow.op("convert", (value,), shape=Shape.array(target, value.dims))


def bitcast_convert(grow: Grower) -> Handle:
    """Between types of equal width, or with a dimension that splits elements or joins them."""
    value = grow.any(tuple(dtype for dtype in COMMON if not dtype.is_complex and dtype is not DType.PRED))
    targets = []
    for dtype in COMMON:
        if dtype.is_complex or dtype is DType.PRED:
            continue
        dims = value.dims
        if dtype.bits < value.dtype.bits:
            dims = (*dims, value.dtype.bits // dtype.bits)
        elif dtype.bits > value.dtype.bits:
            if not dims or dims[-1] != dtype.bits // value.dtype.bits:
                continue
            dims = dims[:-1]
        targets.append(Shape.array(dtype, dims))
    return grow.op("bitcast-convert", (value,), shape=grow.chance.choice(targets))


def reduce_precision(grow: Grower) -> Handle:
    value = grow.any((DType.F32, DType.F64, DType.BF16, DType.F16))
    attrs = grow.attrs("reduce-precision", grow.chance.choice((3, 5, 8, 11)), grow.chance.choice((1, 3, 7, 10, 23, 52)))
    return grow.op("reduce-precision", (value,), attrs)


def complex_(grow: Grower) -> Handle:
    value = grow.any((DType.F32, DType.F64))
    return grow.op("complex", (value, grow.like(value)))


def stochastic_convert(grow: Grower) -> Handle:
    value = grow.any((DType.F32, DType.F64, DType.BF16, DType.F16))
    random = grow.of(DType.from_name(f"u{value.dtype.bits}"), value.dims)
    narrower = {DType.F64: (DType.F32, DType.BF16, DType.S16), DType.F32: (DType.BF16, DType.F16, DType.S8)}
    target = grow.chance.choice(narrower.get(value.dtype, (DType.F8E5M2, DType.S8)))
    return grow.op("stochastic-convert", (value, random), shape=Shape.array(target, value.dims))


_SPECIAL: dict[str, Maker] = {
    "compare": compare,
    "select": select,
    "clamp": clamp,
    "convert": convert,
    "bitcast-convert": bitcast_convert,
    "reduce-precision": reduce_precision,
    "complex": complex_,
    "stochastic-convert": stochastic_convert,
}

MAKERS: dict[str, Maker] = {
    **{op.name: partial(plain, op.name) for op in OPS.values() if op.is_elementwise and op.name not in _SPECIAL},
    **_SPECIAL,
}
