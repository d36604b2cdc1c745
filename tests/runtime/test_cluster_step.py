"""Clusters: compiled or not, the results and the variables are the same."""

import logging
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import UninitializedError
from xlalite.hlo.errors import LoweringError
from xlalite.runtime.compile_policy import MANY_COMPILATIONS
from xlalite.runtime.options import CompileMode
from xlalite.runtime.trace import StepTrace


def test_cluster_computes_its_outputs(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [None])
    y = tf.exp(x) * 2.0
    runtime = machine()
    plan = runtime.plan([y, tf.reduce_sum(y)], feeds=[x])
    given = np.arange(4, dtype=np.float32)
    doubled, total = plan.run([given], runtime.store)
    np.testing.assert_allclose(doubled, np.exp(given) * 2, rtol=1e-6)
    np.testing.assert_allclose(total, (np.exp(given) * 2).sum(), rtol=1e-6)
    assert runtime.cache.statistics().compilations == 1


def test_variables_are_updated_in_place(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.zeros([64]), name="v")
    runtime = machine()
    runtime.initialize()
    plan = runtime.plan(targets=[v.assign_add(tf.ones([64]), read_value=False)])
    plan.run([], runtime.store)
    array = runtime.store.find("v").array
    plan.run([], runtime.store)
    assert runtime.store.find("v").array is array
    np.testing.assert_array_equal(array, np.full(64, 2))


def test_value_that_was_fetched_does_not_change_later(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.zeros([64]), name="v")
    for clusters in (True, False):
        runtime = machine(clusters)
        runtime.initialize()
        bump = runtime.plan(targets=[v.assign_add(tf.ones([64]), read_value=False)])
        read = runtime.plan([v.read_value()])
        bump.run([], runtime.store)
        (before,) = read.run([], runtime.store)
        seen_by_host = runtime.store.read_variable("v")
        bump.run([], runtime.store)
        np.testing.assert_array_equal(before, np.ones(64))
        np.testing.assert_array_equal(seen_by_host, np.ones(64))
        before[...] = 9
        (after,) = read.run([], runtime.store)
        np.testing.assert_array_equal(after, np.full(64, 2))


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_between_updates_they_add_up(machine: Callable[..., Any], seed: int) -> None:
    x = tf.placeholder(tf.float32, [None])
    v, w = tf.Variable(tf.zeros([8]), name="v"), tf.Variable(tf.ones([8]), name="w")
    new = tf.placeholder(tf.float32, [8])
    runtime = machine()
    runtime.initialize()
    update = runtime.plan([tf.reduce_sum(v.assign_add(w * tf.reduce_sum(x)))], feeds=[x])
    other = runtime.plan(targets=[w.assign(w * 0.5 + 1.0, read_value=False)])
    read = runtime.plan([v * 1.0 + w])
    assign = runtime.plan(targets=[v.assign(new, read_value=False)], feeds=[new])
    value, weight = np.zeros(8, np.float32), np.ones(8, np.float32)
    held: list[tuple[np.ndarray, np.ndarray]] = []
    store = runtime.store
    rng = np.random.default_rng(seed)
    for _ in range(80):
        if rng.random() < 0.6:
            given = rng.integers(0, 3, rng.integers(1, 3)).astype(np.float32)
            value = value + weight * given.sum()
            np.testing.assert_array_equal(update.run([given], store)[0], value.sum())
            continue
        match rng.choice(["read", "is read", "hold", "assign", "give", "put", "other", "forget"]):
            case "read":
                np.testing.assert_array_equal(read.run([], store)[0], value + weight)
            case "is read":
                with store.lock:
                    store.begin_reading([store.find("v")])
                held.append((store.find("v").array, value))
            case "hold":
                held.append((store.read_variable("v"), value))
            case "assign":
                value = rng.integers(0, 9, 8).astype(np.float32)
                assign.run([value.copy()], store)
            case "give":
                value = rng.integers(0, 9, 8).astype(np.float32)
                held.append((value.copy(), value))
                store.assign_variable("v", held[-1][0])
            case "put":
                value = rng.integers(0, 9, 8).astype(np.float32)
                with store.lock:
                    store.put("v", value.copy())
            case "other":
                weight = weight * 0.5 + 1
                other.run([], store)
            case "forget":
                runtime.cache.clear()
    for array, expected in held:
        np.testing.assert_array_equal(array, expected)


def test_variable_may_be_assigned_before_it_has_a_value(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.ones([3]), name="v")
    runtime = machine(compile_mode=CompileMode.STRICT)
    runtime.initialize()
    assert runtime.cache.statistics().compilations == 1
    np.testing.assert_array_equal(runtime.store.find("v").array, np.ones(3))
    runtime.initialize()
    np.testing.assert_array_equal(runtime.store.find("v").array, np.ones(3))
    assert v.shape == (3,)


