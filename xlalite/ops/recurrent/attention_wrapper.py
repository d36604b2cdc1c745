"""`AttentionWrapper`: a cell that looks at memories in each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype, int32
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import concat, expand_dims, identity, squeeze, zeros
from xlalite.ops.functions.math import matmul
from xlalite.ops.functions.tensor_array import TensorArray
from xlalite.ops.helpers.constant import constant
from xlalite.ops.layers.core import Dense
from xlalite.ops.recurrent.attention import AttentionMechanism
from xlalite.ops.recurrent.cell import RNNCell


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`.

    Attributes:
        cell_state: That of the cell inside.
        attention: What the last step put out of the memories, `[batch, size]`.
        time: Steps done.
        alignments: Those of the last step, one for each memory.
        alignment_history: Those of all steps, if asked for.
        attention_state: The states of the mechanisms.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The same with other parts, which get the shapes that are known of the old ones."""
        for name, given in kwargs.items():
            before, after = flatten(getattr(self, name))[0], flatten(given)[0]
            for old, new in zip(before, after, strict=True):
                if isinstance(new, Tensor) and isinstance(old, Tensor) and new.shape.rank == old.shape.rank:
                    new.set_shape(old.shape)
        return self._replace(**kwargs)


class AttentionWrapper(RNNCell):
    """A cell whose output is mixed with what it finds in memories."""

    def __init__(
        self,
        cell: RNNCell,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        """Wraps a cell.

        Args:
            cell: The cell.
            attention_mechanism: One, or a list of them.
            attention_layer_size: The units of a layer over output and context, for each mechanism; None for the
                context alone.
            alignment_history: Whether the last state holds the alignments of all steps.
            cell_input_fn: What becomes of inputs and the last attention; both, one behind the other, by default.
            output_attention: Whether the attention is put out, or the cell's own output.
            initial_cell_state: The cell's state at the start.
            name: Name of the scope.
            attention_layer: Layers in place of those of `attention_layer_size`.
            attention_fn: Computes attention, alignments and next state of a mechanism.
            **options: As for all cells.
        """
        super().__init__(name=name, **options)
        self._cell = cell
        self._many = isinstance(attention_mechanism, list | tuple)
        self._mechanisms: Sequence[AttentionMechanism] = (
            tuple(attention_mechanism) if self._many else (attention_mechanism,)
        )
        self._layers: Sequence[Any] = [None] * len(self._mechanisms)
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        if attention_layer_size is not None:
            listed = attention_layer_size if isinstance(attention_layer_size, list | tuple) else (attention_layer_size,)
            self._layers = [
                Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.dtype)
                for size, mechanism in zip(listed, self._mechanisms, strict=True)
            ]
        elif attention_layer is not None:
            self._layers = attention_layer if isinstance(attention_layer, list | tuple) else (attention_layer,)
        self._attention_size = sum(
            _depth(layer, mechanism, cell) for layer, mechanism in zip(self._layers, self._mechanisms, strict=True)
        )
        self._keeps_history = alignment_history
        self._cell_input = cell_input_fn or (lambda inputs, attention: concat([inputs, attention], -1))
        self._output_attention = output_attention
        self._initial_cell_state = initial_cell_state
        self._attend = attention_fn or _compute_attention

    @property
    def output_size(self) -> Any:
        """That of the attention, or of the cell."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """The sizes of all parts."""
        sizes = self._packed([mechanism.alignments_size for mechanism in self._mechanisms])
        history = self._packed([()] * len(self._mechanisms)) if self._keeps_history else ()
        return AttentionWrapperState(
            self._cell.state_size, self._attention_size, TensorShape(()), sizes, history, sizes
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The state before the first step."""
        wanted = as_dtype(dtype)
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            if self._initial_cell_state is not None:
                leaves, structure = flatten(self._initial_cell_state)
                inner = rebuild(structure, [identity(each) for each in leaves])
            else:
                inner = self._cell.zero_state(batch_size, wanted)
            alignments = [each.initial_alignments(batch_size, wanted) for each in self._mechanisms]
            states = [each.initial_state(batch_size, wanted) for each in self._mechanisms]
            histories: Any = ()
            if self._keeps_history:
                histories = self._packed(
                    [TensorArray(wanted, 0, dynamic_size=True, element_shape=each.shape) for each in alignments]
                )
            return AttentionWrapperState(
                inner,
                zeros([batch_size, self._attention_size], wanted),
                constant(0, int32),
                self._packed(alignments),
                histories,
                self._packed(states),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        """One step."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(f"Expected state to be instance of AttentionWrapperState, found {type(state).__name__}")
        output, following = self._cell(self._cell_input(inputs, state.attention), state.cell_state)
        before = state.attention_state if self._many else (state.attention_state,)
        histories = state.alignment_history if self._many else (state.alignment_history,)
        found = [
            self._attend(mechanism, output, own, layer)
            for mechanism, own, layer in zip(self._mechanisms, before, self._layers, strict=True)
        ]
        attention = concat([each[0] for each in found], 1)
        if self._keeps_history:
            histories = [array.write(state.time, each[1]) for array, each in zip(histories, found, strict=True)]
        next_state = AttentionWrapperState(
            following,
            attention,
            state.time + 1,
            self._packed([each[1] for each in found]),
            self._packed(histories) if self._keeps_history else (),
            self._packed([each[2] for each in found]),
        )
        return (attention if self._output_attention else output), next_state

    def _packed(self, values: Sequence[Any]) -> Any:
        return tuple(values) if self._many else values[0]


def _depth(layer: Any, mechanism: AttentionMechanism, cell: RNNCell) -> int:
    values = mechanism.values.shape.as_list()[-1]
    if layer is None:
        return int(values)
    if isinstance(layer, Dense):
        return layer.units
    return int(layer.compute_output_shape([None, int(cell.output_size) + values]).as_list()[-1])


def _compute_attention(
    mechanism: AttentionMechanism, cell_output: Tensor, attention_state: Any, attention_layer: Any
) -> tuple[Tensor, Tensor, Any]:
    """The attention, the alignments and the next state of a mechanism."""
    alignments, following = mechanism(cell_output, state=attention_state)
    context = squeeze(matmul(expand_dims(alignments, 1), mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, following
    return attention_layer(concat([cell_output, context], 1)), alignments, following
