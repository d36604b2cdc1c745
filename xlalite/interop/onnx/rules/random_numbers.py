"""Random numbers, which are drawn anew at every call; seeds have no effect."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.random import Distribution
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.scope import Value


@rule("RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike")
def _random(context: NodeContext) -> Handle:
    if context.operator.endswith("Like"):
        like = context.operand(0)
        dtype, dims = context.dtype("dtype", like.dtype), like.dims
    else:
        dtype, dims = context.dtype("dtype", DType.F32), context.integers("shape")
    if "Uniform" in context.operator:
        low, high = context.number("low", 0.0), context.number("high", 1.0)
        return _drawn(context, Distribution.UNIFORM, low, high, dtype, dims)
    mean, scale = context.number("mean", 0.0), context.number("scale", 1.0)
    return _drawn(context, Distribution.NORMAL, mean, scale, dtype, dims)


@rule("Bernoulli")
def _bernoulli(context: NodeContext) -> Handle:
    x = context.operand(0)
    drawn = _drawn(context, Distribution.UNIFORM, 0, 1, x.dtype, x.dims)
    return context.builder.convert(context.builder.compare(drawn, x, "LT"), context.dtype("dtype", x.dtype))


@rule("Multinomial")
def _multinomial(context: NodeContext) -> Handle:
    """Classes drawn by their logarithmic probabilities: where the sum with Gumbel's noise is largest."""
    b, x = context.builder, context.operand(0)
    batch, classes = x.dims
    dims = (batch, context.integer("sample_size", 1), classes)
    wide = DType.F64 if x.dtype is DType.F64 else DType.F32
    drawn = _drawn(context, Distribution.UNIFORM, 0, 1, wide, dims)
    noise = b.op("negate", (b.op("log", (b.op("negate", (b.op("log", (drawn,)),)),)),))
    sums = b.broadcast(b.convert(x, wide), dims, [0, 2]) + noise
    return b.convert(context.standard("ArgMax", sums, axis=2, keepdims=0), context.dtype("dtype", DType.S32))


@rule("Dropout")
def _dropout(context: NodeContext) -> tuple[Value, ...]:
    """Only training drops anything; what is kept is scaled so that sums stay the same in the mean."""
    b, x = context.builder, context.operand(0)
    kept = b.full(True, DType.PRED, x.dims)
    trains = context.version >= 12 and context.has(2) and bool(context.known_scalar(2))
    ratio = (float(context.known_scalar(1)) if context.has(1) else 0.5) if trains else 0.0
    if ratio:
        wide = DType.F64 if x.dtype is DType.F64 else DType.F32
        drawn = _drawn(context, Distribution.UNIFORM, 0, 1, wide, x.dims)
        kept = b.compare(drawn, filled(ratio, drawn), "GE")
        scaled = x / context.constant(1 - ratio, x.dtype) if ratio < 1 else x
        x = b.select(kept, scaled, filled(0, x))
    return x, kept if context.version >= 10 else b.convert(kept, x.dtype)


def _drawn(
    context: NodeContext, distribution: Distribution, first: float, second: float, dtype: DType, dims: tuple[int, ...]
) -> Handle:
    wide = dtype if dtype in (DType.F32, DType.F64) else DType.F32
    bounds = [context.constant(each, wide) for each in (first, second)]
    attrs = OPS["rng"].attrs(distribution)
    found = context.builder.op("rng", bounds, attrs, shape=Shape.array(wide, dims))
    return context.builder.convert(found, dtype)
