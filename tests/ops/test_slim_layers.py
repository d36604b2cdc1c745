"""The layers of `tf.contrib`, their names and default arguments; regularizers and further initialisers."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.hlo.errors import ShapeError

layers, slim = tf.contrib.layers, tf.contrib.slim
IMAGES = np.random.default_rng(0).standard_normal((2, 8, 8, 3)).astype(np.float32)


def names() -> list[str]:
    return [variable.op.name for variable in tf.global_variables()]


def evaluate(*tensors: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(list(tensors))


def test_variables_have_the_names_of_contrib(graph: Graph) -> None:
    net = layers.conv2d(IMAGES, 4, 3, normalizer_fn=layers.batch_norm, scope="c")
    net = layers.conv2d_transpose(net, 4, 3, stride=2)
    net = layers.max_pool2d(net, 2)
    net = layers.flatten(layers.separable_conv2d(net, 2, 3))
    net = layers.fully_connected(net, 5)
    net = layers.layer_norm(net)
    assert names() == [
        *("c/weights", "c/BatchNorm/beta", "c/BatchNorm/moving_mean", "c/BatchNorm/moving_variance"),
        *("Conv2d_transpose/weights", "Conv2d_transpose/biases"),
        *("SeparableConv2d/depthwise_weights", "SeparableConv2d/pointwise_weights", "SeparableConv2d/biases"),
        *("fully_connected/weights", "fully_connected/biases", "LayerNorm/beta", "LayerNorm/gamma"),
    ]
    assert len(tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)) == len(names())
    assert net.shape.as_list() == [2, 5]
    (value,) = evaluate(net)
    np.testing.assert_allclose(value.mean(1), 0, atol=1e-5)


def test_scopes_set_default_arguments(graph: Graph) -> None:
    with slim.arg_scope([slim.conv2d, slim.fully_connected], activation_fn=None, biases_initializer=None) as scope:
        with slim.arg_scope([slim.conv2d], kernel_size=3, num_outputs=4):
            net = slim.conv2d(IMAGES)
        assert names() == ["Conv/weights"]
        assert net.op.type == "Conv2D"
    slim.fully_connected(slim.flatten(net), 2)
    assert names()[1:] == ["fully_connected/weights", "fully_connected/biases"]
    with slim.arg_scope(scope):
        slim.fully_connected(np.ones((1, 2), np.float32), 2)
    assert names()[3:] == ["fully_connected_1/weights"]
    with pytest.raises(GraphError, match="not decorated with add_arg_scope"), slim.arg_scope([tf.nn.relu], x=1):
        pass


def test_repeated_layers_are_numbered(graph: Graph) -> None:
    slim.repeat(IMAGES, 2, slim.conv2d, 4, [3, 3], scope="conv1")
    slim.stack(np.ones((2, 3), np.float32), slim.fully_connected, [4, 5], scope="fc")
    assert [name for name in names() if name.endswith("weights")] == [
        *("conv1/conv1_1/weights", "conv1/conv1_2/weights", "fc/fc_1/weights", "fc/fc_2/weights"),
    ]


def test_batch_norm_may_keep_its_means_by_itself(graph: Graph) -> None:
    outputs = layers.batch_norm(IMAGES, decay=0.5, updates_collections=None)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    layers.batch_norm(IMAGES, updates_collections="mine", is_training=True)
    assert len(tf.get_collection("mine")) == 2
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(outputs)
        mean = session.run(tf.global_variables()[1])
    np.testing.assert_allclose(mean, IMAGES.mean((0, 1, 2)) / 2, rtol=1e-4, atol=1e-6)


def test_dropout_keeps_what_is_not_trained(graph: Graph) -> None:
    ones = np.ones((100,), np.float32)
    kept, dropped = evaluate(layers.dropout(ones, 0.5, is_training=False), layers.dropout(ones, 0.5))
    assert (kept == 1).all()
    assert set(dropped.tolist()) == {0, 2}


def test_embeddings_are_shared_by_scope(graph: Graph) -> None:
    first = layers.embed_sequence([[0, 1]], 5, 3, scope="words")
    second = layers.embed_sequence([[0, 1]], 5, 3, scope="words", reuse=True)
    assert names() == ["words/embeddings"]
    one, other = evaluate(first, second)
    assert one.shape == (1, 2, 3)
    np.testing.assert_array_equal(one, other)


def test_regularizers_are_scaled_losses(graph: Graph) -> None:
    weights = np.float32([3, -4])
    l1, l2 = layers.l1_regularizer(0.5), layers.l2_regularizer(0.5)
    assert layers.l2_regularizer(0.0)(weights) is None
    found = evaluate(l1(weights), l2(weights), layers.l1_l2_regularizer(0.5, 0.5)(weights))
    assert found == [3.5, 6.25, 9.75]
    tf.get_variable("w", initializer=weights, regularizer=l2)
    assert evaluate(tf.losses.get_regularization_loss()) == [6.25]
    layers.apply_regularization(l1, [weights])
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    with pytest.raises(GraphError, match="cannot be an integer"):
        layers.l2_regularizer(1)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (2, 3, 4)])
def test_orthogonal_matrices_keep_lengths(shape: tuple[int, ...], graph: Graph) -> None:
    (value,) = evaluate(tf.get_variable("q", shape, initializer=tf.orthogonal_initializer(2.0)))
    flat = value.reshape(-1, shape[-1])
    product = flat @ flat.T if flat.shape[0] < flat.shape[1] else flat.T @ flat
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_further_initializers(graph: Graph) -> None:
    (eye,) = evaluate(tf.get_variable("i", [2, 3], initializer=tf.initializers.identity(2.0)))
    assert eye.tolist() == [[2, 0, 0], [0, 2, 0]]
    (scaled,) = evaluate(tf.get_variable("u", [300, 2], initializer=tf.uniform_unit_scaling_initializer()))
    assert np.abs(scaled).max() <= 0.1
    (xavier,) = evaluate(tf.get_variable("x", [3, 3], initializer=layers.xavier_initializer()))
    assert np.abs(xavier).max() <= 1
    with pytest.raises(ShapeError, match="two dimensions are needed"):
        tf.identity_initializer()([3])


def test_models_are_measured(capsys):
    v = tf.get_variable("v", [3, 4])
    w = tf.get_variable("w", [], tf.float64)
    analyzer = tf.contrib.slim.model_analyzer
    assert analyzer.analyze_vars([v, w], print_info=True) == (13, 56)
    printed = capsys.readouterr().out
    assert "v:0 (float32 3x4) [12, bytes: 48]\n" in printed
    assert printed.endswith("Total size of variables: 13\nTotal bytes of variables: 56\n")
    other = tf.Graph()
    with other.as_default():
        tf.placeholder(tf.float32, [None, 2])
        tf.constant([1.0, 2.0])
    assert analyzer.analyze_ops(other) == 2
    assert capsys.readouterr().out == ""


def test_bias_add_has_one_bias_a_channel(graph: Graph) -> None:
    outputs = layers.bias_add(IMAGES, initializer=tf.constant_initializer([1, 2, 3]), activation_fn=tf.nn.relu)
    first = layers.bias_add(np.transpose(IMAGES, (0, 3, 1, 2)), data_format="NCHW", scope="first")
    assert names() == ["BiasAdd/biases", "first/biases"]
    found, same = evaluate(outputs, first)
    np.testing.assert_allclose(found, np.maximum(IMAGES + np.float32([1, 2, 3]), 0), rtol=1e-6)
    np.testing.assert_array_equal(same, np.transpose(IMAGES, (0, 3, 1, 2)))
    with pytest.raises(ShapeError, match="must be known"):
        layers.bias_add(tf.placeholder(tf.float32, [2, None]))
