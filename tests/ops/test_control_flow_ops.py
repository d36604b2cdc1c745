from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import ElementTypeError, GraphError, InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.meaning.compilability import why_not_compilable
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.functions.control_flow import (
    Assert,
    cond,
    control_dependencies,
    tuple as tuple_of,
    while_loop,
    with_dependencies,
)
from xlalite.ops.functions.random_ops import random_uniform
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.training.variable import Variable


@pytest.mark.parametrize("flag", [True, False])
def test_cond_runs_one_branch_alone_and_compiled(flag: bool, run: Any) -> None:
    p, x = a.placeholder(np.bool_, []), a.placeholder(np.float32, [None])
    result = cond(p, lambda: x + 1, lambda: m.reduce_sum(x) * x)
    feeds = {p: flag, x: [1, 2]}
    expected = [2, 3] if flag else [3, 6]
    np.testing.assert_array_equal(run(result, feeds), expected)
    np.testing.assert_array_equal(run.compiled([result], feeds)[0], expected)


def test_cond_keeps_structures_and_reads_variables(run: Any) -> None:
    v = Variable(3.0)
    run(v.initializer)
    p = a.placeholder(np.bool_, [])
    result = cond(p, lambda: {"a": v * 2, "b": [v]}, lambda: {"a": constant(0.0), "b": [v + 1]})
    assert run(result["a"], {p: True}) == 6
    assert run.compiled([result["b"][0]], {p: False})[0] == 4


