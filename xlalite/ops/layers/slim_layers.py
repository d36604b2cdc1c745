"""The layers of `tf.contrib.layers` and `tf.contrib.slim`: functions whose defaults `arg_scope` sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import nn
from xlalite.ops.functions.array import identity, one_hot
from xlalite.ops.functions.embedding import embedding_lookup
from xlalite.ops.functions.math import reduce_mean
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.layers import convolutional, core, pooling
from xlalite.ops.layers.arg_scope import add_arg_scope
from xlalite.ops.layers.base import Layer, smart_cond
from xlalite.ops.layers.normalization import BatchNormalization
from xlalite.ops.training.initializers import Ones, Zeros, xavier_initializer
from xlalite.ops.training.variable import Variable
from xlalite.ops.training.variable_scope import get_variable, variable_scope

# What these layers call the variables of the others.
_NAMES = {"kernel": "weights", "bias": "biases", "depthwise_kernel": "depthwise_weights",
          "pointwise_kernel": "pointwise_weights"}  # fmt: skip


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    **unused: Any,
) -> Variable:
    """A variable that belongs to the model: also among the MODEL_VARIABLES."""
    joined = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return get_variable(name, shape, dtype, initializer, regularizer, trainable, [*dict.fromkeys(joined)])


variable = add_arg_scope(get_variable)


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """`activation_fn(normalizer_fn(inputs @ weights))`, with biases where there is no normalizer."""
    layer = core.Dense(
        num_outputs,
        use_bias=normalizer_fn is None and biases_initializer is not None,
        kernel_initializer=weights_initializer or xavier_initializer(),
        bias_initializer=biases_initializer,
        kernel_regularizer=weights_regularizer,
        bias_regularizer=biases_regularizer,
        trainable=trainable,
    )
    return _applied(
        layer, inputs, "fully_connected", scope, reuse, activation_fn, normalizer_fn, normalizer_params,
        variables_collections, outputs_collections,
    )  # fmt: skip


@add_arg_scope
def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """A convolution over one to three dimensions, by the rank of the input."""
    given = convert_to_tensor(inputs)
    kind = {3: convolutional.Conv1D, 4: convolutional.Conv2D, 5: convolutional.Conv3D}[given.shape.rank or 4]
    layer = kind(
        num_outputs,
        kernel_size,
        stride,
        padding,
        _format(data_format),
        rate,
        use_bias=normalizer_fn is None and biases_initializer is not None,
        kernel_initializer=weights_initializer or xavier_initializer(),
        bias_initializer=biases_initializer,
        kernel_regularizer=weights_regularizer,
        bias_regularizer=biases_regularizer,
        trainable=trainable,
    )
    return _applied(
        layer, given, "Conv", scope, reuse, activation_fn, normalizer_fn, normalizer_params, variables_collections,
        outputs_collections,
    )  # fmt: skip


@add_arg_scope
def conv2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """The transpose of a convolution over two or three dimensions, by the rank of the input."""
    given = convert_to_tensor(inputs)
    kind = {4: convolutional.Conv2DTranspose, 5: convolutional.Conv3DTranspose}[given.shape.rank or 4]
    layer = kind(
        num_outputs,
        kernel_size,
        stride,
        padding,
        _format(data_format),
        use_bias=normalizer_fn is None and biases_initializer is not None,
        kernel_initializer=weights_initializer or xavier_initializer(),
        bias_initializer=biases_initializer,
        kernel_regularizer=weights_regularizer,
        bias_regularizer=biases_regularizer,
        trainable=trainable,
    )
    return _applied(
        layer, given, f"Conv{kind.rank}d_transpose", scope, reuse, activation_fn, normalizer_fn, normalizer_params,
        variables_collections, outputs_collections,
    )  # fmt: skip


@add_arg_scope
def separable_conv2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = nn.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = None,
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = Zeros(),  # noqa: B008  # initialisers do not change
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """A convolution of each channel by itself, then one that joins the channels."""
    layer = convolutional.SeparableConv2D(
        num_outputs or 0,
        kernel_size,
        stride,
        padding,
        _format(data_format),
        rate,
        depth_multiplier,
        use_bias=normalizer_fn is None and biases_initializer is not None,
        depthwise_initializer=weights_initializer or xavier_initializer(),
        pointwise_initializer=pointwise_initializer or weights_initializer or xavier_initializer(),
        bias_initializer=biases_initializer,
        depthwise_regularizer=weights_regularizer,
        pointwise_regularizer=weights_regularizer,
        bias_regularizer=biases_regularizer,
        trainable=trainable,
    )
    return _applied(
        layer, inputs, "SeparableConv2d", scope, reuse, activation_fn, normalizer_fn, normalizer_params,
        variables_collections, outputs_collections,
    )  # fmt: skip


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: Any = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    **others: Any,
) -> Tensor:
    """Batch normalisation; with `updates_collections=None`, each computation of the output keeps the running means."""
    given, params = convert_to_tensor(inputs), dict(param_initializers or {})
    regularizers = dict(param_regularizers or {})
    layer = BatchNormalization(
        axis=1 if is_channels_first(data_format) else -1,
        momentum=decay,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=params.get("beta", Zeros()),
        gamma_initializer=params.get("gamma", Ones()),
        moving_mean_initializer=params.get("moving_mean", Zeros()),
        moving_variance_initializer=params.get("moving_variance", Ones()),
        beta_regularizer=regularizers.get("beta"),
        gamma_regularizer=regularizers.get("gamma"),
        fused=fused,
        trainable=trainable,
        **others,
    )
    graph = get_default_graph()
    kept = graph.get_collection(GraphKeys.UPDATE_OPS)
    outputs = _applied(
        layer, given, "BatchNorm", scope, reuse, None, None, None, variables_collections, None, training=is_training
    )
    if updates_collections != GraphKeys.UPDATE_OPS:
        graph.get_collection_ref(GraphKeys.UPDATE_OPS)[:] = kept
        for update in layer.updates:
            graph.add_to_collections(updates_collections, update)
    if updates_collections is None and layer.updates:
        with graph.control_dependencies(layer.updates):
            outputs = identity(outputs)
    result = outputs if activation_fn is None else activation_fn(outputs)
    return collected(result, outputs_collections)


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Tensor:
    """Each example normalised over the dimensions from `begin_norm_axis` on. Ba et al. 2016."""
    given = convert_to_tensor(inputs)
    with variable_scope(scope, "LayerNorm", reuse=reuse):
        sizes = given.shape[begin_params_axis:]
        joined = collections_of(variables_collections, "beta"), collections_of(variables_collections, "gamma")
        beta, gamma = None, None
        if center:
            beta = model_variable("beta", sizes, given.dtype, Zeros(), trainable=trainable, collections=joined[0])
        if scale:
            gamma = model_variable("gamma", sizes, given.dtype, Ones(), trainable=trainable, collections=joined[1])
        rank = given.shape.rank or 0
        axes = [*range(begin_norm_axis % rank, rank)]
        mean, variance = nn.moments(given, axes, keep_dims=True)
        epsilon = 1e-3 if given.dtype.name == "float16" else 1e-12
        outputs = nn.batch_normalization(given, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(given.shape)
        return collected(outputs if activation_fn is None else activation_fn(outputs), outputs_collections)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Tensor:
    """Keeps elements with probability `keep_prob` while training."""
    given = convert_to_tensor(inputs)
    with variable_scope(scope, "Dropout"):
        outputs = smart_cond(
            is_training, lambda: nn.dropout(given, keep_prob, noise_shape, seed), lambda: identity(given)
        )
        return collected(outputs, outputs_collections)


def _pool(kind: str, default_scope: str) -> Callable[..., Tensor]:
    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str | None = None,
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Tensor:
        layer = getattr(pooling, kind)(kernel_size, stride, padding, _format(data_format))
        with get_default_graph().name_scope(scope or default_scope):
            return collected(layer.call(convert_to_tensor(inputs)), outputs_collections)

    pool.__name__ = pool.__qualname__ = default_scope
    pool.__doc__ = "One number for each window."
    return add_arg_scope(pool)


max_pool2d = _pool("MaxPooling2D", "MaxPool2D")
avg_pool2d = _pool("AveragePooling2D", "AvgPool2D")
max_pool3d = _pool("MaxPooling3D", "MaxPool3D")
avg_pool3d = _pool("AveragePooling3D", "AvgPool3D")


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """All dimensions but the first as one."""
    with get_default_graph().name_scope(scope or "Flatten"):
        return collected(core.Flatten().call(convert_to_tensor(inputs)), outputs_collections)


@add_arg_scope
def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """A new last dimension with `on_value` where the label is."""
    return collected(one_hot(labels, num_classes, on_value, off_value), outputs_collections)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Tensor:
    """Softmax over the last dimension."""
    with get_default_graph().name_scope(scope or "softmax"):
        return nn.softmax(logits)


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """Rows of a table of embeddings, which the scope `EmbedSequence` holds."""
    with variable_scope(scope, "EmbedSequence", reuse=reuse):
        sizes = None if vocab_size is None or embed_dim is None else [vocab_size, embed_dim]
        embeddings = model_variable("embeddings", sizes, float32, initializer, regularizer, trainable)
        return embedding_lookup(embeddings, ids)


def global_average_pool(inputs: Any) -> Tensor:
    """The mean of each channel of images."""
    return reduce_mean(inputs, [1, 2])


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A layer applied several times, each under a scope with its number."""
    name = kwargs.pop("scope", None)
    with variable_scope(name, "Repeat") as opened:
        prefix = name if isinstance(name, str) else opened.name.rpartition("/")[2]
        outputs = inputs
        for number in range(1, repetitions + 1):
            outputs = layer(outputs, *args, **kwargs, scope=f"{prefix}_{number}")
        return outputs


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Sequence[Any], **kwargs: Any) -> Any:
    """A layer applied once for each of several arguments, each under a scope with its number."""
    name = kwargs.pop("scope", None)
    with variable_scope(name, "Stack") as opened:
        prefix = name if isinstance(name, str) else opened.name.rpartition("/")[2]
        outputs = inputs
        for number, given in enumerate(stack_args, 1):
            arguments = given if isinstance(given, list | tuple) else [given]
            outputs = layer(outputs, *arguments, **kwargs, scope=f"{prefix}_{number}")
        return outputs


