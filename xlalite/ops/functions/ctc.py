"""Losses of labels that are found somewhere in longer sequences: functions of `xlalite.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import int32, int64
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.sparse_tensor import SparseTensor, SparseTensorValue
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, transpose, where, where_v2
from xlalite.ops.functions.math import cast, less
from xlalite.ops.functions.selection import gather_nd, sequence_mask
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import operation


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """-log of the probability that a sequence of classes stands for the labels, `[batch]`.

    Args:
        labels: Sparse, with the labels of each example in a row.
        inputs: Logits `[time, batch, classes]`, the last class being the blank.
        sequence_length: Steps of each example.
        preprocess_collapse_repeated: Take equal labels in a row as one.
        ctc_merge_repeated: Equal classes in a row stand for one label.
        ignore_longer_outputs_than_inputs: Examples with too few steps for their labels have loss 0; otherwise they are
            an error.
        time_major: Whether time comes before the batch.
        logits: Newer spelling of `inputs`.

    Raises:
        GraphError: neither or both of the spellings are given, or the labels are not sparse.
    """
    if (inputs is None) == (logits is None):
        raise GraphError("ctc_loss: exactly one of inputs and logits is needed")
    if not isinstance(labels, SparseTensor | SparseTensorValue):
        raise GraphError(f"ctc_loss: labels must be sparse, found {labels!r}")
    scores = convert_to_tensor(logits if inputs is None else inputs)
    attrs = {
        "preprocess_collapse_repeated": preprocess_collapse_repeated,
        "ctc_merge_repeated": ctc_merge_repeated,
        "ignore_longer_outputs_than_inputs": ignore_longer_outputs_than_inputs,
    }
    return _loss(
        scores if time_major else transpose(scores, [1, 0, 2]), labels.indices, labels.values, sequence_length, attrs
    )


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """As `ctc_loss`, with labels `[batch, most]` of given lengths and, unless it is said otherwise, class 0 as blank.

    Args:
        labels: Labels; of sparse ones `label_length` is not needed.
        logits: `[time, batch, classes]`.
        label_length: Labels of each example.
        logit_length: Steps of each example.
        logits_time_major: Whether time comes before the batch.
        unique: Accepted for compatibility.
        blank_index: The blank; negative numbers count from the end.
        name: Name scope.
    """
    with get_default_graph().name_scope(name or "ctc_loss"):
        given = convert_to_tensor(logits)
        scores = given if logits_time_major else transpose(given, [1, 0, 2])
        if isinstance(labels, SparseTensor | SparseTensorValue):
            indices, values = labels.indices, cast(labels.values, int32)
        else:
            dense = convert_to_tensor(labels)
            indices = where(sequence_mask(label_length, dense.shape.as_list()[1]))
            values = cast(gather_nd(dense, indices), int32)
        classes = scores.shape.with_rank(3).as_list()[2]
        if classes is None:
            raise ShapeError(f"ctc_loss: the number of classes of logits of shape {scores.shape} must be known")
        blank = (blank_index or 0) % classes
        if blank != classes - 1:
            scores = concat([scores[:, :, :blank], scores[:, :, blank + 1 :], scores[:, :, blank : blank + 1]], 2)
            values = where_v2(less(values, constant(np.int32(blank))), values, values - 1)
        return _loss(scores, indices, values, logit_length, {})


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The likeliest class of each step, without blanks: its labels, sparse, and the negative sum of its logits."""
    scores = [convert_to_tensor(inputs), convert_to_tensor(sequence_length, int32)]
    *parts, total = operation("CTCGreedyDecoder", scores, {"merge_repeated": merge_repeated}).outputs
    return [SparseTensor(*parts)], total


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The likeliest labels, summed over the sequences that stand for them.

    Args:
        inputs: Logits `[time, batch, classes]`, the last class being the blank.
        sequence_length: Steps of each example.
        beam_width: How many beginnings are followed.
        top_paths: How many results are wanted, the best first.
        merge_repeated: Write equal labels in a row once.

    Returns:
        The labels of each result, sparse, and the logarithms of their probabilities, `[batch, top_paths]`.
    """
    scores = [convert_to_tensor(inputs), convert_to_tensor(sequence_length, int32)]
    attrs = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    *parts, total = operation("CTCBeamSearchDecoder", scores, attrs).outputs
    paths = [parts[path::top_paths] for path in range(top_paths)]
    return [SparseTensor(*path) for path in paths], total


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """As `ctc_beam_search_decoder`, with labels as they were found."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def _loss(scores: Tensor, indices: Any, values: Any, lengths: Any, attrs: dict[str, bool]) -> Tensor:
    inputs = [scores, convert_to_tensor(indices, int64), cast(values, int32), convert_to_tensor(lengths, int32)]
    return operation("CTCLoss", inputs, attrs).outputs[0]
