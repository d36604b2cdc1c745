"""The perceptron of TensorFlow's tutorial on training by hand: a graph of it, its loss, its step, its score."""

from __future__ import annotations

import math
from typing import Any

import xlalite as tf

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> tf.Tensor:
    """What the network makes of `[n, IMAGE_PIXELS]`: `[n, NUM_CLASSES]`."""
    layers = (("hidden1", hidden1_units), ("hidden2", hidden2_units), ("softmax_linear", NUM_CLASSES))
    value, width = tf.convert_to_tensor(images), IMAGE_PIXELS
    for name, units in layers:
        with tf.name_scope(name):
            start = tf.truncated_normal([width, units], stddev=1 / math.sqrt(width))
            weights = tf.Variable(start, name="weights")
            value = tf.matmul(value, weights) + tf.Variable(tf.zeros([units]), name="biases")
            value = value if name == layers[-1][0] else tf.nn.relu(value)
        width = units
    return value


def loss(logits: Any, labels: Any) -> tf.Tensor:
    """The cross entropy with labels `[n]`."""
    result: tf.Tensor = tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)
    return result


def training(loss: Any, learning_rate: Any) -> tf.Operation:
    """One step down the gradient, counted by `global_step`; the loss is summarised."""
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    step: tf.Operation = tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)
    return step


def evaluation(logits: Any, labels: Any) -> tf.Tensor:
    """How many of the labels have the greatest logit."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
