"""Takes operations out of clusters again where the cluster is better off without them.

A question about the shape of a tensor that the cluster does not use otherwise would make it take in the whole tensor.
Shape arithmetic that follows from outside values alone is cheaper done outside: the cluster is then compiled again only
when the result changes. Both are judged from producers to consumers, so whole chains leave together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xlalite.clustering.candidates import LeftOut, Refusal
from xlalite.clustering.constants import has_known_shape, needed_as_constants
from xlalite.clustering.dependencies import Dependencies
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor


def find_leavers(dependencies: Dependencies, members: Sequence[int]) -> dict[Operation, Refusal]:
    """The operations of one cluster that are better off outside, with the reason.

    Args:
        dependencies: The graph.
        members: Positions of the cluster's operations, ascending.
    """
    operations = [dependencies.operations[i] for i in members]
    inside = set(operations)
    needed = needed_as_constants(operations, dependencies.fed)
    used = _used_by_value(operations, needed)
    leavers: dict[Operation, Refusal] = {}
    for position, operation in zip(members, operations, strict=True):
        if any(dependencies.operations[i] in inside for i in dependencies.predecessors[position]):
            continue
        if operation.spec.is_metadata:
            missing = [t for t in operation.inputs if t not in used and not has_known_shape(t)]
            if missing:
                leavers[operation] = Refusal(LeftOut.SHAPE_OF_OUTSIDE, facts={"tensor": missing[0].name})
                inside.remove(operation)
        elif any(output in needed for output in operation.outputs) and _takes_outside_values(dependencies, operation):
            leavers[operation] = Refusal(LeftOut.NEEDED_AS_CONSTANT)
            inside.remove(operation)
    return leavers


def _used_by_value(operations: Sequence[Operation], needed: Mapping[Tensor, None]) -> set[Tensor]:
    """What the operations take in for its elements, apart from those that may leave."""
    return {
        tensor
        for operation in operations
        if not operation.spec.is_metadata and not any(output in needed for output in operation.outputs)
        for tensor in operation.inputs
    }


def _takes_outside_values(dependencies: Dependencies, operation: Operation) -> bool:
    """Whether it computes with anything but copied constants; all other inputs are known to come from outside."""
    return any(tensor in dependencies.fed or tensor.op not in dependencies.copied for tensor in operation.inputs)
