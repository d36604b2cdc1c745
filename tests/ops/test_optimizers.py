from typing import Any

import numpy as np
import pytest

from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import array as a, losses, math as m
from xlalite.ops.functions.clipping import clip_by_average_norm, clip_by_global_norm
from xlalite.ops.functions.control_flow import cond, control_dependencies
from xlalite.ops.helpers.node import operation
from xlalite.ops.training import learning_rate_decay as decay
from xlalite.ops.training.adaptive_optimizers import (
    AdadeltaOptimizer,
    AdagradDAOptimizer,
    AdagradOptimizer,
    FtrlOptimizer,
    ProximalAdagradOptimizer,
    ProximalGradientDescentOptimizer,
    RMSPropOptimizer,
)
from xlalite.ops.training.global_step import get_or_create_global_step
from xlalite.ops.training.moving_averages import ExponentialMovingAverage
from xlalite.ops.training.optimizer import Optimizer
from xlalite.ops.training.optimizers import (
    AdaMaxOptimizer,
    AdamOptimizer,
    AddSignOptimizer,
    GradientDescentOptimizer,
    LazyAdamOptimizer,
    MomentumOptimizer,
    PowerSignOptimizer,
)
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


def adagrad(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["a"] = state.get("a", 0.1) + x * x
    return np.asarray(x - 0.1 * x / np.sqrt(state["a"]))


def adagrad_da(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["g"], state["s"] = state.get("g", 0) + x, state.get("s", 0.1) + x * x
    state["t"] = t = state.get("t", 0) + 1
    left = np.sign(state["g"]) * np.maximum(np.abs(state["g"]) - 0.3 * t, 0)
    return np.asarray(-0.1 * left / (0.2 * t * 0.1 + np.sqrt(state["s"])))


def adadelta(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["a"] = 0.95 * state.get("a", 0) + 0.05 * x * x
    change = np.sqrt(state.get("u", 0) + 1e-3) / np.sqrt(state["a"] + 1e-3) * x
    state["u"] = 0.95 * state.get("u", 0) + 0.05 * change * change
    return np.asarray(x - 0.1 * change)


def rms_prop(x: np.ndarray, state: dict[str, Any], centered: bool = False) -> np.ndarray:
    state["s"] = 0.9 * state.get("s", 1) + 0.1 * x * x
    state["g"] = 0.9 * state.get("g", 0) + 0.1 * x if centered else 0.0
    state["m"] = 0.5 * state.get("m", 0) + 0.1 * x / np.sqrt(state["s"] - state["g"] ** 2 + 1e-3)
    return np.asarray(x - state["m"])


def shrunk(x: np.ndarray, threshold: Any) -> np.ndarray:
    return np.asarray(np.sign(x) * np.maximum(np.abs(x) - threshold, 0))


def ftrl(x: np.ndarray, state: dict[str, Any], shrinkage: float = 0.0, power: float = -0.5) -> np.ndarray:
    before = state.get("a", 0.1)
    state["a"] = before + x * x
    sigma = (state["a"] ** -power - before**-power) / 0.1
    state["z"] = state.get("z", 0) + x + 2 * shrinkage * x - sigma * x
    return np.asarray(-shrunk(state["z"], 0.3) / (state["a"] ** -power / 0.1 + 2 * 0.2))


def proximal_adagrad(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["a"] = state.get("a", 0.1) + x * x
    rate = 0.1 / np.sqrt(state["a"])
    return np.asarray(shrunk(x - rate * x, rate * 0.3) / (1 + rate * 0.2))


def ada_max(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["t"] = t = state.get("t", 0) + 1
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * x
    state["v"] = np.maximum(0.999 * state.get("v", 0), np.abs(x))
    return np.asarray(x - 0.1 / (1 - 0.9**t) * state["m"] / (state["v"] + 1e-8))


def add_sign(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * x
    return np.asarray(x - 0.1 * (0.5 + np.sign(x) * np.sign(state["m"])) * x)


def power_sign(x: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * x
    return np.asarray(x - 0.1 * 2.0 ** (np.sign(x) * np.sign(state["m"])) * x)


PENALTIES = {"l1_regularization_strength": 0.3, "l2_regularization_strength": 0.2}
RULES: dict[str, tuple[Any, Any]] = {
    "adagrad": (lambda: AdagradOptimizer(0.1), adagrad),
    "adagrad da": (lambda: AdagradDAOptimizer(0.1, get_or_create_global_step(), **PENALTIES), adagrad_da),
    "adadelta": (lambda: AdadeltaOptimizer(0.1, epsilon=1e-3), adadelta),
    "rmsprop": (lambda: RMSPropOptimizer(0.1, momentum=0.5, epsilon=1e-3), rms_prop),
    "centered rmsprop": (
        lambda: RMSPropOptimizer(0.1, momentum=0.5, epsilon=1e-3, centered=True),
        lambda x, s: rms_prop(x, s, True),
    ),
    "ftrl": (lambda: FtrlOptimizer(0.1, **PENALTIES), ftrl),
    "ftrl of another power": (
        lambda: FtrlOptimizer(0.1, learning_rate_power=-0.7, **PENALTIES),
        lambda x, s: ftrl(x, s, power=-0.7),
    ),
    "ftrl with shrinkage": (
        lambda: FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.4, **PENALTIES),
        lambda x, s: ftrl(x, s, 0.4),
    ),
    "proximal descent": (
        lambda: ProximalGradientDescentOptimizer(0.1, **PENALTIES),
        lambda x, s: shrunk(x - 0.1 * x, 0.03) / 1.02,
    ),
    "proximal adagrad": (lambda: ProximalAdagradOptimizer(0.1, **PENALTIES), proximal_adagrad),
    "adamax": (lambda: AdaMaxOptimizer(0.1), ada_max),
    "add sign": (lambda: AddSignOptimizer(0.1, alpha=0.5), add_sign),
    "power sign": (lambda: PowerSignOptimizer(0.1, base=2.0), power_sign),
}


@pytest.mark.parametrize(
    ("optimizer", "reference"),
    [
        *RULES.values(),
        (lambda: GradientDescentOptimizer(0.1), gradient_descent),
        (lambda: MomentumOptimizer(0.1, 0.9), momentum),
        (lambda: MomentumOptimizer(0.1, 0.9, use_nesterov=True), lambda x, s: momentum(x, s, True)),
        (lambda: AdamOptimizer(0.1), adam),
    ],
    ids=[*RULES, "gradient descent", "momentum", "nesterov", "adam"],
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


@pytest.mark.parametrize(
    ("optimizer", "reference"),
    [
        *(RULES[name] for name in ("adagrad", "adadelta", "rmsprop", "centered rmsprop")),
        (lambda: GradientDescentOptimizer(0.1), gradient_descent),
        (lambda: MomentumOptimizer(0.1, 0.9, use_nesterov=True), lambda x, s: momentum(x, s, True)),
        (lambda: AdamOptimizer(0.1), adam),
    ],
    ids=["adagrad", "adadelta", "rmsprop", "centered rmsprop", "gradient descent", "nesterov", "adam"],
)
def test_steps_of_complex_variables_follow_the_same_rules(optimizer: Any, reference: Any, run: Any) -> None:
    start = np.array([1 + 2j, -0.5j])
    v = Variable(start)
    train = optimizer().apply_gradients([(v.value() + 0, v)])
    run(global_variables_initializer())
    expected, state = start, {}
    for number in range(3):
        run(train) if number % 2 else run.compiled([train])
        expected = reference(expected, state)
        np.testing.assert_allclose(run(v), expected, rtol=1e-6)


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


ROWS = {
    name: (optimizer, reference)
    for name, (optimizer, reference) in RULES.items()
    if name not in ("add sign", "power sign")
}


@pytest.mark.parametrize(
    ("optimizer", "reference"),
    [
        *ROWS.values(),
        (lambda: GradientDescentOptimizer(0.1), gradient_descent),
        (lambda: MomentumOptimizer(0.1, 0.9), momentum),
        (lambda: LazyAdamOptimizer(0.1), adam),
    ],
    ids=[*ROWS, "gradient descent", "momentum", "lazy adam"],
)
def test_gradients_of_rows_change_only_the_rows_used(optimizer: Any, reference: Any, run: Any) -> None:
    start = np.arange(1.0, 11).reshape(5, 2)
    table = Variable(start)
    ids, weights = a.placeholder(np.int32, [None]), a.placeholder(np.float64, [None])
    # The weights of a row add up to 1, so that its gradient is the row.
    loss = m.reduce_sum(a.gather(table, ids) ** 2 * a.expand_dims(weights, 1)) / 2
    train = optimizer().minimize(loss, get_or_create_global_step())
    assert not any(op.type == "UnsortedSegmentSum" for op in train.graph.get_operations())
    run(global_variables_initializer())
    expected, states = start.copy(), [{} for _ in start]
    for number, used in enumerate(([3, 0, 3], [3, 3, 0], [])):
        feeds = {ids: used, weights: [1 / used.count(row) for row in used]}
        run(train, feeds) if number % 2 else run.compiled([train], feeds)
        for row in set(used):
            expected[row] = reference(expected[row], states[row])
    np.testing.assert_allclose(run(table), expected, rtol=1e-5)
    assert [i for i in range(5) if not np.array_equal(run(table)[i], start[i])] == [0, 3]


@pytest.mark.parametrize(
    ("optimizer", "names"),
    [
        (
            lambda: RMSPropOptimizer(0.1, centered=True),
            {"rms": "w/RMSProp", "mg": "w/RMSProp_1", "momentum": "w/RMSProp_2"},
        ),
        (lambda: FtrlOptimizer(0.1, linear_name="z"), {"accum": "w/Ftrl", "linear": "w/z"}),
        (lambda: AdagradOptimizer(0.1), {"accumulator": "w/Adagrad"}),
        (lambda: MomentumOptimizer(0.1, 0.9), {"momentum": "w/Momentum"}),
    ],
)
def test_slots_are_named_as_in_checkpoints(optimizer: Any, names: dict[str, str], graph: Any) -> None:
    v, made = Variable(START, name="w"), optimizer()
    made.minimize(quadratic(v))
    assert {slot: made.get_slot(v, slot).op.name for slot in made.get_slot_names()} == names


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AdagradOptimizer(0.1, 0.0), "initial_accumulator_value 0.0 must be positive"),
        (lambda: FtrlOptimizer(0.1, learning_rate_power=0.5), "learning_rate_power 0.5 must not be greater than 0"),
        (lambda: FtrlOptimizer(0.1, l1_regularization_strength=-1), "l1_regularization_strength -1 must not be neg"),
    ],
)
def test_numbers_outside_their_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        make()


def test_rules_that_compare_refuse_complex_variables(graph: Any) -> None:
    v = Variable(np.array([1j]))
    with pytest.raises(ElementTypeError, match="complex128; expected floating point"):
        AdaMaxOptimizer(0.1).apply_gradients([(v.value(), v)])


def test_hyper_parameters_have_the_type_of_the_variable(graph: Any) -> None:
    v = Variable(START)
    with pytest.raises(ElementTypeError, match="alpha"):
        operation("ResourceApplyGradientDescent", [v.handle, a.ones([], np.float32), v.value()])


def test_optimizers_of_users_say_what_an_update_is(run: Any) -> None:
    class Halve(Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Halve")

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return var.assign(var * 0.5).op

    v = Variable(START)
    train = Halve().minimize(quadratic(v))
    run(global_variables_initializer())
    run(train)
    np.testing.assert_array_equal(run(v), START / 2)


STEPS = np.float32([0, 1, 5, 10, 12, 30])


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (lambda s: decay.exponential_decay(0.5, s, 4, 0.9), lambda s: 0.5 * 0.9 ** (s / 4)),
        (lambda s: decay.exponential_decay(0.5, s, 4, 0.9, True), lambda s: 0.5 * 0.9 ** (s // 4)),
        (lambda s: decay.natural_exp_decay(0.5, s, 4, 0.9), lambda s: 0.5 * np.exp(-0.9 * s / 4)),
        (lambda s: decay.inverse_time_decay(0.5, s, 4, 0.9), lambda s: 0.5 / (1 + 0.9 * s / 4)),
        (lambda s: decay.piecewise_constant(s, [1, 10], [3.0, 2.0, 1.0]), lambda s: 3 - (s > 1) - (s > 10)),
        (
            lambda s: decay.polynomial_decay(0.5, s, 10, 0.1, 2.0),
            lambda s: 0.4 * (1 - min(s, 10) / 10) ** 2 + 0.1,
        ),
        (
            lambda s: decay.polynomial_decay(0.5, s, 10, 0.1, cycle=True),
            lambda s: 0.4 * (1 - s / (10 * max(1, np.ceil(s / 10)))) + 0.1,
        ),
        (
            lambda s: decay.cosine_decay(0.5, s, 10, 0.2),
            lambda s: 0.5 * (0.8 * 0.5 * (1 + np.cos(np.pi * min(s, 10) / 10)) + 0.2),
        ),
        (
            lambda s: decay.linear_cosine_decay(0.5, s, 10),
            lambda s: 0.5 * ((1 - min(s, 10) / 10) * 0.5 * (1 + np.cos(np.pi * min(s, 10) / 10)) + 0.001),
        ),
    ],
)
@pytest.mark.parametrize("step", STEPS)
def test_schedules_follow_their_formulas(schedule: Any, expected: Any, step: np.float32, run: Any) -> None:
    counter = a.placeholder(np.int64, [])
    np.testing.assert_allclose(run(schedule(counter), {counter: int(step)}), expected(step), rtol=1e-5)


def test_cosine_decay_restarts_with_longer_and_lower_waves(run: Any) -> None:
    step = a.placeholder(np.int64, [])
    rate = decay.cosine_decay_restarts(1.0, step, 10, t_mul=2.0, m_mul=0.5)
    found = [float(run(rate, {step: at})) for at in (0, 5, 10, 20, 30)]
    np.testing.assert_allclose(found, [1, 0.5, 0.5, 0.25, 0.25], atol=1e-5)


def test_moving_averages_shadow_variables_and_tensors(run: Any) -> None:
    v = Variable(np.float32([1.0]), name="w")
    t = v * 2
    average = ExponentialMovingAverage(0.9)
    update = average.apply([v])
    debiased = average.apply([t])
    assert average.average_name(v) == "w/ExponentialMovingAverage"
    assert average.variables_to_restore()["w/ExponentialMovingAverage"] is v
    run(global_variables_initializer())
    run(v.assign([2.0]).op)
    run(update)
    np.testing.assert_allclose(run(average.average(v)), [1.1], rtol=1e-6)
    run(debiased)
    np.testing.assert_allclose(run(average.average(t)), [4.0], rtol=1e-6)


def test_clipping_by_the_average_norm(run: Any) -> None:
    np.testing.assert_allclose(run(clip_by_average_norm(np.float32([3, 4]), 1.0)), np.float32([3, 4]) / 2.5, rtol=1e-6)


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


def test_moving_averages_are_kept_in_branches(run: Any) -> None:
    """Batch normalisation by hand: means of the batch that move while training and are used afterwards."""
    x, training = a.placeholder(np.float32, [None, 2]), a.placeholder(np.bool_, [])
    mean = m.reduce_mean(x, 0)
    average = ExponentialMovingAverage(0.5)

    def updated() -> Any:
        with control_dependencies([average.apply([mean])]):
            return a.identity(mean)

    used = cond(training, updated, lambda: average.average(mean).value())
    run(global_variables_initializer())
    np.testing.assert_allclose(run(used, {x: [[2, 4]], training: True}), [2, 4])
    np.testing.assert_allclose(run(used, {x: [[9, 9]], training: False}), [2, 4])
    np.testing.assert_allclose(run(used, {x: [[5, 7]], training: True}), [5, 7])
    np.testing.assert_allclose(run(used, {x: [[9, 9]], training: False}), [4, 6], rtol=1e-6)
