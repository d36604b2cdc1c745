"""Batch normalisation with running statistics."""

from __future__ import annotations

from typing import Any

from xlalite.framework.graph.dtypes import bfloat16, float16, float32
from xlalite.framework.graph.errors import UnimplementedError
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import ones, reshape, zeros
from xlalite.ops.functions.nn import batch_normalization as normalize, moments
from xlalite.ops.functions.normalization import fused_batch_norm
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.promotion import cast_to
from xlalite.ops.layers.base import Layer, known_size, layer_function, smart_cond, static_truth
from xlalite.ops.training.initializers import Ones, Zeros
from xlalite.ops.training.moving_averages import assign_moving_average


class BatchNormalization(Layer):
    """`gamma * (inputs - mean) / sqrt(variance + epsilon) + beta` for each channel. Ioffe and Szegedy 2015.

    While training, mean and variance are those of the batch, and running means of them are kept by operations that join
    the UPDATE_OPS; otherwise the running means are used.
    """

    def __init__(
        self,
        axis: Any = -1,
        momentum: Any = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
        gamma_initializer: Any = Ones(),  # noqa: B008  # as above
        moving_mean_initializer: Any = Zeros(),  # noqa: B008  # as above
        moving_variance_initializer: Any = Ones(),  # noqa: B008  # as above
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: bool | None = None,
        trainable: bool = True,
        virtual_batch_size: int | None = None,
        adjustment: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """`axis` is the dimension of the channels, `momentum` the decay rate of the running means.

        Raises:
            UnimplementedError: `renorm`, `virtual_batch_size` or `adjustment` is asked for.
        """
        super().__init__(trainable, name, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise UnimplementedError(None, None, "batch normalisation has no renorm, virtual_batch_size or adjustment")
        self.axis = axis[0] if isinstance(axis, list | tuple) and len(axis) == 1 else axis
        if not isinstance(self.axis, int):
            raise ShapeError(f"batch normalisation: axis must be one integer, found {axis!r}")
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.fused = fused
        self._beta = (beta_initializer, beta_regularizer, True, beta_constraint)
        self._gamma = (gamma_initializer, gamma_regularizer, True, gamma_constraint)
        self._moving = (moving_mean_initializer, moving_variance_initializer)

    def build(self, input_shape: TensorShape) -> None:
        """Makes `gamma`, `beta`, `moving_mean` and `moving_variance`."""
        if input_shape.rank is None:
            raise ShapeError(f"{self.name}: the rank of the input must be known")
        size = known_size(input_shape, self.axis, self.name)
        self._axis = self.axis % input_shape.rank
        if self.fused is None:
            self.fused = input_shape.rank == 4 and self._axis in (1, 3)
        dtype = float32 if self._dtype in (float16, bfloat16) else self._dtype
        self.gamma = self.add_variable("gamma", [size], dtype, *self._gamma) if self.scale else None
        self.beta = self.add_variable("beta", [size], dtype, *self._beta) if self.center else None
        mean, variance = self._moving
        self.moving_mean = self.add_variable("moving_mean", [size], dtype, mean, trainable=False)
        self.moving_variance = self.add_variable("moving_variance", [size], dtype, variance, trainable=False)

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """The output; with the statistics of the batch if `training`, a truth value or a tensor."""
        compute = self._fused if self.fused else self._plain
        outputs, mean, variance = smart_cond(training, lambda: compute(inputs, True), lambda: compute(inputs, False))
        if static_truth(training) is False:
            return outputs
        one = constant(1.0, self.moving_mean.dtype)
        given = cast_to(constant(self.momentum), one.dtype) if isinstance(self.momentum, float) else self.momentum
        decay = smart_cond(training, lambda: given, lambda: one)
        for variable, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            self.add_update(assign_moving_average(variable, value, decay, zero_debias=False).op)
        return outputs

    def _fused(self, inputs: Tensor, training: bool) -> tuple[Tensor, Tensor, Tensor]:
        size, dtype = self.moving_mean.shape.known_dims(), self.moving_mean.dtype
        gamma = self.gamma.value() if self.gamma is not None else ones(size, dtype)
        beta = self.beta.value() if self.beta is not None else zeros(size, dtype)
        letters = {(4, 3): "NHWC", (4, 1): "NCHW", (5, 4): "NDHWC", (5, 1): "NCDHW"}[(len(inputs.shape), self._axis)]
        mean, variance = (None, None) if training else (self.moving_mean.value(), self.moving_variance.value())
        return fused_batch_norm(inputs, gamma, beta, mean, variance, self.epsilon, letters, training)

    def _plain(self, inputs: Tensor, training: bool) -> tuple[Tensor, Tensor, Tensor]:
        others = [dimension for dimension in range(len(inputs.shape)) if dimension != self._axis]
        wide = cast_to(inputs, self.moving_mean.dtype)
        mean, variance = moments(wide, others) if training else (self.moving_mean.value(), self.moving_variance.value())
        mean_there, variance_there, beta, gamma = [
            None if each is None else self._spread(each, inputs) for each in (mean, variance, self.beta, self.gamma)
        ]
        return (
            cast_to(normalize(wide, mean_there, variance_there, beta, gamma, self.epsilon), inputs.dtype),
            mean,
            variance,
        )

    def _spread(self, value: Any, inputs: Tensor) -> Any:
        """A number for each channel, so that it meets its channel."""
        if self._axis == len(inputs.shape) - 1:
            return value
        return reshape(value, [-1 if dimension == self._axis else 1 for dimension in range(len(inputs.shape))])


batch_normalization = layer_function(BatchNormalization, "training")
