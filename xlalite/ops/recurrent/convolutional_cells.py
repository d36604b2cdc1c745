"""Long short-term memory whose inputs and states are images, and whose products are convolutions (Shi et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.ops.functions.array import concat, split
from xlalite.ops.functions.convolutions import convolution
from xlalite.ops.functions.math import sigmoid, tanh
from xlalite.ops.recurrent.cell import LSTMStateTuple, RNNCell, input_size
from xlalite.ops.training.initializers import zeros_initializer


class ConvLSTMCell(RNNCell):
    """A cell over signals of 1 to 3 dimensions: `[batch, sizes..., channels]`."""

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        """Makes a cell.

        Args:
            conv_ndims: Dimensions of the signals.
            input_shape: Sizes and channels of the inputs.
            output_channels: Channels of state and output.
            kernel_shape: Sizes of the kernel.
            use_bias: Whether there is a bias.
            skip_connection: Whether the output has the channels of the inputs, too.
            forget_bias: Added to the gates that keep the state.
            initializers: Of the kernel.
            name: Name of the scope.

        Raises:
            GraphError: the shapes do not have so many dimensions.
        """
        super().__init__(name=name)
        if len(input_shape) != conv_ndims + 1 or len(kernel_shape) != conv_ndims:
            raise GraphError(
                f"{name}: inputs {input_shape} and kernel {kernel_shape} do not have {conv_ndims} dimensions"
            )
        self._sizes = [int(size) for size in input_shape[:-1]]
        self._channels = output_channels
        self._kernel_shape = [int(size) for size in kernel_shape]
        self._use_bias = use_bias
        self._skip = int(input_shape[-1]) if skip_connection else 0
        self._forget_bias = forget_bias
        self._initializer = initializers

    @property
    def state_size(self) -> LSTMStateTuple:
        """The sizes of c and h."""
        return LSTMStateTuple(TensorShape([*self._sizes, self._channels]), self.output_size)

    @property
    def output_size(self) -> TensorShape:
        """The sizes of the output."""
        return TensorShape([*self._sizes, self._channels + self._skip])

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias."""
        channels = input_size(inputs_shape) + self._channels + self._skip
        shape = [*self._kernel_shape, channels, 4 * self._channels]
        self._kernel = self.add_variable("kernel", shape, initializer=self._initializer)
        if self._use_bias:
            self._bias = self.add_variable("biases", [4 * self._channels], initializer=zeros_initializer)

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, LSTMStateTuple]:
        """One step."""
        c, h = state
        gates = convolution(concat([inputs, h], -1), self._kernel, "SAME")
        if self._use_bias:
            gates = gates + self._bias
        i, j, f, o = split(gates, 4, -1)
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        output: Tensor = tanh(c) * sigmoid(o)
        if self._skip:
            output = concat([output, inputs], -1)
        return output, LSTMStateTuple(c, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """A cell over signals of one dimension."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **options: Any) -> None:
        """As `ConvLSTMCell`, without the number of dimensions."""
        super().__init__(conv_ndims=1, name=name, **options)


class Conv2DLSTMCell(ConvLSTMCell):
    """A cell over images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **options: Any) -> None:
        """As `ConvLSTMCell`, without the number of dimensions."""
        super().__init__(conv_ndims=2, name=name, **options)


class Conv3DLSTMCell(ConvLSTMCell):
    """A cell over signals of three dimensions."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **options: Any) -> None:
        """As `ConvLSTMCell`, without the number of dimensions."""
        super().__init__(conv_ndims=3, name=name, **options)