@pytest.mark.parametrize("flag", [True, False])
def test_gradients_flow_through_the_branch_that_runs(flag: bool, run: Any) -> None:
    v = Variable([1.0, 2.0])
    run(v.initializer)
    p, x = a.placeholder(np.bool_, []), a.placeholder(np.float32, [2])
    y = m.reduce_sum(cond(p, lambda: x * x * v, lambda: m.exp(x)))
    of_x, of_v = gradients(y, [x, v])
    feeds = {p: flag, x: [3, 4]}
    expected = ([6, 16], [9, 16]) if flag else (np.exp([3, 4]), [0, 0])
    for found in (run([of_x, of_v], feeds), run.compiled([of_x, of_v], feeds)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_dictionaries_belong_together_by_key_and_none_is_passed_on(run: Any) -> None:
    p = a.placeholder(np.bool_, [])
    one, two = constant(1.0), constant(2.0)
    chosen = cond(p, lambda: {"b": one, "a": two, "c": None}, lambda: {"a": one, "b": two, "c": None})
    assert list(chosen) == ["b", "a", "c"]
    assert chosen["c"] is None
    assert run([chosen["a"], chosen["b"]], {p: True}) == [2, 1]
    (looped,) = while_loop(
        lambda state: state["n"] < 3,
        lambda state: [{"n": state["n"] + 1, "sum": state["sum"] + 10}],
        [{"sum": constant(0), "n": constant(0)}],
        return_same_structure=True,
    )
    assert run([looped["n"], looped["sum"]]) == [3, 30]
    with pytest.raises(GraphError, match="the body gives dictionaries with other keys"):
        while_loop(lambda state: one > 0, lambda state: [{"m": state["n"]}], [{"n": one}])


def test_cond_checks_predicate_and_results(graph: Graph) -> None:
    p, x = a.placeholder(np.bool_, []), constant(1.0)
    with pytest.raises(ElementTypeError, match="bool scalar"):
        cond(x, lambda: x, lambda: x)
    with pytest.raises(GraphError, match="true_fn gives 2 values and false_fn 1"):
        cond(p, lambda: [x, x], lambda: [x])
    with pytest.raises(GraphError, match="true_fn and false_fn give dictionaries with different keys"):
        cond(p, lambda: {"a": x, "b": x}, lambda: {"b": x, "c": x})
    with pytest.raises(ElementTypeError, match="float32 in one branch and int32 in the other"):
        cond(p, lambda: x, lambda: constant(1))
    assert cond(p, lambda: constant([1.0]), lambda: constant([1.0, 2.0])).shape == [None]


def test_branches_may_assign(run: Any) -> None:
    v, w = Variable(1.0), Variable(5.0)
    run([v.initializer, w.initializer])
    p = a.placeholder(np.bool_, [])
    branch = cond(p, lambda: v.assign_add(w), lambda: w.assign(0.0))
    seen = []
    for taken in (True, False, True):
        for runs in (
            lambda taken=taken: run(branch, {p: taken}),
            lambda taken=taken: run.compiled([branch], {p: taken})[0],
        ):
            seen.append((float(runs()), float(run(v)), float(run(w))))
    assert seen == [(6, 6, 5), (11, 11, 5), (0, 11, 0), (0, 11, 0), (11, 11, 0), (11, 11, 0)]


def test_loops_may_assign(run: Any) -> None:
    v, x = Variable(1.0), a.placeholder(np.float32, [])
    run(v.initializer)

    def body(i: Any, y: Any) -> Any:
        with control_dependencies([v.assign_add(y)]):
            return i + 1, y * 2

    _, result = while_loop(lambda i, y: i < 3, body, [constant(0), x])
    assert (run(result, {x: 1}), run(v)) == (8, 8)
    assert (run.compiled([result], {x: 1})[0], run(v)) == (8, 15)


def test_a_variable_that_changes_its_shape_in_a_compiled_loop_is_an_error(run: Any) -> None:
    v = Variable(np.zeros(1, np.float32), validate_shape=False)
    run(v.initializer)

    def body(i: Any) -> Any:
        return with_dependencies([v.assign(a.concat([v, v], 0), read_value=False)], i + 1)

    result = while_loop(lambda i: i < 2, body, [constant(0)])
    with pytest.raises(LoweringError, match=r"is f32\[1\].* and becomes f32\[2\].* compiled ones keep shapes"):
        run.compiled([result])
    run(result)
    assert run(v).shape == (4,)


def test_bodies_may_wait_for_outer_tensors_and_make_variables_outside(run: Any) -> None:
    p, x = a.placeholder(np.bool_, []), a.placeholder(np.float32, [])

    def waiting() -> Any:
        with control_dependencies([x]):
            return constant(1.0)

    assert run(cond(p, waiting, lambda: x), {p: True, x: 5}) == 1
    made: list[Variable] = []

    def making() -> Any:
        made.append(Variable(lambda: constant(3.0), name="v"))
        return made[0] + 1

    either = cond(p, making, lambda: cond(x > 0, making, lambda: x))
    assert [v.graph is p.graph for v in made] == [True, True]
    assert [v.name for v in made] == ["v:0", "v_1:0"]
    run(made[0].initializer)
    assert run(either, {p: True, x: 0}) == 4
    with pytest.raises(GraphError, match="is made inside a loop or branch; pass a function"):
        cond(p, lambda: Variable(constant(1.0)), lambda: x)


def test_while_loops_alone_and_compiled(run: Any) -> None:
    n, w = a.placeholder(np.int32, []), a.placeholder(np.float32, [2])
    i, total = while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + w * m.cast(i, "float32")), [0, a.zeros([2])])
    feeds = {n: 4, w: [1, 10]}
    assert i.dtype == "int32"
    np.testing.assert_array_equal(run(total, feeds), [6, 60])
    np.testing.assert_array_equal(run.compiled([total], feeds)[0], [6, 60])


def test_loops_capture_constants_variables_and_outer_loops(run: Any) -> None:
    v = Variable([1.0, 2.0])
    run(v.initializer)
    axis = constant([0])

    def outer(i: Any, t: Any) -> Any:
        inner = while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u + m.reduce_sum(v, axis)), [constant(0), t])
        return i + 1, inner[1]

    _, total = while_loop(lambda i, t: i < 4, outer, [constant(0), constant(0.0)])
    assert run(total) == 18
    assert run.compiled([total])[0] == 18


