"""What the programs that learn handwritten digits have in common: the training loop and the command line."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import xlalite as tf
from xlalite.examples.training import parser, session
from xlalite.examples.tutorials.mnist import input_data

BATCH_SIZE = 100
CLASSES = 10
REPORT_EVERY = 500


@dataclass(frozen=True, slots=True)
class Classifier:
    """The graph's ends.

    Attributes:
        x: Where images are fed, `[n, rows, columns, 1]`.
        labels: Where their class numbers are fed, `[n]`.
        is_training: Where it is fed whether the network learns; False unless it is fed.
        loss: The mean over a batch.
        train_step: Changes the weights.
        accuracy: The share of images that are classified rightly.
    """

    x: tf.Tensor
    labels: tf.Tensor
    is_training: tf.Tensor
    loss: tf.Tensor
    train_step: tf.Operation
    accuracy: tf.Tensor


Network = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""From images and whether it learns to logits `[n, 10]`."""


def build_classifier(network: Network, image_shape: tuple[int, ...], optimizer: tf.train.Optimizer) -> Classifier:
    """Adds a network and its training to the default graph; updates of moving averages are part of a step."""
    x = tf.placeholder(tf.float32, [None, *image_shape], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    is_training = tf.placeholder_with_default(False, [], name="is_training")
    logits = network(x, is_training)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_step = optimizer.minimize(loss, name="train")
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32), name="accuracy")
    return Classifier(x, labels, is_training, loss, train_step, accuracy)


def train(
    network: Network,
    make_optimizer: Callable[[], tf.train.Optimizer],
    mnist: input_data.Datasets,
    xla: str,
    steps: int,
) -> float:
    """Trains a new network, printing its progress; returns the accuracy on the test images."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = build_classifier(network, mnist.train.images.shape[1:], make_optimizer())
        with session(xla) as sess:
            sess.run(tf.global_variables_initializer())
            test_dict = {model.x: mnist.test.images, model.labels: mnist.test.labels}
            for step in range(1, steps + 1):
                images, labels = mnist.train.next_batch(BATCH_SIZE)
                feed_dict = {model.x: images, model.labels: labels, model.is_training: True}
                _, loss = sess.run([model.train_step, model.loss], feed_dict=feed_dict)
                if step % REPORT_EVERY == 0 or step == steps:
                    accuracy = sess.run(model.accuracy, feed_dict=test_dict)
                    print(f"step {step:5d}   loss {loss:.5f}   test accuracy {accuracy:.4f}")
            print(sess.jit_report())
            return float(accuracy)


def run_program(
    description: str, network: Network, make_optimizer: Callable[[], tf.train.Optimizer], steps: int
) -> None:
    """The command line of a program that trains `network`."""
    switches = parser(description, steps)
    switches.add_argument(
        "--data_dir", default="", help="directory with MNIST's files; without it, the package's digits"
    )
    switches.add_argument("--seed", type=int, default=0, help="of the order of the images (default: 0)")
    flags, unparsed = switches.parse_known_args()

    def main(_: list[str]) -> None:
        mnist = input_data.read_data_sets(flags.data_dir, reshape=False, validation_size=0, seed=flags.seed)
        began = time.perf_counter()
        accuracy = train(network, make_optimizer, mnist, flags.xla, flags.steps)
        print(f"test accuracy {accuracy:.4f} after {flags.steps} steps in {time.perf_counter() - began:.2f} s")

    tf.app.run(main=main, argv=[sys.argv[0], *unparsed])
