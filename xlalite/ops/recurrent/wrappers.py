"""Cells around cells: stacked, with dropout, with a shortcut, on a device."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import concat, split
from xlalite.ops.functions.math import matmul
from xlalite.ops.functions.nn import bias_add
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.recurrent.cell import LSTMStateTuple, RNNCell, input_size, sizes_of
from xlalite.ops.recurrent.time_steps import dropped_out
from xlalite.ops.training.initializers import zeros_initializer
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import variable_scope


class _Wrapper(RNNCell):
    """A cell around another one, whose sizes it has."""

    def __init__(self, cell: RNNCell, **options: Any) -> None:
        """Wraps a cell."""
        super().__init__(**options)
        self._cell = cell

    @property
    def wrapped_cell(self) -> RNNCell:
        """The cell inside."""
        return self._cell

    @property
    def state_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.output_size

    @property
    def variables(self) -> list[Variable]:
        """Those of the cell inside, and its own."""
        return [*self._cell.variables, *self._variables]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell inside."""
        return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **options: Any) -> tuple[Any, Any]:
        """The output and the next state; the variables lie where the cell inside puts them."""
        return self.call(inputs, state, **({"scope": scope} if scope is not None else {}), **options)


class DropoutWrapper(_Wrapper):
    """Dropout of what goes into a cell, of its state and of what comes out.

    In a loop over time the random numbers of all steps are drawn before it.
    """

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        """Wraps a cell.

        Args:
            cell: The cell.
            input_keep_prob: Probability that an element of the inputs stays.
            output_keep_prob: Probability that an element of the output stays.
            state_keep_prob: Probability that an element of the state stays.
            variational_recurrent: Drop the same elements in all steps (Gal and Ghahramani 2016).
            input_size: Sizes of the inputs, for variational dropout of them.
            dtype: Element type, for variational dropout.
            seed: Of the random numbers.
            dropout_state_filter_visitor: Says of each part of the state whether it is dropped; what LSTMs remember is
                not, by default.
            **options: As for all cells.

        Raises:
            GraphError: a probability is not in [0, 1], or variational dropout lacks the element type or input sizes.
        """
        super().__init__(cell, dtype=dtype, **options)
        self._keep = {"input": input_keep_prob, "state": state_keep_prob, "output": output_keep_prob}
        for what, keep in self._keep.items():
            if isinstance(keep, int | float) and not 0 <= keep <= 1:
                raise GraphError(f"DropoutWrapper: {what}_keep_prob must be in [0, 1], found {keep}")
        self._seed = seed
        self._filter = dropout_state_filter_visitor
        self._noise: dict[str, list[Tensor]] = {}
        if variational_recurrent:
            if dtype is None:
                raise GraphError("DropoutWrapper: variational dropout needs dtype=")
            sizes = {"state": cell.state_size, "output": cell.output_size}
            if _drops(input_keep_prob):
                if input_size is None:
                    raise GraphError("DropoutWrapper: variational dropout of the inputs needs input_size=")
                sizes["input"] = input_size
            self._noise = {what: self._drawn(what, each) for what, each in sizes.items() if _drops(self._keep[what])}

    def call(self, inputs: Any, state: Any, **options: Any) -> tuple[Any, Any]:
        """One step."""
        inputs = self._dropped("input", inputs)
        output, following = self._cell(inputs, state, **options)
        if _drops(self._keep["state"]):
            following = self._dropped_state(following)
        return self._dropped("output", output), following

    def _drawn(self, what: str, size: Any) -> list[Tensor]:
        assert self._dtype is not None, "it was asked for"
        return [
            random_uniform([1, *sizes], seed=self._seed_for(what, number), dtype=self._dtype)
            for number, sizes in enumerate(sizes_of(size)[0])
        ]

    def _seed_for(self, what: str, number: int) -> int | None:
        """A seed for one part, which differs from those of others."""
        if self._seed is None:
            return None
        text = f"{self._seed}{what}_{number}".encode()
        return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _dropped(self, what: str, values: Any, chosen: Sequence[bool] | None = None) -> Any:
        keep = self._keep[what]
        if not _drops(keep):
            return values
        leaves, structure = flatten(values)
        noise = self._noise.get(what)
        return rebuild(
            structure,
            [
                dropped_out(leaf, keep, self._seed_for(what, number), None if noise is None else noise[number])
                if chosen is None or chosen[number]
                else leaf
                for number, leaf in enumerate(map(convert_to_tensor, leaves))
            ],
        )

    def _dropped_state(self, state: Any) -> Any:
        return self._dropped("state", state, _droppable(state, self._filter))


def _drops(keep: Any) -> bool:
    return not isinstance(keep, int | float) or keep < 1


