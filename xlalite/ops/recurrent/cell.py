"""What all cells of recurrent networks share: `(inputs, state) -> (output, next state)`, with their own variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType, as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import Dimension, TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import math, nn
from xlalite.ops.functions.array import shape, zeros
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import ReuseMode, VariableScope, get_variable, variable_scope


class LSTMStateTuple(NamedTuple):
    """The state of a long short-term memory.

    Attributes:
        c: What it remembers.
        h: What it put out last.
    """

    c: Any
    h: Any

    @property
    def dtype(self) -> DType:
        """Element type."""
        found: DType = self.c.dtype
        return found


class RNNCell:
    """A cell. Subclasses have `state_size`, `output_size` and `call(inputs, state)`, and may have `build(shape)`.

    Its variables lie in a scope of its own, `<open scope>/<name>`; a cell that is called again finds them again.
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, _reuse: Any = None, **options: Any
    ) -> None:
        """`name` is that of the scope, by default the class's in snake case."""
        self._cell_name = name
        self._trainable = trainable
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._reuse = _reuse
        self._scope: VariableScope | None = None
        self._variables: list[Variable] = []
        self.built = False

    @property
    def state_size(self) -> Any:
        """Sizes of the state: a number or a shape, or a structure of them."""
        raise NotImplementedError(f"{type(self).__name__} does not say its state_size")

    @property
    def output_size(self) -> Any:
        """Sizes of the output: a number or a shape, or a structure of them."""
        raise NotImplementedError(f"{type(self).__name__} does not say its output_size")

    @property
    def name(self) -> str:
        """Name of the scope."""
        return self._cell_name or _snake_case(type(self).__name__)

    @property
    def variables(self) -> list[Variable]:
        """The variables that it made."""
        return list(self._variables)

    weights = variables

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that optimisers change."""
        return [variable for variable in self.variables if variable.trainable]

    trainable_weights = trainable_variables

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables, given the shape of the inputs; none by default."""

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output and the next state."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it computes: it has no call()")

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **options: Any) -> tuple[Any, Any]:
        """The output and the next state.

        Args:
            inputs: `[batch, size]`.
            state: What `zero_state` gives, or the last call.
            scope: A scope to be used instead of the cell's own name.
            **options: Handed to `call`.
        """
        leaves, structure = flatten(inputs)
        given = rebuild(structure, [convert_to_tensor(leaf) for leaf in leaves])
        reuse = ReuseMode.REUSE if self.built or self._reuse is True else self._reuse
        with variable_scope(self._scope or scope, default_name=self.name, reuse=reuse) as opened:
            self._scope = self._scope or opened
            if not self.built:
                first = flatten(given)[0][0]
                self._dtype = self._dtype or first.dtype
                self.build(first.shape if len(leaves) == 1 else [leaf.shape for leaf in flatten(given)[0]])
                self.built = True
                return self.call(given, state, **options)
            return self.call(given, state, **options)

    def add_variable(self, name: str, shape: Any, dtype: Any = None, initializer: Any = None, **options: Any) -> Any:
        """A variable in the cell's scope."""
        variable = get_variable(
            name,
            shape,
            dtype or self._dtype,
            initializer,
            options.get("regularizer"),
            options.get("trainable", self._trainable),
        )
        if variable not in self._variables:
            self._variables.append(variable)
        return variable

    add_weight = add_variable

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for so many sequences."""
        leaves, structure = flatten(_sizes_as_leaves(self.state_size))
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return rebuild(structure, [zeros_of(batch_size, leaf.shape, as_dtype(dtype)) for leaf in leaves])

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros, for as many sequences and of the type of `inputs` where those are given."""
        if inputs is not None:
            tensor = convert_to_tensor(inputs)
            batch_size, dtype = shape(tensor)[0], tensor.dtype
        return self.zero_state(batch_size, dtype)


class _Size:
    """The sizes of one part of a state, without the batch."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


def _sizes_as_leaves(size: Any) -> Any:
    """A structure of sizes with a leaf for each part of a state."""
    if isinstance(size, TensorShape):
        return _Size(size.known_dims())
    if isinstance(size, int | Dimension):
        return _Size((int(size),))
    leaves, structure = flatten(size)
    return rebuild(structure, [_sizes_as_leaves(leaf) for leaf in leaves])


def sizes_of(size: Any) -> tuple[list[tuple[int, ...]], Any]:
    """The sizes of each part of a state or output, without the batch, and the structure around them."""
    leaves, structure = flatten(_sizes_as_leaves(size))
    return [leaf.shape for leaf in leaves], structure


def zeros_of(batch_size: Any, sizes: tuple[int, ...], dtype: DType) -> Tensor:
    """Zeros `[batch, sizes...]` for a batch that is a number or a tensor."""
    if not isinstance(batch_size, Tensor):
        return zeros([int(batch_size), *sizes], dtype)
    found = zeros([batch_size, *sizes], dtype)
    found.set_shape([None, *sizes])
    return found


def input_size(shape: Any) -> int:
    """The last size of the inputs.

    Raises:
        ShapeError: it is not known.
    """
    size = TensorShape(shape).as_list()[-1]
    if size is None:
        raise ShapeError(f"a cell needs inputs whose last size is known, found shape {shape}")
    return size


def activation_or_tanh(activation: Any) -> Callable[[Any], Tensor]:
    """The activation of a cell: a function or its name; tanh by default."""
    if isinstance(activation, str):
        found = getattr(nn, activation, None) or getattr(math, activation)
        return found  # type: ignore[no-any-return]  # the functions of these modules give tensors
    return activation or math.tanh


def _snake_case(name: str) -> str:
    words = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower().lstrip("_")
