"""Layers: what they compute, what their variables are called, and when these are shared."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError, UnimplementedError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError

RNG = np.random.default_rng(0)


def names() -> list[str]:
    return [variable.op.name for variable in tf.global_variables()]


def evaluate(*tensors: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors), feeds)


def test_dense_layers_are_numbered_and_named_as_in_tensorflow(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    hidden = tf.layers.dense(x, 4, activation=tf.nn.relu)
    tf.layers.dense(hidden, 2)
    tf.layers.dense(hidden, 2, name="out", use_bias=False)
    assert names() == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias", "out/kernel"]
    assert hidden.op.name == "dense/Relu"
    assert hidden.shape.as_list() == [None, 4]
    with pytest.raises(GraphError, match="'out/kernel' exists already"):
        tf.layers.dense(hidden, 2, name="out")
    tf.layers.dense(hidden, 2, name="out", use_bias=False, reuse=True)
    assert len(names()) == 5


def test_a_scope_that_is_opened_again_finds_its_layers(graph: Graph) -> None:
    def network(x: Any, reuse: bool) -> Any:
        with tf.variable_scope("D", reuse=reuse):
            return tf.layers.dense(tf.layers.dense(x, 3), 1)

    x = np.ones((2, 3), np.float32)
    first, second = network(x, False), network(x, True)
    assert names() == ["D/dense/kernel", "D/dense/bias", "D/dense_1/kernel", "D/dense_1/bias"]
    one, other = evaluate(first, second)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("shape", [(2, 3), (2, 5, 3), (0, 3)])
@pytest.mark.parametrize("static", [True, False])
def test_dense_is_a_product_along_the_last_dimension(shape: tuple[int, ...], static: bool, graph: Graph) -> None:
    value = RNG.standard_normal(shape).astype(np.float32)
    x = tf.placeholder(tf.float32, shape if static else [*[None] * (len(shape) - 1), 3])
    layer = tf.layers.Dense(4, activation=tf.tanh, bias_initializer=tf.ones_initializer())
    y, kernel = evaluate(layer(x), layer.kernel, feeds={x: value})
    np.testing.assert_allclose(y, np.tanh(value @ kernel + 1), rtol=1e-5, atol=1e-6)
    assert layer.count_params() == 16
    assert [v.op.name for v in layer.trainable_weights] == ["dense/kernel", "dense/bias"]


def test_layers_share_their_variables_over_calls(graph: Graph) -> None:
    layer = tf.layers.Dense(2)
    layer(np.ones((1, 3), np.float32))
    layer(np.ones((2, 3), np.float32))
    assert names() == ["dense/kernel", "dense/bias"]


def test_regularizers_give_losses(graph: Graph) -> None:
    layer = tf.layers.Dense(
        2,
        kernel_initializer=tf.ones_initializer(),
        kernel_regularizer=lambda w: tf.reduce_sum(w) * 0.5,
        activity_regularizer=tf.reduce_sum,
    )
    layer(np.ones((1, 3), np.float32))
    assert len(layer.losses) == 2
    assert evaluate(tf.losses.get_regularization_loss()) == [3 + 6]


def reference_convolution(x: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
    height, width = kernel.shape[:2]
    rows, columns = (x.shape[1] - height) // stride + 1, (x.shape[2] - width) // stride + 1
    out = np.zeros((x.shape[0], rows, columns, kernel.shape[3]))
    for i in range(rows):
        for j in range(columns):
            window = x[:, i * stride : i * stride + height, j * stride : j * stride + width]
            out[:, i, j] = np.einsum("nhwc,hwco->no", window, kernel)
    return out


@pytest.mark.parametrize("first", [False, True], ids=["channels last", "channels first"])
def test_convolutions(first: bool, graph: Graph) -> None:
    value = RNG.standard_normal((2, 6, 7, 3)).astype(np.float32)
    given = value.transpose(0, 3, 1, 2) if first else value
    layer = tf.layers.Conv2D(
        4, [3, 2], 2, data_format="channels_first" if first else "channels_last", activation=tf.nn.relu
    )
    y, kernel = evaluate(layer(given), layer.kernel)
    expected = np.maximum(reference_convolution(value, kernel, 2), 0)
    np.testing.assert_allclose(y.transpose(0, 2, 3, 1) if first else y, expected, rtol=1e-4, atol=1e-5)
    assert names() == ["conv2d/kernel", "conv2d/bias"]


def test_convolutions_of_other_ranks_and_kinds_have_their_sizes_and_names(graph: Graph) -> None:
    line, volume = np.ones((2, 8, 3), np.float32), np.ones((2, 4, 4, 4, 3), np.float32)
    image = tf.placeholder(tf.float32, [None, 5, None, 3])
    assert tf.layers.conv1d(line, 4, 3, padding="same").shape.as_list() == [2, 8, 4]
    assert tf.layers.conv1d(line, 4, 3, padding="causal", dilation_rate=2).shape.as_list() == [2, 8, 4]
    assert tf.layers.conv3d(volume, 4, 2).shape.as_list() == [2, 3, 3, 3, 4]
    grown = tf.layers.conv2d_transpose(image, 4, 3, strides=2, padding="same")
    assert grown.shape.as_list() == [None, 10, None, 4]
    valid = tf.layers.conv2d_transpose(image, 4, 3, strides=2)
    separable = tf.layers.separable_conv2d(image, 4, 3, depth_multiplier=2)
    deep = tf.layers.conv3d_transpose(volume, 2, 2, 2)
    assert names() == [
        *("conv1d/kernel", "conv1d/bias", "conv1d_1/kernel", "conv1d_1/bias", "conv3d/kernel", "conv3d/bias"),
        *("conv2d_transpose/kernel", "conv2d_transpose/bias", "conv2d_transpose_1/kernel", "conv2d_transpose_1/bias"),
        *("separable_conv2d/depthwise_kernel", "separable_conv2d/pointwise_kernel", "separable_conv2d/bias"),
        *("conv3d_transpose/kernel", "conv3d_transpose/bias"),
    ]
    found = evaluate(grown, valid, separable, deep, feeds={image: np.ones((2, 5, 6, 3))})
    assert [each.shape for each in found] == [(2, 10, 12, 4), (2, 11, 13, 4), (2, 3, 4, 4), (2, 8, 8, 8, 2)]


def test_pooling(graph: Graph) -> None:
    value = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    largest = tf.layers.max_pooling2d(value, 2, 2)
    mean = tf.layers.average_pooling2d(value, [2, 2], [2, 2])
    line = tf.layers.max_pooling1d(value[:, 0], 2, 2)
    cube = tf.layers.average_pooling3d(value[..., None], (2, 2, 1), 1, padding="same")
    found = evaluate(largest, mean, line, cube)
    assert found[0].ravel().tolist() == [5, 7, 13, 15]
    assert found[1].ravel().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert found[2].ravel().tolist() == [1, 3]
    assert found[3].shape == (1, 4, 4, 1, 1)


def test_flatten_and_dropout(graph: Graph) -> None:
    x = tf.placeholder(tf.float32, [None, 2, 3])
    assert tf.layers.flatten(x).shape.as_list() == [None, 6]
    assert tf.layers.flatten(tf.placeholder(tf.float32, [2, None, 3])).shape.as_list()[0] == 2
    training = tf.placeholder_with_default(False, [])
    dropped = tf.layers.dropout(x, 0.5, training=training, seed=1)
    ones = np.ones((50, 2, 3), np.float32)
    with tf.Session() as session:
        assert (session.run(dropped, {x: ones}) == 1).all()
        assert set(session.run(dropped, {x: ones, training: True}).ravel().tolist()) == {0, 2}


@pytest.mark.parametrize("shape", [(8, 3), (4, 5, 6, 3)])
@pytest.mark.parametrize("fed", [False, True], ids=["python", "placeholder"])
def test_batch_normalization_keeps_running_statistics(shape: tuple[int, ...], fed: bool, graph: Graph) -> None:
    value = (RNG.standard_normal(shape) * 3 + 1).astype(np.float32)
    training: Any = tf.placeholder(tf.bool, []) if fed else True
    y = tf.layers.batch_normalization(value, momentum=0.9, training=training)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    assert names() == [f"batch_normalization/{each}" for each in ("gamma", "beta", "moving_mean", "moving_variance")]
    assert len(tf.trainable_variables()) == 2
    axes = tuple(range(len(shape) - 1))
    mean, variance = value.mean(axes), value.var(axes)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {training: True} if fed else None
        found, *_ = session.run([y, *updates], feeds)
        np.testing.assert_allclose(found, (value - mean) / np.sqrt(variance + 1e-3), rtol=1e-3, atol=1e-4)
        count = value.size // shape[-1]
        # The fused operation, which is for images, corrects the variance for the batch's own mean.
        unbiased = variance * (count / (count - 1) if len(shape) == 4 else 1)
        statistics = session.run(tf.global_variables()[2:])
        np.testing.assert_allclose(statistics[0], 0.1 * mean, rtol=1e-4)
        np.testing.assert_allclose(statistics[1], 0.9 + 0.1 * unbiased, rtol=1e-4)
        if fed:
            found, *_ = session.run([y, *updates], {training: False})
            np.testing.assert_allclose(
                found, (value - statistics[0]) / np.sqrt(statistics[1] + 1e-3), rtol=1e-3, atol=1e-4
            )
            np.testing.assert_array_equal(session.run(tf.global_variables()[2]), statistics[0])


def test_batch_normalization_for_inference_has_no_updates(graph: Graph) -> None:
    value = RNG.standard_normal((4, 3, 5)).astype(np.float32)
    y = tf.layers.batch_normalization(value, axis=1)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    np.testing.assert_allclose(evaluate(y)[0], value / np.sqrt(1.001), rtol=1e-5)


def test_what_cannot_be_built_says_why(graph: Graph) -> None:
    with pytest.raises(ShapeError, match="dense: dimension -1 of the input must be known"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3)
    with pytest.raises(ShapeError, match="kernel_size must be an integer or 2 integers, found"):
        tf.layers.Conv2D(3, [1, 2, 3])
    with pytest.raises(ShapeError, match="'last' is not one of channels_last"):
        tf.layers.conv2d(np.ones((1, 2, 2, 1), np.float32), 1, 1, data_format="last")
    with pytest.raises(UnimplementedError, match="renorm"):
        tf.layers.BatchNormalization(renorm=True)


def test_layers_of_users_build_at_the_first_call(graph: Graph) -> None:
    class Scale(tf.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight("scale", [int(input_shape[-1])], initializer=tf.ones_initializer())

        def call(self, inputs: Any) -> Any:
            return inputs * self.scale

    layer = Scale(name="mine")
    assert evaluate(layer(np.float32([[1, 2]])))[0].tolist() == [[1, 2]]
    assert names() == ["mine/scale"]
    assert layer.scope_name == "mine"


def test_layers_of_one_name_have_variables_of_their_own(graph: Any) -> None:
    for _ in range(2):
        tf.layers.Dense(3, name="d")(np.zeros((1, 2), np.float32))
    assert [each.op.name for each in tf.trainable_variables()] == ["d/kernel", "d/bias", "d_1/kernel", "d_1/bias"]
