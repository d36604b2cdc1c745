from collections.abc import Callable
from typing import Any

import pytest

from xlalite.clustering.cluster_operations import cluster_operations
from xlalite.clustering.clusters import Cluster
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ClusteringError
from xlalite.ops.functions import array, control_flow, math as m, random_ops
from xlalite.ops.functions.array import placeholder
from xlalite.ops.training.variable import Variable

Make = Callable[..., Any]


@pytest.fixture
def x(graph: Graph) -> Tensor:
    """A fed vector."""
    return placeholder(dtypes.float32, [None], "x")


def grown(tensor: Tensor, count: int = 4) -> Tensor:
    for _ in range(count):
        tensor = m.tanh(tensor)
    return tensor


def split_graph(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two clusters with an operation between them that cannot be compiled."""
    first = grown(x)
    outside = random_ops.random_shuffle(first, seed=1)
    return first, outside, grown(first + outside)


def test_inputs_and_outputs_are_what_crosses_the_border(x: Tensor, cluster: Make) -> None:
    first, outside, last = split_graph(x)
    parts = cluster([last], [x]).result.parts
    assert isinstance(parts[0], Cluster)
    assert (parts[0].inputs, parts[0].outputs) == ((x,), (first,))
    assert parts[1] is outside.op
    assert isinstance(parts[2], Cluster)
    assert (parts[2].inputs, parts[2].outputs) == ((first, outside), (last,))


def test_a_fetched_value_is_an_output(x: Tensor, cluster: Make) -> None:
    half = grown(x, 2)
    last = grown(half, 2)
    (only,) = cluster([last, half], [x]).result.clusters
    assert only.outputs == (half, last)


def test_consumers_that_do_not_run_need_no_output(x: Tensor, cluster: Make) -> None:
    half = grown(x, 2)
    last = grown(half, 2)
    grown(half)
    (only,) = cluster([last], [x]).result.clusters
    assert only.outputs == (last,)


def test_an_operation_with_several_outputs_hands_out_the_wanted_ones(graph: Graph, cluster: Make) -> None:
    x = placeholder(dtypes.float32, [6])
    top, middle, _ = array.split(grown(x), 3)
    clustered = cluster([top + middle, middle], [x])
    (only,) = clustered.result.clusters
    assert only.outputs == (middle, clustered.fetches[0])


def test_nothing_gives_no_parts() -> None:
    result = cluster_operations([], [], [], ClusteringOptions(global_jit=True))
    assert result.parts == result.decisions == ()
    assert result.report() == "0 operations: 0 in 0 clusters, 0 outside"


def test_an_order_that_cannot_run_is_an_error(x: Tensor) -> None:
    last = grown(x)
    operations = [last.op, last.op.inputs[0].op]
    with pytest.raises(ClusteringError, match="'Tanh_3' stands before 'Tanh_2', which it depends on"):
        cluster_operations(operations, [last], [x], ClusteringOptions(global_jit=True))


def test_the_report_shows_shares_clusters_and_reasons(x: Tensor, cluster: Make) -> None:
    _, outside, last = split_graph(x)
    report = cluster([last, m.exp(outside)], [x]).result.report()
    assert report.splitlines() == [
        "11 operations: 9 (82%) in 2 clusters, 2 (18%) outside",
        "cluster_0_Tanh_3: 4 operations, 1 input, 1 output; it reaches the minimum size",
        "  Tanh 4",
        "cluster_1_Tanh_7: 5 operations, 2 inputs, 1 output; it reaches the minimum size",
        "  Tanh 4, AddV2 1",
        "outside:",
        "  RandomShuffle 1: cannot be compiled: it draws from a stream of random numbers",
        "    that belongs to the session",
        "  Exp 1: its cluster is smaller than the minimum",
        "neighbours that were not joined:",
        "  1 pair: another path connects them, so that joining them would close a cycle",
        "    Tanh_3 -> RandomShuffle -> add",
    ]


def test_the_report_keeps_to_its_width(x: Tensor, cluster: Make) -> None:
    tensor = x
    for _ in range(10):
        tensor = split_graph(m.exp(m.sin(m.cos(m.log(m.floor(m.sign(tensor)))))))[2]
    report = cluster([tensor], [x]).result.report()
    assert max(map(len, report.splitlines())) <= 80
    assert "and 7 more" in report


def test_clusters_are_named_after_what_they_update_or_give(x: Tensor, cluster: Make) -> None:
    v = Variable(1.0, name="weights")
    bump = v.assign_add(grown(m.sin(1.0)), read_value=False)
    with control_flow.name_scope("train"):
        step = v.assign_add(grown(m.sin(2.0)), read_value=False)
    assert cluster([bump], []).result.clusters[0].name == "cluster_0_weights"
    assert cluster([step], []).result.clusters[0].name == "cluster_0_train"
    drawn = grown(random_ops.random_normal([3], seed=1))
    assert cluster([drawn], []).result.clusters[0].name == f"cluster_0_{drawn.op.name}"


def test_an_operation_inside_is_explained(x: Tensor, cluster: Make) -> None:
    first, _, last = split_graph(x)
    text = cluster([last], [x]).result.explain(first.op)
    assert text.startswith("Tanh 'Tanh_3' (float32(?,)), made at\n")
    assert "\nin cluster_0_Tanh_3 with 3 other operations\n" in text
    assert "kept (cluster_0_Tanh_3): it reaches the minimum size" in text
    assert "not joined (add): another path connects them" in text


def test_an_operation_outside_is_explained(x: Tensor, cluster: Make) -> None:
    _, outside, last = split_graph(x)
    text = cluster([last], [x]).result.explain(outside.op.name)
    assert "left out: cannot be compiled: it draws from a stream" in text


def test_an_unknown_operation_is_an_error(x: Tensor, cluster: Make) -> None:
    with pytest.raises(ClusteringError, match=r"'Tanh_9': no operation .* did you mean 'Tanh"):
        cluster([grown(x)], [x]).result.explain("Tanh_9")
