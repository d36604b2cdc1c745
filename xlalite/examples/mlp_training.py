"""A network with one hidden layer, trained with Adam on handwritten digits; reaches 97 % on those of the package.

python -m xlalite.examples.mlp_training
python -m xlalite.examples.mlp_training --xla=off --data_dir=DIR
"""

import argparse
import math
import sys
import time
from dataclasses import dataclass

import xlalite as tf
from xlalite.examples.tutorials.mnist import input_data

BATCH_SIZE = 100
HIDDEN = 512
CLASSES = 10
LEARNING_RATE = 0.002
REPORT_EVERY = 500
FLAGS = argparse.Namespace()


@dataclass(frozen=True, slots=True)
class Model:
    """The graph's ends: what is fed, what trains, what is asked for."""

    x: tf.Tensor
    labels: tf.Tensor
    loss: tf.Tensor
    train_step: tf.Operation
    accuracy: tf.Tensor


def build_model(pixels: int, seed: int) -> Model:
    """Adds the network and its training to the default graph; labels are class numbers."""
    x = tf.placeholder(tf.float32, [None, pixels], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    # The spread keeps the variance of what flows through (He et al. 2015).
    hidden = tf.nn.relu(_dense(x, pixels, HIDDEN, math.sqrt(2 / pixels), seed, "hidden"))
    logits = _dense(hidden, HIDDEN, CLASSES, math.sqrt(1 / HIDDEN), seed + 1, "logits")

    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    train_step = tf.train.AdamOptimizer(LEARNING_RATE).minimize(loss)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    return Model(x, labels, loss, train_step, accuracy)


def _dense(x: tf.Tensor, inputs: int, outputs: int, stddev: float, seed: int, name: str) -> tf.Tensor:
    with tf.name_scope(name):
        w = tf.Variable(tf.random_normal([inputs, outputs], stddev=stddev, seed=seed), name="w")
        b = tf.Variable(tf.zeros([outputs]), name="b")
        return tf.nn.bias_add(tf.matmul(x, w), b)


def train(mnist: input_data.Datasets, xla: bool, steps: int, seed: int) -> float:
    """Trains a new network, printing its progress; returns the accuracy on the test images."""
    with tf.Graph().as_default():
        model = build_model(mnist.train.images.shape[1], seed)
        config = tf.ConfigProto()
        jit_level = tf.OptimizerOptions.ON_1 if xla else tf.OptimizerOptions.OFF
        config.graph_options.optimizer_options.global_jit_level = jit_level
        with tf.Session(config=config) as sess:
            sess.run(tf.global_variables_initializer())
            test_dict = {model.x: mnist.test.images, model.labels: mnist.test.labels}
            for step in range(1, steps + 1):
                images, labels = mnist.train.next_batch(BATCH_SIZE)
                feed_dict = {model.x: images, model.labels: labels}
                _, loss = sess.run([model.train_step, model.loss], feed_dict=feed_dict)
                if step % REPORT_EVERY == 0:
                    accuracy = sess.run(model.accuracy, feed_dict=test_dict)
                    print(f"step {step:5d}   loss {loss:.5f}   test accuracy {accuracy:.4f}")
            accuracy = float(sess.run(model.accuracy, feed_dict=test_dict))
            print(sess.jit_report())
            return accuracy


def main(_: list[str]) -> None:
    """Trains and prints the accuracy and the time it took."""
    mnist = input_data.read_data_sets(FLAGS.data_dir, validation_size=0, seed=FLAGS.seed)
    began = time.perf_counter()
    accuracy = train(mnist, FLAGS.xla == "on", FLAGS.steps, FLAGS.seed)
    print(f"test accuracy {accuracy:.4f} after {FLAGS.steps} steps in {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Trains a network with one hidden layer on handwritten digits.")
    parser.add_argument("--data_dir", default="", help="directory with MNIST's files; without it, the package's digits")
    parser.add_argument("--xla", choices=("on", "off"), default="on", help="the JIT (default: on)")
    parser.add_argument("--steps", type=int, default=2000, help="training steps (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the batches (default: 0)")
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0], *unparsed])
