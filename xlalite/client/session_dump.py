"""What a session leaves in the dump directory: how each plan was clustered, as text and as data.

The compiler dumps the clusters' modules itself, under XLA's names; these files are called
`session_0000.run_0001.cluster_report.txt` and the like.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence

from xlalite.framework.operation import Operation
from xlalite.passes.dump import ModuleDumper
from xlalite.runtime.cluster_report import plan_report
from xlalite.runtime.plan import Plan

_session_numbers = itertools.count()


class SessionDump:
    """Writes the files of one session."""

    def __init__(self, directory: str, whole_graphs: bool) -> None:
        """Writes into `directory`; with `whole_graphs`, also every operation before and after clustering."""
        self._directory = directory
        self._whole_graphs = whole_graphs
        self._session = next(_session_numbers)
        self._plans = itertools.count()

    def write_plan(self, plan: Plan) -> None:
        """Writes what is known of a plan before its first run.

        Raises:
            DumpError: The directory cannot be made or written to.
        """
        if plan.clustering is None:
            return
        dumper = ModuleDumper(self._directory, f"session_{self._session:04d}.run_{next(self._plans):04d}")
        decisions = [decision.as_dict() for decision in plan.clustering.decisions]
        dumper.write("cluster_report.txt", plan_report(plan) + "\n")
        dumper.write("clustering.decisions.json", json.dumps(decisions, indent=1) + "\n")
        if self._whole_graphs:
            homes = {
                operation: cluster.name for cluster in plan.clustering.clusters for operation in cluster.operations
            }
            dumper.write("before_clustering.txt", _graph_text(plan.operations, {}))
            dumper.write("after_clustering.txt", _graph_text(plan.operations, homes))


def _graph_text(operations: Sequence[Operation], homes: Mapping[Operation, str]) -> str:
    """One line for each operation: name, type, inputs, control inputs and cluster."""
    lines = []
    for operation in operations:
        inputs = [tensor.name for tensor in operation.inputs] + [f"^{each.name}" for each in operation.control_inputs]
        home = f"  # {homes[operation]}" if operation in homes else ""
        lines.append(f"{operation.name} = {operation.type}({', '.join(inputs)}){home}\n")
    return "".join(lines)