def test_variables_swap(machine: Callable[..., Any]) -> None:
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable([3.0, 4.0], name="b")
    old_a, old_b = a.read_value(), b.read_value()
    with tf.control_dependencies([old_a, old_b]):
        swap = tf.group(a.assign(old_b, read_value=False), b.assign(old_a, read_value=False))
    runtime = machine()
    runtime.initialize()
    plan = runtime.plan(targets=[swap])
    for _ in range(3):
        plan.run([], runtime.store)
    np.testing.assert_array_equal(runtime.store.find("a").array, [3, 4])
    np.testing.assert_array_equal(runtime.store.find("b").array, [1, 2])


def test_old_value_can_be_fetched_with_the_update(machine: Callable[..., Any]) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    old = v.read_value()
    with tf.control_dependencies([old]):
        double = v.assign_add(old, read_value=False)
    runtime = machine()
    runtime.initialize()
    plan = runtime.plan([old, old * 1.0], [double])
    for count in (1, 2, 4):
        for found in plan.run([], runtime.store):
            np.testing.assert_array_equal(found, [count, 2 * count])


def test_uninitialised_variable_is_an_error_that_names_it(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.zeros([2]), name="weights")
    runtime = machine()
    plan = runtime.plan([v * 2.0])
    with pytest.raises(UninitializedError, match="weights"):
        plan.run([], runtime.store)
    runtime.initialize()
    np.testing.assert_array_equal(plan.run([], runtime.store)[0], [0, 0])


def test_lazy_mode_compiles_a_new_signature_when_it_comes_back(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [None])
    runtime = machine()
    plan = runtime.plan([x * 2.0 + 1.0], feeds=[x])
    counts = []
    for size in (5, 2, 2, 3, 5):
        (result,) = plan.run([np.ones(size, np.float32)], runtime.store)
        np.testing.assert_array_equal(result, np.full(size, 3))
        counts.append(runtime.cache.statistics().compilations)
    assert counts == [1, 1, 2, 2, 2]
    (step,) = plan.cluster_steps
    assert [(each.verdict, each.reason) for each in step.compiler.history.decisions] == [
        ("compiled", "first signature"),
        ("runs op by op", "first use of a new signature"),
        ("compiled again", "the shape of an argument changed"),
    ]


def test_background_compilation_runs_op_by_op_until_the_code_is_there(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [None])
    runtime = machine(compile_mode=CompileMode.ASYNC)
    plan = runtime.plan([x * 2.0 + 1.0], feeds=[x])
    (step,) = plan.cluster_steps
    gate, waiting = threading.Event(), threading.Event()
    runtime.cache.run_in_background(lambda: (waiting.set(), gate.wait()))
    assert waiting.wait(60)
    for _ in range(3):
        np.testing.assert_array_equal(plan.run([np.ones(4, np.float32)], runtime.store)[0], np.full(4, 3))
    assert runtime.cache.statistics().compilations == 0
    done = threading.Event()
    runtime.cache.run_in_background(done.set)
    gate.set()
    assert done.wait(60)
    assert runtime.cache.statistics().compilations == 1
    np.testing.assert_array_equal(plan.run([np.ones(4, np.float32)], runtime.store)[0], np.full(4, 3))
    assert [(each.verdict, each.reason) for each in step.compiler.history.decisions] == [
        ("runs op by op", "it is compiled in the background"),
        ("compiled", "first signature"),
    ]


def test_what_fails_in_the_background_fails_for_the_caller_op_by_op(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.zeros([2]), name="weights")
    runtime = machine(compile_mode=CompileMode.ASYNC)
    plan = runtime.plan([v * 2.0])
    for _ in range(2):
        with pytest.raises(UninitializedError, match="weights"):
            plan.run([], runtime.store)
    runtime.initialize()
    np.testing.assert_array_equal(plan.run([], runtime.store)[0], [0, 0])
    runtime.cache.close()


