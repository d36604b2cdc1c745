"""Random graphs: parts can run in their order, every operation has its place, and results do not change."""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from xlalite.clustering.candidates import find_refusals
from xlalite.clustering.clusters import Cluster, Clustering
from xlalite.clustering.dependencies import find_dependencies
from xlalite.clustering.merging import merge_candidates
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph import dtypes
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.jit_scope import jit_scope
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import LocalContext
from xlalite.ops.functions import array, control_flow, math as m, random_ops
from xlalite.ops.functions.array import placeholder
from xlalite.ops.helpers.constant import constant
from xlalite.ops.training.variable import Variable

SIZE = 3
Make = Callable[[], None]


class RandomGraph:
    """Square matrices, small whole numbers and variables, put together at random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.feeds: dict[Tensor, Any] = {}
        self.variables = [Variable(np.full((SIZE, SIZE), 0.5 * i, np.float32)) for i in range(2)]
        self.counter = Variable(np.int32(2))
        self.matrices: list[Tensor] = []
        self.numbers: list[Tensor] = []
        self.operations: list[Operation] = []
        for i in range(2):
            tensor = placeholder(dtypes.float32, [None, None])
            self.feeds[tensor] = np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE) * 0.25 - i
            self.matrices.append(tensor)
        number = placeholder(dtypes.int32, [])
        self.feeds[number] = SIZE
        self.numbers.append(number)
        makers: list[Make] = [
            self._unary, self._unary, self._binary, self._binary, self._read, self._update, self._shape, self._number,
            self._reshape, self._fill, self._host, self._split, self._count, self._branch, self._loop, self._feed,
        ]  # fmt: skip
        for _ in range(rng.randint(3, 24)):
            self._under_random_scopes(rng.choice(makers))

    def fetches(self) -> list[Any]:
        tensors = self.rng.sample(self.matrices, min(3, len(self.matrices)))
        return [*dict.fromkeys([*tensors, self.rng.choice(self.numbers)]), *self.operations]

    def context(self) -> LocalContext:
        context = LocalContext()
        for i, variable in enumerate(self.variables):
            context.assign_variable(variable.op.name, np.full((SIZE, SIZE), 0.5 * i, np.float32))
        context.assign_variable(self.counter.op.name, np.asarray(2, np.int32))
        return context

    def _under_random_scopes(self, make: Make) -> None:
        known = [tensor.op for tensor in self.matrices] + self.operations
        waits_for = self.rng.sample(known, 1) if self.rng.random() < 0.2 else []
        graph = self.matrices[0].graph
        with graph.control_dependencies(waits_for):
            choice = self.rng.random()
            if choice < 0.1:
                with jit_scope(compile_ops=False):
                    make()
            elif choice < 0.25:
                with jit_scope():
                    make()
            elif choice < 0.35:
                with graph.device(self.rng.choice(["/cpu:0", "/cpu:1"])):
                    make()
            else:
                make()

    def _matrix(self) -> Tensor:
        return self.rng.choice(self.matrices[-6:])

    def _size(self) -> Tensor:
        return self.rng.choice(self.numbers[-4:])

    def _unary(self) -> None:
        self.matrices.append(self.rng.choice([m.tanh, m.negative, array.identity])(self._matrix()))

    def _binary(self) -> None:
        x, y = self._matrix(), self._matrix()
        self.matrices.append(self.rng.choice([m.add, m.maximum, m.subtract])(x, y) * 0.5)

    def _read(self) -> None:
        self.matrices.append(self.rng.choice(self.variables).read_value())

    def _update(self) -> None:
        variable = self.rng.choice(self.variables)
        update = self.rng.choice([variable.assign, variable.assign_add, variable.assign_sub])
        self.operations.append(update(self._matrix()).op)

    def _count(self) -> None:
        with self.counter.graph.control_dependencies(self.operations[-1:]):
            self.operations.append(self.counter.assign_add(0).op)
            self.numbers.append(self.counter.read_value() + 1)

    def _shape(self) -> None:
        self.numbers.append(array.shape(self._matrix())[self.rng.randint(0, 1)])

    def _number(self) -> None:
        # Always SIZE, though the graph does not say so.
        self.numbers.append(m.maximum(self._size(), self._size()) + 0)
        self.numbers.append(m.cast(m.argmax(m.reduce_sum(self._matrix(), 1), 0) * 0, dtypes.int32) + SIZE)

    def _reshape(self) -> None:
        shape = array.stack([self._size(), self._size()])
        self.matrices.append(array.reshape(self._matrix(), shape))

    def _fill(self) -> None:
        self.matrices.append(array.fill(array.stack([self._size(), constant(SIZE)]), 0.25))

    def _host(self) -> None:
        self.matrices.append(random_ops.random_shuffle(self._matrix(), seed=7))

    def _split(self) -> None:
        top, bottom = array.split(self._matrix(), [1, SIZE - 1], 0)
        self.matrices.append(array.concat([bottom, top], 0))

    def _branch(self) -> None:
        x, y = self._matrix(), self._matrix()
        self.matrices.append(control_flow.cond(m.reduce_sum(x) > 0, lambda: x + 1, lambda: y * 0.5))

    def _loop(self) -> None:
        variable = self.rng.choice(self.variables)
        _, last = control_flow.while_loop(
            lambda i, _: i < 2, lambda i, x: (i + 1, m.tanh(x) + variable), [constant(0), self._matrix()]
        )
        self.matrices.append(last)

    def _feed(self) -> None:
        tensor = self._matrix()
        self.feeds[tensor] = np.full((SIZE, SIZE), 0.125, np.float32)


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_clusters_are_maximal_and_form_no_cycle(rng: random.Random) -> None:
    with Graph().as_default():
        tensors = [placeholder(dtypes.float32, [None])]
        for _ in range(rng.randint(2, 40)):
            x, y = rng.choice(tensors[-8:]), rng.choice(tensors)
            is_outside = rng.random() < 0.2
            tensors.append(random_ops.random_shuffle(x, seed=1) if is_outside else m.add(x, y))
    operations = [tensor.op for tensor in tensors[1:]]
    options = ClusteringOptions(global_jit=True, max_cluster_size=rng.choice([2, 5, 2**31 - 1]))
    refused = find_refusals(operations, {tensors[0]}, options).keys()
    dependencies = find_dependencies(operations, {tensors[0]}, refused)
    links = networkx.DiGraph()
    links.add_nodes_from(range(len(operations)))
    links.add_edges_from((a, b) for b, producers in enumerate(dependencies.predecessors) for a in producers)
    candidates = [i for i, operation in enumerate(operations) if operation not in refused]
    may_be_apart = {pair for pair in itertools.pairwise(candidates) if links.has_edge(*pair) and rng.random() < 0.1}
    separated = {(operations[a], operations[b]) for a, b in may_be_apart}
    merging = merge_candidates(dependencies, refused, separated, options)

    group = {one: one for one in links}
    for each in merging.groups:
        group |= dict.fromkeys(each.members, each.members[0])
    size = Counter(group.values())
    between = networkx.DiGraph((group[a], group[b]) for a, b in links.edges if group[a] != group[b])
    assert networkx.is_directed_acyclic_graph(between)
    assert not any(group[a] == group[b] for a, b in may_be_apart)
    forbidden = {(group[a], group[b]) for a, b in may_be_apart}
    compiled = {group[candidate] for candidate in candidates}
    needed_edges = networkx.transitive_reduction(between)
    for a, b in between.edges:
        if {a, b} <= compiled:
            closes_cycle = not needed_edges.has_edge(a, b)  # another path connects them
            assert closes_cycle or size[a] + size[b] > options.max_cluster_size or (a, b) in forbidden


def assert_executable(clustering: Clustering, feeds: Any) -> None:
    """Checks that each step comes after everything it needs, and that operations are in one step each."""
    place: dict[Operation, int] = {}
    for number, step in enumerate(clustering.parts):
        for operation in step.operations if isinstance(step, Cluster) else (step,):
            assert operation not in place or operation.spec.is_constant
            place[operation] = number
    for number, step in enumerate(clustering.parts):
        members = step.operations if isinstance(step, Cluster) else (step,)
        inputs = step.inputs
        for tensor in inputs:
            assert tensor in feeds or place[tensor.op] < number
        for operation in members:
            for other in operation.control_inputs:
                assert other not in place or place[other] <= number or other.spec.is_constant


@pytest.mark.parametrize("global_jit", [True, False])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_results_do_not_depend_on_clustering(cluster: Callable[..., Any], global_jit: bool, rng: random.Random) -> None:
    with Graph().as_default():
        made = RandomGraph(rng)
        options = {
            "global_jit": global_jit,
            "min_cluster_size": rng.choice([1, 2, 4]),
            "max_cluster_size": rng.choice([3, 2**31 - 1]),
        }
        clustered = cluster(made.fetches(), tuple(made.feeds), **options)
    assert_executable(clustered.result, made.feeds)
    assert {*clustered.result.operations} == {*clustered.operations}
    members = {operation for each in clustered.result.clusters for operation in each.operations}
    for operation in clustered.operations:
        assert operation in members or clustered.reason(operation)
    expected_context, context = made.context(), made.context()
    expected = clustered.run_one_by_one(made.feeds, expected_context)
    for found, wanted in zip(clustered.run(made.feeds, context), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    for name, value in expected_context.variables.items():
        np.testing.assert_array_equal(context.variables[name], value)
