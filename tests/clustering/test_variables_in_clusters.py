from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.clustering.clusters import Cluster
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import LocalContext
from xlalite.ops.functions import control_flow, math as m, nn, random_ops
from xlalite.ops.functions.array import placeholder
from xlalite.ops.training.optimizers import AdamOptimizer, MomentumOptimizer
from xlalite.ops.training.variable import Variable

Make = Callable[..., Any]


@pytest.fixture
def x(graph: Graph) -> Tensor:
    """A fed vector."""
    return placeholder(dtypes.float32, [None], "x")


@pytest.fixture
def v(graph: Graph) -> Variable:
    """A variable."""
    return Variable([1.0, 2.0], name="v")


def grown(tensor: Tensor, count: int = 4) -> Tensor:
    for _ in range(count):
        tensor = m.tanh(tensor)
    return tensor


def only(clustered: Any) -> Cluster:
    (found,) = clustered.result.clusters
    assert isinstance(found, Cluster)
    return found


def run_both(clustered: Any, feeds: dict[Tensor, Any], **variables: Any) -> tuple[Any, Any]:
    """Fetches and final variables of the clustered run; checks that they are those of a run one by one."""
    contexts = LocalContext(), LocalContext()
    for name, value in variables.items():
        for context in contexts:
            context.assign_variable(name, np.asarray(value, np.float32))
    found, expected = clustered.run(feeds, contexts[0]), clustered.run_one_by_one(feeds, contexts[1])
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for name, value in contexts[1].variables.items():
        np.testing.assert_array_equal(contexts[0].variables[name], value)
    return found, contexts[0].variables


def names(data: Any) -> list[str]:
    return [each.name for each in data]


def test_a_cluster_lists_what_it_reads_and_updates(x: Tensor, v: Variable, cluster: Make) -> None:
    w = Variable([1.0, 2.0], name="w")
    update = w.assign(grown(x + v)).op
    found = only(cluster([update], [x]))
    assert names(found.reads) == ["v"]
    assert names(found.updates) == ["w"]
    assert names(found.variables) == ["v", "w"]
    assert found.inputs == (x,)


def test_a_variable_that_is_assigned_first_is_not_read_at_entry(
    graph: Graph, x: Tensor, v: Variable, cluster: Make
) -> None:
    update = v.assign(grown(x)).op
    with graph.control_dependencies([update]):
        after = v.read_value() * 2
    clustered = cluster([after], [x])
    assert names(only(clustered).reads) == []
    found, variables = run_both(clustered, {x: [0.5, 1.0]})
    np.testing.assert_array_equal(found[0], variables["v"] * 2)


def test_a_read_after_an_update_of_its_variable_shares_its_cluster(
    graph: Graph, x: Tensor, v: Variable, cluster: Make
) -> None:
    before = v.read_value()
    update = v.assign_add(grown(x * before)).op
    with graph.control_dependencies([update]):
        after = v.read_value() + 0
    clustered = cluster([before, after], [x])
    only(clustered)
    found, variables = run_both(clustered, {x: [0.5, 1.0]}, v=[1, 2])
    np.testing.assert_array_equal(found[0], [1, 2])
    np.testing.assert_array_equal(found[1], variables["v"])


def test_several_updates_of_a_variable_share_a_cluster(graph: Graph, x: Tensor, v: Variable, cluster: Make) -> None:
    last = grown(x)
    for _ in range(3):
        with graph.control_dependencies([v.assign_add(last).op]):
            last = v.read_value() * 2
    clustered = cluster([last], [x])
    only(clustered)
    run_both(clustered, {x: [0.5, 1.0]}, v=[1, 2])


def test_an_outside_operation_between_accesses_splits_the_cluster(
    graph: Graph, x: Tensor, v: Variable, cluster: Make
) -> None:
    update = v.assign_add(grown(x)).op
    with graph.control_dependencies([update]):
        outside = random_ops.random_shuffle(v.read_value(), seed=1)
    after = v.assign(grown(outside)).op
    clustered = cluster([after], [x])
    assert len(clustered.names) == 2
    run_both(clustered, {x: [0.5, 1.0]}, v=[1, 2])


def test_accesses_keep_the_order_of_the_graph_where_it_states_none(x: Tensor, v: Variable, cluster: Make) -> None:
    early = grown(v.read_value())
    update = v.assign(grown(random_ops.random_shuffle(x, seed=1))).op
    late = grown(v.read_value() * 2)
    clustered = cluster([early, update, late], [x])
    found, _ = run_both(clustered, {x: [0.5, 1.0]}, v=[1, 2])
    assert not np.array_equal(found[0], found[1])


