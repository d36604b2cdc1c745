"""Losses of sequences: cross entropies of steps, weighted and averaged; networks unrolled for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import int32
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import reshape, shape
from xlalite.ops.functions.math import add_n, reduce_sum
from xlalite.ops.functions.nn import sparse_softmax_cross_entropy_with_logits
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.recurrent.cell import RNNCell
from xlalite.ops.training.variable_scope import ReuseMode, variable_scope

# A weight of nothing keeps a mean over nothing from being a division by 0.
_TINY = 1e-12

LossFunction = Callable[..., Any]


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of sequences.

    Args:
        logits: `[batch, time, classes]`.
        targets: `[batch, time]`.
        weights: `[batch, time]`.
        average_across_timesteps: Divide by the weight of all steps.
        average_across_batch: Divide by the weight of all sequences.
        sum_over_timesteps: Add up the steps, without their weights in the divisor.
        sum_over_batch: Add up the sequences.
        softmax_loss_function: Of `labels` and `logits`, instead of the sparse softmax cross entropy.
        name: Name scope.

    Raises:
        GraphError: a dimension is both averaged and summed over.
    """
    if (average_across_timesteps and sum_over_timesteps) or (average_across_batch and sum_over_batch):
        raise GraphError("sequence_loss: a dimension is either averaged or summed over, not both")
    with get_default_graph().name_scope(name or "sequence_loss"):
        scores, classes, weighted = (convert_to_tensor(value) for value in (logits, targets, weights))
        sizes = shape(classes)
        each = _crossed(reshape(classes, [-1]), reshape(scores, [-1, shape(scores)[2]]), softmax_loss_function)
        losses = reshape(each, [-1]) * reshape(weighted, [-1])
        if average_across_timesteps and average_across_batch:
            return _over(reduce_sum(losses), reduce_sum(weighted))
        crossed = reshape(losses, sizes)
        if sum_over_timesteps and sum_over_batch:
            counted = cast_to(reduce_sum(cast_to(weighted > 0, int32)), crossed.dtype)
            return _over(reduce_sum(crossed), counted)
        by_batch = average_across_batch or sum_over_batch
        for done, averaged, axis in (
            (average_across_timesteps or sum_over_timesteps, average_across_timesteps, 1),
            (by_batch, average_across_batch, 0),
        ):
            if done:
                kept = weighted if averaged else cast_to(weighted > 0, weighted.dtype)
                return _over(reduce_sum(crossed, [axis]), reduce_sum(kept, [axis]))
        return crossed


def _over(total: Tensor, weight: Tensor) -> Tensor:
    mean: Tensor = total / (weight + _TINY)
    return mean


def _crossed(labels: Tensor, logits: Tensor, function: LossFunction | None) -> Tensor:
    if function is not None:
        found: Tensor = function(labels=labels, logits=logits)
        return found
    return sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross entropy of each sequence, whose steps are lists: logits `[batch, classes]`, others `[batch]`.

    Raises:
        GraphError: the lists differ in length.
    """
    if not len(logits) == len(targets) == len(weights):
        raise GraphError(f"{len(logits)} logits, {len(targets)} targets and {len(weights)} weights do not go together")
    with get_default_graph().name_scope(name or "sequence_loss_by_example"):
        losses = []
        for score, target, weight in zip(logits, targets, weights, strict=True):
            classes = reshape(convert_to_tensor(target), [-1])
            losses.append(_crossed(classes, convert_to_tensor(score), softmax_loss_function) * weight)
        total = add_n(losses)
        return (
            _over(total, add_n([convert_to_tensor(weight) for weight in weights]))
            if average_across_timesteps
            else total
        )


def sequence_loss_of_lists(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: LossFunction | None = None,
    name: str | None = None,
) -> Tensor:
    """The sum of what `sequence_loss_by_example` gives, or its mean over the batch."""
    with get_default_graph().name_scope(name or "sequence_loss"):
        losses = sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        total = reduce_sum(losses)
        if not average_across_batch:
            return total
        mean: Tensor = total / cast_to(shape(convert_to_tensor(targets[0]))[0], total.dtype)
        return mean


def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: RNNCell,
    loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs; with a loop function each input but the first is made of the output before.

    Returns:
        The outputs, and the last state.
    """
    with variable_scope(scope or "rnn_decoder"):
        state, outputs, previous = initial_state, [], None
        for number, given in enumerate(decoder_inputs):
            if loop_function is not None and previous is not None:
                with variable_scope("loop_function", reuse=ReuseMode.AUTO):
                    given = loop_function(previous, number)
            output, state = cell(given, state)
            outputs.append(output)
            previous = output
        return outputs, state
