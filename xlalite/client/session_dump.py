"""What a session leaves in the dump directory: how its graph was clustered, and what was compiled when and why.

The compiler dumps the clusters' modules itself, under XLA's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlalite.passes.dump.dumper import ReportDumper
from xlalite.runtime.cluster_report import plan_report
from xlalite.runtime.plan import Plan


class SessionDump:
    """Keeps a session's cluster report in the dump directory up to date."""

    def __init__(self, dumper: ReportDumper, whole_graphs: bool) -> None:
        """Writes through `dumper`; with `whole_graphs`, also every operation with its cluster."""
        self._dumper = dumper
        self._whole_graphs = whole_graphs
        self._written = -1

    def update(self, plans: Sequence[Plan]) -> None:
        """Writes the report if anything was decided since it was last written."""
        if sum(len(plan.decisions) for plan in plans) != self._written:
            self.write(plans)

    def write(self, plans: Sequence[Plan]) -> None:
        """Writes the report, with how often each cluster has run by now."""
        decisions = [decision for plan in plans for decision in plan.decisions]
        self._written = len(decisions)
        lines = [line for plan in plans for line in self._lines(plan)]
        self._dumper.write("\n".join(lines), decisions)

    def _lines(self, plan: Plan) -> Iterator[str]:
        yield plan_report(plan) + "\n"
        if self._whole_graphs:
            yield from _graph_lines(plan)
            yield ""


def _graph_lines(plan: Plan) -> Iterator[str]:
    """One line for each operation: name, type, inputs, control inputs and cluster."""
    homes = {operation: step.cluster.name for step in plan.cluster_steps for operation in step.cluster.operations}
    for operation in plan.operations:
        inputs = [tensor.name for tensor in operation.inputs] + [f"^{each.name}" for each in operation.control_inputs]
        home = f"  # {homes[operation]}" if operation in homes else ""
        yield f"{operation.name} = {operation.type}({', '.join(inputs)}){home}"
