"""Beam search: `BeamSearchDecoder` keeps the likeliest beginnings of each sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlalite.framework.graph.dtypes import DType, bool_, float32, int32, int64
from xlalite.framework.graph.errors import UnimplementedError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import (
    concat,
    expand_dims,
    fill,
    gather,
    one_hot,
    reshape,
    shape,
    tile,
    where_v2,
    zeros,
)
from xlalite.ops.functions.control_flow import while_loop
from xlalite.ops.functions.embedding import embedding_lookup
from xlalite.ops.functions.math import cumsum, equal, logical_or, reduce_max
from xlalite.ops.functions.nn import log_softmax
from xlalite.ops.functions.ordering import top_k
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.recurrent.cell import RNNCell
from xlalite.ops.recurrent.decoding import Decoder


class BeamSearchDecoderState(NamedTuple):
    """What a step of a beam search takes: the cell's state, log-probabilities, ends, lengths, and summed alignments."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """What a step of a beam search gives: scores, words, and the beams that they go on from."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The result of a beam search: words `[batch, time, beam]`, best first, and what the steps gave."""

    predicted_ids: Any
    beam_search_decoder_output: Any


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Tensors with each element of the batch so many times, one after the other."""
    leaves, structure = flatten(t)
    return rebuild(structure, [_tiled(convert_to_tensor(each), multiplier) for each in leaves])


def _tiled(tensor: Tensor, count: int) -> Tensor:
    sizes = tensor.shape.as_list()
    both = tile(expand_dims(tensor, 1), [1, count, *[1] * (len(sizes) - 1)])
    result = reshape(both, concat([[-1], shape(tensor)[1:]], 0))
    result.set_shape([None if sizes[0] is None else sizes[0] * count, *sizes[1:]])
    return result


def gather_tree(
    step_ids: Any, parent_ids: Any, max_sequence_lengths: Any, end_token: Any, name: str | None = None
) -> Tensor:
    """The words of whole beams `[time, batch, beam]`, of those of each step and of the beams that they go on from."""
    words, parents = convert_to_tensor(step_ids), convert_to_tensor(parent_ids)
    lengths = cast_to(convert_to_tensor(max_sequence_lengths), int32)
    end = cast_to(convert_to_tensor(end_token), words.dtype)
    steps, batch, width = (shape(words)[i] for i in range(3))
    rows = tile(expand_dims(_count(batch), 1), [1, width])
    beams = tile(expand_dims(_count(width), 0), [batch, 1])

    def step(level: Tensor, beam: Tensor, found: TensorArray) -> Any:
        place = reshape(rows * width + beam, [-1])
        going = expand_dims(level < lengths, 1)
        word = reshape(gather(reshape(words[level], [-1]), place), shape(beam))
        parent = reshape(gather(reshape(parents[level], [-1]), place), shape(beam))
        return level - 1, where_v2(going, cast_to(parent, int32), beam), found.write(level, where_v2(going, word, end))

    made = TensorArray(words.dtype, steps)
    _, _, found = while_loop(lambda level, *_: level >= 0, step, [steps - 1, beams, made])
    whole = found.stack()
    ended = cumsum(cast_to(equal(whole, end), int32), 0, exclusive=True) > 0
    result = where_v2(ended, end, whole)
    result.set_shape(words.shape)
    return result


def _count(size: Any) -> Tensor:
    """0, 1, 2, ..."""
    return cumsum(fill(expand_dims(size, 0), constant(1, int32)), exclusive=True)


class BeamSearchDecoder(Decoder):
    """A cell whose `beam_width` likeliest beginnings go on in each step."""

    def __init__(
        self,
        cell: RNNCell,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        """A search.

        Args:
            cell: The cell.
            embedding: A table of what goes in for each word, or a function.
            start_tokens: `[batch]`.
            end_token: The word that ends a sequence.
            initial_state: That of `batch * beam_width` sequences, as `tile_batch` makes it.
            beam_width: How many beginnings go on.
            output_layer: A layer over what the cell puts out.
            length_penalty_weight: The power of `(5 + length) / 6` by which scores are divided (Wu et al. 2016).
            coverage_penalty_weight: Must be 0.
            reorder_tensor_arrays: Accepted for compatibility: histories of alignments stay in the order of steps.

        Raises:
            UnimplementedError: a coverage penalty is asked for.
        """
        if coverage_penalty_weight:
            raise UnimplementedError(None, None, "BeamSearchDecoder: coverage_penalty_weight must be 0 here")
        self._cell = cell
        self._embed: Callable[[Any], Any] = (
            embedding if callable(embedding) else lambda numbers: embedding_lookup(embedding, numbers)
        )
        self._start_tokens = cast_to(convert_to_tensor(start_tokens), int32)
        self._end = cast_to(convert_to_tensor(end_token), int32)
        self._width = beam_width
        self._layer = output_layer
        self._penalty = length_penalty_weight
        self._batch = self._start_tokens.shape.as_list()[0] or shape(self._start_tokens)[0]
        self._state = self._map(self._split, initial_state)
        starts = tile(expand_dims(self._start_tokens, 1), [1, beam_width])
        self._first = self._embed(starts)

    @property
    def batch_size(self) -> Any:
        """Sequences, without the beams."""
        return self._batch

    @property
    def tracks_own_finished(self) -> bool:
        """Beams change places, so that others are over."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """One of each for each beam."""
        return BeamSearchDecoderOutput(*[TensorShape([self._width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """Scores, and numbers of words and beams."""
        dtype: DType = next((each.dtype for each in flatten(self._state)[0] if each.dtype.is_floating), float32)
        return BeamSearchDecoderOutput(dtype, int32, int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, BeamSearchDecoderState]:
        """One beam can go on; the others are less than impossible."""
        blank = zeros(expand_dims(constant(0, int32) + self._batch, 0), int32)
        dtype = self.output_dtype.scores
        over = one_hot(blank, self._width, on_value=False, off_value=True, dtype=bool_)
        scores = one_hot(blank, self._width, on_value=0.0, off_value=-np.inf, dtype=dtype)
        lengths = zeros(shape(over), int64)
        return over, self._first, BeamSearchDecoderState(self._state, scores, over, lengths, ())

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """One step of all beams."""
        given, structure = flatten(inputs)
        merged = rebuild(structure, [self._merged(each) for each in given])
        outputs, following = self._cell(merged, self._map(self._merged, state.cell_state))
        if self._layer is not None:
            outputs = self._layer(outputs)
        logits = self._split(outputs)
        kept, found = self._search(logits, self._map(self._split, following), state)
        return found, kept, self._embed(found.predicted_ids), kept.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Whole beams; the lengths of sequences are in the last state."""
        longest = cast_to(reduce_max(final_state.lengths, 1), int32)
        words = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        return FinalBeamSearchDecoderOutput(words, outputs), final_state

    def _search(self, logits: Tensor, following: Any, state: BeamSearchDecoderState) -> tuple[Any, Any]:
        words = logits.shape.as_list()[-1] or shape(logits)[-1]
        over = expand_dims(state.finished, 2)
        only_end = one_hot(
            self._end, words, on_value=0.0, off_value=float(np.finfo(logits.dtype.numpy_dtype).min), dtype=logits.dtype
        )
        total = expand_dims(state.log_probs, 2) + where_v2(over, only_end, log_softmax(logits))
        longer = where_v2(over, 0, one_hot(self._end, words, on_value=0, off_value=1, dtype=int64))
        scores = self._scored(total, expand_dims(state.lengths, 2) + cast_to(longer, int64))
        flat = [reshape(each, [-1, words * self._width]) for each in (scores, total)]
        best, places = top_k(flat[0], self._width)
        best.set_shape([logits.shape.as_list()[0], self._width])
        parents, chosen = places // words, places % words
        was_over = self._of_beams(state.finished, parents)
        lengths = self._of_beams(state.lengths, parents) + cast_to(where_v2(was_over, 0, 1), int64)
        kept = BeamSearchDecoderState(
            self._map(lambda each: self._of_beams(each, parents), following),
            self._of_beams(flat[1], places),
            logical_or(was_over, equal(chosen, self._end)),
            lengths,
            (),
        )
        return kept, BeamSearchDecoderOutput(best, chosen, parents)

    def _scored(self, total: Tensor, lengths: Tensor) -> Tensor:
        if not self._penalty:
            return total
        scaled: Tensor = total / ((cast_to(lengths, total.dtype) + 5.0) / 6.0) ** self._penalty
        return scaled

    def _of_beams(self, tensor: Tensor, beams: Tensor) -> Tensor:
        """`[batch, n, ...]` at one place of the second dimension for each beam."""
        count = shape(tensor)[1]
        first = expand_dims(_count(shape(tensor)[0]), 1) * count
        rows = reshape(tensor, concat([[-1], shape(tensor)[2:]], 0))
        found = gather(rows, first + cast_to(beams, int32))
        sizes = tensor.shape.as_list()
        found.set_shape([sizes[0], self._width, *sizes[2:]])
        return found

    def _split(self, tensor: Tensor) -> Tensor:
        sizes = tensor.shape.as_list()
        result = reshape(tensor, concat([[-1, self._width], shape(tensor)[1:]], 0))
        result.set_shape([None if sizes[0] is None else sizes[0] // self._width, self._width, *sizes[1:]])
        return result

    def _merged(self, tensor: Tensor) -> Tensor:
        sizes = tensor.shape.as_list()
        result = reshape(tensor, concat([[-1], shape(tensor)[2:]], 0))
        result.set_shape([None if sizes[0] is None else sizes[0] * self._width, *sizes[2:]])
        return result

    def _map(self, change: Callable[[Tensor], Tensor], state: Any) -> Any:
        """A state with changed tensors; numbers of steps and histories belong to all beams and stay."""
        if isinstance(state, TensorArray):
            return state
        if isinstance(state, tuple | list):
            parts = [self._map(change, each) for each in state]
            return type(state)(*parts) if hasattr(state, "_make") else type(state)(parts)
        if isinstance(state, dict):
            return {key: self._map(change, each) for key, each in state.items()}
        tensor = convert_to_tensor(state)
        return tensor if tensor.shape.rank == 0 else change(tensor)
