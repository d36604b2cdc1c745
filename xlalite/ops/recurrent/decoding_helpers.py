"""Helpers of `BasicDecoder`: what is chosen by the output of a step, and what goes into the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlalite.framework.graph.dtypes import DType, as_dtype, bool_, int32
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import concat, fill, gather, reshape, shape, where_v2, zeros
from xlalite.ops.functions.distributions import multinomial
from xlalite.ops.functions.embedding import embedding_lookup
from xlalite.ops.functions.math import argmax, equal
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.recurrent.networks import turned


class Helper:
    """What a `BasicDecoder` asks. Subclasses say these things of themselves."""

    @property
    def batch_size(self) -> Any:
        """Sequences."""
        raise NotImplementedError

    @property
    def sample_ids_shape(self) -> TensorShape:
        """The sizes of what is chosen for a sequence."""
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> DType:
        """Its element type."""
        return int32

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Which sequences are over before the first step, and its inputs."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What is chosen by the outputs of a step."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Which sequences are over, the inputs of the next step, and its state."""
        raise NotImplementedError


class CustomHelper(Helper):
    """A helper of functions."""

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        """The functions have the arguments of the methods."""
        self._initialize, self._sample, self._next = initialize_fn, sample_fn, next_inputs_fn
        self._shape = TensorShape(sample_ids_shape or [])
        self._dtype = as_dtype(sample_ids_dtype or int32)
        self._batch: Any = None

    @property
    def batch_size(self) -> Any:
        """Sequences, once it has been initialised."""
        if self._batch is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch

    @property
    def sample_ids_shape(self) -> TensorShape:
        """What was given."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> DType:
        """What was given."""
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """What the function gives."""
        over, inputs = self._initialize()
        self._batch = shape(over)[0]
        return over, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What the function gives."""
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What the function gives."""
        found: tuple[Any, Any, Any] = self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)
        return found


class TrainingHelper(Helper):
    """The inputs are known; what is chosen, the largest output, is only shown."""

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        """`inputs` is `[batch, time, ...]`, or `[time, batch, ...]`, or a structure of such tensors."""
        leaves, self._structure = flatten(inputs)
        tensors = [convert_to_tensor(each) for each in leaves]
        by_time = tensors if time_major else [turned(each) for each in tensors]
        self._inputs = inputs
        self._steps = [concat([each, _blank(each)], 0) for each in by_time]
        self._lengths = cast_to(convert_to_tensor(sequence_length), int32)
        self.most_steps = shape(by_time[0])[0]

    @property
    def inputs(self) -> Any:
        """What was given."""
        return self._inputs

    @property
    def sequence_length(self) -> Tensor:
        """What was given."""
        return self._lengths

    @property
    def batch_size(self) -> Any:
        """As many as there are lengths."""
        return self._lengths.shape.as_list()[0] or shape(self._lengths)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Sequences without steps are over."""
        return self._lengths <= 0, self._at(constant(0, int32))

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The place of the largest output."""
        return argmax(outputs, -1, output_type=int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The inputs of the next step, zeros behind the last."""
        return time + 1 >= self._lengths, self._at(time + 1), state

    def _at(self, time: Tensor) -> Any:
        return rebuild(self._structure, [gather(each, time) for each in self._steps])


def _blank(tensor: Tensor) -> Tensor:
    """Zeros for one more step."""
    return zeros(concat([[1], shape(tensor)[1:]], 0), tensor.dtype)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """As `TrainingHelper`, but now and then the embedding of a random choice goes in (Bengio et al. 2015)."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        """`sampling_probability`, one or one for each sequence, is that of a choice."""
        super().__init__(inputs, sequence_length, time_major, name)
        self._embed = _embedding(embedding)
        self._probability = convert_to_tensor(sampling_probability)
        self._seed, self._scheduling_seed = seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """A random choice, or -1 where none is made."""
        chosen = multinomial(outputs, 1, self._seed, output_dtype=int32)[:, 0]
        drawn = random_uniform([self.batch_size], seed=self._scheduling_seed) < self._probability
        return where_v2(drawn, chosen, -1)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The known inputs, or the embedding of what was chosen."""
        over, upcoming, state = super().next_inputs(time, outputs, state, sample_ids, name)
        found = self._embed(where_v2(sample_ids < 0, 0, sample_ids))
        return over, where_v2(reshape(sample_ids < 0, [-1, 1]), upcoming, found), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """As `TrainingHelper`, but now and then the output itself goes in."""

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        """`next_inputs_fn` makes inputs of outputs; `auxiliary_inputs` stand beside them."""
        self._auxiliary = auxiliary_inputs is not None
        own = convert_to_tensor(inputs)
        self._width = own.shape.as_list()[-1]
        both = concat([own, auxiliary_inputs], -1) if self._auxiliary else own
        super().__init__(both, sequence_length, time_major, name)
        self._probability = convert_to_tensor(sampling_probability)
        self._seed = seed
        self._make = next_inputs_fn or (lambda outputs: outputs)

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Whether the output goes in."""
        drawn = random_uniform([self.batch_size], seed=self._seed) < self._probability
        return cast_to(drawn, int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The known inputs, or what is made of the outputs."""
        over, upcoming, state = super().next_inputs(time, outputs, state, sample_ids, name)
        made = self._make(outputs)
        if self._auxiliary:
            made = concat([made, upcoming[:, self._width :]], -1)
        return over, where_v2(reshape(cast_to(sample_ids, bool_), [-1, 1]), made, upcoming), state


class GreedyEmbeddingHelper(Helper):
    """The embedding of the largest output goes in, until it is the end."""

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        """`embedding` is a table or a function of numbers."""
        self._embed = _embedding(embedding)
        self._start = convert_to_tensor(start_tokens)
        self._end = convert_to_tensor(end_token)
        self._first = self._embed(self._start)

    @property
    def batch_size(self) -> Any:
        """As many as there are start tokens."""
        return self._start.shape.as_list()[0] or shape(self._start)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence is over."""
        return fill(shape(self._start), False), self._first

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The place of the largest output."""
        return argmax(outputs, -1, output_type=int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """The embedding of what was chosen."""
        return equal(cast_to(sample_ids, self._end.dtype), self._end), self._embed(sample_ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The embedding of a random choice by the output goes in."""

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        """Outputs are divided by the temperature."""
        super().__init__(embedding, start_tokens, end_token)
        self._temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """A random choice."""
        logits = outputs if self._temperature is None else outputs / self._temperature
        return multinomial(logits, 1, self._seed, output_dtype=int32)[:, 0]


class InferenceHelper(Helper):
    """A helper of a function that chooses; what it chose goes in."""

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        """`end_fn` says of what was chosen whether a sequence is over."""
        self._sample, self._ends = sample_fn, end_fn
        self._shape, self._dtype = TensorShape(sample_shape), as_dtype(sample_dtype)
        self._start = convert_to_tensor(start_inputs)
        self._make = next_inputs_fn or (lambda chosen: chosen)

    @property
    def batch_size(self) -> Any:
        """As many as there are inputs at the start."""
        return shape(self._start)[0]

    @property
    def sample_ids_shape(self) -> TensorShape:
        """What was given."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> DType:
        """What was given."""
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence is over."""
        return fill(shape(self._start)[:1], False), self._start

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """What the function chooses."""
        return self._sample(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """What was chosen."""
        return self._ends(sample_ids), self._make(sample_ids), state


def _embedding(given: Any) -> Callable[[Any], Any]:
    return given if callable(given) else lambda numbers: embedding_lookup(given, numbers)
