"""The runtime of one session, made from its settled options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xlalite.client.config import CompileMode, GlobalJitLevel
from xlalite.client.session_options import SessionOptions
from xlalite.framework.graph.jit_scope import XLA_COMPILE
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.runtime import options as runtime_options
from xlalite.runtime.compilation import CompilationCache
from xlalite.runtime.plan import Plan
from xlalite.runtime.plan_builder import PlanBuilder
from xlalite.runtime.report import JitReport, jit_report
from xlalite.runtime.variables import VariableStore

if TYPE_CHECKING:
    from xlalite.clustering.result import Clustering

_MODES = {
    CompileMode.LAZY: runtime_options.CompileMode.LAZY,
    CompileMode.STRICT: runtime_options.CompileMode.STRICT,
    CompileMode.OFF: runtime_options.CompileMode.OFF,
}


class SessionRuntime:
    """What runs a session's plans.

    Attributes:
        store: Variables.
        cache: Compiled clusters.
        builder: Makes plans.
    """

    def __init__(self, options: SessionOptions) -> None:
        """Starts without variables, compiled code or plans."""
        self._options = options
        compile_options = runtime_options.RuntimeOptions(
            compile_mode=_MODES[options.compile_mode],
            lazy_compile_threshold=options.lazy_compile_threshold,
            num_threads=options.num_threads,
            cache_bytes=options.compilation_cache_bytes,
            debug=options.debug,
        )
        self.store = VariableStore()
        self.cache = CompilationCache(options.compilation_cache_bytes)
        self.builder = PlanBuilder(self._partition, self.cache, compile_options, self.store)

    def jit_report(self, plans: Sequence[Plan]) -> JitReport:
        """The report on the plans."""
        return jit_report(plans, self.cache.statistics())

    def close(self) -> None:
        """Forgets variables and compiled code."""
        self.store.clear()
        self.cache.clear()

    def _partition(
        self, operations: Sequence[Operation], fetched: Sequence[Tensor], fed: Sequence[Tensor]
    ) -> Clustering | None:
        options = self._options
        is_global = options.jit_level in (GlobalJitLevel.ON_1, GlobalJitLevel.ON_2)
        if not is_global and not any(operation.attrs.get(XLA_COMPILE) for operation in operations):
            return None
        # Loading the graph library costs more than a program that never clusters takes.
        from xlalite.clustering.cluster import cluster_operations
        from xlalite.clustering.options import ClusteringOptions

        chosen = ClusteringOptions(
            global_jit=is_global,
            min_cluster_size=options.min_cluster_size,
            max_cluster_size=options.max_cluster_size,
            fuel=options.clustering_fuel,
            ops_to_cluster=options.ops_to_cluster,
            cluster_exclude_ops=options.cluster_exclude_ops,
        )
        return cluster_operations(operations, fetched, fed, chosen)
