"""Operators of the domain `com.microsoft` that several of the standard's are fused into when a model is optimised."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.graph import DEFAULT_DOMAIN

VENDOR = "com.microsoft"


@rule("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=VENDOR)
def _fused_matmul(context: NodeContext) -> Handle:
    sides = []
    for position, side in enumerate("AB"):
        x = context.operand(position)
        order = list(range(len(x.dims)))
        if context.integer(f"transBatch{side}", 0):
            order[:-1] = [*order[1:-1], 0]
        if context.integer(f"trans{side}", 0) and len(order) > 1:
            order[-2:] = order[:-3:-1]
        sides.append(context.builder.transpose(x, order))
    found = context.standard("MatMul", *sides)
    return activated(context, found * filled(context.number("alpha", 1.0), found))


@rule("FusedGemm", domain=VENDOR)
def _fused_gemm(context: NodeContext) -> Handle:
    own = {name: value for name, value in context.attributes.items() if not name.startswith("activation")}
    return activated(context, context.standard("Gemm", *context.inputs, **own))


@rule("FusedConv", domain=VENDOR)
def _fused_conv(context: NodeContext) -> Handle:
    """Conv, another operand added, and an activation."""
    own = {name: value for name, value in context.attributes.items() if not name.startswith("activation")}
    found = context.standard("Conv", *context.inputs[:3], **own)
    return activated(context, found + context.operand(3) if context.has(3) else found)


def activated(context: NodeContext, x: Handle) -> Handle:
    """What the node's activation, an operator of the standard, makes of a value."""
    name = context.text("activation", "")
    given = context.numbers("activation_params", ()) or (
        context.number("activation_alpha", 0.01),
        context.number("activation_beta", 0.0),
    )
    alpha, beta = (*given, 0.0)[:2]
    match name:
        case "":
            return x
        case "Relu" | "Tanh" | "Sigmoid" | "Softplus" | "Softsign":
            return context.standard(name, x)
        case "LeakyRelu" | "Elu" | "ThresholdedRelu":
            return context.standard(name, x, alpha=alpha)
        case "HardSigmoid":
            return context.standard(name, x, alpha=alpha, beta=beta)
        case "Clip":
            return context.standard(name, x, filled(alpha, x), filled(beta, x))
    raise context.error(f"activation {name!r} is not known")


@rule("Gelu", domain=VENDOR)
def _gelu(context: NodeContext) -> Handle:
    return context.standard("Gelu", context.operand(0))


@rule("BiasGelu", domain=VENDOR)
def _bias_gelu(context: NodeContext) -> Handle:
    return context.standard("Gelu", context.standard("Add", context.operand(0), context.operand(1)))


@rule("FastGelu", domain=VENDOR)
def _fast_gelu(context: NodeContext) -> Handle:
    x = context.operand(0)
    return context.standard(
        "Gelu", context.standard("Add", x, context.operand(1)) if context.has(1) else x, approximate="tanh"
    )


@rule("QuickGelu", domain=VENDOR)
def _quick_gelu(context: NodeContext) -> Handle:
    return context.standard("Swish", context.operand(0), alpha=context.number("alpha", 1.702))


@rule("BiasAdd", domain=VENDOR)
def _bias_add(context: NodeContext) -> Handle:
    return context.standard("Add", context.standard("Add", *context.inputs[:2]), context.operand(2))


@rule("ExpandDims", domain=VENDOR)
def _expand_dims(context: NodeContext) -> Handle:
    return context.standard("Unsqueeze", *context.inputs)


@rule("Trilu", "GatherND", domain=VENDOR)
def _same(context: NodeContext) -> Handle:
    return context.standard(context.operator, *context.inputs, **context.attributes)


@rule("SimplifiedLayerNormalization", domain=DEFAULT_DOMAIN)
def _simplified_layer_normalization(context: NodeContext) -> Handle:
    return context.standard("RMSNormalization", *context.inputs, **context.attributes)


@rule("SkipLayerNormalization", domain=VENDOR)
def _skip_layer_normalization(context: NodeContext) -> tuple[Handle, ...]:
    """The sum of two values normalised; the sum is an output, too."""
    total = _with_skip(context, 4)
    shift = context.inputs[3] if context.has(3) else None
    epsilon = context.number("epsilon", 1e-12)
    return *context.standard_outputs("LayerNormalization", total, context.operand(2), shift, epsilon=epsilon), total


@rule("SkipSimplifiedLayerNormalization", domain=VENDOR)
def _skip_simplified_layer_normalization(context: NodeContext) -> tuple[Handle, ...]:
    total = _with_skip(context, 3)
    found = context.standard("RMSNormalization", total, context.operand(2), epsilon=context.number("epsilon", 1e-5))
    return found, found, found, total


def _with_skip(context: NodeContext, position: int) -> Handle:
    total = context.standard("Add", context.operand(0), context.operand(1))
    return context.standard("Add", total, context.operand(position)) if context.has(position) else total


@rule("EmbedLayerNormalization", domain=VENDOR)
def _embed_layer_normalization(context: NodeContext) -> tuple[Handle, ...]:
    """Embeddings of words, places and segments added and normalised; the number of words that count; the sum."""
    b, words = context.builder, context.operand(0)
    places = context.operand(8) if context.has(8) else b.iota(words.dtype, words.dims[1:], 0)
    total = context.standard("Gather", context.operand(2), words)
    spread = b.broadcast(places, words.dims, [1]) if len(places.dims) == 1 else context.common(places, words)[0]
    total = total + context.standard("Gather", context.operand(3), spread)
    if context.has(1):
        total = total + context.standard("Gather", context.operand(4), context.operand(1))
    epsilon = context.number("epsilon", 1e-12)
    found = context.standard("LayerNormalization", total, *context.inputs[5:7], epsilon=epsilon)
    mask = context.optional(7)
    if mask is None:
        counts = b.full(0, words.dtype, words.dims[:1])
    else:
        counts = context.standard("ReduceSum", mask, b.constant([1]), keepdims=0)
    return found, counts, total
