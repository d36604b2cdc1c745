"""A block of a transformer (Vaswani et al. 2017), as the examples use it."""

import xlalite as tf

_MASKED = -1e9


def block(x: tf.Tensor, mask: tf.Tensor, heads: int, rate: tf.Tensor, name: str) -> tf.Tensor:
    """Attention and two dense layers, each added to what went in and normalised.

    Args:
        x: `[n, length, width]`.
        mask: 1 where a place (row) may look at another (column), else 0; broadcasts to `[n, heads, length, length]`.
        heads: How many divide the width among them.
        rate: The share that dropout takes away.
        name: The scope of the variables.
    """
    width = x.shape.as_list()[2]
    assert width is not None
    with tf.variable_scope(name):
        x = _normalized(x + tf.nn.dropout(_attention(x, mask, heads), rate=rate), "after_attention")
        inner = tf.layers.dense(x, 4 * width, activation=tf.nn.relu, name="inner")
        return _normalized(x + tf.nn.dropout(tf.layers.dense(inner, width, name="outer"), rate=rate), "after_dense")


def _attention(x: tf.Tensor, mask: tf.Tensor, heads: int) -> tf.Tensor:
    width = x.shape.as_list()[2]
    assert width is not None
    queries, keys, values = (
        _split(tf.layers.dense(x, width, use_bias=False, name=name), heads) for name in ("query", "key", "value")
    )
    scores = tf.matmul(queries, keys, transpose_b=True) * (heads / width) ** 0.5
    weights = tf.nn.softmax(scores + (1.0 - mask) * _MASKED)
    together = tf.transpose(tf.matmul(weights, values), [0, 2, 1, 3])
    return tf.layers.dense(tf.reshape(together, tf.shape(x)), width, use_bias=False, name="output")


def _split(x: tf.Tensor, heads: int) -> tf.Tensor:
    _, length, width = x.shape.as_list()
    assert length is not None
    assert width is not None
    return tf.transpose(tf.reshape(x, [-1, length, heads, width // heads]), [0, 2, 1, 3])


def _normalized(x: tf.Tensor, name: str) -> tf.Tensor:
    width = x.shape.as_list()[2]
    with tf.variable_scope(name):
        scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
        offset = tf.get_variable("offset", [width], initializer=tf.zeros_initializer())
    mean, variance = tf.nn.moments(x, [2], keep_dims=True)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-6)
