"""Softmax regression on handwritten digits with the JIT off and on, after TensorFlow's tutorial of this name.

    python -m xlalite.examples.mnist_softmax_xla                    # both ways, on the digits of the package
    python -m xlalite.examples.mnist_softmax_xla --xla=             # the JIT off
    python -m xlalite.examples.mnist_softmax_xla --xla=1            # the JIT on
    python -m xlalite.examples.mnist_softmax_xla --data_dir=DIR     # on MNIST's files in DIR

The last step is traced: `timeline.ctf.json` opens in Perfetto. To see what the compiler did, run it under
`xlalite dump --to DIR -- python -m xlalite.examples.mnist_softmax_xla` or with `XLALITE_FLAGS=--xla_dump_to=DIR`.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import xlalite as tf
from xlalite.client import timeline
from xlalite.examples.tutorials.mnist import input_data

BATCH_SIZE = 100
CLASSES = 10
TIMELINE = Path("timeline.ctf.json")
FLAGS = argparse.Namespace()


@dataclass(frozen=True, slots=True)
class Model:
    """The graph's ends: what is fed, what trains, what is asked for."""

    x: tf.Tensor
    labels: tf.Tensor
    cross_entropy: tf.Tensor
    train_step: tf.Operation
    accuracy: tf.Tensor


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one training run showed.

    Attributes:
        accuracy: On the test images, from 0 to 1.
        first_step_seconds: The first step, which compiles when the JIT is on.
        steps_per_second: Over the steps between the first and the last; taking the batch is part of a step.
        jit_report: How many operations were clustered, and what compiling cost.
    """

    accuracy: float
    first_step_seconds: float
    steps_per_second: float
    jit_report: str


def build_model(pixels: int) -> Model:
    """Adds softmax regression and its training to the default graph."""
    x = tf.placeholder(tf.float32, [None, pixels])
    w = tf.Variable(tf.zeros([pixels, CLASSES]))
    b = tf.Variable(tf.zeros([CLASSES]))
    y = tf.matmul(x, w) + b

    # Softmax and cross entropy in one operation stay finite where a logarithm of a softmax would not.
    labels = tf.placeholder(tf.float32, [None, CLASSES])
    cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=y))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(cross_entropy)

    correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(labels, 1))
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    return Model(x, labels, cross_entropy, train_step, accuracy)


def train(mnist: input_data.Datasets, xla: bool, steps: int) -> Outcome:
    """Trains a new model, tests it, and writes the timeline of the last step."""
    with tf.Graph().as_default():
        model = build_model(mnist.train.images.shape[1])

        config = tf.ConfigProto()
        jit_level = tf.OptimizerOptions.ON_1 if xla else tf.OptimizerOptions.OFF
        config.graph_options.optimizer_options.global_jit_level = jit_level

        with tf.Session(config=config) as sess:
            tf.global_variables_initializer().run(session=sess)
            seconds = []
            for step in range(steps):
                began = time.perf_counter()
                images, labels = mnist.train.next_batch(BATCH_SIZE)
                feed_dict = {model.x: images, model.labels: labels}
                if step < steps - 1:
                    sess.run(model.train_step, feed_dict=feed_dict)
                else:
                    _run_traced(sess, model.train_step, feed_dict)
                seconds.append(time.perf_counter() - began)

            test_dict = {model.x: mnist.test.images, model.labels: mnist.test.labels}
            accuracy = float(sess.run(model.accuracy, feed_dict=test_dict))
            timed = seconds[1:-1] or seconds
            return Outcome(accuracy, seconds[0], len(timed) / sum(timed), str(sess.jit_report()))


def _run_traced(sess: tf.Session, train_step: tf.Operation, feed_dict: Mapping[tf.Tensor, object]) -> None:
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    run_metadata = tf.RunMetadata()
    sess.run(train_step, feed_dict=feed_dict, options=options, run_metadata=run_metadata)
    trace = timeline.Timeline(step_stats=run_metadata.step_stats)
    TIMELINE.write_text(trace.generate_chrome_trace_format(), encoding="utf-8")


def main(_: list[str]) -> None:
    """Trains with the JIT as wanted, or off and then on, and prints what each run showed."""
    for xla in (False, True) if FLAGS.xla is None else (FLAGS.xla,):
        # The same seed gives both runs the same batches.
        mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, seed=FLAGS.seed)
        outcome = train(mnist, xla, FLAGS.steps)
        print(f"JIT {'on' if xla else 'off'}")
        print(f"  accuracy           {outcome.accuracy:.4f}")
        print(f"  steps per second   {outcome.steps_per_second:,.0f}")
        print(f"  first step         {1e3 * outcome.first_step_seconds:.1f} ms")
        print(f"  {outcome.jit_report}")
    print(f"timeline of the last step: {TIMELINE}")


def _switch(text: str) -> bool:
    """A switch as TensorFlow's tutorial spells it, where `--xla=` is off; the usual words are understood, too."""
    switches = dict.fromkeys(("", "0", "false", "no", "off"), False) | dict.fromkeys(("1", "true", "yes", "on"), True)
    try:
        return switches[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"expected on or off (or nothing, for off), found {text!r}") from None


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, found {number}")
    return number


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Softmax regression on handwritten digits, with the JIT off and on.")
    parser.add_argument("--data_dir", default="", help="directory with MNIST's files; without it, the package's digits")
    parser.add_argument("--xla", type=_switch, help="train only with the JIT on, or only with it off")
    parser.add_argument("--steps", type=_positive, default=1000, help="training steps (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the batches (default: 0)")
    FLAGS, unparsed = parser.parse_known_args()
    tf.app.run(main=main, argv=[sys.argv[0], *unparsed])
