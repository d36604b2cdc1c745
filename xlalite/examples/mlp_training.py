"""A network with one hidden layer, trained with Adam on handwritten digits; reaches 97 % on those of the package.

python -m xlalite.examples.mlp_training
python -m xlalite.examples.mlp_training --xla=off --data_dir=DIR
"""

import math

import xlalite as tf
from xlalite.examples.digit_training import CLASSES, run_program

HIDDEN = 512


def network(x: tf.Tensor, is_training: tf.Tensor) -> tf.Tensor:
    """The logits of images `[n, rows, columns, 1]`."""
    pixels = x.shape[1:].num_elements()
    assert pixels is not None
    flat = tf.reshape(x, [-1, pixels])
    # The spread keeps the variance of what flows through (He et al. 2015).
    hidden = tf.nn.relu(_dense(flat, pixels, HIDDEN, math.sqrt(2 / pixels), "hidden"))
    return _dense(hidden, HIDDEN, CLASSES, math.sqrt(1 / HIDDEN), "logits")


def _dense(x: tf.Tensor, inputs: int, outputs: int, stddev: float, name: str) -> tf.Tensor:
    with tf.name_scope(name):
        w = tf.Variable(tf.random_normal([inputs, outputs], stddev=stddev), name="w")
        b = tf.Variable(tf.zeros([outputs]), name="b")
        return tf.nn.bias_add(tf.matmul(x, w), b)


if __name__ == "__main__":
    run_program(
        "Trains a network with one hidden layer on handwritten digits.",
        network,
        lambda: tf.train.AdamOptimizer(0.002),
        steps=2000,
    )
