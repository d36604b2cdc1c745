"""Attention over a memory: scores of Bahdanau and of Luong, and alignments that only move on (Raffel et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import (
    concat,
    expand_dims,
    one_hot,
    ones,
    reshape,
    shape,
    squeeze,
    transpose,
    where_v2,
    zeros,
)
from xlalite.ops.functions.functional import scan
from xlalite.ops.functions.math import (
    argmax,
    clip_by_value,
    cumprod,
    cumsum,
    exp,
    log,
    matmul,
    reduce_sum,
    rsqrt,
    sigmoid,
    square,
    tanh,
)
from xlalite.ops.functions.nn import softmax
from xlalite.ops.functions.random_ops import random_normal
from xlalite.ops.functions.selection import sequence_mask
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.layers.core import Dense
from xlalite.ops.training.variable_scope import get_variable, variable_scope

ProbabilityFunction = Callable[[Tensor, Any], Tensor]


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One at the largest of the last dimension, zeros elsewhere."""
    scores = convert_to_tensor(logits)
    depth = scores.shape.as_list()[-1] or shape(scores)[-1]
    return one_hot(argmax(scores, -1), depth, dtype=scores.dtype)


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Tensor:
    """The products of the numbers so far, as sums of logarithms of what is at least the smallest normal number."""
    given = convert_to_tensor(x)
    tiny = float(np.finfo(given.dtype.numpy_dtype).tiny)
    return exp(cumsum(log(clip_by_value(given, tiny, 1.0)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """Probabilities that a place is attended to, when each place from the last one on is chosen or passed.

    Args:
        p_choose_i: `[batch, time]`, the probability that a place is chosen if it is come to.
        previous_attention: `[batch, time]`, the attention of the step before.
        mode: `recursive`, `parallel` (faster, less exact), or `hard` for probabilities that are 0 or 1.
    """
    chosen, before = convert_to_tensor(p_choose_i), convert_to_tensor(previous_attention)
    found: Tensor
    if mode == "recursive":
        passed = 1 - chosen
        first = ones([shape(chosen)[0], 1], chosen.dtype)
        shifted = concat([first, passed[:, :-1]], 1)
        reached = scan(
            lambda x, each: reshape(each[0] * x + each[1], shape(x)),
            [transpose(shifted), transpose(before)],
            zeros(shape(chosen)[:1], chosen.dtype),
        )
        found = chosen * transpose(reached)
        return found
    if mode == "parallel":
        passed = safe_cumprod(1 - chosen, axis=1, exclusive=True)
        found = chosen * passed * cumsum(before / clip_by_value(passed, 1e-10, 1.0), axis=1)
        return found
    if mode == "hard":
        come_to = chosen * cumsum(before, axis=1)
        found = come_to * cumprod(1 - come_to, axis=1, exclusive=True)
        return found
    raise ValueError(f"mode must be 'recursive', 'parallel', or 'hard', found {mode!r}")


class AttentionMechanism:
    """A memory and what its places are compared with queries by.

    Attributes:
        memory_layer: What makes keys of the memory; None leaves it as it is.
        query_layer: What makes queries comparable with keys; None leaves them as they are.
        values: `[batch, time, depth]`, zeros behind the ends of sequences.
        keys: `[batch, time, units]`.
        batch_size: Sequences.
        alignments_size: Places.
    """

    _scope = "attention"
    query_layer: Dense | None = None

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any,
        probability_fn: Callable[[Tensor], Tensor] | None,
        score_mask_value: Any,
        dtype: Any,
        name: str,
        custom_key_value_fn: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None,
    ) -> None:
        self._name = name
        self._units = num_units
        self._normal = probability_fn or softmax
        leaves, structure = flatten(memory)
        tensors = [convert_to_tensor(each) for each in leaves]
        self._lengths = None if memory_sequence_length is None else convert_to_tensor(memory_sequence_length)
        self._mask_value = -np.inf if score_mask_value is None else score_mask_value
        values = [self._only_inside(each) for each in tensors]
        self.values: Any = rebuild(structure, values)
        self.memory_layer = Dense(
            num_units, use_bias=False, name="memory_layer", dtype=as_dtype(dtype or tensors[0].dtype)
        )
        self.keys: Tensor = self.memory_layer(values[0])
        if custom_key_value_fn is not None:
            self.keys, self.values = custom_key_value_fn(self.keys, self.values)
        self.dtype: DType = tensors[0].dtype
        self.batch_size = self.keys.shape.as_list()[0] or shape(self.keys)[0]
        self.alignments_size = self.keys.shape.as_list()[1] or shape(self.keys)[1]

    @property
    def memory(self) -> Any:
        """The values."""
        return self.values

    @property
    def memory_initialized(self) -> bool:
        """Whether there is a memory."""
        return True

    @property
    def state_size(self) -> Any:
        """Places."""
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """The alignments before the first step."""
        return zeros([batch_size, self.alignments_size], as_dtype(dtype))

    def initial_state(self, batch_size: Any, dtype: Any) -> Tensor:
        """What the first step takes as the last one's alignments."""
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query: Any, state: Any) -> tuple[Tensor, Tensor]:
        """The alignments `[batch, time]` for a query, and the next state, which are the same."""
        with variable_scope(None, self._scope):
            given = query if self.query_layer is None else self.query_layer(query)
            alignments = self._probabilities(self._masked(self._score(convert_to_tensor(given))), state)
        return alignments, alignments

    def _score(self, query: Tensor) -> Tensor:
        raise NotImplementedError

    def _probabilities(self, score: Tensor, state: Any) -> Tensor:
        return self._normal(score)

    def _masked(self, score: Tensor) -> Tensor:
        if self._lengths is None:
            return score
        mask = sequence_mask(self._lengths, shape(score)[1])
        return where_v2(mask, score, cast_to(convert_to_tensor(self._mask_value), score.dtype))

    def _only_inside(self, memory: Tensor) -> Tensor:
        if memory.shape.rank is not None and memory.shape.rank < 3:
            raise ShapeError(f"a memory must be [batch, time, ...], found shape {memory.shape}")
        if self._lengths is None:
            return memory
        mask = cast_to(sequence_mask(self._lengths, shape(memory)[1]), memory.dtype)
        extra = (memory.shape.rank or 3) - 2
        inside: Tensor = memory * reshape(mask, [*_two_sizes(mask), *[1] * extra])
        return inside


def _two_sizes(mask: Tensor) -> list[Any]:
    sizes = mask.shape.as_list() if mask.shape.rank is not None else [None, None]
    return [-1 if sizes[0] is None else sizes[0], shape(mask)[1] if sizes[1] is None else sizes[1]]


class BahdanauAttention(AttentionMechanism):
    """Additive scores (Bahdanau et al. 2015), with normalised weights (Salimans and Kingma 2016) if asked."""

    _scope = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        """`num_units` is how long queries and keys become; the rest is as TensorFlow has it."""
        super().__init__(
            num_units,
            memory,
            memory_sequence_length,
            probability_fn,
            score_mask_value,
            dtype,
            name,
            custom_key_value_fn,
        )
        self._normalize = normalize
        self.query_layer = Dense(num_units, use_bias=False, name="query_layer", dtype=as_dtype(dtype or self.dtype))

    def _score(self, query: Tensor) -> Tensor:
        weights = get_variable("attention_v", [self._units], query.dtype)
        total = self.keys + expand_dims(query, 1)
        if not self._normalize:
            return reduce_sum(weights * tanh(total), [2])
        gain = get_variable("attention_g", dtype=query.dtype, initializer=_number(1 / self._units**0.5, query))
        bias = get_variable(
            "attention_b", dtype=query.dtype, initializer=np.zeros(self._units, query.dtype.numpy_dtype)
        )
        direction = gain * weights * rsqrt(reduce_sum(square(weights)))
        return reduce_sum(direction * tanh(total + bias), [2])


class LuongAttention(AttentionMechanism):
    """Scores that are products (Luong et al. 2015), scaled by a number that is learnt if asked."""

    _scope = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        """`num_units` is how long queries are and keys become; the rest is as TensorFlow has it."""
        super().__init__(
            num_units,
            memory,
            memory_sequence_length,
            probability_fn,
            score_mask_value,
            dtype,
            name,
            custom_key_value_fn,
        )
        self._scale = scale

    def _score(self, query: Tensor) -> Tensor:
        sizes = query.shape.as_list()[-1], self.keys.shape.as_list()[-1]
        if sizes[0] != sizes[1] and None not in sizes:
            raise ShapeError(f"query and keys have {sizes[0]} and {sizes[1]} units; LuongAttention needs the same")
        score = squeeze(matmul(expand_dims(query, 1), self.keys, transpose_b=True), [1])
        if self._scale:
            score = get_variable("attention_g", dtype=query.dtype, initializer=_number(1, query)) * score
        return score


class _Monotonic(AttentionMechanism):
    """Alignments that only move on."""

    _noise: float
    _noise_seed: int | None
    _bias: float
    _mode: str

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """All at the first place."""
        return one_hot(zeros([batch_size], as_dtype("int32")), self.alignments_size, dtype=as_dtype(dtype))

    def _masked(self, score: Tensor) -> Tensor:
        bias = get_variable("attention_score_bias", dtype=score.dtype, initializer=_number(self._bias, score))
        return super()._masked(score + bias)

    def _probabilities(self, score: Tensor, state: Any) -> Tensor:
        if self._noise > 0:
            score = score + self._noise * random_normal(shape(score), dtype=score.dtype, seed=self._noise_seed)
        chosen = cast_to(score > 0, score.dtype) if self._mode == "hard" else sigmoid(score)
        return monotonic_attention(chosen, state, self._mode)


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """Additive scores, alignments that only move on."""

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        """As `BahdanauAttention`; noise before the sigmoid, and the number that its bias starts with."""
        super().__init__(
            num_units, memory, memory_sequence_length, normalize, None, score_mask_value, dtype, None, name
        )
        self._noise, self._noise_seed, self._bias, self._mode = sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """Scores that are products, alignments that only move on."""

    _scope = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        """As `LuongAttention`; noise before the sigmoid, and the number that its bias starts with."""
        super().__init__(num_units, memory, memory_sequence_length, scale, None, score_mask_value, dtype, None, name)
        self._noise, self._noise_seed, self._bias, self._mode = sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode


def _number(value: float, like: Tensor) -> Any:
    return np.asarray(value, like.dtype.numpy_dtype)