def test_different_variables_do_not_keep_operations_apart(x: Tensor, v: Variable, cluster: Make) -> None:
    others = [Variable([0.0, 0.0], name=f"w{i}") for i in range(3)]
    last = grown(x)
    updates = []
    for variable in (v, *others):
        last = last + variable.read_value()
        updates.append(variable.assign_sub(last).op)
    assert len(only(cluster([control_flow.group(*updates)], [x])).updates) == 4


def test_a_training_step_is_one_cluster(graph: Graph, cluster: Make) -> None:
    images, labels = placeholder(dtypes.float32, [None, 4]), placeholder(dtypes.float32, [None, 2])
    w, b = Variable(np.zeros((4, 2), np.float32), name="w"), Variable(np.zeros(2, np.float32), name="b")
    loss = m.reduce_mean(m.square(m.matmul(images, w) + b - labels))
    step = MomentumOptimizer(0.1, 0.9).minimize(loss)
    clustered = cluster([loss, step], [images, labels])
    found = only(clustered)
    assert found.inputs == (images, labels)
    assert found.outputs == (loss,)
    assert found.constant_inputs == ()
    assert sorted(names(found.reads)) == sorted(names(found.updates)) == ["b", "b/Momentum", "w", "w/Momentum"]
    assert {op.type for op in clustered.operations if op not in found.operations} == {"VarHandleOp"}
    zeros = {"w": np.zeros((4, 2)), "w/Momentum": np.zeros((4, 2)), "b": np.zeros(2), "b/Momentum": np.zeros(2)}
    run_both(clustered, {images: np.ones((3, 4)), labels: np.ones((3, 2))}, **zeros)


def test_shapes_of_losses_and_gradients_do_not_split_a_training_step(graph: Graph, cluster: Make) -> None:
    images, labels = placeholder(dtypes.float32, [None, 6]), placeholder(dtypes.float32, [None, 3])
    shapes = {"w0": (6, 4), "b0": (4,), "w1": (4, 3), "b1": (3,)}
    w0, b0, w1, b1 = (Variable(np.zeros(shape, np.float32), name=name) for name, shape in shapes.items())
    logits = m.matmul(nn.relu(m.matmul(images, w0) + b0), w1) + b1
    loss = m.reduce_mean(nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    right = m.equal(m.argmax(logits, 1), m.argmax(labels, 1))
    accuracy = m.reduce_mean(m.cast(right, dtypes.float32))
    step = AdamOptimizer(0.01).minimize(loss)
    clustered = cluster([loss, accuracy, step], [images, labels])
    found = only(clustered)
    assert found.constant_inputs == ()
    assert {op.type for op in clustered.operations if op not in found.operations} == {"VarHandleOp"}
    rng = np.random.default_rng(1)
    state: dict[str, Any] = {data.name: np.zeros(data.shape.known_dims()) for data in found.variables}
    state.update({name: rng.normal(size=shape) for name, shape in shapes.items()})
    state.update({name: 0.9 for name, value in state.items() if value.shape == ()})
    run_both(clustered, {images: rng.normal(size=(5, 6)), labels: np.eye(3)[[0, 1, 2, 0, 1]]}, **state)


def test_a_loop_that_reads_a_variable_comes_between_its_updates(
    graph: Graph, x: Tensor, v: Variable, cluster: Make
) -> None:
    first = v.assign_add(x).op
    with graph.control_dependencies([first]):
        looped = control_flow.while_loop(lambda y: m.reduce_sum(y) < 20, lambda y: y + v, [x])
    second = v.assign(looped).op
    clustered = cluster([looped, second], [x])
    assert names(only(clustered).reads) == ["v"]
    run_both(clustered, {x: [0.5, 1.0]}, v=[1, 2])


def test_a_loop_that_assigns_a_variable_keeps_its_place(graph: Graph, x: Tensor, v: Variable, cluster: Make) -> None:
    early = grown(v.read_value())

    def body(y: Tensor) -> Tensor:
        with y.graph.control_dependencies([v.assign_add(y)]):
            return y + 1

    looped = control_flow.while_loop(lambda y: m.reduce_sum(y) < 4, body, [x])
    late = grown(v.read_value() * 2)
    clustered = cluster([early, looped, late], [x])
    assert looped.op.name in set().union(*clustered.names)
    run_both(clustered, {x: [0.5, 1.0]}, v=[1, 2])
