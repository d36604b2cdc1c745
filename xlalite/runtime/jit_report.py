"""What a session's JIT did, in a line and in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.signatures import CacheStatistics
from xlalite.hlo.records import dataclass
from xlalite.hlo.wording import counted
from xlalite.runtime.plan import Plan

_REASONS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class JitReport:
    """How much of what a session ran was compiled.

    Attributes:
        operations: Operations that its plans run, each counted once; constants and variable handles cost nothing and
            are left out.
        clustered: Those of them that are in a cluster.
        clusters: Clusters of all its plans.
        is_on: Whether anything was to be clustered.
        compilation: What was compiled.
        reasons: Why operations were left out, most frequent first: (reason, operations).
    """

    operations: int
    clustered: int
    clusters: int
    is_on: bool
    compilation: CacheStatistics
    reasons: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        if not self.is_on:
            return "JIT off: nothing is clustered; set global_jit_level to ON_1 or use jit_scope"
        found = f"{self.clustered} of {self.operations} operations in {counted(self.clusters, 'cluster')}"
        if self.clusters:
            times, ms = self.compilation.compilations, 1e3 * self.compilation.compile_seconds
            return f"JIT: {found}, {counted(times, 'compilation')} in {ms:.1f} ms"
        shown = "; ".join(f"{reason} ({count})" for reason, count in self.reasons[:_REASONS_SHOWN])
        return f"JIT: {found}" + (f": {shown}" if shown else "")


def jit_report(plans: Sequence[Plan], compilation: CacheStatistics) -> JitReport:
    """The report on some plans."""
    operations: set[Operation] = set()
    clustered: set[Operation] = set()
    clusters = 0
    reasons: Counter[str] = Counter()
    for plan in plans:
        operations.update(operation for operation in plan.operations if not _is_free(operation))
        if plan.clustering is None:
            continue
        clusters += len(plan.clustering.clusters)
        members = {operation for cluster in plan.clustering.clusters for operation in cluster.operations}
        clustered.update(operation for operation in members if not _is_free(operation))
        outside = {each.name for each in plan.operations if each not in members and not _is_free(each)}
        reasons.update(
            decision.reason
            for decision in plan.clustering.decisions
            if len(decision.subject) == 1 and decision.subject[0] in outside
        )
    return JitReport(
        operations=len(operations),
        clustered=len(clustered),
        clusters=clusters,
        is_on=any(plan.clustering is not None for plan in plans),
        compilation=compilation,
        reasons=tuple(reasons.most_common()),
    )


def _is_free(operation: Operation) -> bool:
    """Whether no step is needed for it: a constant, or the handle of a variable."""
    handles = [output.handle_data is not None for output in operation.outputs]
    return operation.spec.is_constant or (bool(handles) and all(handles))
