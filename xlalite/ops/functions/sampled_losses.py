"""Losses over many classes that look at the true ones and a few that are drawn: functions of `xlalite.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import int64
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.array import concat, expand_dims, ones_like, reshape, stop_gradient, where_v2, zeros_like
from xlalite.ops.functions.candidate_samplers import log_uniform_candidate_sampler
from xlalite.ops.functions.embedding import embedding_lookup
from xlalite.ops.functions.math import cast, equal, log, matmul, reduce_any, reduce_sum
from xlalite.ops.functions.nn import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from xlalite.ops.helpers.constant import constant, convert_to_tensor


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation (Gutmann and Hyvarinen 2010): the true classes told from drawn ones, `[batch]`.

    Args:
        weights: `[num_classes, width]`, or parts of it as `embedding_lookup` takes them.
        biases: `[num_classes]`.
        labels: The true classes, `[batch, num_true]`.
        inputs: `[batch, width]`.
        num_sampled: How many classes are drawn for the batch.
        num_classes: How many there are.
        num_true: True classes of each example.
        sampled_values: What a candidate sampler gave; by default that of Zipf's law draws.
        remove_accidental_hits: Leave out drawn classes that are true ones of the example.
        partition_strategy: As in `embedding_lookup`.
        name: Name scope.
    """
    with get_default_graph().name_scope(name):
        logits, wanted = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            None,
        )
        return reduce_sum(sigmoid_cross_entropy_with_logits(labels=wanted, logits=logits), 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Cross entropy among the true classes and those drawn, `[batch]`; arguments as in `nce_loss`."""
    with get_default_graph().name_scope(name):
        logits, wanted = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            seed,
        )
        return softmax_cross_entropy_with_logits_v2(labels=stop_gradient(wanted), logits=logits)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_hits: bool,
    strategy: str,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """Logits of the true and of the drawn classes, `[batch, num_true + num_sampled]`, and their labels."""
    x, true_classes = convert_to_tensor(inputs), cast(labels, int64)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(true_classes, num_true, num_sampled, True, num_classes, seed)
    drawn, true_counts, drawn_counts = (stop_gradient(each) for each in sampled_values)
    drawn = cast(drawn, int64)
    true_classes = reshape(true_classes, [-1, num_true])
    true_rows, drawn_rows = (embedding_lookup(weights, each, strategy) for each in (true_classes, drawn))
    true_offsets, drawn_offsets = (embedding_lookup(biases, each, strategy) for each in (true_classes, drawn))
    true_logits = reduce_sum(expand_dims(x, 1) * true_rows, 2) + true_offsets
    drawn_logits = matmul(x, drawn_rows, transpose_b=True) + drawn_offsets
    if remove_hits:
        hits = reduce_any(equal(expand_dims(true_classes, 2), drawn), 1)
        lowest = constant(np.asarray(x.dtype.min), x.dtype)
        drawn_logits = where_v2(hits, drawn_logits + lowest, drawn_logits)
    # What is drawn more often counts less.
    true_logits = true_logits - log(cast(true_counts, x.dtype))
    drawn_logits = drawn_logits - log(cast(drawn_counts, x.dtype))
    wanted = concat([ones_like(true_logits) / num_true, zeros_like(drawn_logits)], 1)
    return concat([true_logits, drawn_logits], 1), wanted
