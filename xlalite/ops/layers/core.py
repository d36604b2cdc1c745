"""Dense layers, dropout, flattening."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.ops.functions.array import concat, identity, reshape, shape, transpose
from xlalite.ops.functions.math import matmul
from xlalite.ops.functions.nn import bias_add, dropout as drop
from xlalite.ops.layers.base import Layer, activated, known_size, layer_function, smart_cond
from xlalite.ops.training.initializers import Zeros


class Dense(Layer):
    """`activation(inputs @ kernel + bias)` along the last dimension."""

    def __init__(
        self,
        units: int,
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
        """`units` outputs."""
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        self.activation = activation
        self.use_bias = use_bias
        self._kernel = (kernel_initializer, kernel_regularizer, True, kernel_constraint)
        self._bias = (bias_initializer, bias_regularizer, True, bias_constraint)

    def build(self, input_shape: TensorShape) -> None:
        """Makes `kernel` and `bias`."""
        inner = known_size(input_shape, -1, self.name)
        self.kernel = self.add_variable("kernel", [inner, self.units], None, *self._kernel)
        self.bias = self.add_variable("bias", [self.units], None, *self._bias) if self.use_bias else None

    def call(self, inputs: Tensor) -> Tensor:
        """The output."""
        rank = inputs.shape.rank
        flat = inputs if rank == 2 else reshape(inputs, [-1, self.kernel.shape.known_dims()[0]])
        outputs = matmul(flat, self.kernel)
        if rank != 2:
            outer = inputs.shape.dims[:-1] if inputs.shape.dims is not None else (None, None)
            if sum(size is None for size in outer) <= 1:
                outputs = reshape(outputs, [*(-1 if size is None else size for size in outer), self.units])
            else:
                outputs = reshape(outputs, concat([shape(inputs)[:-1], [self.units]], 0))
                outputs.set_shape(self.compute_output_shape(inputs.shape))
        if self.bias is not None:
            outputs = bias_add(outputs, self.bias)
        return activated(outputs, self.activation)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """As the input's, with the units last."""
        dims = TensorShape(input_shape).dims
        return TensorShape(None if dims is None else [*dims[:-1], self.units])


class Dropout(Layer):
    """Sets elements to 0 with probability `rate` while training, and scales the others."""

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: str | None = None, **kwargs: Any
    ) -> None:
        """`noise_shape` says which elements share their fate."""
        super().__init__(name=name, **kwargs)
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """The output; the input itself unless `training`."""
        return smart_cond(
            training,
            lambda: drop(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate),
            lambda: identity(inputs),
        )


class Flatten(Layer):
    """All dimensions but the first as one."""

    def __init__(self, data_format: str = "channels_last", name: str | None = None, **kwargs: Any) -> None:
        """With `channels_first`, channels are moved to the end before."""
        super().__init__(name=name, **kwargs)
        self._data_format = data_format

    def call(self, inputs: Tensor) -> Tensor:
        """The output."""
        dims = inputs.shape.dims
        if dims is None:
            return reshape(inputs, concat([shape(inputs)[:1], [-1]], 0))
        if self._data_format == "channels_first" and len(dims) > 2:
            inputs = transpose(inputs, [0, *range(2, len(dims)), 1])
        inner = inputs.shape[1:].num_elements()
        if inner is not None:
            return reshape(inputs, [-1 if dims[0] is None else dims[0], inner])
        return reshape(inputs, concat([shape(inputs)[:1], [-1]], 0))


dense = layer_function(Dense)
flatten = layer_function(Flatten)
dropout = layer_function(Dropout, "training")
