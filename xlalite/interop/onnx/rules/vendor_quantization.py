"""Quantised operators of the domain `com.microsoft`: the standard's, on numbers that are dequantised before."""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.vendor_attention import attention
from xlalite.interop.onnx.rules.vendor_fusions import VENDOR


def _dequantized(context: NodeContext, first: int, axis: int = 1) -> Handle:
    """Three inputs, numbers with their scale and zero point, as numbers."""
    inputs = [context.inputs[i] if context.has(i) else None for i in range(first, first + 3)]
    return context.standard("DequantizeLinear", *inputs, axis=axis)


def _quantized(context: NodeContext, x: Handle, position: int) -> Handle:
    return context.standard("QuantizeLinear", x, *context.inputs[position : position + 2])


@rule("QuantizeLinear", "DequantizeLinear", domain=VENDOR)
def _same(context: NodeContext) -> Handle:
    return context.standard(context.operator, *context.inputs, **context.attributes)


@rule("QLinearAdd", "QLinearMul", domain=VENDOR)
def _arithmetic(context: NodeContext) -> Handle:
    operator = context.operator.removeprefix("QLinear")
    found = context.standard(operator, _dequantized(context, 0), _dequantized(context, 3))
    return _quantized(context, found, 6)


@rule("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", domain=VENDOR)
def _function(context: NodeContext) -> Handle:
    operator, own = context.operator.removeprefix("QLinear"), dict(context.attributes)
    if own.pop("channels_last", 0):
        raise context.error("channels that lie last have no rule here")
    if context.integer("opset", 13) < 13:
        raise context.error("softmax of version 12 and before has no rule here")
    own.pop("opset", None)
    found = context.standard(operator, _dequantized(context, 0), **own)
    return _quantized(context, found, 3)


@rule("QLinearGlobalAveragePool", domain=VENDOR)
def _global_average_pool(context: NodeContext) -> Handle:
    x = _dequantized(context, 0)
    rank = len(x.dims)
    axes = range(1, rank - 1) if context.integer("channels_last", 0) else range(2, rank)
    return _quantized(context, context.standard("ReduceMean", x, context.builder.constant(list(axes))), 3)


@rule("QLinearConcat", domain=VENDOR)
def _concat(context: NodeContext) -> Handle:
    parts = [_dequantized(context, first) for first in range(2, len(context.inputs), 3)]
    return _quantized(context, context.standard("Concat", *parts, axis=context.integer("axis")), 0)


@rule("QLinearWhere", domain=VENDOR)
def _where(context: NodeContext) -> Handle:
    chosen = context.standard("Where", context.operand(0), _dequantized(context, 1), _dequantized(context, 4))
    return _quantized(context, chosen, 7)


@rule("QGemm", domain=VENDOR)
def _gemm(context: NodeContext) -> Handle:
    """The bias is in units of both scales; without a scale of the result, that is not quantised."""
    b, own = context.builder, dict(context.attributes)
    found = context.standard(
        "Gemm", _dequantized(context, 0), _dequantized(context, 3, not own.get("transB", 0)), **own
    )
    if context.has(6):
        scale = context.standard("Mul", context.operand(1), context.operand(4))
        factor = context.constant(context.number("alpha", 1.0), DType.F32)
        whole = b.convert(context.operand(6), DType.F32)
        added = context.standard("Mul", whole, scale * b.broadcast(factor, scale.dims))
        found = context.standard("Add", found, added)
    return _quantized(context, found, 7) if context.has(7) else found


@rule("MatMulIntegerToFloat", domain=VENDOR)
def _matmul_integer_to_float(context: NodeContext) -> Handle:
    return _scaled_product(context, context.operand(0), context.operand(2), context.optional(4), (1, 3, 5, 6))


@rule("DynamicQuantizeMatMul", domain=VENDOR)
def _dynamic_quantize_matmul(context: NodeContext) -> Handle:
    whole, scale, zero = context.standard_outputs("DynamicQuantizeLinear", context.operand(0))
    return _scaled_product(context, whole, scale, zero, (1, 2, 3, 4))


def _scaled_product(
    context: NodeContext, x: Handle, scale: Handle, zero: Handle | None, others: tuple[int, int, int, int]
) -> Handle:
    """The product of integers, scaled; others are the inputs of its second factor: numbers, scale, zero point, bias."""
    factor, its_scale, its_zero, bias = (context.inputs[i] if context.has(i) else None for i in others)
    product = context.builder.convert(context.standard("MatMulInteger", x, factor, zero, its_zero), DType.F32)
    found = context.standard("Mul", product, context.standard("Mul", scale, its_scale))
    return found if bias is None else context.standard("Add", found, bias)


@rule("QAttention", domain=VENDOR)
def _attention(context: NodeContext) -> tuple[Handle, ...]:
    product = _scaled_product(context, context.operand(0), context.operand(3), context.optional(6), (1, 4, 7, 2))
    return attention(context, product, mask=5, past=8, bias=9)


@rule("MatMulNBits", domain=VENDOR)
def _matmul_bits(context: NodeContext) -> Handle:
    """A product with weights of a few bits, several in a byte, in blocks that have a scale and a zero point each."""
    b, bits, block = context.builder, context.integer("bits", 4), context.integer("block_size")
    rows, columns = context.integer("N"), context.integer("K")
    if bits not in (2, 4, 8) or block < 1 or context.has(4):
        raise context.error(f"weights of {bits} bits in blocks of {block}, or in an order of groups, have no rule here")
    blocks = math.ceil(columns / block)
    packed = b.reshape(context.operand(1), (rows, blocks, block * bits // 8))
    weights = b.convert(_unpacked(packed, bits), DType.F32)
    scales = b.convert(b.reshape(context.operand(2), (rows, blocks)), DType.F32)
    if context.has(3):
        zero = context.operand(3)
        if zero.dtype is DType.U8:
            zero = _unpacked(b.reshape(zero, (rows, zero.shape.element_count // max(1, rows))), bits)
            zero = b.slice(zero, (0, 0), (rows, blocks))
        zeros = b.convert(b.reshape(zero, (rows, blocks)), DType.F32)
    else:
        zeros = filled(1 << bits - 1, scales)
    own = (weights - b.broadcast(zeros, weights.dims, [0, 1])) * b.broadcast(scales, weights.dims, [0, 1])
    matrix = b.slice(b.reshape(own, (rows, blocks * block)), (0, 0), (rows, columns))
    x = context.operand(0)
    found = context.standard("MatMul", x, b.convert(b.transpose(matrix, (1, 0)), x.dtype))
    return context.standard("Add", found, context.operand(5)) if context.has(5) else found


def _unpacked(packed: Handle, bits: int) -> Handle:
    """Numbers that lie several in a byte, the first in the lowest bits, along the last dimension."""
    b, each = packed.builder, 8 // bits
    dims = (*packed.dims, each)
    shift = b.iota(DType.U8, dims, len(dims) - 1) * b.full(bits, DType.U8, dims)
    whole = b.op("shift-right-logical", (b.broadcast(packed, dims, range(len(packed.dims))), shift))
    kept = b.op("and", (whole, b.full((1 << bits) - 1, DType.U8, dims)))
    return b.reshape(kept, (*packed.dims[:-1], packed.dims[-1] * each))
