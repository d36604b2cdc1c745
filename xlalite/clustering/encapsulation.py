"""Turns groups of operations into clusters with inputs, outputs and variables, and orders all parts."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence, Set as AbstractSet

from xlalite.clustering.clusters import Cluster, Part
from xlalite.clustering.constants import needed_as_constants
from xlalite.clustering.dependencies import Dependencies
from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.meaning.variable_use import CHANGES, variable_access, variables_of


def make_clusters(
    dependencies: Dependencies, groups: Sequence[Sequence[int]], fetched: AbstractSet[Tensor]
) -> tuple[Cluster, ...]:
    """One cluster for each group.

    Args:
        dependencies: The graph.
        groups: Positions of each cluster's operations, ascending, without copied constants; clusters in the order of
            their first operations.
        fetched: Tensors that are wanted after the run.
    """
    return tuple(_make_cluster(dependencies, i, group, fetched) for i, group in enumerate(groups))


def order_parts(
    dependencies: Dependencies,
    groups: Sequence[Sequence[int]],
    clusters: Sequence[Cluster],
    fetched: AbstractSet[Tensor],
) -> tuple[Part, ...]:
    """The clusters of the groups and all other operations in an order in which they can run."""
    clustered = {position: number for number, group in enumerate(groups) for position in group}
    # A part is known by the position of its first operation.
    leaders = [groups[clustered[i]][0] if i in clustered else i for i in range(len(dependencies.operations))]
    parts: dict[int, Part] = {group[0]: cluster for group, cluster in zip(groups, clusters, strict=True)}
    for i, operation in enumerate(dependencies.operations):
        if i not in clustered and not _is_only_copied(dependencies, operation, clustered, fetched):
            parts[i] = operation
    return tuple(parts[i] for i in _topological(dependencies, leaders) if i in parts)


def _make_cluster(
    dependencies: Dependencies, number: int, group: Sequence[int], fetched: AbstractSet[Tensor]
) -> Cluster:
    operations = _with_constants(dependencies, group)
    inside = set(operations)
    inputs = {
        tensor: None
        for operation in operations
        for tensor in operation.inputs
        if tensor.handle_data is None and (tensor in dependencies.fed or tensor.op not in inside)
    }
    outputs = [
        output
        for operation in operations
        if operation not in dependencies.copied
        for output in operation.outputs
        if output not in dependencies.fed and _is_wanted(dependencies, output, inside, fetched)
    ]
    needed = needed_as_constants(operations, dependencies.fed)
    reads, updates = _variables(operations)
    constant_inputs = tuple(i for i, tensor in enumerate(inputs) if tensor in needed)
    name = f"cluster_{number}_{_purpose(operations, outputs)}"
    return Cluster(name, operations, tuple(inputs), tuple(outputs), constant_inputs, reads, updates)


def _purpose(operations: Sequence[Operation], outputs: Sequence[Tensor]) -> str:
    updating = [each for each in operations if each.spec.state is None and variable_access(each) in CHANGES]
    if updating:
        scope, slash, _ = updating[-1].name.partition("/")
        name = scope if slash else next(iter(variables_of(updating[-1]))).name
    else:
        name = (outputs[-1].op if outputs else operations[-1]).name
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)


def _with_constants(dependencies: Dependencies, group: Sequence[int]) -> tuple[Operation, ...]:
    position, copied = dependencies.position, dependencies.copied
    chosen = set(group)
    for i in group:
        chosen.update(position[tensor.op] for tensor in dependencies.operations[i].inputs if tensor.op in copied)
    return tuple(dependencies.operations[i] for i in sorted(chosen))


def _is_wanted(
    dependencies: Dependencies, tensor: Tensor, inside: AbstractSet[Operation], fetched: AbstractSet[Tensor]
) -> bool:
    return tensor in fetched or any(
        consumer in dependencies.position and consumer not in inside for consumer in tensor.consumers()
    )


def _is_only_copied(
    dependencies: Dependencies, operation: Operation, clustered: Mapping[int, int], fetched: AbstractSet[Tensor]
) -> bool:
    """Whether it is a constant that all who want it have a copy of."""
    if operation not in dependencies.copied or any(output in fetched for output in operation.outputs):
        return False
    consumers = [consumer for output in operation.outputs for consumer in output.consumers()]
    positions = [dependencies.position[each] for each in consumers if each in dependencies.position]
    return bool(positions) and all(position in clustered for position in positions)


def _variables(operations: Sequence[Operation]) -> tuple[tuple[HandleData, ...], tuple[HandleData, ...]]:
    reads: dict[str, HandleData] = {}
    updates: dict[str, HandleData] = {}
    for operation in operations:
        access = variable_access(operation)
        for data in variables_of(operation):
            if access is not VariableAccess.WRITE and data.name not in updates:
                reads.setdefault(data.name, data)
            if access in (VariableAccess.WRITE, VariableAccess.MODIFY):
                updates.setdefault(data.name, data)
    return tuple(reads.values()), tuple(updates.values())


def _topological(dependencies: Dependencies, leaders: Sequence[int]) -> list[int]:
    """The leaders of parts so that each comes after those it depends on; otherwise by position."""
    waits_for: dict[int, set[int]] = {leader: set() for leader in leaders}
    waiting: dict[int, list[int]] = {leader: [] for leader in leaders}
    for i, before in enumerate(dependencies.predecessors):
        for earlier in before:
            if leaders[earlier] != leaders[i] and leaders[earlier] not in waits_for[leaders[i]]:
                waits_for[leaders[i]].add(leaders[earlier])
                waiting[leaders[earlier]].append(leaders[i])
    counts = {leader: len(before) for leader, before in waits_for.items()}
    ready = [leader for leader, count in counts.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        leader = heapq.heappop(ready)
        order.append(leader)
        for later in waiting[leader]:
            counts[later] -= 1
            if counts[later] == 0:
                heapq.heappush(ready, later)
    assert len(order) == len(counts), "the parts form a cycle"
    return order