def test_fault_of_the_compiler_in_the_background_is_logged_and_runs_op_by_op(
    machine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("no such register")

    monkeypatch.setattr("xlalite.runtime.cluster_compiler.compile_operations", fail)
    x = tf.placeholder(tf.float32, [None])
    runtime = machine(compile_mode=CompileMode.ASYNC)
    plan = runtime.plan([x * 2.0 + 1.0], feeds=[x])
    (step,) = plan.cluster_steps
    for _ in range(3):
        np.testing.assert_array_equal(plan.run([np.ones(4, np.float32)], runtime.store)[0], np.full(4, 3))
        done = threading.Event()
        runtime.cache.run_in_background(done.set)
        assert done.wait(60)
    assert [(each.verdict, each.reason) for each in step.compiler.history.decisions] == [
        ("runs op by op", "it is compiled in the background"),
        ("runs op by op", "the compiler failed: RuntimeError: no such register"),
    ]
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert (record.name, record.exc_info is not None) == ("xlalite", True)
    assert step.cluster.name in record.getMessage()


def delayed(run: Callable[..., Any], clock: list[float], seconds: float) -> Callable[..., Any]:
    def run_later(*arguments: Any) -> Any:
        clock[0] += seconds
        return run(*arguments)

    return run_later


@pytest.mark.parametrize("slow", ["compiled", "op by op"])
def test_the_faster_way_is_kept(machine: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, slow: str) -> None:
    x = tf.placeholder(tf.float32, [None])
    v = tf.Variable(tf.zeros([]), name="v")
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = x * 2.0 + 1.0
    runtime = machine(keep_faster=True)
    runtime.initialize()
    plan = runtime.plan([y], feeds=[x])
    (step,) = plan.cluster_steps
    clock = [0.0]
    monkeypatch.setattr("xlalite.runtime.measured_step.time.perf_counter", lambda: clock[0])
    compiled = 3.0 if slow == "compiled" else 1.0
    for way, seconds in (("_run_fallback", 2.0), ("_run_updating", compiled), ("_run_again", compiled)):
        monkeypatch.setattr(step, way, delayed(getattr(step, way), clock, seconds))
    for _ in range(12):
        np.testing.assert_array_equal(plan.run([np.ones(4, np.float32)], runtime.store)[0], np.full(4, 3))
    assert runtime.store.find("v").array == 12
    decision = step.compiler.history.decisions[-1]
    assert decision.verdict == ("runs op by op" if slow == "compiled" else "its code runs")
    assert decision.numbers["µs op by op"] == 2e6
    # Three runs each way, and one that compiles.
    assert step.host_runs == (8 if slow == "compiled" else 3)


def test_initializers_are_compiled_when_they_run_again(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.ones([3]) * 2.0, name="v")
    runtime = machine()
    plan = runtime.plan(targets=[v.initializer])
    (step,) = plan.cluster_steps
    counts = []
    for _ in range(3):
        plan.run([], runtime.store)
        np.testing.assert_array_equal(runtime.store.find("v").array, np.full(3, 2))
        counts.append(runtime.cache.statistics().compilations)
    assert counts == [0, 1, 1]
    assert step.compiler.history.decisions[0].reason == "it only gives variables values, and may run but once"


@pytest.mark.parametrize(("layers", "compilations"), [(1, 1), (40, 0)])
def test_initializers_of_few_elements_an_operation_are_not_compiled(
    machine: Callable[..., Any], layers: int, compilations: int
) -> None:
    for _ in range(layers):
        tf.Variable(tf.ones([2**20 // layers]) * 2.0)
    runtime = machine()
    runtime.initialize()
    assert runtime.cache.statistics().compilations == compilations


def test_marked_initializers_are_compiled_at_once(machine: Callable[..., Any]) -> None:
    with tf.contrib.compiler.jit.experimental_jit_scope():
        v = tf.Variable(tf.ones([3]) * 2.0, name="v")
    runtime = machine()
    runtime.plan(targets=[v.initializer]).run([], runtime.store)
    assert runtime.cache.statistics().compilations == 1


def test_mode_off_never_compiles(machine: Callable[..., Any]) -> None:
    v = tf.Variable(tf.zeros([2]))
    runtime = machine(compile_mode=CompileMode.OFF)
    runtime.initialize()
    bump = v.assign_add([1.0, 2.0], read_value=False)
    with tf.control_dependencies([bump]):
        after = v.read_value()
    plan = runtime.plan([after])
    for count in range(1, 4):
        (value,) = plan.run([], runtime.store)
        np.testing.assert_array_equal(value, [count, 2 * count])
        value[...] = 7
    assert runtime.cache.statistics().compilations == 0


def test_constant_inputs_are_part_of_the_signature(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [None])
    sizes = tf.placeholder(tf.int32, [2])
    runtime = machine(compile_mode=CompileMode.STRICT)
    plan = runtime.plan([tf.reshape(x * 1.0, sizes)], feeds=[x, sizes])
    given = np.arange(6, dtype=np.float32)
    for dims in ((2, 3), (3, 2), (2, 3)):
        (result,) = plan.run([given, np.array(dims, np.int32)], runtime.store)
        np.testing.assert_array_equal(result, given.reshape(dims))
    assert runtime.cache.statistics().compilations == 2


def test_what_cannot_be_compiled_runs_op_by_op_with_one_warning(
    machine: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = tf.cond(x[0] > 0, lambda: x * 3.0, lambda: x[:1])
    runtime = machine()
    plan = runtime.plan([y], feeds=[x])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            np.testing.assert_array_equal(plan.run([np.ones(2, np.float32)], runtime.store)[0], [3, 3])
            np.testing.assert_array_equal(plan.run([-np.ones(2, np.float32)], runtime.store)[0], [-1])
    (record,) = caplog.records
    assert "the branches give" in record.getMessage()
    strict = machine(compile_mode=CompileMode.STRICT)
    with pytest.raises(LoweringError, match="the branches give"):
        strict.plan([y], feeds=[x]).run([np.ones(2, np.float32)], strict.store)


def test_cluster_whose_shapes_keep_changing_is_given_up_with_one_warning(
    machine: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    x = tf.placeholder(tf.float32, [None], name="x")
    runtime = machine()
    plan = runtime.plan([tf.exp(x) * 2.0], feeds=[x])
    with caplog.at_level(logging.WARNING):
        for size in (1, *sorted([*range(2, 15)] * 2)):
            (result,) = plan.run([np.zeros(size, np.float32)], runtime.store)
            np.testing.assert_array_equal(result, np.full(size, 2))
    assert runtime.cache.statistics().compilations == MANY_COMPILATIONS + 1
    (record,) = caplog.records
    assert "x:0" in record.getMessage()


def test_cache_drops_what_was_used_longest_ago(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [None])
    runtime = machine(compile_mode=CompileMode.STRICT, cache_bytes=1)
    plan = runtime.plan([x * 2.0], feeds=[x])
    for size in (1, 2, 1):
        plan.run([np.ones(size, np.float32)], runtime.store)
    statistics = runtime.cache.statistics()
    assert (statistics.entries, statistics.compilations, statistics.evictions) == (1, 3, 2)
    assert plan.decisions[-1].reason == "it had been dropped from the cache"
    runtime.cache.clear()
    assert runtime.cache.statistics().entries == 0


def test_trace_shows_compiling_and_running(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [37], name="x")
    v = tf.Variable(tf.zeros([37]), name="v")
    runtime = machine()
    runtime.initialize()
    plan = runtime.plan([x * v], feeds=[x])
    trace = StepTrace()
    plan.run([np.ones(37, np.float32)], runtime.store, trace)
    phases = ["verification", "passes", "buffer_assignment", "LLVM_IR", "machine_code"]
    assert [node.label for node in trace.nodes] == [
        "x = _Arg()",
        "cluster_0_mul/xla_compile = _XlaCompile(x, v)",
        *(f"cluster_0_mul/xla_compile/{phase} = {phase}()" for phase in phases),
        "cluster_0_mul/xla_run = _XlaRun(x, v)",
        "cluster_0_mul/xla_run/multiply = loop()",
    ]
    assert all(node.end_ns >= node.start_ns for node in trace.nodes)
    _, compiled, *parts, ran, kernel = trace.nodes
    assert all(compiled.start_ns <= part.start_ns and part.end_ns <= compiled.end_ns for part in parts)
    assert ran.start_ns == kernel.start_ns
    assert kernel.end_ns <= ran.end_ns
    assert ran.outputs[0].dims == (37,)


def test_trace_of_code_that_is_there_has_its_kernels_and_no_time_for_clocks(machine: Callable[..., Any]) -> None:
    x = tf.placeholder(tf.float32, [64, 64], name="x")
    runtime = machine()
    plan = runtime.plan([tf.tanh(tf.matmul(tf.exp(x), x)) + 1], feeds=[x])
    given = np.ones((64, 64), np.float32)
    plain = plan.run([given], runtime.store)
    traces = [StepTrace(), StepTrace()]
    for trace in traces:
        np.testing.assert_array_equal(plan.run([given], runtime.store, trace)[0], plain[0])
    for trace in traces:
        compiled, ran, *kernels = trace.nodes[1:]
        assert (compiled.op_type, ran.op_type) == ("_XlaCompile", "_XlaRun")
        assert compiled.end_ns == ran.start_ns
        assert {"loop", "dot"} <= {kernel.op_type for kernel in kernels}
        assert ran.scratch_bytes >= given.nbytes
    assert runtime.cache.statistics().compilations == 1
    (executable,) = runtime.cache.executables()
    assert not executable.takes_times


def test_values_are_let_go_after_their_last_use(machine: Callable[..., Any]) -> None:
    """Each step of a chain holds its operand and its result, and a fetch is copied: three arrays for any chain."""
    x = y = tf.placeholder(tf.float32, [250_000])
    for _ in range(8):
        y = tf.negative(y)
    runtime = machine(clusters=False)
    plan = runtime.plan([y], feeds=[x])
    given = np.ones(250_000, np.float32)
    plan.run([given], runtime.store)
    tracemalloc.start()
    try:
        plan.run([given], runtime.store)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 3.5 * given.nbytes
