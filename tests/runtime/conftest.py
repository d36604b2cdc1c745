"""A graph of its own for each test, and a division into clusters that needs no clustering."""

from collections.abc import Callable, Iterator, Sequence

import pytest

import xlalite as tf
from xlalite.clustering.result import Cluster, Clustering
from xlalite.framework.compilability import why_not_compilable
from xlalite.framework.op_spec import VariableAccess
from xlalite.framework.operation import Operation
from xlalite.framework.tensor import HandleData, Tensor
from xlalite.runtime.compilation_cache import CompilationCache
from xlalite.runtime.options import RuntimeOptions
from xlalite.runtime.plan import Plan, PlanRequest
from xlalite.runtime.plan_builder import PlanBuilder
from xlalite.runtime.variables import VariableStore

WRITES = (VariableAccess.WRITE, VariableAccess.MODIFY)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def one_cluster(operations: Sequence[Operation], fetched: Sequence[Tensor], fed: Sequence[Tensor]) -> Clustering:
    """Everything that can be compiled in one cluster; what runs on the host must not depend on it."""
    members = {operation: None for operation in operations if why_not_compilable(operation) is None}
    outside = [operation for operation in operations if operation not in members]
    if not members:
        return Clustering(tuple(outside), ())
    inputs = {t: None for op in members for t in op.inputs if t.handle_data is None and (t.op not in members or t in fed)}
    reads: dict[HandleData, None] = {}
    updates: dict[HandleData, None] = {}
    for operation in members:
        for data in (t.handle_data for t in operation.inputs if t.handle_data is not None):
            (updates if operation.spec.variable_access in WRITES else reads)[data] = None
    cluster = Cluster(
        name="cluster_0",
        operations=tuple(members),
        inputs=tuple(inputs),
        outputs=tuple(tensor for tensor in fetched if tensor.op in members),
        constant_inputs=tuple(i for i, t in enumerate(inputs) if _is_wanted_constant(t, members)),
        reads=tuple(reads),
        updates=tuple(updates),
    )
    return Clustering((*outside, cluster), ())


def _is_wanted_constant(tensor: Tensor, members: dict[Operation, None]) -> bool:
    return any(
        operation.inputs[position] is tensor
        for operation in members
        for position in operation.spec.constant_input_positions(len(operation.inputs))
    )


class Machine:
    """A session's runtime without the session."""

    def __init__(self, options: RuntimeOptions, clusters: bool = True) -> None:
        self.store = VariableStore()
        self.cache = CompilationCache(options.cache_bytes)
        partition = one_cluster if clusters else lambda operations, fetched, fed: None
        self.builder = PlanBuilder(partition, self.cache, options, self.store)

    def plan(self, fetches: Sequence[Tensor] = (), targets: Sequence[Operation] = (), feeds: Sequence[Tensor] = ()) -> Plan:
        return self.builder.build(PlanRequest(tuple(feeds), tuple(fetches), tuple(targets)))

    def initialize(self) -> None:
        self.plan(targets=[tf.global_variables_initializer()]).run([], self.store)


@pytest.fixture
def machine() -> Callable[..., Machine]:
    def make(clusters: bool = True, **options: object) -> Machine:
        return Machine(RuntimeOptions(**options), clusters)  # type: ignore[arg-type]

    return make
