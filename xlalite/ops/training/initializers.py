"""Initial values of variables: each initialiser gives a tensor for a shape and an element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from xlalite.framework.graph.dtypes import as_dtype, float32
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import as_shape
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.functions.array import ones, zeros
from xlalite.ops.functions.host_functions import py_func
from xlalite.ops.functions.random_ops import random_normal, random_uniform, truncated_normal
from xlalite.ops.helpers.constant import constant


class Initializer(Protocol):
    """What `get_variable` calls."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        ...


@dataclass(frozen=True)
class Zeros:
    """All zeros."""

    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        return zeros(shape, dtype or self.dtype)


@dataclass(frozen=True)
class Ones:
    """All ones."""

    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        return ones(shape, dtype or self.dtype)


@dataclass(frozen=True)
class Constant:
    """A given value: one number for all elements, or as many as there are elements."""

    value: Any = 0
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        return constant(self.value, dtype or self.dtype, shape)


@dataclass(frozen=True)
class RandomUniform:
    """Evenly distributed numbers."""

    minval: float = -0.05
    maxval: float = 0.05
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        return random_uniform(shape, self.minval, self.maxval, dtype or self.dtype, self.seed)


@dataclass(frozen=True)
class RandomNormal:
    """Normally distributed numbers."""

    mean: float = 0.0
    stddev: float = 0.05
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        return random_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


@dataclass(frozen=True)
class TruncatedNormal:
    """Normally distributed numbers within two standard deviations."""

    mean: float = 0.0
    stddev: float = 0.05
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        return truncated_normal(shape, self.mean, self.stddev, dtype or self.dtype, self.seed)


# A normal distribution cut at two standard deviations has this standard deviation itself.
_TRUNCATED_STDDEV = 0.87962566103423978


@dataclass(frozen=True)
class VarianceScaling:
    """Random numbers whose variance is `scale / n`, n from the number of inputs and outputs of a layer."""

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        fan_in, fan_out = _fans(as_shape(shape).known_dims())
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        if self.mode not in fans:
            raise ShapeError(f"VarianceScaling: mode {self.mode!r} is not one of {', '.join(fans)}")
        variance = self.scale / max(1.0, fans[self.mode])
        wanted = as_dtype(dtype or self.dtype)
        match self.distribution:
            case "uniform":
                limit = math.sqrt(3 * variance)
                return random_uniform(shape, -limit, limit, wanted, self.seed)
            case "untruncated_normal":
                return random_normal(shape, 0.0, math.sqrt(variance), wanted, self.seed)
            case "truncated_normal" | "normal":
                return truncated_normal(shape, 0.0, math.sqrt(variance) / _TRUNCATED_STDDEV, wanted, self.seed)
        raise ShapeError(
            f"VarianceScaling: distribution {self.distribution!r} is not one of truncated_normal, untruncated_normal, "
            "uniform"
        )


def glorot_uniform_initializer(seed: int | None = None, dtype: Any = float32) -> VarianceScaling:
    """Evenly distributed, for layers of inputs and outputs of like scale. Glorot and Bengio 2010."""
    return VarianceScaling(1.0, "fan_avg", "uniform", seed, dtype)


def glorot_normal_initializer(seed: int | None = None, dtype: Any = float32) -> VarianceScaling:
    """Normally distributed, for layers of inputs and outputs of like scale. Glorot and Bengio 2010."""
    return VarianceScaling(1.0, "fan_avg", "truncated_normal", seed, dtype)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Normally distributed, for layers before a rectifier. He et al. 2015."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Evenly distributed, for layers before a rectifier. He et al. 2015."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Normally distributed, for layers that keep the scale of their inputs. LeCun et al. 1998."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Evenly distributed, for layers that keep the scale of their inputs. LeCun et al. 1998."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = float32) -> VarianceScaling:
    """Glorot's, under its other name."""
    return VarianceScaling(1.0, "fan_avg", "uniform" if uniform else "truncated_normal", seed, dtype)


def contrib_variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None, dtype: Any = float32
) -> VarianceScaling:
    """`VarianceScaling` as `tf.contrib.layers` spells it."""
    return VarianceScaling(factor, mode.lower(), "uniform" if uniform else "truncated_normal", seed, dtype)


@dataclass(frozen=True)
class UniformUnitScaling:
    """Evenly distributed numbers that keep the scale of the inputs of a linear layer. Sussillo and Abbott 2014."""

    factor: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value."""
        inputs = math.prod(as_shape(shape).known_dims()[:-1])
        limit = math.sqrt(3 / max(1.0, inputs)) * self.factor
        return random_uniform(shape, -limit, limit, dtype or self.dtype, self.seed)


@dataclass(frozen=True)
class Orthogonal:
    """Rows or columns, whichever are fewer, that are orthogonal and have length `gain`. Saxe et al. 2013."""

    gain: float = 1.0
    seed: int | None = None
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value.

        Raises:
            ShapeError: there are fewer than two dimensions.
        """
        dims = as_shape(shape).known_dims()
        if len(dims) < 2:
            raise ShapeError(f"Orthogonal: at least two dimensions are needed, found {dims}")
        wanted = as_dtype(dtype or self.dtype)
        rows, columns = math.prod(dims[:-1]), dims[-1]
        drawn = random_normal([max(rows, columns), min(rows, columns)], dtype=wanted, seed=self.seed)

        def orthogonal(numbers: Any) -> Any:
            q, r = np.linalg.qr(numbers.astype(np.float64))
            q = q * np.where(np.diag(r) < 0, -1, 1) * self.gain
            return (q.T if rows < columns else q).reshape(dims).astype(numbers.dtype)

        value: Tensor = py_func(orthogonal, [drawn], wanted)
        value.set_shape(dims)
        return value


@dataclass(frozen=True)
class Identity:
    """Ones on the diagonal of a matrix, times `gain`."""

    gain: float = 1.0
    dtype: Any = float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The initial value.

        Raises:
            ShapeError: it is no matrix.
        """
        dims = as_shape(shape).known_dims()
        if len(dims) != 2:
            raise ShapeError(f"Identity: two dimensions are needed, found {dims}")
        wanted = as_dtype(dtype or self.dtype)
        return constant((np.eye(*dims) * self.gain).astype(wanted.numpy_dtype))


orthogonal_initializer = Orthogonal
identity_initializer = Identity
uniform_unit_scaling_initializer = UniformUnitScaling
zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
variance_scaling_initializer = VarianceScaling


def default_initializer(dtype: Any) -> Initializer:
    """What `get_variable` uses when nothing is said: Glorot's for floating point, zeros otherwise."""
    return glorot_uniform_initializer() if as_dtype(dtype).is_floating else Zeros()


def _fans(dims: Sequence[int]) -> tuple[float, float]:
    """Numbers of inputs and outputs of a layer with weights of these sizes."""
    if len(dims) < 2:
        size = float(dims[0]) if dims else 1.0
        return size, size
    receptive = math.prod(dims[:-2])
    return float(dims[-2] * receptive), float(dims[-1] * receptive)
