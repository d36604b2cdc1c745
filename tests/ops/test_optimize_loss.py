"""`tf.contrib.layers.optimize_loss`: a training step in one call."""

from typing import Any

import numpy as np
import pytest

import xlalite as tf

optimize_loss = tf.contrib.layers.optimize_loss


def model() -> tuple[Any, Any]:
    x = tf.get_variable("x", initializer=np.float32([3, 4]))
    tf.train.get_or_create_global_step()
    return x, tf.reduce_sum(tf.square(x)) / 2


def stepped(x: Any, *fetches: Any) -> list[Any]:
    """Values of the fetches, then the variable and the number of steps after them."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(list(fetches))
        return [*found, *session.run([x, tf.train.get_global_step()])]


@pytest.mark.parametrize(
    "optimizer",
    ["SGD", tf.train.GradientDescentOptimizer, lambda rate: tf.train.GradientDescentOptimizer(rate)],
)
def test_fetching_the_loss_takes_a_step(graph: Any, optimizer: Any) -> None:
    x, loss = model()
    value, after, count = stepped(x, optimize_loss(loss, None, 0.5, optimizer))
    np.testing.assert_allclose([value, count], [12.5, 1])
    np.testing.assert_allclose(after, [1.5, 2])
    assert "OptimizeLoss/learning_rate" in {each.op.name for each in tf.global_variables()}


def test_rates_fall_and_gradients_are_multiplied_and_clipped(graph: Any) -> None:
    x, loss = model()
    step = optimize_loss(
        loss, tf.train.get_global_step(), 2.0, "SGD", gradient_multipliers={"x": 10.0}, clip_gradients=1.0,
        learning_rate_decay_fn=lambda rate, step: rate / 4.0, increment_global_step=False,
    )  # fmt: skip
    _, after, count = stepped(x, step)
    np.testing.assert_allclose(after, [3 - 0.6 / 2, 4 - 0.8 / 2], rtol=1e-6)
    assert count == 0


def test_gradients_may_be_noisy_and_clipped_by_a_function(graph: Any) -> None:
    x, loss = model()
    tf.set_random_seed(1)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    step = optimize_loss(loss, None, None, optimizer, 0.1, clip_gradients=lambda pairs: [(g * 2, v) for g, v in pairs])
    _, after, _ = stepped(x, step)
    assert 0 < np.abs(after + np.float32([3, 4])).max() < 0.4


def test_updates_run_before_the_loss(graph: Any) -> None:
    _, loss = model()
    seen = tf.get_variable("seen", initializer=0.0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, seen.assign_add(1.0))
    step = optimize_loss(loss, None, 0.1, "Adam")
    _, after = stepped(seen, step)[:2]
    assert after == 1


def test_summaries_are_those_asked_for(graph: Any) -> None:
    _, loss = model()
    with tf.variable_scope("first"):
        optimize_loss(loss, None, 0.1, "Momentum", clip_gradients=1.0)
    tags = {each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)}
    names = ("learning_rate_1", "loss", "global_norm/gradient_norm", "global_norm/clipped_gradient_norm")
    assert tags == {f"first/OptimizeLoss/{name}" for name in names}
    optimize_loss(loss, None, 0.1, "Ftrl", name="all", summaries=["gradients", "gradient_norm"])
    more = {each.op.name for each in tf.get_collection(tf.GraphKeys.SUMMARIES)} - tags
    assert more == {"all/gradients/x", "all/gradient_norm/x"}


@pytest.mark.parametrize(
    ("rate", "optimizer", "options", "message"),
    [
        (0.1, "Best", {}, "should be one of .*you provided Best"),
        (-0.1, "SGD", {}, "Invalid learning_rate -0.1"),
        (None, "SGD", {}, "needs a learning rate"),
        (0.1, 3, {}, "Unrecognized optimizer"),
        (0.1, lambda rate: 3, {}, "should return subclass of Optimizer"),
        (0.1, "SGD", {"summaries": ["weights"]}, "you provided .'weights'."),
        (0.1, "SGD", {"clip_gradients": "much"}, "Unknown type"),
    ],
)
def test_what_cannot_train_is_refused(
    graph: Any, rate: Any, optimizer: Any, options: dict[str, Any], message: str
) -> None:
    _, loss = model()
    with pytest.raises(ValueError, match=message):
        optimize_loss(loss, None, rate, optimizer, **options)
