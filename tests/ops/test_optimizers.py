from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.errors import GraphError
from xlalite.ops.functions import array as a, losses, math as m
from xlalite.ops.functions.clipping import clip_by_global_norm
from xlalite.ops.training.global_step import get_or_create_global_step
from xlalite.ops.training.optimizers import AdamOptimizer, GradientDescentOptimizer, MomentumOptimizer
from xlalite.ops.training.variable import Variable, global_variables_initializer

START = np.array([1.0, -2.0], np.float64)


def quadratic(v: Variable) -> Any:
    return m.reduce_sum(v * v) / 2


def gradient_descent(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    return x - 0.1 * x


def momentum(x: np.ndarray, state: dict[str, Any], nesterov: bool = False) -> np.ndarray:
    state["a"] = state.get("a", 0) * 0.9 + x
    return x - 0.1 * (x + 0.9 * state["a"] if nesterov else state["a"])


def adam(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["t"] = t = state.get("t", 0) + 1
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * x
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * x * x
    rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return np.asarray(x - rate * state["m"] / (np.sqrt(state["v"]) + 1e-8))


@pytest.mark.parametrize(
    ("optimizer", "reference"),
    [
        (lambda: GradientDescentOptimizer(0.1), gradient_descent),
        (lambda: MomentumOptimizer(0.1, 0.9), momentum),
        (lambda: MomentumOptimizer(0.1, 0.9, use_nesterov=True), lambda x, s: momentum(x, s, True)),
        (lambda: AdamOptimizer(0.1), adam),
    ],
    ids=["gradient descent", "momentum", "nesterov", "adam"],
)
def test_steps_follow_the_published_rule_alone_and_compiled(optimizer: Any, reference: Any, run: Any) -> None:
    v = Variable(START)
    step = get_or_create_global_step()
    train = optimizer().minimize(quadratic(v), step)
    run(global_variables_initializer())
    expected, state = START, {}
    for number in range(4):
        run(train) if number % 2 else run.compiled([train])
        expected = reference(expected, state)
        np.testing.assert_allclose(run(v), expected, rtol=1e-6)
    assert run(step) == 4


def test_slots_are_variables_beside_their_variable(run: Any) -> None:
    v = Variable(START, name="w")
    optimizer = AdamOptimizer()
    optimizer.minimize(quadratic(v))
    assert optimizer.get_slot_names() == ["m", "v"]
    slot = optimizer.get_slot(v, "m")
    assert slot is not None
    assert slot.name == "w/Adam:0"
    assert sorted(each.name for each in optimizer.variables()) == [
        "beta1_power:0",
        "beta2_power:0",
        "w/Adam:0",
        "w/Adam_1:0",
    ]


def test_without_gradients_or_variables_there_is_an_error(graph: Any) -> None:
    with pytest.raises(GraphError, match="no variables to optimise"):
        GradientDescentOptimizer(0.1).minimize(m.add(1.0, 2.0))
    Variable(1.0, name="unused")
    with pytest.raises(GraphError, match=r"no gradient arrives at any variable \(unused:0\)"):
        GradientDescentOptimizer(0.1).minimize(m.add(1.0, 2.0))


def test_the_learning_rate_may_be_fed(run: Any) -> None:
    rate = a.placeholder(np.float32, [])
    v = Variable(START)
    train = GradientDescentOptimizer(rate).minimize(quadratic(v))
    run(global_variables_initializer())
    run(train, {rate: 1.0})
    np.testing.assert_array_equal(run(v), [0, 0])


def test_clipping_by_the_global_norm_scales_all_gradients(run: Any) -> None:
    clipped, norm = clip_by_global_norm([np.float32([3.0]), None, np.float32([4.0])], 1.0)
    first, second, before = run([clipped[0], clipped[2], norm])
    np.testing.assert_allclose([first[0], second[0], before], [0.6, 0.8, 5.0], rtol=1e-6)
    assert clipped[1] is None


def test_sparse_cross_entropy_loss_is_the_mean_over_nonzero_weights(run: Any, graph: Any) -> None:
    logits = np.float32([[1, 2, 3], [3, 1, 0], [0, 0, 9]])
    loss = losses.sparse_softmax_cross_entropy(labels=[2, 0, 1], logits=logits, weights=[1.0, 3.0, 0.0])
    rows = -np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(run(loss), (rows[0, 2] + 3 * rows[1, 0]) / 2, rtol=1e-6)
    assert losses.get_losses() == [loss]
    assert run(losses.get_total_loss()) == run(loss)
