"""The clusters of a session's plans, what was compiled of them, and why each other operation is in none."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.errors import NotFoundError
from xlalite.framework.graph.operation import Operation
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.wording import counted
from xlalite.runtime.plan import Plan


class ClusterReport:
    """A view of plans; `str()` of it is text for people."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = tuple(plans)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Everything that was decided."""
        return tuple(decision for plan in self._plans for decision in plan.decisions)

    def explain(self, operation: Operation | str) -> str:
        """Where an operation runs and why, for each plan that runs it.

        Args:
            operation: The operation, or its name.

        Raises:
            NotFoundError: No plan runs it.
        """
        name = operation if isinstance(operation, str) else operation.name
        plans = [plan for plan in self._plans if any(each.name == name for each in plan.operations)]
        if not plans:
            raise NotFoundError(None, None, f"no run so far needed an operation {name!r}")
        return "\n\n".join(f"{_title(plan)}\n{_explain(plan, name)}" for plan in plans)

    def __str__(self) -> str:
        return "\n\n".join(plan_report(plan) for plan in self._plans)


def plan_report(plan: Plan) -> str:
    """How one plan was clustered, and what was compiled of it."""
    if plan.clustering is None:
        return f"{_title(plan)}\n{len(plan.operations)} operations run one by one: the JIT is off"
    lines = [_title(plan), plan.clustering.report()]
    for step in plan.cluster_steps:
        lines.append(f"{step.cluster.name} ran {counted(step.runs, 'time')}")
        history = step.compiler.history
        lines += [f"  {decision}" for decision in history.decisions]
        if history.seconds:
            lines.append(
                f"  compiling took {1e3 * history.seconds:.1f} ms; op by op it ran {counted(step.host_runs, 'time')}"
            )
    return "\n".join(lines)


def _explain(plan: Plan, name: str) -> str:
    if plan.clustering is None:
        return f"{name} runs by itself: the JIT is off"
    steps = [step for step in plan.cluster_steps if any(each.name == name for each in step.cluster.operations)]
    compiled = [str(decision) for step in steps for decision in step.compiler.history.decisions]
    return "\n".join([plan.clustering.explain(name), *compiled])


def _title(plan: Plan) -> str:
    request = plan.request
    wanted = [tensor.name for tensor in request.fetches] + [operation.name for operation in request.targets]
    fed = ", ".join(tensor.name for tensor in request.feeds)
    return f"run of {', '.join(wanted)}" + (f" with {fed} fed" if fed else "")
