from typing import Any

import numpy as np
import pytest

import xlalite as tf
from xlalite.framework.graph.errors import (
    ElementTypeError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
)
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.ops.functions import array as a, math as m
from xlalite.ops.functions.control_flow import control_dependencies
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradients import gradients
from xlalite.ops.training.initializers import Ones
from xlalite.ops.training.variable import Variable, global_variables, global_variables_initializer, trainable_variables
from xlalite.ops.training.variable_scope import AUTO_REUSE, get_variable, variable_scope


def test_variables_are_named_and_collected(graph: Graph) -> None:
    v, w = Variable(a.zeros([2])), Variable(1.0, trainable=False)
    assert [v.name, w.name] == ["Variable:0", "Variable_1:0"]
    assert v.initializer.name == "Variable/Assign"
    assert global_variables() == [v, w]
    assert trainable_variables() == [v]
    assert v.shape == [2]
    assert w.dtype == "float32"


def test_values_live_in_the_session_and_change(run: Any) -> None:
    v = Variable([1.0, 2.0])
    run(global_variables_initializer())
    np.testing.assert_array_equal(run(v), [1, 2])
    np.testing.assert_array_equal(run(v.assign_add([1, 1])), [2, 3])
    np.testing.assert_array_equal(run(v.assign_sub([5, 0])), [-3, 3])
    np.testing.assert_array_equal(run.compiled([v.assign(v * 2)._as_tensor()])[0], [-6, 6])
    np.testing.assert_array_equal(run(v + 1), [-5, 7])


def test_reading_without_a_value_names_the_variable_and_its_line(run: Any) -> None:
    v = Variable(1.0, name="weights")
    for attempt in (run, lambda t: run.compiled([t])):
        with pytest.raises(
            FailedPreconditionError, match=r"variable 'weights' \(float32\(\)\) has no value yet"
        ) as caught:
            attempt(v.value())
        assert __file__ in str(caught.value)
    assert not run(v.is_initialized())
    assert not run.compiled([v.is_initialized()])[0]


def test_assignments_check_type_and_shape(graph: Graph) -> None:
    v = Variable([1.0, 2.0], name="v")
    with pytest.raises(ShapeError, match=r"value has shape \(3,\); variable 'v' has shape \(2,\)"):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(GraphError, match="initial_value"):
        Variable()
    with pytest.raises(ShapeError, match="not fully known"):
        Variable(a.placeholder(np.float32, [None]))
    with pytest.raises(ElementTypeError, match="string"):
        v.assign(constant(["a", "b"]))


def test_reads_after_an_assignment_see_it(run: Any) -> None:
    v = Variable(1.0)
    run(v.initializer)
    before = v.value()
    with control_dependencies([before]):
        update = v.assign(before + 10, read_value=False)
    with control_dependencies([update]):
        after = v.value()
    assert run([before, after]) == [1, 11]
    first, second = run.compiled([before, after])
    assert (first, second) == (11, 21)
    assert run(v) == 21


def test_gradients_reach_variables_through_every_read(run: Any) -> None:
    v = Variable([1.0, 2.0])
    run(v.initializer)
    (gradient,) = gradients(m.reduce_sum(v * v), [v])
    np.testing.assert_array_equal(run(gradient), [2, 4])
    (rows,) = gradients(m.reduce_sum(a.gather(v, [1, 1])), [v])
    np.testing.assert_array_equal(run(rows), [0, 2])


def test_variables_of_unknown_shape_may_change_it(run: Any) -> None:
    v = Variable([1.0], validate_shape=False)
    run(v.initializer)
    run(v.assign([1.0, 2.0], read_value=False))
    assert run(v).shape == (2,)
    sizes = graph_shape(v)
    np.testing.assert_array_equal(run(sizes), [2])


def graph_shape(v: Variable) -> Any:
    from xlalite.framework.graph.dtypes import int32
    from xlalite.ops.helpers.node import node

    return node("VariableShape", [v.handle], {"out_type": int32})


def test_get_variable_makes_and_finds(graph: Graph) -> None:
    with variable_scope("layer", initializer=Ones()):
        w = get_variable("w", [2, 3])
        with pytest.raises(GraphError, match=r"'layer/w' exists already \(made at .*test_variables.py:\d+\)"):
            get_variable("w", [2, 3])
    with variable_scope("layer", reuse=True):
        assert get_variable("w") is w
        with pytest.raises(GraphError, match="does not exist"):
            get_variable("b", [3])
        with pytest.raises(ShapeError, match="asked for"):
            get_variable("w", [5, 5])
    with variable_scope("layer", reuse=AUTO_REUSE) as scope:
        assert get_variable("b", [3]) is get_variable("b", [3])
    with variable_scope(scope), variable_scope("inner"):
        assert get_variable("c", initializer=constant(2.0)).name == "layer/inner/c:0"
    assert w.name == "layer/w:0"
    with variable_scope(None, "dense"), variable_scope(None, "dense"):
        assert get_variable("k", []).name == "dense/dense/k:0"
    with variable_scope(None, "dense"):
        assert get_variable("k", []).name == "dense_1/k:0"
    with pytest.raises(ShapeError, match="a shape is needed"):
        get_variable("q")


def test_regularizers_join_the_losses(graph: Graph) -> None:
    with variable_scope("layer", regularizer=lambda w: m.reduce_sum(w * w)):
        get_variable("w", [2])
    (loss,) = graph.get_collection(GraphKeys.REGULARIZATION_LOSSES)
    assert loss.op.name.startswith("layer/w/Regularizer/")


def test_initialized_value_falls_back_to_the_initial_one(run: Any) -> None:
    v = Variable(3.0)
    w = Variable(v.initialized_value() * 2)
    run(w.initializer)
    assert run(w) == 6
    run(v.initializer)
    run(v.assign(5.0))
    assert run(v.initialized_value()) == 5


def test_handles_cannot_be_compiled_only_named(run: Any) -> None:
    from xlalite.framework.meaning.lowering import lower_operations

    v = Variable(3.0)
    with pytest.raises(LoweringError, match="names a variable"):
        lower_operations([v.op], [], [v.handle])


def test_a_number_is_added_to_every_element(run: Any) -> None:
    v = Variable([[1.0, 2.0], [3.0, 4.0]])
    added, wrong = a.placeholder(np.float32), a.placeholder(np.float32)
    changes = [v.assign_add(added), v.assign_sub(wrong)]
    run(v.initializer)
    np.testing.assert_array_equal(run(changes[0], {added: 1}), [[2, 3], [4, 5]])
    with pytest.raises(InvalidArgumentError, match=r"\(2,\) cannot update a variable of shape \(2, 2\)"):
        run(changes[1], {wrong: [1, 2]})


def test_variables_without_values_are_reported(graph: Any) -> None:
    one, two = tf.Variable(1.0, name="one"), tf.Variable(2.0, name="two")
    lacking, none = tf.report_uninitialized_variables(), tf.report_uninitialized_variables([])
    with tf.Session() as session:
        assert session.run(lacking).tolist() == [b"one", b"two"]
        session.run(one.initializer)
        assert session.run(lacking).tolist() == [b"two"]
        session.run(two.initializer)
        assert session.run(lacking).tolist() == []
        assert session.run(none).tolist() == []
