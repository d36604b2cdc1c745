"""What the example programs have in common: the switches of their command lines, and the loop of their training."""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

import xlalite as tf

REPORTS = 4

Feeds = Mapping[tf.Tensor, Any]


def parser(description: str, steps: int) -> argparse.ArgumentParser:
    """The switches that all programs have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--xla", choices=("on", "off"), default="on", help="the JIT (default: on)")
    made.add_argument("--steps", type=int, default=steps, help=f"training steps (default: {steps})")
    return made


def session(xla: str) -> tf.Session:
    """A session with the JIT `on` or `off`."""
    config = tf.ConfigProto()
    jit_level = tf.OptimizerOptions.ON_1 if xla == "on" else tf.OptimizerOptions.OFF
    config.graph_options.optimizer_options.global_jit_level = jit_level
    return tf.Session(config=config)


def fit(
    sess: tf.Session, train_step: tf.Operation, loss: tf.Tensor, next_feeds: Callable[[], Feeds], steps: int
) -> float:
    """Initialises the variables and trains, printing the loss now and then; returns the last loss."""
    sess.run(tf.global_variables_initializer())
    began, value = time.perf_counter(), float("nan")
    for step in range(1, steps + 1):
        _, value = sess.run([train_step, loss], next_feeds())
        if step % max(1, steps // REPORTS) == 0 or step == steps:
            print(f"step {step:5d}   loss {value:.5f}")
    print(f"{steps} steps in {time.perf_counter() - began:.2f} s; {sess.jit_report()}")
    return float(value)