def _droppable(state: Any, choose: Callable[[Any], Any] | None) -> list[bool]:
    """For each part of a state whether dropout applies to it."""
    if choose is not None:
        chosen = choose(state)
        count = len(flatten(state)[0])
        return [chosen] * count if isinstance(chosen, bool) else [bool(each) for each in flatten(chosen)[0]]
    if isinstance(state, LSTMStateTuple):
        return [False, True]
    if isinstance(state, list | tuple):
        return [each for part in state for each in _droppable(part, None)]
    return [True]


class ResidualWrapper(_Wrapper):
    """A cell whose inputs are added to its output."""

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Any, Any], Any] | None = None, **options: Any) -> None:
        """Wraps a cell; `residual_fn(inputs, output)` combines both in another way."""
        super().__init__(cell, **options)
        self._combine = residual_fn

    def call(self, inputs: Any, state: Any, **options: Any) -> tuple[Any, Any]:
        """One step."""
        output, following = self._cell(inputs, state, **options)
        if self._combine is not None:
            return self._combine(inputs, output), following
        given, (results, structure) = flatten(inputs)[0], flatten(output)
        return rebuild(structure, [x + y for x, y in zip(given, results, strict=True)]), following


class DeviceWrapper(_Wrapper):
    """A cell whose operations are put on a device."""

    def __init__(self, cell: RNNCell, device: Any, **options: Any) -> None:
        """Wraps a cell."""
        super().__init__(cell, **options)
        self._device = device

    def call(self, inputs: Any, state: Any, **options: Any) -> tuple[Any, Any]:
        """One step."""
        with get_default_graph().device(self._device):
            return self._cell(inputs, state, **options)


class MultiRNNCell(RNNCell):
    """Cells one above the other: what one puts out goes into the next."""

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        """The cells, the lowest first.

        Raises:
            GraphError: there is no cell, or states that are tuples should be joined into one.
        """
        super().__init__()
        if not cells:
            raise GraphError("MultiRNNCell: there is no cell")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(isinstance(cell.state_size, tuple) for cell in cells):
            raise GraphError("MultiRNNCell: states of cells that are tuples need state_is_tuple=True")

    @property
    def state_size(self) -> Any:
        """The sizes of all states."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """That of the highest cell."""
        return self._cells[-1].output_size

    @property
    def variables(self) -> list[Variable]:
        """Those of all cells."""
        return [variable for cell in self._cells for variable in cell.variables]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros for each cell."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """One step."""
        sizes = [cell.state_size for cell in self._cells]
        states = state if self._state_is_tuple else split(state, sizes, 1)
        if len(states) != len(self._cells):
            raise GraphError(f"MultiRNNCell: {len(states)} states for {len(self._cells)} cells")
        following = []
        for number, (cell, own) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{number}"):
                inputs, new = cell(inputs, own)
            following.append(new)
        return inputs, tuple(following) if self._state_is_tuple else concat(following, 1)


class OutputProjectionWrapper(_Wrapper):
    """A cell whose output is multiplied with a matrix."""

    def __init__(self, cell: RNNCell, output_size: int, activation: Any = None, reuse: Any = None) -> None:
        """Wraps a cell."""
        super().__init__(cell, _reuse=reuse, name="output_projection_wrapper")
        self._projected, self._activation = output_size, activation

    @property
    def output_size(self) -> int:
        """The number of columns of the matrix."""
        return self._projected

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **options: Any) -> tuple[Any, Any]:
        """The output and the next state."""
        return RNNCell.__call__(self, inputs, state, scope, **options)

    def call(self, inputs: Any, state: Any, **options: Any) -> tuple[Any, Any]:
        """One step."""
        output, following = self._cell(inputs, state)
        sizes = [input_size(output.shape), self._projected]
        kernel = self.add_variable("kernel", sizes)
        bias = self.add_variable("bias", [self._projected], initializer=zeros_initializer)
        projected = bias_add(matmul(output, kernel), bias)
        return projected if self._activation is None else self._activation(projected), following


class InputProjectionWrapper(_Wrapper):
    """A cell whose inputs are multiplied with a matrix."""

    def __init__(
        self, cell: RNNCell, num_proj: int, activation: Any = None, input_size: Any = None, reuse: Any = None
    ) -> None:
        """Wraps a cell."""
        super().__init__(cell, _reuse=reuse, name="input_projection_wrapper")
        self._projected, self._activation = num_proj, activation

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **options: Any) -> tuple[Any, Any]:
        """The output and the next state."""
        return RNNCell.__call__(self, inputs, state, scope, **options)

    def call(self, inputs: Any, state: Any, **options: Any) -> tuple[Any, Any]:
        """One step."""
        kernel = self.add_variable("kernel", [input_size(inputs.shape), self._projected])
        bias = self.add_variable("bias", [self._projected], initializer=zeros_initializer)
        projected = bias_add(matmul(inputs, kernel), bias)
        return self._cell(projected if self._activation is None else self._activation(projected), state)