def _applied(
    layer: Layer,
    inputs: Any,
    default_scope: str,
    scope: Any,
    reuse: Any,
    activation_fn: Any,
    normalizer_fn: Any,
    normalizer_params: Any,
    variables_collections: Any,
    outputs_collections: Any,
    **for_call: Any,
) -> Tensor:
    """A layer's output in a scope of its own, normalised and activated."""
    layer.renamed = _NAMES
    layer.collections_of = lambda name: [GraphKeys.MODEL_VARIABLES, *collections_of(variables_collections, name)]
    with variable_scope(scope, default_scope, reuse=reuse) as opened:
        layer.enter(opened)
        outputs = layer(inputs, **for_call)
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return collected(outputs, outputs_collections)


def collections_of(collections: Any, name: str) -> list[Any]:
    """The collections that a layer's variable of that name is to be in."""
    given = collections.get(name) if isinstance(collections, dict) else collections
    return [given] if isinstance(given, str) else list(given or ())


def collected(outputs: Tensor, collections: Any) -> Tensor:
    """The outputs, which are now in some collections, too."""
    get_default_graph().add_to_collections(collections, outputs)
    return outputs


def is_channels_first(letters: str | None) -> bool:
    """Whether a data format such as `NCHW` has the channels behind the batch."""
    return letters is not None and letters.startswith("NC")


def _format(letters: str | None) -> str:
    return "channels_first" if is_channels_first(letters) else "channels_last"
