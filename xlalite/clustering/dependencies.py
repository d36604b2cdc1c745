"""What must run before what: data, control dependencies and the order of accesses to variables, as plain numbers.

Small constants are no part of it. Whoever uses one brings a copy along, otherwise a shared `1.0` would tie unrelated
clusters together; what a constant waits for, its users wait for.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet

from xlalite.clustering.variable_order import ordered_by_variables
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ClusteringError
from xlalite.hlo.records import dataclass

# Larger constants are computed once and handed on.
_MAX_COPIED_ELEMENTS = 16


@dataclass(frozen=True, slots=True)
class Dependencies:
    """A graph over the positions of operations.

    Attributes:
        operations: In execution order.
        position: Where each operation is.
        copied: Small constants that every cluster may hold a copy of; no edge begins at them.
        predecessors: For each position, those that must come before, ascending, each once.
        successors: The same edges the other way round.
        fed: Tensors whose values are given, so that no edge comes from their producers.
    """

    operations: tuple[Operation, ...]
    position: dict[Operation, int]
    copied: frozenset[Operation]
    predecessors: tuple[tuple[int, ...], ...]
    successors: tuple[tuple[int, ...], ...]
    fed: frozenset[Tensor]


def find_dependencies(
    operations: Sequence[Operation], fed: AbstractSet[Tensor], refused: AbstractSet[Operation]
) -> Dependencies:
    """The dependencies between `operations`.

    Args:
        operations: In execution order.
        fed: Tensors whose values are given.
        refused: Operations that no cluster can hold; constants among them are not copied.

    Raises:
        ClusteringError: an operation stands before one that it depends on.
    """
    position = {operation: i for i, operation in enumerate(operations)}
    copied = frozenset(op for op in operations if op not in refused and _is_small_constant(op, fed))
    waits: list[dict[int, None]] = []
    for operation in operations:
        before: dict[int, None] = {}
        producers = [tensor.op for tensor in operation.inputs if tensor not in fed]
        for other in (*producers, *operation.control_inputs):
            at = position.get(other)
            if at is None:
                continue
            if at >= len(waits):
                raise ClusteringError(
                    f"clustering: {operation.name!r} stands before {other.name!r}, which it depends on"
                )
            if other in copied:
                before.update(waits[at])
            else:
                before[at] = None
        waits.append(before)
    for earlier, later in ordered_by_variables(operations):
        waits[later][earlier] = None
    predecessors = tuple(tuple(sorted(before)) for before in waits)
    successors: list[list[int]] = [[] for _ in operations]
    for later, earlier_ones in enumerate(predecessors):
        for earlier in earlier_ones:
            successors[earlier].append(later)
    return Dependencies(
        tuple(operations), position, copied, predecessors, tuple(map(tuple, successors)), frozenset(fed)
    )


def _is_small_constant(operation: Operation, fed: AbstractSet[Tensor]) -> bool:
    if not operation.spec.is_constant or any(output in fed for output in operation.outputs):
        return False
    count = 1
    for output in operation.outputs:
        for size in output.shape.known_dims():
            count *= size
    return count <= _MAX_COPIED_ELEMENTS
