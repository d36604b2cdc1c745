"""Layers of `tf.contrib.layers` without kernels, beside NumPy's formulas."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError

layers = tf.contrib.layers
IMAGES = np.random.default_rng(0).standard_normal((2, 5, 4, 6)).astype(np.float32)


def evaluate(*tensors: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors))


def normalized(x: Any, axes: tuple[int, ...]) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-6)


def test_biases_are_added_to_channels(graph: Graph) -> None:
    last = layers.bias_add(IMAGES, initializer=tf.constant_initializer(2.0), activation_fn=tf.nn.relu)
    first = layers.bias_add(IMAGES, initializer=tf.constant_initializer([1.0, 2, 3, 4, 5]), data_format="NCHW")
    found = evaluate(last, first)
    np.testing.assert_allclose(found[0], np.maximum(IMAGES + 2, 0))
    np.testing.assert_allclose(found[1], IMAGES + np.float32([1, 2, 3, 4, 5])[:, None, None])
    assert [each.op.name for each in tf.trainable_variables()] == ["BiasAdd/biases", "BiasAdd_1/biases"]


@pytest.mark.parametrize(("data_format", "axes"), [("NHWC", (1, 2)), ("NCHW", (2, 3))])
def test_instances_are_normalized(data_format: str, axes: tuple[int, ...], graph: Graph) -> None:
    (found,) = evaluate(layers.instance_norm(IMAGES, data_format=data_format))
    np.testing.assert_allclose(found, normalized(IMAGES, axes), rtol=1e-4, atol=1e-5)
    assert tf.trainable_variables()[0].shape.as_list() == [6 if data_format == "NHWC" else 5]


@pytest.mark.parametrize(("channels", "reduction", "groups"), [(-1, (-3, -2), 3), (-1, (1, 2), 6), (1, (2, 3), 5)])
def test_groups_are_normalized(channels: int, reduction: tuple[int, ...], groups: int, graph: Graph) -> None:
    outputs = layers.group_norm(IMAGES, groups, channels, reduction, param_initializers={"beta": tf.ones_initializer()})
    (found,) = evaluate(outputs)
    moved = np.moveaxis(IMAGES, channels, 1)
    apart = moved.reshape(2, groups, -1)
    expected = np.moveaxis(normalized(apart, (2,)).reshape(moved.shape), 1, channels) + 1
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_sizes_that_do_not_fit(graph: Graph) -> None:
    with pytest.raises(GraphError, match="6 channels are no 4 groups"):
        layers.group_norm(IMAGES, 4)
    with pytest.raises(GraphError, match="has the channels"):
        layers.group_norm(IMAGES, 3, 2)
    with pytest.raises(GraphError, match="6 features are no 4 groups"):
        layers.maxout(IMAGES, 4)
    with pytest.raises(ShapeError, match="channels: dimension"):
        layers.instance_norm(tf.placeholder(tf.float32, [None, 4, 4, None]))


def test_functions_of_features(graph: Graph) -> None:
    unit, most = layers.unit_norm(IMAGES, 3), layers.maxout(IMAGES, 2)
    found = evaluate(unit, most, layers.maxout(IMAGES, 5, axis=1))
    np.testing.assert_allclose(np.linalg.norm(found[0], axis=3), 1, rtol=1e-5)
    np.testing.assert_array_equal(found[1], IMAGES.reshape(2, 5, 4, 2, 3).max(4))
    np.testing.assert_array_equal(found[2], IMAGES)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_places_of_features(data_format: str, graph: Graph) -> None:
    first = IMAGES.transpose(0, 3, 1, 2)
    given = IMAGES if data_format == "NHWC" else first
    outputs = layers.spatial_softmax(given, temperature=2.0, data_format=data_format)
    assert outputs.shape.as_list() == [2, 12]
    (found,) = evaluate(outputs)
    weights = np.exp(first / 2) / np.exp(first / 2).sum((2, 3), keepdims=True)
    across = (weights * np.linspace(-1, 1, 4)).sum((2, 3))
    down = (weights * np.linspace(-1, 1, 5)[:, None]).sum((2, 3))
    np.testing.assert_allclose(found, np.stack([down, across]).transpose(1, 2, 0).reshape(2, 12), rtol=1e-5, atol=1e-6)
    assert [each.op.name for each in tf.trainable_variables()] == ["spatial_softmax/temperature"]


def test_gradients_are_scaled(graph: Graph) -> None:
    x = tf.constant([0.1, -3.3])
    y = layers.scale_gradient(x, -0.5)
    found = evaluate(y, tf.gradients(tf.square(y), x)[0])
    np.testing.assert_array_equal(found[0], np.float32([0.1, -3.3]))
    np.testing.assert_array_equal(found[1], -np.float32([0.1, -3.3]))


def test_dense_tensors_become_sparse(graph: Graph) -> None:
    words = np.int64([[1, 0, 2], [7, 7, 0]])
    zeros, sevens = evaluate(layers.dense_to_sparse(words), layers.dense_to_sparse(words, eos_token=7))
    assert zeros.indices.tolist() == [[0, 0], [0, 2], [1, 0], [1, 1]]
    assert zeros.values.tolist() == [1, 2, 7, 7]
    assert sevens.indices.tolist() == [[0, 0], [0, 1], [0, 2], [1, 2]]
    assert sevens.dense_shape.tolist() == [2, 3]


def test_layers_over_volumes(graph: Graph) -> None:
    volumes = np.random.default_rng(1).standard_normal((1, 4, 4, 4, 2)).astype(np.float32)
    net = layers.conv3d_transpose(volumes, 3, 3, stride=2)
    assert [each.op.name for each in tf.trainable_variables()] == [
        *("Conv3d_transpose/weights", "Conv3d_transpose/biases"),
    ]
    assert net.shape.as_list() == [1, 8, 8, 8, 3]
    assert layers.linear(layers.flatten(net), 2).shape.as_list() == [1, 2]
    most, mean = evaluate(layers.max_pool3d(volumes, 2), layers.avg_pool3d(volumes, 2))
    blocks = volumes.reshape(1, 2, 2, 2, 2, 2, 2, 2)
    np.testing.assert_array_equal(most, blocks.max((2, 4, 6)))
    np.testing.assert_allclose(mean, blocks.mean((2, 4, 6)), rtol=1e-5, atol=1e-6)
