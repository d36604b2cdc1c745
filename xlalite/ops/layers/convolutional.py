"""Convolutional layers over one to three dimensions, transposed and separable ones."""

from __future__ import annotations

from typing import Any, ClassVar

from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.ops.functions.array import pad, shape, stack
from xlalite.ops.functions.convolutions import conv2d_transpose, conv3d_transpose, convolution, separable_conv2d
from xlalite.ops.functions.nn import bias_add
from xlalite.ops.layers.base import (
    Layer,
    activated,
    as_sizes,
    channel_axis,
    format_letters,
    known_size,
    layer_function,
)
from xlalite.ops.training.initializers import Zeros


class Conv(Layer):
    """A convolution with `filters` outputs, a bias and an activation."""

    rank: ClassVar[int]

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Sizes are one integer for all dimensions, or one for each."""
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.filters = int(filters)
        self.kernel_size = as_sizes(kernel_size, self.rank, "kernel_size")
        self.strides = as_sizes(strides, self.rank, "strides")
        self.dilation_rate = as_sizes(dilation_rate, self.rank, "dilation_rate")
        self.padding = padding.upper()
        self.data_format = data_format
        self.activation = activation
        self.use_bias = use_bias
        self._kernel = (kernel_initializer, kernel_regularizer, True, kernel_constraint)
        self._bias = (bias_initializer, bias_regularizer, True, bias_constraint)

    def build(self, input_shape: TensorShape) -> None:
        """Makes `kernel` and `bias`."""
        channels = known_size(input_shape, channel_axis(self.data_format, self.rank + 2), self.name)
        self.kernel = self.add_variable("kernel", [*self.kernel_size, *self._channels(channels)], None, *self._kernel)
        self._build_bias()

    def call(self, inputs: Tensor) -> Tensor:
        """The output."""
        padding = self.padding
        if padding == "CAUSAL":
            inputs, padding = self._padded_before(inputs), "VALID"
        letters = format_letters(self.data_format, self.rank)
        return self._finished(
            convolution(inputs, self.kernel, padding, self.strides, self.dilation_rate, data_format=letters)
        )

    def _channels(self, channels: int) -> tuple[int, int]:
        return channels, self.filters

    def _build_bias(self) -> None:
        self.bias = self.add_variable("bias", [self.filters], None, *self._bias) if self.use_bias else None

    def _finished(self, outputs: Tensor) -> Tensor:
        if self.bias is not None:
            letters = "NHWC" if self.data_format == "channels_last" else "NCHW"
            outputs = bias_add(outputs, self.bias, letters)
        return activated(outputs, self.activation)

    def _padded_before(self, inputs: Tensor) -> Tensor:
        axis = 1 if self.data_format == "channels_last" else 2
        missing = (self.kernel_size[0] - 1) * self.dilation_rate[0]
        return pad(inputs, [[missing, 0] if dimension == axis else [0, 0] for dimension in range(3)])


class Conv1D(Conv):
    """A convolution over one dimension."""

    rank = 1


class Conv2D(Conv):
    """A convolution over two dimensions."""

    rank = 2


class Conv3D(Conv):
    """A convolution over three dimensions."""

    rank = 3


class ConvTranspose(Conv):
    """The transpose of a convolution: larger outputs of smaller inputs."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Any = None,
        use_bias: bool = True,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """As for a convolution, without dilation."""
        super().__init__(filters, kernel_size, strides, padding, data_format, 1, activation, use_bias, *args, **kwargs)

    def call(self, inputs: Tensor) -> Tensor:
        """The output."""
        axis, rank = channel_axis(self.data_format, self.rank + 2), self.rank + 2
        spatial = [dimension for dimension in range(1, rank) if dimension != axis]
        dims = inputs.shape.dims or (None,) * rank
        running = shape(inputs) if None in dims else None
        sizes: list[Any] = [dims[dimension] if running is None else running[dimension] for dimension in range(rank)]
        known: list[int | None] = list(dims)
        for dimension, kernel, stride in zip(spatial, self.kernel_size, self.strides, strict=True):
            extra = max(kernel - stride, 0) if self.padding == "VALID" else 0
            given = dims[dimension]
            known[dimension] = None if given is None else given * stride + extra
            sizes[dimension] = sizes[dimension] * stride + extra if given is None else known[dimension]
        sizes[axis] = known[axis] = self.filters
        transposed = conv2d_transpose if self.rank == 2 else conv3d_transpose
        letters = format_letters(self.data_format, self.rank)
        outputs = transposed(inputs, self.kernel, stack(sizes), self.strides, self.padding, letters)
        outputs.set_shape(known)
        return self._finished(outputs)

    def _channels(self, channels: int) -> tuple[int, int]:
        return self.filters, channels


class Conv2DTranspose(ConvTranspose):
    """The transpose of a convolution over two dimensions."""

    rank = 2


class Conv3DTranspose(ConvTranspose):
    """The transpose of a convolution over three dimensions."""

    rank = 3


class SeparableConv2D(Conv):
    """A convolution of each channel by itself, then one that joins the channels."""

    rank = 2

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """`depth_multiplier` outputs of each channel by itself."""
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self._depthwise = (depthwise_initializer, depthwise_regularizer, True, depthwise_constraint)
        self._pointwise = (pointwise_initializer, pointwise_regularizer, True, pointwise_constraint)

    def build(self, input_shape: TensorShape) -> None:
        """Makes `depthwise_kernel`, `pointwise_kernel` and `bias`."""
        channels = known_size(input_shape, channel_axis(self.data_format, 4), self.name)
        middle = channels * self.depth_multiplier
        depthwise = [*self.kernel_size, channels, self.depth_multiplier]
        self.depthwise_kernel = self.add_variable("depthwise_kernel", depthwise, None, *self._depthwise)
        pointwise = [1, 1, middle, self.filters]
        self.pointwise_kernel = self.add_variable("pointwise_kernel", pointwise, None, *self._pointwise)
        self._build_bias()

    def call(self, inputs: Tensor) -> Tensor:
        """The output."""
        last = self.data_format == "channels_last"
        strides = (1, *self.strides, 1) if last else (1, 1, *self.strides)
        outputs = separable_conv2d(
            inputs,
            self.depthwise_kernel,
            self.pointwise_kernel,
            strides,
            self.padding,
            self.dilation_rate,
            data_format=format_letters(self.data_format, 2),
        )
        return self._finished(outputs)


conv1d = layer_function(Conv1D)
conv2d = layer_function(Conv2D)
conv3d = layer_function(Conv3D)
conv2d_transpose_layer = layer_function(Conv2DTranspose)
conv3d_transpose_layer = layer_function(Conv3DTranspose)
separable_conv2d_layer = layer_function(SeparableConv2D)
