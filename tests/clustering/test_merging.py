import random
from collections.abc import Callable
from typing import Any

import pytest

from xlalite.clustering.candidates import find_refusals
from xlalite.clustering.dependencies import find_dependencies
from xlalite.clustering.merging import merge_candidates
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import array, control_flow, math as m, random_ops
from xlalite.ops.functions.array import placeholder
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node
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


def host(tensor: Tensor) -> Tensor:
    """Something that cannot be compiled."""
    return random_ops.random_shuffle(tensor, seed=1)


def pairs(clustered: Any) -> dict[tuple[str, ...], Any]:
    """The pairs that were not joined."""
    return {d.subject: d for d in clustered.result.decisions if d.verdict == "not joined"}


def test_a_path_through_an_outside_operation_keeps_its_ends_apart(x: Tensor, cluster: Make) -> None:
    before = grown(x)
    outside = host(before)
    after = grown(before + outside)
    clustered = cluster([after], [x])
    assert [len(names) for names in clustered.names] == [4, 5]
    ((subject, decision),) = pairs(clustered).items()
    assert subject == (before.op.name, (after.op.inputs[0].op.inputs[0].op.inputs[0].op.inputs[0]).op.name)
    assert decision.reason == "another path connects them, so that joining them would close a cycle"
    assert decision.numbers["path"] == f"{subject[0]} -> {outside.op.name} -> {subject[1]}"


def test_independent_parts_joined_by_an_outside_operation_are_not_one_cluster(x: Tensor, cluster: Make) -> None:
    clustered = cluster([grown(host(grown(x)))], [x])
    assert [len(names) for names in clustered.names] == [4, 4]
    assert not pairs(clustered)


def test_a_control_dependency_counts_as_a_path(graph: Graph, x: Tensor, cluster: Make) -> None:
    before = grown(x)
    outside = host(before)
    with graph.control_dependencies([outside]):
        after = grown(m.exp(x))
    joined = m.add(before, after)
    clustered = cluster([joined], [x])
    for names in clustered.names:
        assert not {before.op.name, after.op.name} <= names


def test_operations_joined_by_a_control_dependency_share_a_cluster(graph: Graph, x: Tensor, cluster: Make) -> None:
    before = grown(x, 2)
    with graph.control_dependencies([before]):
        after = grown(m.exp(x), 2)
    (names,) = cluster([before, after], [x]).names
    assert {before.op.name, after.op.name} <= names


def test_a_small_cluster_is_dissolved(x: Tensor, cluster: Make) -> None:
    out = grown(x, 3)
    clustered = cluster([out], [x])
    assert clustered.names == []
    assert clustered.reason(out) == "its cluster is smaller than the minimum"
    (dissolved,) = (d for d in clustered.result.decisions if d.verdict == "dissolved")
    assert dissolved.numbers == {"operations": 3, "effective size": 3, "minimum": 4}


def test_identities_and_constants_do_not_make_a_cluster_larger(x: Tensor, cluster: Make) -> None:
    out = grown(array.identity(array.identity(x)) + 1.0, 2)
    assert cluster([out], [x]).names == []
    assert len(cluster([m.tanh(out)], [x]).names) == 1


def test_the_minimum_can_be_chosen(x: Tensor, cluster: Make) -> None:
    assert len(cluster([grown(x, 2)], [x], min_cluster_size=2).names) == 1
    assert cluster([grown(x, 2)], [x], min_cluster_size=3).names == []


@pytest.mark.parametrize("kind", ["loop", "branch"])
def test_a_loop_or_branch_is_worth_a_cluster(x: Tensor, cluster: Make, kind: str) -> None:
    if kind == "loop":
        out = control_flow.while_loop(lambda v: m.reduce_sum(v) < 3, lambda v: v + 1, [x])
    else:
        out = control_flow.cond(m.reduce_sum(x) > 0, lambda: x + 1, lambda: x - 1)
    clustered = cluster([out], [x])
    assert len(clustered.names) == 1
    kept = [d.reason for d in clustered.result.decisions if d.verdict == "kept"]
    assert kept == ["it contains a loop or a branch"]


def test_clusters_do_not_grow_beyond_the_maximum(x: Tensor, cluster: Make) -> None:
    clustered = cluster([grown(x, 12)], [x], max_cluster_size=5)
    assert [len(names) for names in clustered.names] == [5, 5]
    reasons = {decision.reason for decision in pairs(clustered).values()}
    assert reasons == {"together they exceed the maximum size"}


def test_different_devices_are_kept_apart(graph: Graph, x: Tensor, cluster: Make) -> None:
    with graph.device("/cpu:0"):
        first = grown(x)
    with graph.device("/cpu:1"):
        second = grown(first)
    clustered = cluster([second], [x])
    assert [len(names) for names in clustered.names] == [4, 4]
    assert {d.reason for d in pairs(clustered).values()} == {"no device meets the requests of both"}


@pytest.mark.parametrize(
    ("one", "other"), [("/cpu:0", ""), ("/cpu:0", "/device:CPU:*"), ("/gpu:0", "/cpu:0"), ("/job:a", "/job:a/cpu:0")]
)
def test_requests_that_one_device_meets_share_a_cluster(
    graph: Graph, x: Tensor, cluster: Make, one: str, other: str
) -> None:
    with graph.device(one):
        first = grown(x)
    with graph.device(other or None):
        second = grown(first)
    assert [len(names) for names in cluster([second], [x]).names] == [8]


