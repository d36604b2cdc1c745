"""Decoding step by step: `dynamic_decode` runs a decoder in one loop; `BasicDecoder` has a cell and a helper."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from xlalite.framework.graph.dtypes import DType, int32
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import reshape, shape, where_v2, zeros, zeros_like
from xlalite.ops.functions.control_flow import while_loop
from xlalite.ops.functions.math import less_equal, logical_not, logical_or, reduce_all
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.recurrent.cell import RNNCell
from xlalite.ops.recurrent.networks import turned
from xlalite.ops.training.variable_scope import variable_scope


class Decoder:
    """What `dynamic_decode` runs. Subclasses say these things of themselves."""

    @property
    def batch_size(self) -> Any:
        """Sequences."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Sizes of the outputs of a step."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """Their element types."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a step says of all sequences whether they are over, not only of those that go on."""
        return False

    @property
    def most_steps(self) -> Tensor | None:
        """How many steps there are at most, if sizes of the inputs say it; such loops can be compiled."""
        return None

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences are over before the first step, its inputs and its state."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """The outputs of a step, the next state and inputs, and which sequences are over then."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """What is made of the outputs of all steps and the last state."""
        raise NotImplementedError


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Tensor]:
    """Runs a decoder until all sequences are over: the outputs of all steps, the last state, and their lengths.

    Args:
        decoder: The decoder.
        output_time_major: Whether outputs have the time in their first dimension, not in the second.
        impute_finished: Whether sequences that are over put out zeros and keep their states.
        maximum_iterations: Stop after so many steps.
        parallel_iterations: Accepted for compatibility.
        swap_memory: Accepted for compatibility.
        scope: Variable scope; `decoder` by default.
        **kwargs: Others of TensorFlow's, accepted for compatibility.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with variable_scope(scope, "decoder"):
        over, inputs, state = decoder.initialize()
        bound = decoder.most_steps
        limit = bound
        if maximum_iterations is not None:
            limit = cast_to(convert_to_tensor(maximum_iterations), int32)
            over = logical_or(over, less_equal(limit, 0))
        types, structure = flatten(decoder.output_dtype)
        arrays = [TensorArray(each, 0 if bound is None else bound, dynamic_size=bound is None) for each in types]

        def step(time: Tensor, written: Any, state: Any, inputs: Any, over: Tensor, lengths: Tensor) -> Any:
            outputs, following, upcoming, said = decoder.step(time, inputs, state)
            done = said if decoder.tracks_own_finished else logical_or(said, over)
            results = [convert_to_tensor(each) for each in flatten(outputs)[0]]
            if impute_finished:
                results = [_either(over, zeros_like(each), each) for each in results]
                following = _kept(over, state, following)
            written = [array.write(time, each) for array, each in zip(written, results, strict=True)]
            return time + 1, written, following, upcoming, done, where_v2(over, lengths, time + 1)

        over = convert_to_tensor(over)
        start = [constant(0, int32), arrays, state, inputs, over, zeros(shape(over), int32)]
        steps, arrays, state, _, _, lengths = while_loop(
            lambda time, written, state, inputs, over, lengths: logical_not(reduce_all(over)),
            step,
            start,
            maximum_iterations=limit,
        )
        stacked = [array.stack() for array in arrays]
        if bound is not None:
            stacked = [each[:steps] for each in stacked]
        outputs = rebuild(structure, stacked)
        with suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            leaves, structure = flatten(outputs)
            outputs = rebuild(structure, [turned(each) for each in leaves])
        return outputs, state, lengths


def _either(over: Tensor, finished: Any, running: Any) -> Tensor:
    """One thing for sequences that are over, another for those that go on."""
    tensor = convert_to_tensor(running)
    return where_v2(reshape(over, [-1, *[1] * ((tensor.shape.rank or 1) - 1)]), finished, tensor)


def _kept(over: Tensor, old: Any, new: Any) -> Any:
    """The next state; sequences that are over keep theirs, what belongs to all goes on."""
    if isinstance(new, TensorArray):
        return new
    if isinstance(new, tuple | list):
        parts = [_kept(over, *each) for each in zip(old, new, strict=True)]
        return type(new)(*parts) if hasattr(new, "_make") else type(new)(parts)
    if isinstance(new, dict):
        return {key: _kept(over, old[key], each) for key, each in new.items()}
    return new if new is None or not convert_to_tensor(new).shape.rank else _either(over, old, new)


class BasicDecoderOutput(NamedTuple):
    """What a step of a `BasicDecoder` gives.

    Attributes:
        rnn_output: What cell and output layer put out.
        sample_id: What the helper chose by it.
    """

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A cell, and a helper that chooses what goes into the next step."""

    def __init__(self, cell: RNNCell, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        """Args as TensorFlow's: the state at the start, and a layer over what the cell puts out."""
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer: Callable[[Any], Any] | None = output_layer

    @property
    def batch_size(self) -> Any:
        """Sequences."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """Sizes of the output and of what is chosen by it."""
        size = self._cell.output_size
        if self._output_layer is not None:
            layer: Any = self._output_layer
            size = layer.compute_output_shape([None, *TensorShape(size).as_list()])[1:]
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """That of the state, and that of what is chosen."""
        dtype: DType = flatten(self._initial_state)[0][0].dtype
        sizes, structure = flatten(_sizes(self._cell.output_size))
        return BasicDecoderOutput(rebuild(structure, [dtype] * len(sizes)), self._helper.sample_ids_dtype)

    @property
    def most_steps(self) -> Tensor | None:
        """What the helper says."""
        found: Tensor | None = getattr(self._helper, "most_steps", None)
        return found

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """What the helper starts with, and the state at the start."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """One step of the cell."""
        outputs, following = self._cell(inputs, state)
        if self._output_layer is not None:
            outputs = self._output_layer(outputs)
        chosen = self._helper.sample(time=time, outputs=outputs, state=following)
        over, upcoming, following = self._helper.next_inputs(
            time=time, outputs=outputs, state=following, sample_ids=chosen
        )
        return BasicDecoderOutput(outputs, chosen), following, upcoming, over


def _sizes(size: Any) -> Any:
    """Sizes with one leaf for each output."""
    return 0 if isinstance(size, TensorShape | int) else size
