"""Decision records of a clustering: operations left out, neighbours not joined, clusters kept and dissolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xlalite.clustering.candidates import LeftOut, Refusal
from xlalite.clustering.clusters import Cluster
from xlalite.clustering.decision_words import DISSOLVED, KEPT, LEFT_OUT, NOT_JOINED, STAGE
from xlalite.clustering.dependencies import Dependencies
from xlalite.clustering.merging import Separation
from xlalite.clustering.selection import Choice
from xlalite.framework.graph.operation import Operation
from xlalite.hlo.types.decision import Decision, Number


def left_out(operations: Sequence[Operation], refusals: Mapping[Operation, Refusal]) -> Iterator[Decision]:
    """One record for each operation that has a reason to be outside."""
    for operation in operations:
        refusal = refusals.get(operation)
        if refusal is not None:
            yield Decision(STAGE, (operation.name,), LEFT_OUT, str(refusal), refusal.facts)


def refusals_of_dissolved(
    dependencies: Dependencies, choices: Sequence[Choice], minimum: int
) -> Iterator[tuple[Operation, Refusal]]:
    """Why the members of dissolved groups are outside."""
    for choice in choices:
        if isinstance(choice.verdict, LeftOut):
            facts = _sizes(choice, minimum) if choice.verdict is LeftOut.TOO_SMALL else {}
            for i in choice.members:
                yield dependencies.operations[i], Refusal(choice.verdict, facts=facts)


def unused_constants(dependencies: Dependencies, clusters: Sequence[Cluster]) -> Iterator[tuple[Operation, Refusal]]:
    """Why constants that could be copied into clusters are in none."""
    used = {operation for cluster in clusters for operation in cluster.operations}
    for operation in dependencies.operations:
        if operation in dependencies.copied and operation not in used:
            yield operation, Refusal(LeftOut.UNUSED_CONSTANT)


def groups_chosen(
    dependencies: Dependencies, choices: Sequence[Choice], clusters: Sequence[Cluster], minimum: int
) -> Iterator[Decision]:
    """One record for each cluster, and for each dissolved group of more than one operation."""
    names = iter(clusters)
    for choice in choices:
        if not isinstance(choice.verdict, LeftOut):
            yield Decision(STAGE, (next(names).name,), KEPT, choice.verdict.value, _sizes(choice, minimum))
        elif len(choice.members) > 1:
            members = tuple(dependencies.operations[i].name for i in choice.members)
            yield Decision(STAGE, members, DISSOLVED, choice.verdict.value, _sizes(choice, minimum))


def not_joined(
    dependencies: Dependencies, separations: Sequence[Separation], clusters: Sequence[Cluster]
) -> Iterator[Decision]:
    """One record for each pair of neighbouring groups that were not joined."""
    names = {operation: cluster.name for cluster in clusters for operation in cluster.operations}
    for each in separations:
        ends = tuple(dependencies.operations[i].name for i in (each.producer, each.consumer))
        facts: dict[str, Number] = {}
        if each.path:
            between = [dependencies.operations[i] for i in each.path[1:-1]]
            shown = dict.fromkeys(names.get(operation, operation.name) for operation in between)
            facts["path"] = " -> ".join([ends[0], *shown, ends[1]])
        yield Decision(STAGE, ends, NOT_JOINED, each.reason.value, facts)


def _sizes(choice: Choice, minimum: int) -> dict[str, Number]:
    return {"operations": len(choice.members), "effective size": choice.effective_size, "minimum": minimum}
