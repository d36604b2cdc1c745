"""Connectionist temporal classification (Graves et al. 2006): labels found in longer sequences of classes.

The last class is the blank. As in TensorFlow these operations run on the host: how long labels are follows from values.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, int32, int64
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradient_rules import of_one_output
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_type

_DEFAULTS = {
    "preprocess_collapse_repeated": False,
    "ctc_merge_repeated": True,
    "ignore_longer_outputs_than_inputs": False,
}
_WHY_HOST = "how long its labels are depends on their values"


def _infer(op: Operation) -> Sequence[OutputType]:
    inputs, indices, values, lengths = op.inputs
    _check_inputs(op, inputs, lengths)
    require_type(indices, {int64}, "labels_indices")
    require_type(values, {int32}, "labels_values")
    indices.shape.assert_is_compatible_with([None, 2])
    shape = inputs.shape.with_rank(3)
    return [(inputs.dtype, TensorShape(shape.as_list()[1:2]).merge_with(lengths.shape)), (inputs.dtype, shape)]


def _check_inputs(op: Operation, inputs: Tensor, lengths: Tensor) -> None:
    require_type(inputs, FLOATING_TYPES, "inputs")
    require_type(lengths, {int32}, "sequence_length")
    inputs.shape.with_rank(3)
    lengths.shape.with_rank(1)


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def _labels(op: Operation, indices: Array, values: Array, batch: int, blank: int) -> list[list[int]]:
    """The labels of each example."""
    found: list[list[int]] = [[] for _ in range(batch)]
    for (example, _), label in zip(indices.tolist(), values.tolist(), strict=True):
        if not (0 <= example < batch and 0 <= label < blank):
            raise InvalidArgumentError(
                None,
                op,
                f"label {label} of example {example} is out of range, expected 0 to {blank - 1} in a batch of {batch}",
            )
        repeats = bool(found[example]) and found[example][-1] == label
        if not (repeats and op.get_attr("preprocess_collapse_repeated")):
            found[example].append(label)
    return found


def _check_lengths(op: Operation, lengths: Array, inputs: Array) -> None:
    if lengths.shape != inputs.shape[1:2] or (lengths > inputs.shape[0]).any() or (lengths < 0).any():
        raise InvalidArgumentError(
            None, op, f"sequence_length {lengths.tolist()} does not fit inputs of shape {inputs.shape}"
        )


def _loss(context: HostContext, op: Operation, values: tuple[HostValue, ...]) -> Sequence[HostValue]:
    inputs, indices, labels, lengths = (np.asarray(value) for value in values)
    _check_lengths(op, lengths, inputs)
    _, batch, classes = inputs.shape
    lists = _labels(op, indices, labels, batch, classes - 1)
    fits = np.array([_fits(op, each, int(length)) for each, length in zip(lists, lengths, strict=True)], np.bool_)
    loss, slope = np.zeros(batch), np.zeros(inputs.shape)
    kept = np.flatnonzero(fits & (lengths > 0))
    if kept.size:
        scores = _log_softmax(inputs[:, kept].astype(np.float64))
        merged = op.get_attr("ctc_merge_repeated")
        loss[kept], slope[:, kept] = _forward_backward(scores, [lists[i] for i in kept], lengths[kept], merged)
    return [loss.astype(inputs.dtype), slope.astype(inputs.dtype)]


def _fits(op: Operation, labels: Sequence[int], length: int) -> bool:
    """Whether there are enough steps for the labels, with a blank between equal ones."""
    merged = op.get_attr("ctc_merge_repeated")
    repeats = sum(a == b for a, b in itertools.pairwise(labels)) if merged else 0
    needed = len(labels) + repeats
    if needed <= length:
        return True
    if op.get_attr("ignore_longer_outputs_than_inputs"):
        return False
    raise InvalidArgumentError(None, op, f"{len(labels)} labels need {needed} steps, there are {length}")


def _forward_backward(
    scores: Array, labels: Sequence[Sequence[int]], lengths: Array, merged: bool
) -> tuple[Array, Array]:
    """The negative logarithm of each example's probability, and its derivatives for the logits.

    Args:
        scores: Logarithms of probabilities, `[steps, batch, classes]`.
        labels: Of each example.
        lengths: Steps of each example.
        merged: Whether equal classes in a row stand for one label.
    """
    steps, batch, classes = scores.shape
    most = max(map(len, labels))
    # Blanks around and between the labels; states behind the last blank are never reached.
    states = np.full((batch, 2 * most + 1), classes - 1)
    for example, own in enumerate(labels):
        states[example, 1 : 2 * len(own) : 2] = own
    last = 2 * np.array([len(own) for own in labels])
    is_label = states != classes - 1
    skips = is_label[:, 2:] & ~((states[:, 2:] == states[:, :-2]) & merged)
    stays = ~is_label | merged
    emitted = np.take_along_axis(scores, np.broadcast_to(states, (steps, *states.shape)), 2)
    rows = np.arange(batch)
    with np.errstate(divide="ignore"):
        forward = np.full((steps, *states.shape), -np.inf)
        forward[0, :, :2] = emitted[0, :, :2]
        forward[0, last == 0, 1:] = -np.inf
        for t in range(1, steps):
            forward[t] = _moved(forward[t - 1], stays, skips) + emitted[t]
            forward[t, np.arange(states.shape[1]) > last[:, None]] = -np.inf
        backward = np.full((steps, *states.shape), -np.inf)
        for t in range(steps - 1, -1, -1):
            if t + 1 < steps:
                backward[t] = _moved_back(backward[t + 1] + emitted[t + 1], stays, skips)
            ends = lengths - 1 == t
            backward[t, rows[ends], last[ends]] = 0
            some = ends & (last > 0)
            backward[t, rows[some], last[some] - 1] = 0
        both = forward + backward
        total = np.logaddexp.reduce(both[0], -1)
        share = np.exp(both - np.where(np.isfinite(total), total, np.inf)[:, None])
    slope = np.exp(scores)
    for example in range(batch):
        np.add.at(slope[:, example].T, states[example], -share[:, example].T)
        slope[lengths[example] :, example] = 0
    return -total, slope


def _moved(before: Array, stays: Array, skips: Array) -> Array:
    """Each state after one step: from itself, from the one before and, over a blank, from the one before that."""
    result = np.where(stays, before, -np.inf)
    result[:, 1:] = np.logaddexp(result[:, 1:], before[:, :-1])
    result[:, 2:] = np.logaddexp(result[:, 2:], np.where(skips, before[:, :-2], -np.inf))
    return result


def _moved_back(after: Array, stays: Array, skips: Array) -> Array:
    """What follows from each state, the same moves backwards."""
    result = np.where(stays, after, -np.inf)
    result[:, :-1] = np.logaddexp(result[:, :-1], after[:, 1:])
    result[:, :-2] = np.logaddexp(result[:, :-2], np.where(skips, after[:, 2:], -np.inf))
    return result


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    column = node("ExpandDims", [node("ExpandDims", [grad, constant(0)]), constant(2)])
    return [column * op.outputs[1], None, None, None]


register(
    OpSpec(
        "CTCLoss",
        _infer,
        inputs=("inputs", "labels_indices", "labels_values", "sequence_length"),
        attrs=tuple(_DEFAULTS),
        defaults=_DEFAULTS,
        host_kernel=_loss,
        gradient=of_one_output(_gradient),
        group=None,
        why_host=_WHY_HOST,
    )
)


# CTCGreedyDecoder(inputs, sequence_length): the likeliest class of each step, without blanks, as a sparse matrix.


def _sparse(labels: Sequence[Sequence[int]]) -> list[Array]:
    """Indices, values and sizes of a matrix with a row for each example."""
    indices = [(row, column) for row, own in enumerate(labels) for column in range(len(own))]
    sizes = [len(labels), max(map(len, labels), default=0)]
    return [
        np.array(indices, np.int64).reshape(-1, 2),
        np.array([label for own in labels for label in own], np.int64),
        np.array(sizes, np.int64),
    ]


_SPARSE = ((int64, TensorShape([None, 2])), (int64, TensorShape([None])), (int64, TensorShape([2])))


def _greedy_infer(op: Operation) -> Sequence[OutputType]:
    _check_inputs(op, *op.inputs)
    return [*_SPARSE, (op.inputs[0].dtype, TensorShape([op.inputs[0].shape.with_rank(3).as_list()[1], 1]))]


def _greedy(context: HostContext, op: Operation, values: tuple[HostValue, ...]) -> Sequence[HostValue]:
    inputs, lengths = (np.asarray(value) for value in values)
    _check_lengths(op, lengths, inputs)
    blank, merged = inputs.shape[2] - 1, op.get_attr("merge_repeated")
    decoded, scores = [], np.zeros((inputs.shape[1], 1))
    for example, length in enumerate(lengths.tolist()):
        best = inputs[:length, example].argmax(1)
        scores[example] = -inputs[:length, example].max(1).astype(np.float64).sum()
        changes = np.append(True, best[1:] != best[:-1])[: len(best)] if merged else np.ones(len(best), np.bool_)
        decoded.append(best[changes & (best != blank)].tolist())
    return [*_sparse(decoded), scores.astype(inputs.dtype)]


register(
    OpSpec(
        "CTCGreedyDecoder",
        _greedy_infer,
        inputs=("inputs", "sequence_length"),
        attrs=("merge_repeated",),
        defaults={"merge_repeated": False},
        host_kernel=_greedy,
        gradient=None,
        group=None,
        why_host=_WHY_HOST,
    )
)


# CTCBeamSearchDecoder(inputs, sequence_length): the likeliest labels, summed over the sequences that stand for them.


def _beam_infer(op: Operation) -> Sequence[OutputType]:
    _check_inputs(op, *op.inputs)
    paths = op.get_attr("top_paths")
    batch = op.inputs[0].shape.with_rank(3).as_list()[1]
    return [*(each for each in _SPARSE for _ in range(paths)), (op.inputs[0].dtype, TensorShape([batch, paths]))]


def _beam(context: HostContext, op: Operation, values: tuple[HostValue, ...]) -> Sequence[HostValue]:
    inputs, lengths = (np.asarray(value) for value in values)
    _check_lengths(op, lengths, inputs)
    width, paths = op.get_attr("beam_width"), op.get_attr("top_paths")
    if paths > width:
        raise InvalidArgumentError(None, op, f"top_paths {paths} must not exceed beam_width {width}")
    decoded: list[list[Sequence[int]]] = [[] for _ in range(paths)]
    scores = np.full((inputs.shape[1], paths), -np.inf)
    for example, length in enumerate(lengths.tolist()):
        found = _search(_log_softmax(inputs[:length, example].astype(np.float64)), width)
        for path in range(paths):
            labels, score = found[path] if path < len(found) else ((), -np.inf)
            scores[example, path] = score
            repeats = op.get_attr("merge_repeated")
            decoded[path].append(
                [each for i, each in enumerate(labels) if not (repeats and i and labels[i - 1] == each)]
            )
    parts = [_sparse(each) for each in decoded]
    return [*(part[i] for i in range(3) for part in parts), scores.astype(inputs.dtype)]


def _search(scores: Array, width: int) -> list[tuple[tuple[int, ...], float]]:
    """The likeliest labels and the logarithm of their probability, the best first."""
    blank = scores.shape[1] - 1
    # Of each beginning: the probability of sequences that end in a blank, and of those that end in its last label.
    beams: Mapping[tuple[int, ...], tuple[float, float]] = {(): (0.0, -np.inf)}
    for row in scores.tolist():
        found: dict[tuple[int, ...], tuple[float, float]] = {}
        for labels, (with_blank, with_label) in beams.items():
            either = float(np.logaddexp(with_blank, with_label))
            _add(found, labels, either + row[blank], -np.inf)
            if labels:
                _add(found, labels, -np.inf, with_label + row[labels[-1]])
            for label in range(blank):
                source = with_blank if labels and labels[-1] == label else either
                _add(found, (*labels, label), -np.inf, source + row[label])
        best = sorted(found.items(), key=lambda item: -float(np.logaddexp(*item[1])))
        beams = dict(best[:width])
    ranked = [(labels, float(np.logaddexp(*each))) for labels, each in beams.items()]
    return sorted(ranked, key=lambda item: -item[1])


def _add(
    found: dict[tuple[int, ...], tuple[float, float]], labels: tuple[int, ...], blank: float, label: float
) -> None:
    own = found.get(labels, (-np.inf, -np.inf))
    found[labels] = float(np.logaddexp(own[0], blank)), float(np.logaddexp(own[1], label))


register(
    OpSpec(
        "CTCBeamSearchDecoder",
        _beam_infer,
        inputs=("inputs", "sequence_length"),
        attrs=("beam_width", "top_paths", "merge_repeated"),
        defaults={"merge_repeated": True},
        host_kernel=_beam,
        gradient=None,
        group=None,
        why_host=_WHY_HOST,
    )
)
