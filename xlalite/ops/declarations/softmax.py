"""Softmax, its logarithm, and cross entropy with the gradient it already knows."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES, int32, int64
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_pair, max_axes, sum_axes
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import ELEMENTWISE_WITH_REDUCTION, declare, declare_outputs
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import broadcast_shapes, require_same_type, require_type


def _shifted(b: Builder, logits: Handle) -> Handle:
    """Logits minus the largest of each row, so that exponentials cannot overflow."""
    return logits - _spread(b, max_axes(b, logits, [logits.shape.rank - 1]), logits)


def _sum_rows(b: Builder, x: Handle) -> Handle:
    return sum_axes(b, x, [x.shape.rank - 1])


def _spread(b: Builder, per_row: Handle, rows: Handle) -> Handle:
    """One value for each row, repeated along the row."""
    return b.broadcast(per_row, rows.dims, range(per_row.shape.rank))


def _infer(op: Operation) -> Sequence[OutputType]:
    logits = op.inputs[0]
    require_type(logits, FLOATING_TYPES, "logits")
    return [(logits.dtype, logits.shape.with_rank_at_least(1))]


def _softmax_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    exponentials = b.op("exponential", (_shifted(b, inputs[0]),))
    return [exponentials / _spread(b, _sum_rows(b, exponentials), exponentials)]


def _softmax_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    softmax = op.outputs[0]
    total = node("Sum", [grad * softmax, constant([-1])], {"keep_dims": True})
    return [(grad - total) * softmax]


declare("Softmax", ("logits",), _infer, _softmax_lower, _softmax_gradient, ELEMENTWISE_WITH_REDUCTION)


def _log_softmax_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [_log_probabilities(ctx.builder, inputs[0])[0]]


def _log_probabilities(b: Builder, logits: Handle) -> tuple[Handle, Handle, Handle]:
    """The logarithm of softmax; exponentials that cannot overflow, and their sum in each row."""
    shifted = _shifted(b, logits)
    exponentials = b.op("exponential", (shifted,))
    totals = _sum_rows(b, exponentials)
    return shifted - _spread(b, b.op("log", (totals,)), shifted), exponentials, totals


def _log_softmax_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    total = node("Sum", [grad, constant([-1])], {"keep_dims": True})
    return [grad - total * node("Exp", [op.outputs[0]])]


declare("LogSoftmax", ("logits",), _infer, _log_softmax_lower, _log_softmax_gradient, ELEMENTWISE_WITH_REDUCTION)


# SoftmaxCrossEntropyWithLogits(features, labels): [batch, classes] -> loss [batch] and d loss / d features.


def _xent_infer(op: Operation) -> Sequence[OutputType]:
    features, labels = op.inputs
    dtype = require_same_type(op.inputs)
    require_type(features, FLOATING_TYPES, "features")
    shape = broadcast_shapes(features.shape.with_rank(2), labels.shape.with_rank(2)).with_rank(2)
    return [(dtype, TensorShape(shape.as_list()[:1])), (dtype, shape)]


def _xent_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    features, labels = broadcast_pair(b, *inputs)
    log_probabilities, exponentials, totals = _log_probabilities(b, features)
    # A class without probability mass adds nothing, even where the log-probability is minus infinity.
    terms = b.select(b.compare(labels, 0, "EQ"), b.full(0, labels.dtype, labels.dims), labels * log_probabilities)
    backprop = exponentials / _spread(b, totals, exponentials) - labels
    return [-sum_axes(b, terms, [1]), backprop]


def _xent_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    loss_grad, backprop_grad = grads
    features, backprop = op.inputs[0], op.outputs[1]
    logit_grad = label_grad = None
    if loss_grad is not None:
        column = node("ExpandDims", [loss_grad, constant(-1)])
        logit_grad, label_grad = column * backprop, column * -node("LogSoftmax", [features])
    if backprop_grad is not None:
        softmax = node("Softmax", [features])
        total = node("Sum", [backprop_grad * softmax, constant([-1])], {"keep_dims": True})
        second = (backprop_grad - total) * softmax
        logit_grad = second if logit_grad is None else logit_grad + second
        label_grad = -backprop_grad if label_grad is None else label_grad - backprop_grad
    return [logit_grad, label_grad]


declare_outputs(
    "SoftmaxCrossEntropyWithLogits",
    ("features", "labels"),
    _xent_infer,
    _xent_lower,
    _xent_gradient,
    ELEMENTWISE_WITH_REDUCTION,
)


# SparseSoftmaxCrossEntropyWithLogits(features, labels): labels are class numbers [batch]; a number that is no class
# gives NaN.


def _sparse_infer(op: Operation) -> Sequence[OutputType]:
    features, labels = op.inputs
    require_type(features, FLOATING_TYPES, "features")
    require_type(labels, {int32, int64}, "labels")
    shape = features.shape.with_rank(2)
    batch = TensorShape(shape.as_list()[:1]).merge_with(labels.shape.with_rank(1))
    return [(features.dtype, batch), (features.dtype, TensorShape([*batch.as_list(), shape.as_list()[1]]))]


def _sparse_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (features, labels) = ctx.builder, inputs
    if labels.dims != features.dims[:1]:
        raise ShapeError(f"labels of shape {labels.dims} do not fit logits of shape {features.dims}")
    log_probabilities, exponentials, totals = _log_probabilities(b, features)
    spread = b.broadcast(labels, features.dims, [0])
    chosen = b.compare(spread, b.iota(labels.dtype, features.dims, 1), "EQ")
    zeros = b.full(0, features.dtype, features.dims)
    loss = -sum_axes(b, b.select(chosen, log_probabilities, zeros), [1])
    backprop = exponentials / _spread(b, totals, exponentials) - b.convert(chosen, features.dtype)
    valid = b.compare(labels, 0, "GE") & b.compare(labels, features.dims[1], "LT")
    nan = b.constant(float("nan"), features.dtype)
    rows_valid = b.broadcast(valid, features.dims, [0])
    return [
        b.select(valid, loss, b.broadcast(nan, loss.dims)),
        b.select(rows_valid, backprop, b.broadcast(nan, backprop.dims)),
    ]


def _sparse_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    loss_grad, backprop_grad = grads
    if backprop_grad is not None:
        raise LookupError(f"no second derivative is defined through {op.name!r}: its backprop output is constant")
    if loss_grad is None:
        return [None, None]
    return [node("ExpandDims", [loss_grad, constant(-1)]) * op.outputs[1], None]


declare_outputs(
    "SparseSoftmaxCrossEntropyWithLogits",
    ("features", "labels"),
    _sparse_infer,
    _sparse_lower,
    _sparse_gradient,
    ELEMENTWISE_WITH_REDUCTION,
)
