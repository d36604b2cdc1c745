"""Losses of classification."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.building.indexing import gather_rows
from xlalite.interop.onnx.context import NodeContext, filled, rule
from xlalite.interop.onnx.rules.activations import softmax


@rule("NegativeLogLikelihoodLoss")
def _negative_log_likelihood(context: NodeContext) -> Handle:
    return _loss(context, context.operand(0))


@rule("SoftmaxCrossEntropyLoss")
def _softmax_cross_entropy(context: NodeContext) -> tuple[Handle, Handle]:
    logarithms = softmax(context.operand(0), [1], logarithm=True)
    return _loss(context, logarithms), logarithms


def _loss(context: NodeContext, logarithms: Handle) -> Handle:
    """Less the logarithm at each target, weighted by its class; ignored targets weigh nothing."""
    b, targets, weights = context.builder, context.operand(1), context.optional(2)
    classes = b.iota(targets.dtype, logarithms.dims, 1)
    others = [i for i in range(len(logarithms.dims)) if i != 1]
    is_target = b.compare(classes, b.broadcast(targets, logarithms.dims, others), "EQ")
    chosen = sum_axes(b, b.select(is_target, logarithms, filled(0, logarithms)), [1])
    share = filled(1, chosen)
    if weights is not None:
        bounded = b.op("maximum", (targets, b.full(0, targets.dtype, targets.dims)))
        share = gather_rows(b, weights, bounded, 0)
    if "ignore_index" in context.attributes:
        is_ignored = b.compare(targets, b.full(context.integer("ignore_index"), targets.dtype, targets.dims), "EQ")
        share = b.select(is_ignored, filled(0, share), share)
    losses = -chosen * share
    match context.text("reduction", "mean"):
        case "none":
            return losses
        case "sum":
            return sum_axes(b, losses, range(len(losses.dims)))
        case "mean":
            axes = range(len(losses.dims))
            return sum_axes(b, losses, axes) / sum_axes(b, share, axes)
        case other:
            raise context.error(f"reduction must be none, sum or mean, found {other!r}")