def test_loops_check_types_shapes_and_counts(graph: Graph) -> None:
    x = constant([1.0])
    with pytest.raises(ShapeError, match="shape_invariants"):
        while_loop(lambda t: True, lambda t: a.concat([t, t], 0), [x])
    with pytest.raises(ElementTypeError, match=r"starts as float32 .* body gives int32"):
        while_loop(lambda t: True, lambda t: constant([1]), [x])
    with pytest.raises(GraphError, match="gives 1 values for 2"):
        while_loop(lambda t, u: True, lambda t, u: t, [x, x])
    with pytest.raises(ElementTypeError, match="bool scalar"):
        while_loop(lambda t: t, lambda t: t, [x])


def test_growing_loop_variables_need_an_invariant_and_run_on_the_host(run: Any) -> None:
    grown = while_loop(
        lambda t: m.less(a.shape(t)[0], 5), lambda t: a.concat([t, t], 0), [constant([1.0])], shape_invariants=[[None]]
    )
    assert run(grown).shape == (8,)


def test_loop_variables_index_tensors(run: Any) -> None:
    x = a.placeholder(np.float32, [None, 2, 3])
    _, total = while_loop(
        lambda i, t: i < 2, lambda i, t: (i + 1, t + x[..., i, ::-1][-1]), [constant(0), a.zeros([3])]
    )
    feeds = {x: np.arange(12).reshape(2, 2, 3)}
    np.testing.assert_array_equal(run(total, feeds), [19, 17, 15])
    np.testing.assert_array_equal(run.compiled([total], feeds)[0], [19, 17, 15])
    with pytest.raises(TypeError, match="scalar integer"):
        x[constant(1.0)]


def test_maximum_iterations_stop_a_loop(run: Any) -> None:
    result = while_loop(lambda i: True, lambda i: i + 2, [constant(0)], maximum_iterations=3)
    assert run(result) == 6
    assert run.compiled([result])[0] == 6


def test_random_numbers_in_a_body_go_on_alone_and_compiled(run: Any) -> None:
    result = while_loop(lambda t: t < 9, lambda t: t + random_uniform([], seed=1), [constant(0.0)])
    mixed = [run(result), *run.compiled([result]), run(result)]
    alone = type(run)()
    assert mixed == [alone(result) for _ in range(3)]


def test_a_condition_that_draws_random_numbers_stays_on_the_host(run: Any) -> None:
    result = while_loop(lambda i: i + random_uniform([], seed=1) < 5, lambda i: i + 1, [constant(0.0)])
    assert "its condition assigns a variable" in str(why_not_compilable(result.op))
    assert run(result) in (4, 5)


def test_assertions_fail_the_step_with_their_data(run: Any) -> None:
    x = a.placeholder(np.float32, [])
    checked = with_dependencies([Assert(x > 0, ["x is", x])], x)
    assert run(checked, {x: 2}) == 2
    with pytest.raises(InvalidArgumentError, match=r"assertion failed: \[b'x is'\] \[-1.0\]"):
        run(checked, {x: -1})
    assert "host" in str(why_not_compilable(checked.op.control_inputs[0]))


def test_tuples_wait_for_all(run: Any) -> None:
    first, nothing, second = tuple_of([constant(1.0), None, constant(2.0)])
    assert nothing is None
    assert first is not None
    assert second is not None
    assert first.op.control_inputs == second.op.control_inputs
    assert run([first, second]) == [1, 2]


def test_unfed_placeholders_are_named(run: Any) -> None:
    x = a.placeholder(np.float32, [None, 2], name="images")
    with pytest.raises(
        InvalidArgumentError, match=r"placeholder 'images' needs a value: .* float32 and shape \(\?, 2\)"
    ):
        run(x + 1)


def test_operations_are_placed_where_another_is(graph: Any) -> None:
    with tf.device("/cpu:1"):
        first = tf.constant(1.0)
    with tf.device("/job:worker"), tf.colocate_with(first):
        assert tf.constant(2.0).device == first.device == "/device:CPU:1"
        with graph.colocate_with(tf.Variable(1.0, name="v").op):
            assert tf.constant(2.0).device == "/device:CPU:1"
