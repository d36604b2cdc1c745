"""The runtime of one session, made from its settled options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xlalite.client.session_options import SessionOptions
from xlalite.framework.graph.jit_scope import XLA_COMPILE
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.runtime.compilation import CompilationCache
from xlalite.runtime.jit_report import JitReport, jit_report
from xlalite.runtime.placement import Placer
from xlalite.runtime.plan import Plan
from xlalite.runtime.plan_builder import PlanBuilder
from xlalite.runtime.variables import VariableStore

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Clustering


class SessionRuntime:
    """What runs a session's plans.

    Attributes:
        store: Variables.
        cache: Compiled clusters.
        builder: Makes plans.
    """

    def __init__(self, options: SessionOptions, placer: Placer | None = None) -> None:
        """Starts without variables, compiled code or plans."""
        self._options = options.clustering
        self.store = VariableStore()
        self.cache = CompilationCache(options.runtime.cache_bytes)
        self.builder = PlanBuilder(self._partition, self.cache, options.runtime, self.store, placer)

    def jit_report(self, plans: Sequence[Plan]) -> JitReport:
        """The report on the plans."""
        return jit_report(plans, self.cache.statistics())

    def close(self) -> None:
        """Forgets variables and compiled code."""
        self.store.close()
        self.cache.close()

    def _partition(
        self,
        operations: Sequence[Operation],
        fetched: Sequence[Tensor],
        fed: Sequence[Tensor],
        devices: Mapping[Operation, str] | None,
    ) -> Clustering | None:
        if not self._options.global_jit and not any(operation.attrs.get(XLA_COMPILE) for operation in operations):
            return None
        # Loading the graph library costs more than a program that never clusters takes.
        from xlalite.clustering.cluster_operations import cluster_operations

        return cluster_operations(operations, fetched, fed, self._options, devices)
