"""A small residual network with batch normalisation (He et al. 2015), trained with momentum on handwritten digits.

python -m xlalite.examples.resnet
python -m xlalite.examples.resnet --xla=off --steps=100
"""

from collections.abc import Callable

import xlalite as tf
from xlalite.examples.digit_training import CLASSES, run_program

FEATURES = (16, 32)


def resnet(x: tf.Tensor, is_training: tf.Tensor) -> tf.Tensor:
    """The logits of images `[n, rows, columns, 1]`."""
    x = _convolution(x, FEATURES[0], 1, is_training, "first")
    for stage, features in enumerate(FEATURES):
        for block in range(2):
            strides = 2 if stage > 0 and block == 0 else 1
            x = _residual(x, features, strides, is_training, f"stage{stage}_block{block}")
    return tf.layers.dense(tf.reduce_mean(x, [1, 2]), CLASSES, name="logits")


def _residual(x: tf.Tensor, features: int, strides: int, is_training: tf.Tensor, name: str) -> tf.Tensor:
    with tf.variable_scope(name):
        inner = _convolution(x, features, strides, is_training, "first")
        inner = _convolution(inner, features, 1, is_training, "second", activation=None)
        if strides > 1:
            x = _convolution(x, features, strides, is_training, "shortcut", size=1, activation=None)
        return tf.nn.relu(x + inner)


def _convolution(
    x: tf.Tensor,
    features: int,
    strides: int,
    is_training: tf.Tensor,
    name: str,
    size: int = 3,
    activation: Callable[[tf.Tensor], tf.Tensor] | None = tf.nn.relu,
) -> tf.Tensor:
    with tf.variable_scope(name):
        x = tf.layers.conv2d(x, features, size, strides, padding="same", use_bias=False)
        x = tf.layers.batch_normalization(x, momentum=0.9, training=is_training)
        return x if activation is None else activation(x)


if __name__ == "__main__":
    run_program(
        "Trains a small residual network on handwritten digits.",
        resnet,
        lambda: tf.train.MomentumOptimizer(0.05, 0.9),
        steps=300,
    )
