"""A graph of its own for each test, and a session's runtime without the session."""

from collections.abc import Callable, Sequence

import pytest

import xlalite as tf
from xlalite.clustering.cluster_operations import cluster_operations
from xlalite.clustering.options import ClusteringOptions
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.runtime.compilation import CompilationCache
from xlalite.runtime.options import RuntimeOptions
from xlalite.runtime.plan import Plan, PlanRequest
from xlalite.runtime.plan_builder import PlanBuilder
from xlalite.runtime.variables import VariableStore

EVERYTHING = ClusteringOptions(global_jit=True, min_cluster_size=1)


@pytest.fixture(autouse=True)
def graph_of_its_own(graph: tf.Graph) -> None:
    """Each test begins with an empty graph."""


class Machine:
    """What runs plans; clusters whatever can be compiled."""

    def __init__(self, options: RuntimeOptions, clusters: bool = True) -> None:
        self.store = VariableStore()
        self.cache = CompilationCache(options.cache_bytes)
        self.builder = PlanBuilder(
            lambda operations, fetched, fed, devices: (
                cluster_operations(operations, fetched, fed, EVERYTHING, devices) if clusters else None
            ),
            self.cache,
            options,
            self.store,
        )

    def plan(
        self, fetches: Sequence[Tensor] = (), targets: Sequence[Operation] = (), feeds: Sequence[Tensor] = ()
    ) -> Plan:
        return self.builder.build(PlanRequest(tuple(feeds), tuple(fetches), tuple(targets)))

    def initialize(self) -> None:
        self.plan(targets=[tf.global_variables_initializer()]).run([], self.store)


@pytest.fixture
def machine() -> Callable[..., Machine]:
    def make(clusters: bool = True, **options: object) -> Machine:
        return Machine(RuntimeOptions(**options), clusters)  # type: ignore[arg-type]

    return make
