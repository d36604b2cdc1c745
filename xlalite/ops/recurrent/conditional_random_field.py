"""Linear-chain conditional random fields: how likely tags of sequences are, and the likeliest ones (Lafferty 2001)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import int32
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, expand_dims, gather, reshape, shape, transpose, where_v2, zeros_like
from xlalite.ops.functions.control_flow import while_loop
from xlalite.ops.functions.functional import scan
from xlalite.ops.functions.math import argmax, maximum, range as numbers, reduce_logsumexp, reduce_max, reduce_sum
from xlalite.ops.functions.selection import gather_with_batches, sequence_mask
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.training.variable_scope import get_variable


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Tensor, Any]:
    """The logarithm of the likelihood of tags.

    Args:
        inputs: Scores of the tags of each step, `[batch, time, tags]`.
        tag_indices: The tags, `[batch, time]`.
        sequence_lengths: `[batch]`.
        transition_params: Scores of each tag after each other, `[tags, tags]`; a variable `transitions` by default.

    Returns:
        `[batch]`, and the scores of transitions.
    """
    scores = convert_to_tensor(inputs)
    if transition_params is None:
        tags = _tag_count(scores)
        transition_params = get_variable("transitions", [tags, tags])
    of_tags = crf_sequence_score(scores, tag_indices, sequence_lengths, transition_params)
    likelihood: Tensor = of_tags - crf_log_norm(scores, sequence_lengths, transition_params)
    return likelihood, transition_params


def _tag_count(scores: Tensor) -> int:
    tags = scores.shape.with_rank(3).as_list()[2]
    if tags is None:
        raise ShapeError(f"the number of tags of {scores.name!r} is not known: it has shape {scores.shape}")
    return tags


def crf_sequence_score(inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The scores of tags and of the transitions between them, added up: `[batch]`."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    binary = crf_binary_score(tag_indices, sequence_lengths, transition_params)
    total: Tensor = unary + binary
    return total


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Tensor:
    """The scores of tags, added up along each sequence: `[batch]`."""
    scores, tags = convert_to_tensor(inputs), convert_to_tensor(tag_indices)
    chosen = gather_with_batches(scores, expand_dims(tags, -1), 2, 2, None)
    mask = sequence_mask(sequence_lengths, shape(tags)[1], scores.dtype)
    return reduce_sum(reshape(chosen, shape(tags)) * mask, [1])


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The scores of transitions between tags, added up along each sequence: `[batch]`."""
    tags, transitions = convert_to_tensor(tag_indices), convert_to_tensor(transition_params)
    number = transitions.shape.as_list()[0]
    steps = tags[:, :-1] * number + tags[:, 1:]
    chosen = gather(reshape(transitions, [-1]), steps)
    lengths = maximum(convert_to_tensor(sequence_lengths) - 1, 0)
    return reduce_sum(chosen * sequence_mask(lengths, shape(tags)[1] - 1, transitions.dtype), [1])


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Tensor:
    """The logarithm of the sum over all tags of the exponential of their score: `[batch]`; 0 for empty sequences."""
    alphas = _forward(inputs, sequence_lengths, transition_params, lambda scores: reduce_logsumexp(scores, [1]))
    norm = reduce_logsumexp(alphas, [1])
    return where_v2(convert_to_tensor(sequence_lengths) > 0, norm, zeros_like(norm))


def _forward(inputs: Any, sequence_lengths: Any, transition_params: Any, combine: Callable[[Tensor], Tensor]) -> Tensor:
    """What the steps of each sequence come to, for each tag at its end."""
    scores, transitions = convert_to_tensor(inputs), convert_to_tensor(transition_params)
    lengths = cast_to(convert_to_tensor(sequence_lengths), int32)
    by_time = transpose(scores, [1, 0, 2])
    first = by_time[0]

    def step(time: Tensor, alphas: Tensor) -> tuple[Any, Tensor]:
        following = gather(by_time, time) + combine(expand_dims(alphas, 2) + expand_dims(transitions, 0))
        runs = expand_dims(time < lengths, 1)
        following = where_v2(runs, following, alphas)
        following.set_shape(first.shape)
        return time + 1, following

    count = _steps(scores)
    _, last = while_loop(lambda time, _: time < count, step, [constant(1, int32), first])
    found: Tensor = last
    return found


def _steps(scores: Tensor) -> Tensor:
    known = scores.shape.as_list()[1]
    steps: Tensor = constant(known, int32) if known is not None else shape(scores)[1]
    return steps


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Tensor, Tensor]:
    """The likeliest tags of each sequence and their score, by Viterbi's algorithm: `[batch, time]`, `[batch]`.

    Behind the end of a sequence tags are 0.
    """
    scores, transitions = convert_to_tensor(potentials), convert_to_tensor(transition_params)
    lengths = maximum(cast_to(convert_to_tensor(sequence_length), int32), 1)
    by_time = transpose(scores, [1, 0, 2])
    steps = numbers(1, _steps(scores))
    tags = numbers(_tag_count(scores))

    def forwards(state: Any, time: Tensor) -> Any:
        best = expand_dims(state[0], 2) + expand_dims(transitions, 0)
        runs = expand_dims(time < lengths, 1)
        following = where_v2(runs, gather(by_time, time) + reduce_max(best, [1]), state[0])
        # A step behind the end leads from each tag to itself.
        back = where_v2(runs, cast_to(argmax(best, 1), int32), zeros_like(state[1]) + tags)
        following.set_shape(by_time.shape[1:])
        back.set_shape(by_time.shape[1:])
        return following, back

    first = by_time[0]
    start = (first, cast_to(zeros_like(first), int32))
    alphas, pointers = scan(forwards, steps, start)
    last_scores = concat([expand_dims(first, 0), alphas], 0)[-1]
    last_tags = cast_to(argmax(last_scores, 1), int32)
    path = scan(lambda tag, pointer: _chosen(pointer, tag), pointers, last_tags, reverse=True)
    whole = concat([path, expand_dims(last_tags, 0)], 0)
    mask = sequence_mask(convert_to_tensor(sequence_length), _steps(scores), int32)
    return transpose(whole, [1, 0]) * mask, reduce_max(last_scores, [1])


def _chosen(pointer: Tensor, tag: Tensor) -> Tensor:
    found = reshape(gather_with_batches(pointer, expand_dims(tag, 1), 1, 1, None), [-1])
    found.set_shape(tag.shape)
    return found


def viterbi_decode(score: Array, transition_params: Array) -> tuple[list[int], float]:
    """The likeliest tags of one sequence of scores `[time, tags]`, and their score, on arrays."""
    scores, transitions = np.asarray(score), np.asarray(transition_params)
    trellis, pointers = scores[0], []
    for row in scores[1:]:
        candidates = trellis[:, None] + transitions
        pointers.append(candidates.argmax(0))
        trellis = row + candidates.max(0)
    tags = [int(trellis.argmax())]
    for back in reversed(pointers):
        tags.append(int(back[tags[-1]]))
    return tags[::-1], float(trellis.max())
