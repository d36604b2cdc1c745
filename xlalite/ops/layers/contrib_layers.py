"""Layers of `tf.contrib.layers` without kernels: biases, normalisations over groups, and functions of features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import nn
from xlalite.ops.functions.array import concat, identity, meshgrid, reshape, shape, transpose
from xlalite.ops.functions.custom_gradients import custom_gradient
from xlalite.ops.functions.math import linspace, multiply, reduce_max, reduce_sum, rsqrt, square
from xlalite.ops.functions.sparse import elements_unlike
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.layers.arg_scope import add_arg_scope
from xlalite.ops.layers.base import activated, known_size
from xlalite.ops.layers.slim_layers import (
    collected,
    collections_of,
    fully_connected,
    is_channels_first,
    model_variable,
)
from xlalite.ops.training.initializers import Constant, Ones, Zeros
from xlalite.ops.training.variable_scope import variable_scope

relu = partial(fully_connected, activation_fn=nn.relu)
relu6 = partial(fully_connected, activation_fn=nn.relu6)
elu = partial(fully_connected, activation_fn=nn.elu)
linear = partial(fully_connected, activation_fn=None)


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Adds a variable to each channel, then activates."""
    given = convert_to_tensor(inputs)
    with variable_scope(scope, "BiasAdd", reuse=reuse):
        size = known_size(given.shape, 1 if is_channels_first(data_format) else -1, "channels")
        joined = collections_of(variables_collections, "biases")
        biases = model_variable("biases", [size], given.dtype, initializer, regularizer, trainable, joined)
        outputs = nn.bias_add(given, biases, data_format)
        return collected(activated(outputs, activation_fn), outputs_collections)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Tensor:
    """Each channel of each example normalised over its positions. Ulyanov et al. 2016."""
    given = convert_to_tensor(inputs)
    rank = given.shape.rank or 0
    channels = 1 if is_channels_first(data_format) else rank - 1
    with variable_scope(scope, "InstanceNorm", reuse=reuse):
        axes = [axis for axis in range(1, rank) if axis != channels]
        sizes = [known_size(given.shape, channels, "channels") if axis == channels else 1 for axis in range(rank)]
        outputs = _normalized(
            given, axes, sizes, center, scale, epsilon, param_initializers, variables_collections, trainable
        )
        return collected(activated(outputs, activation_fn), outputs_collections)


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Tensor:
    """Each group of channels of each example normalised, over `reduction_axes` too. Wu and He 2018.

    Raises:
        GraphError: the channels do not divide into so many groups, or are among `reduction_axes`.
    """
    given = convert_to_tensor(inputs)
    rank = given.shape.rank or 0
    channels, reduced = channels_axis % rank, [axis % rank for axis in reduction_axes]
    count = known_size(given.shape, channels, "channels")
    if channels in reduced:
        raise GraphError(f"group_norm: dimension {channels} has the channels, and is among {reduction_axes=}")
    if groups < 1 or count % groups:
        raise GraphError(f"group_norm: {count} channels are no {groups} groups of equal size")
    with variable_scope(scope, "GroupNorm", reuse=reuse):
        sizes = shape(given)
        parts = concat([sizes[:channels], [groups, count // groups], sizes[channels + 1 :]], 0)
        inner = [groups if axis == channels else 1 for axis in range(rank)]
        inner.insert(channels + 1, count // groups)
        axes = [channels + 1, *(axis + (axis > channels) for axis in reduced)]
        outputs = _normalized(
            reshape(given, parts), axes, inner, center, scale, epsilon, param_initializers,
            variables_collections, trainable,
        )  # fmt: skip
        outputs = reshape(outputs, sizes)
        outputs.set_shape(given.shape)
        return collected(activated(outputs, activation_fn), outputs_collections)


def _normalized(
    inputs: Tensor,
    axes: Sequence[int],
    sizes: Sequence[int],
    center: bool,
    scale: bool,
    epsilon: float,
    initializers: Any,
    collections: Any,
    trainable: bool,
) -> Tensor:
    """Mean 0 and variance 1 over some dimensions, then a variable for each channel, seen as the sizes of the input."""
    found, given = dict[str, Tensor](), dict(initializers or {})
    for name, wanted, initial in (("beta", center, Zeros()), ("gamma", scale, Ones())):
        if wanted:
            joined = collections_of(collections, name)
            variable = model_variable(
                name,
                [math.prod(sizes)],
                inputs.dtype,
                given.get(name, initial),
                trainable=trainable,
                collections=joined,
            )
            found[name] = reshape(variable, sizes)
    mean, variance = nn.moments(inputs, list(axes), keep_dims=True)
    return nn.batch_normalization(inputs, mean, variance, found.get("beta"), found.get("gamma"), epsilon)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Tensor:
    """Vectors along a dimension, of length 1."""
    given = convert_to_tensor(inputs)
    with variable_scope(scope, "UnitNorm"):
        return multiply(given, rsqrt(epsilon + reduce_sum(square(given), dim, keepdims=True)))


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Tensor:
    """The largest of each group of features, of which there are to be `num_units`. Goodfellow et al. 2013.

    Raises:
        GraphError: the features are no such groups of equal size.
    """
    given = convert_to_tensor(inputs)
    rank = given.shape.rank or 0
    place, features = axis % rank, known_size(given.shape, axis, "features")
    if num_units < 1 or features % num_units:
        raise GraphError(f"maxout: {features} features are no {num_units} groups of equal size")
    with variable_scope(scope, "MaxOut"):
        sizes = shape(given)
        parts = concat([sizes[:place], [num_units, features // num_units], sizes[place + 1 :]], 0)
        return reduce_max(reshape(given, parts), place + 1)


def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Tensor:
    """The input, whose gradient is multiplied."""

    @custom_gradient
    def scaled(x: Tensor) -> Any:
        return identity(x), lambda gradient: gradient * gradient_multiplier

    outputs: Tensor = scaled(convert_to_tensor(inputs))
    return outputs


def spatial_softmax(
    features: Any,
    temperature: Any = None,
    name: str | None = None,
    variables_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
) -> Tensor:
    """Where each channel of images lies: the mean row and column, from -1 to 1, weighted by its softmax.

    The features are divided by a variable, which begins at `temperature` or 1. Gives [batch, 2 * channels].
    """
    given = convert_to_tensor(features)
    with variable_scope(name, "spatial_softmax"):
        if not is_channels_first(data_format):
            given = transpose(given, [0, 3, 1, 2])
        channels = known_size(given.shape, 1, "channels")
        height, width = (known_size(given.shape, axis, "positions") for axis in (2, 3))
        start = Ones() if temperature is None else Constant(temperature)
        joined = collections_of(variables_collections, "temperature")
        divisor = model_variable("temperature", [], given.dtype, start, None, trainable, joined)
        weights = nn.softmax(reshape(given, [-1, height * width]) / divisor)
        places = meshgrid(linspace(-1.0, 1.0, height), linspace(-1.0, 1.0, width), indexing="ij")
        means = [reduce_sum(reshape(place, [-1]) * weights, 1, keepdims=True) for place in places]
        return reshape(concat(means, 1), [-1, 2 * channels])


def dense_to_sparse(
    tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None
) -> SparseTensor:
    """The elements that differ from `eos_token`."""
    given = convert_to_tensor(tensor)
    with get_default_graph().name_scope(scope or "dense_to_sparse"):
        found = elements_unlike(given, convert_to_tensor(eos_token, given.dtype))
        get_default_graph().add_to_collections(outputs_collections, found)
        return found