@pytest.mark.parametrize(
    ("one", "other"), [("/device:XLA_CPU:0", "/cpu:0"), ("/gpu:0", "/gpu:1"), ("/job:a", "/job:b")]
)
def test_requests_that_contradict_each_other_do_not(
    graph: Graph, x: Tensor, cluster: Make, one: str, other: str
) -> None:
    with graph.device(one):
        first = grown(x)
    with graph.device(other):
        second = grown(first)
    assert [len(names) for names in cluster([second], [x]).names] == [4, 4]


def test_one_device_does_not_wait_for_another_because_of_a_cluster(graph: Graph, x: Tensor, cluster: Make) -> None:
    with graph.device("/cpu:0"):
        independent = grown(x)
    with graph.device("/cpu:1"):
        remote = m.exp(x)
    with graph.device("/cpu:0"):
        waits = m.add(independent, remote)
    clustered = cluster([grown(waits)], [x])
    assert all(not {independent.op.name, waits.op.name} <= names for names in clustered.names)
    assert "the producer would have to wait for another device" in {d.reason for d in pairs(clustered).values()}


def test_a_shared_small_constant_does_not_tie_clusters_together(x: Tensor, cluster: Make) -> None:
    one = constant(1.0)
    first = grown(x * one, 3)
    second = grown(host(first) * one, 3)
    clustered = cluster([second], [x])
    assert [len(names) for names in clustered.names] == [4, 4]
    assert all(one.op in each.operations for each in clustered.result.clusters)
    assert all(one not in each.inputs + each.outputs for each in clustered.result.clusters)
    assert one.op not in clustered.result.parts


def test_a_constant_that_is_wanted_outside_runs_there_too(x: Tensor, cluster: Make) -> None:
    one = constant(1.0)
    clustered = cluster([grown(x * one, 3), one], [x])
    assert one.op in clustered.result.parts
    assert one.op in clustered.result.clusters[0].operations


def test_a_constant_that_no_cluster_uses_says_so(x: Tensor, cluster: Make) -> None:
    one = constant(1.0)
    assert cluster([x * one], [x]).reason(one) == "no cluster uses this constant"


def test_a_large_constant_is_handed_on(x: Tensor, cluster: Make) -> None:
    weights = constant([0.5] * 32)
    clustered = cluster([grown(x * weights, 3) + grown(host(x) * weights, 3)], [x])
    holders = [each for each in clustered.result.clusters if weights.op in each.operations]
    assert len(holders) + (weights.op in clustered.result.parts) == 1


def test_updates_gathered_by_a_group_form_one_cluster(graph: Graph, x: Tensor, cluster: Make) -> None:
    step = Variable(0, name="step")
    weights = [Variable([1.0, 2.0], name=f"w{i}") for i in range(3)]
    updates = [w.assign_sub(m.tanh(x * w)).op for w in weights]
    with graph.control_dependencies(updates):
        counted = step.assign_add(1).op
    clustered = cluster([control_flow.group(counted, *updates)], [x])
    (names,) = clustered.names
    assert {counted.name, *(update.name for update in updates)} <= names


def test_names_follow_the_order_of_the_graph(x: Tensor, cluster: Make) -> None:
    clustered = cluster([grown(host(grown(x)))], [x])
    firsts = {each.name: each.operations[0].id for each in clustered.result.clusters}
    assert [*firsts] == ["cluster_0_Tanh_3", "cluster_1_Tanh_7"]
    assert firsts["cluster_0_Tanh_3"] < firsts["cluster_1_Tanh_7"]


def test_the_same_graph_gives_the_same_clustering(graph: Graph, cluster: Make) -> None:
    def made() -> list[str]:
        with Graph().as_default():
            operations = random_graph(random.Random(3), 300, 0.2)
            clustered = cluster([operations[-1], operations[-2]], operations[:1])
            return [str(step) for step in clustered.result.parts] + [str(d) for d in clustered.result.decisions]

    assert made() == made()


@pytest.mark.parametrize("outside_share", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("reach", [20, 3_000])
def test_joining_takes_a_few_steps_for_each_edge(outside_share: float, reach: int) -> None:
    count = 3_000
    with Graph().as_default():
        tensors = random_graph(random.Random(1), count, outside_share, reach)
    operations = [tensor.op for tensor in tensors[1:]]
    options = ClusteringOptions(global_jit=True)
    refused = find_refusals(operations, {tensors[0]}, options).keys()
    dependencies = find_dependencies(operations, {tensors[0]}, refused)
    merging = merge_candidates(dependencies, refused, frozenset(), options)
    edges = sum(map(len, dependencies.predecessors))
    assert merging.work < 12 * (count + edges)


def test_a_training_chain_of_ten_thousand_operations_is_one_cluster(x: Tensor, cluster: Make) -> None:
    forward = [x]
    for _ in range(5000):
        forward.append(node("Tanh", [forward[-1]]))
    gradient = forward[-1]
    for value in reversed(forward):
        gradient = node("AddV2", [gradient, value])
    clustered = cluster([gradient], [x])
    assert [len(names) for names in clustered.names] == [10_001]


def random_graph(rng: random.Random, count: int, outside_share: float, reach: int = 100) -> list[Tensor]:
    """A fed tensor and sums of earlier ones; some operations cannot be compiled."""
    tensors = [placeholder(dtypes.float32, [None])]
    for _ in range(count):
        x, y = (rng.choice(tensors[-reach:]) for _ in range(2))
        if rng.random() < outside_share:
            tensors.append(node("RandomShuffle", [x], {"seed": 1, "seed2": 1}))
        else:
            tensors.append(node("AddV2", [x, y]))
    return tensors
