"""The clusters of a session's plans, what was compiled of them, and why each other operation is in none."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.operation import Operation
from xlalite.hlo.decision import Decision
from xlalite.runtime.cluster_step import ClusterStep
from xlalite.runtime.plan import Plan


class ClusterReport:
    """A view of plans; `str()` of it is text for people."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        """Reports on the plans as they are now."""
        self._plans = tuple(plans)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Everything that was decided."""
        return tuple(decision for plan in self._plans for decision in plan.decisions)

    def explain(self, operation: Operation | str) -> str:
        """Where an operation runs, one line for each plan that runs it, and why.

        Args:
            operation: The operation, or its name.

        Raises:
            KeyError: No plan runs it.
        """
        name = operation if isinstance(operation, str) else operation.name
        lines = [line for plan in self._plans for line in _explain(plan, name)]
        if not lines:
            raise KeyError(f"no run so far needed an operation {name!r}")
        return "\n".join(dict.fromkeys(lines))

    def __str__(self) -> str:
        """Plan by plan."""
        return "\n".join(line for plan in self._plans for line in _plan_lines(plan))


def _explain(plan: Plan, name: str) -> list[str]:
    if all(operation.name != name for operation in plan.operations):
        return []
    lines = [
        f"{name}: in {step.cluster.name} with {len(step.cluster.operations) - 1} others"
        for step in plan.cluster_steps
        if any(operation.name == name for operation in step.cluster.operations)
    ]
    if plan.clustering is None:
        return [f"{name}: runs by itself: the JIT is off"]
    lines += [f"{name}: {each.verdict}: {each.reason}" for each in plan.clustering.decisions if name in each.subject]
    return lines or [f"{name}: runs by itself"]


def _plan_lines(plan: Plan) -> list[str]:
    request = plan.request
    wanted = [tensor.name for tensor in request.fetches] + [operation.name for operation in request.targets]
    fed = ", ".join(tensor.name for tensor in request.feeds)
    lines = [f"run of {', '.join(wanted)}" + (f" with {fed} fed" if fed else "")]
    if plan.clustering is None:
        return [*lines, f"  {len(plan.operations)} operations run one by one: the JIT is off"]
    members: set[str] = set()
    for step in plan.cluster_steps:
        members.update(operation.name for operation in step.cluster.operations)
        lines += _cluster_lines(step)
    by_name = {operation.name: operation for operation in plan.operations}
    for decision in plan.clustering.decisions:
        if len(decision.subject) == 1 and decision.subject[0] in by_name and decision.subject[0] not in members:
            lines.append(f"  {decision.subject[0]} ({by_name[decision.subject[0]].type}): {decision.reason}")
    lines += [
        f"  {' and '.join(decision.subject)}: {decision.verdict}: {decision.reason}"
        for decision in plan.clustering.decisions
        if len(decision.subject) > 1
    ]
    return lines


def _cluster_lines(step: ClusterStep) -> list[str]:
    cluster = step.cluster
    lines = [f"  {cluster.name}: {len(cluster.operations)} operations, ran {step.policy.runs} times"]
    lines += [f"    {operation.name} ({operation.type})" for operation in cluster.operations]
    lines += [f"    {decision}" for decision in step.decisions]
    return lines
