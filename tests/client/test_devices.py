"""Sessions with several devices: where operations run, what goes between, and that results do not depend on it."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import DeadlineExceededError, InvalidArgumentError
from xlalite.runtime.device_plan import DevicePlan

JIT = [False, True]


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def session(count: int, jit: bool = False, **settings: Any) -> tf.Session:
    config = tf.ConfigProto(device_count={"CPU": count}, **settings)
    config.graph_options.optimizer_options.global_jit_level = (
        tf.OptimizerOptions.ON_1 if jit else tf.OptimizerOptions.OFF
    )
    config.xlalite.min_cluster_size = 1
    config.xlalite.lazy_compile_threshold = 1
    return tf.Session(config=config)


def plan_of(sess: tf.Session) -> DevicePlan:
    (plan,) = (plan for plan in sess._plans() if isinstance(plan, DevicePlan))
    return plan


def device(operation: Any, sess: tf.Session) -> str:
    found = {each.name: name for plan in sess._plans() for each, name in plan.placement.device.items()}
    return found[operation.op.name].rpartition("/device:")[2]


def test_the_devices_of_a_session_are_listed() -> None:
    with session(3) as sess:
        names = [each.name for each in sess.list_devices()]
    assert names == [f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(3)]


def test_requests_variables_shapes_and_generators_decide_where_operations_lie() -> None:
    with tf.device("/cpu:1"):
        v = tf.Variable([1.0, 2.0], name="v")
        asked = tf.identity(v * 2)
        grown = tf.identity(tf.placeholder_with_default([1.0], [None]))
    update = v.assign_add([1.0, 1.0])
    free = asked + 1
    size = tf.size(grown)
    alone = tf.random_uniform([2], seed=1)
    with tf.device("/job:localhost/device:CPU:1"):
        used = tf.negative(alone)
    with session(2) as sess:
        sess.run(v.initializer)
        sess.run([free, size, update, used])
        assert device(asked, sess) == device(size, sess) == device(used, sess) == "CPU:1"
        assert device(free, sess) == "CPU:0"
        assert device(update, sess) == "CPU:1"


@pytest.mark.parametrize("jit", JIT)
def test_training_on_towers_gives_what_it_gives_on_one_device(jit: bool) -> None:
    rng = np.random.RandomState(0)
    w = tf.Variable(rng.rand(5, 3).astype(np.float32), name="w")
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 3])
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    towers = []
    for number, (xs, ys) in enumerate(zip(tf.split(x, 2), tf.split(y, 2), strict=True)):
        with tf.device(f"/cpu:{number}"):
            loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(xs, w)) - ys))
            towers.append(optimizer.compute_gradients(loss, [w]))
    mean = [(sum(grad for grad, _ in pairs) / 2, pairs[0][1]) for pairs in zip(*towers, strict=True)]
    step = optimizer.apply_gradients(mean)
    feeds = {x: rng.rand(8, 5), y: rng.rand(8, 3)}
    results = []
    for count in (1, 2):
        with session(count, jit) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(5):
                sess.run(step, feeds)
            results.append(sess.run(w))
            if count == 2:
                assert any(isinstance(plan, DevicePlan) for plan in sess._plans())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


@pytest.mark.parametrize("jit", JIT)
def test_a_value_goes_to_a_device_once(jit: bool) -> None:
    x = tf.placeholder(tf.float32, [2])
    with tf.device("/cpu:0"):
        made = tf.exp(x, name="made")
    ends = []
    for number in (1, 2):
        with tf.device(f"/cpu:{number}"):
            ends += [tf.sin(made), tf.cos(made), made * 2]
    with session(3, jit) as sess:
        found = sess.run(ends, {x: [1, 2]})
        sent = [str(transfer.decision) for transfer in plan_of(sess).transfers]
        assert set(sent) <= {str(each) for each in sess.decisions()}
    here = "/job:localhost/replica:0/task:0/device:CPU:"
    reason = "sent: used on another device"
    assert sent == [f"partitioning: made -> {here}0 -> {here}{i}: {reason}" for i in (1, 2)]
    e = np.exp(np.float32([1, 2]))
    for value, expected in zip(found, [np.sin(e), np.cos(e), e * 2] * 2, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_clusters_do_not_cross_devices() -> None:
    x = tf.placeholder(tf.float32, [4])
    with tf.device("/cpu:0"):
        a = tf.exp(tf.sin(x) + 1)
    with tf.device("/cpu:1"):
        b = tf.cos(a) * tf.tanh(a)
    with session(2, jit=True) as sess:
        np.testing.assert_allclose(sess.run(b, {x: np.zeros(4)}), np.full(4, np.cos(np.e) * np.tanh(np.e)), rtol=1e-6)
        plan = plan_of(sess)
        places = [
            {plan.placement.device[op] for op in step.cluster.operations if op.inputs} for step in plan.cluster_steps
        ]
    assert {len(each) for each in places} == {1}
    assert len(set().union(*places)) == 2


def test_the_parts_of_a_step_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet() -> Any:
        both.wait()
        return np.float32(1)

    parts = []
    for number in range(2):
        with tf.device(f"/cpu:{number}"):
            parts.append(tf.py_func(meet, [], tf.float32))
    with session(2) as sess:
        assert sess.run(parts[0] + parts[1]) == 2


def test_control_dependencies_hold_across_devices() -> None:
    ran: list[int] = []
    with tf.device("/cpu:1"):
        first = tf.py_func(lambda: ran.append(1), [], [])
    with tf.device("/cpu:0"), tf.control_dependencies([first]):
        second = tf.py_func(lambda: ran.append(2), [], [])
    with tf.device("/cpu:1"), tf.control_dependencies([second]):
        third = tf.py_func(lambda: ran.append(3), [], [])
    with session(2) as sess:
        for _ in range(20):
            sess.run(third)
        reasons = [transfer.decision.reason for transfer in plan_of(sess).transfers]
    assert ran == [1, 2, 3] * 20
    assert reasons == ["waited for on another device"] * 2


def test_changes_of_a_variable_keep_their_order() -> None:
    with tf.device("/cpu:1"):
        v = tf.Variable(1.0)
        with tf.control_dependencies([v.assign(3.0).op]):
            after = tf.identity(v.read_value())
    with tf.device("/cpu:0"):
        result = after * 2
    with session(2) as sess:
        sess.run(v.initializer)
        assert sess.run(result) == 6


@pytest.mark.parametrize("jit", JIT)
def test_loops_and_branches_run_on_one_device(jit: bool) -> None:
    x = tf.placeholder(tf.float32, [])
    with tf.device("/cpu:1"):
        _, total = tf.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t + x), [0, 0.0])
        either = tf.cond(x > 0, lambda: total * 2, lambda: total)
    with tf.device("/cpu:0"):
        result = either + 1
    with session(2, jit) as sess:
        assert sess.run(result, {x: 2}) == 21
        assert sess.run(result, {x: -2}) == -9
        assert device(either, sess) == "CPU:1"


def test_a_device_that_is_not_there_is_refused_or_replaced() -> None:
    with tf.device("/device:CPU:5"):
        far = tf.constant([1.0], name="far")
    expected = (
        r"Cannot assign a device for operation far: it was explicitly assigned to /device:CPU:5 but available devices "
        r"are \[ /job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:CPU:1 \]\. Make "
        r"sure the device specification refers to a valid device"
    )
    with session(2) as sess, pytest.raises(InvalidArgumentError, match=expected):
        sess.run(far)
    with session(2, allow_soft_placement=True) as sess:
        assert sess.run(far).tolist() == [1]
        assert "no device /device:CPU:5" in " ".join(map(str, sess.decisions()))
    with session(1) as sess:
        assert sess.run(far).tolist() == [1]


@pytest.mark.parametrize("name", ["/gpu:0", "/job:worker/cpu:0", "/task:1/cpu:0"])
def test_other_devices_are_not_here(name: str) -> None:
    with tf.device(name):
        far = tf.constant([1.0], name="far")
    with session(2) as sess, pytest.raises(InvalidArgumentError, match="Cannot assign a device for operation far"):
        sess.run(far)


def test_an_error_on_one_device_ends_the_step() -> None:
    fails = [True]

    def fail() -> Any:
        if fails[0]:
            raise ValueError("quokka")
        return np.float32(1)

    with tf.device("/cpu:1"):
        bad = tf.py_func(fail, [], tf.float32)
    with tf.device("/cpu:0"):
        result = bad + 1
    with session(2) as sess:
        for _ in range(3):
            with pytest.raises(Exception, match="quokka"):
                sess.run(result)
        fails[0] = False
        assert sess.run(result) == 2


def test_a_step_that_waits_for_another_device_is_given_up_in_time() -> None:
    stop = threading.Event()

    def wait() -> Any:
        stop.wait(60)
        return np.float32(1)

    with tf.device("/cpu:1"):
        slow = tf.py_func(wait, [], tf.float32)
    with tf.device("/cpu:0"):
        result = slow + 1

    def release() -> None:
        stop.set()

    timer = threading.Timer(1.0, release)
    timer.start()
    with session(2) as sess, pytest.raises(DeadlineExceededError, match="longer than 50 ms"):
        sess.run(result, options=tf.RunOptions(timeout_in_ms=50))
    timer.join()


def test_traces_show_each_device_and_what_went_between() -> None:
    with tf.device("/cpu:1"):
        made = tf.exp(tf.constant([1.0]), name="made")
    with tf.device("/cpu:0"):
        result = tf.negative(made, name="result")
    metadata = tf.RunMetadata()
    with session(2) as sess:
        sess.run(result, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    shown = {
        each.device[-5:]: [node.timeline_label.partition(" = ")[2].partition("(")[0] for node in each.node_stats]
        for each in metadata.step_stats.dev_stats
    }
    assert shown == {"CPU:0": ["_Recv", "Neg"], "CPU:1": ["Exp", "_Send"]}


def test_placement_is_logged_with_each_device(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.device("/cpu:1"):
        one = tf.constant(1, name="one")
    with session(2, log_device_placement=True) as sess:
        assert sess.run(one) == 1
    assert "one: (Const): /job:localhost/replica:0/task:0/device:CPU:1" in capsys.readouterr().err


@pytest.mark.parametrize("jit", JIT)
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_give_what_they_give_on_one_device(seed: int, jit: bool) -> None:
    rng = np.random.RandomState(seed)
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(np.ones(3, np.float32))
    values = [x, v.value()]
    for _ in range(30):
        with tf.device(f"/cpu:{rng.randint(3)}" if rng.rand() < 0.8 else None):
            first, second = (values[rng.randint(len(values))] for _ in range(2))
            waits = [values[rng.randint(len(values))]] if rng.rand() < 0.2 else []
            with tf.control_dependencies(waits):
                values.append([first + second, first * 0.5, tf.tanh(first - second), tf.sin(second)][rng.randint(4)])
    fetched = [values[rng.randint(len(values))] for _ in range(4)] + [values[-1]]
    with tf.control_dependencies(fetched):
        change = v.assign(values[-1], read_value=False)
    results = []
    for count in (1, 3):
        with session(count, jit) as sess:
            sess.run(v.initializer)
            for _ in range(3):
                found = sess.run([*fetched, change], {x: [0.1, 0.2, 0.3]})
            results.append([*found[:-1], sess.run(v)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
