from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.clustering.clusters import Cluster
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import LocalContext
from xlalite.ops.functions import array, math as m
from xlalite.ops.functions.array import placeholder
from xlalite.ops.helpers.constant import constant
from xlalite.ops.training.variable import Variable

Make = Callable[..., Any]
NEEDED = "its value must be known before a cluster that uses it is compiled"


@pytest.fixture
def x(graph: Graph) -> Tensor:
    """A fed matrix of unknown sizes."""
    return placeholder(dtypes.float32, [None, None], "x")


def grown(tensor: Tensor, count: int = 4) -> Tensor:
    """Enough to make a cluster."""
    for _ in range(count):
        tensor = m.tanh(tensor)
    return tensor


def only(clustered: Any) -> Cluster:
    (found,) = clustered.result.clusters
    assert isinstance(found, Cluster)
    return found


def check(clustered: Any, feeds: dict[Tensor, Any]) -> None:
    expected = clustered.run_one_by_one(feeds, LocalContext())
    for found, wanted in zip(clustered.run(feeds, LocalContext()), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_shape_that_the_graph_states_stays_inside(x: Tensor, cluster: Make) -> None:
    clustered = cluster([array.reshape(grown(x), array.stack([constant(2), constant(3)]))], [x])
    assert only(clustered).inputs == (x,)
    assert only(clustered).constant_inputs == ()
    check(clustered, {x: np.ones((3, 2))})


def test_a_fed_shape_becomes_a_constant_input(x: Tensor, cluster: Make) -> None:
    sizes = placeholder(dtypes.int32, [2])
    clustered = cluster([array.reshape(grown(x), sizes)], [x, sizes])
    assert only(clustered).inputs == (x, sizes)
    assert only(clustered).constant_inputs == (1,)
    check(clustered, {x: np.ones((3, 2)), sizes: [2, 3]})


def test_arithmetic_on_fed_sizes_is_done_outside(x: Tensor, cluster: Make) -> None:
    count = placeholder(dtypes.int32, [])
    doubled = count * 2
    sizes = array.stack([doubled, constant(-1)])
    out = array.reshape(grown(x), sizes)
    clustered = cluster([out], [x, count])
    assert clustered.reason(doubled) == NEEDED
    assert clustered.reason(sizes) == NEEDED
    assert only(clustered).inputs == (x, sizes)
    assert only(clustered).constant_inputs == (1,)
    check(clustered, {x: np.ones((4, 3)), count: 3})


def test_the_shape_of_a_value_inside_is_known(x: Tensor, cluster: Make) -> None:
    h = grown(x)
    sizes = array.stack([array.shape(h)[1], array.shape(h)[0]])
    clustered = cluster([array.reshape(h, sizes)], [x])
    assert only(clustered).inputs == (x,)
    assert only(clustered).constant_inputs == ()
    check(clustered, {x: np.ones((4, 3))})


def test_a_shape_from_inside_and_outside_is_folded_with_a_constant_input(x: Tensor, cluster: Make) -> None:
    h = grown(x)
    count = placeholder(dtypes.int32, [])
    clustered = cluster([array.reshape(h, array.stack([array.shape(h)[0] // 2, count]))], [x, count])
    inputs = only(clustered).inputs
    assert [inputs[i] for i in only(clustered).constant_inputs] == [count]
    check(clustered, {x: np.ones((4, 3)), count: 6})


def test_a_computed_value_that_must_be_known_splits_the_cluster(x: Tensor, cluster: Make) -> None:
    count = m.cast(m.reduce_sum(grown(x)), dtypes.int32)
    filled = array.fill(array.stack([count, constant(2)]), 1.0)
    clustered = cluster([grown(filled, 6)], [x])
    first, second = sorted(clustered.result.clusters, key=lambda each: each.name)
    assert count.op in first.operations
    assert filled.op in second.operations
    assert len(second.constant_inputs) == 1
    reasons = [d.reason for d in clustered.result.decisions if d.verdict == "not joined"]
    assert reasons == ["the consumer must know the value when it is compiled"]
    check(clustered, {x: np.ones((4, 3))})


def test_values_kept_apart_are_not_joined_through_others(x: Tensor, cluster: Make) -> None:
    count = m.cast(m.reduce_sum(grown(x)), dtypes.int32)
    filled = array.fill([count], 1.0)
    clustered = cluster([grown(filled + m.cast(count, dtypes.float32))], [x])
    for each in clustered.result.clusters:
        assert not {count.op, filled.op} <= {*each.operations}
    check(clustered, {x: np.ones((4, 3))})


def test_a_variable_that_must_be_known_is_read_outside(x: Tensor, cluster: Make) -> None:
    variable = Variable(np.int32(2), name="rows")
    read = variable.read_value()
    clustered = cluster([array.fill(array.stack([read * 2, constant(2)]), grown(m.reduce_sum(x)))], [x])
    (operation,) = (op for op in clustered.operations if op.type == "ReadVariableOp")
    assert clustered.reason(operation) == NEEDED
    assert only(clustered).variables == ()


def test_a_question_about_a_tensor_used_otherwise_stays_inside(x: Tensor, cluster: Make) -> None:
    clustered = cluster([array.reshape(grown(x), array.shape(x)[::-1])], [x])
    assert "Shape" in {operation.type for operation in only(clustered).operations}
    assert only(clustered).inputs == (x,)


def test_a_question_about_a_tensor_not_used_otherwise_is_asked_outside(x: Tensor, cluster: Make) -> None:
    other = placeholder(dtypes.float32, [None, None])
    shape = array.shape(other)
    clustered = cluster([array.reshape(grown(x), shape[::-1])], [x, other])
    assert clustered.reason(shape) == "it asks for the shape of a tensor that its cluster does not use otherwise"
    assert other not in only(clustered).inputs
    assert len(only(clustered).constant_inputs) == 1
    check(clustered, {x: np.ones((4, 3)), other: np.ones((6, 2))})


def test_a_known_shape_needs_no_tensor(x: Tensor, cluster: Make) -> None:
    other = placeholder(dtypes.float32, [6, 2])
    clustered = cluster([array.reshape(grown(x), array.shape(other))], [x, other])
    assert other not in only(clustered).inputs
    check(clustered, {x: np.ones((4, 3)), other: np.ones((6, 2))})


def test_a_shape_is_asked_in_the_cluster_of_its_tensor(x: Tensor, cluster: Make) -> None:
    h = grown(x)
    shape = array.shape(h)
    clustered = cluster([h, shape], [x])
    assert shape.op in only(clustered).operations
    assert only(clustered).outputs == (h, shape)
