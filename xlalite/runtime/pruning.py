"""Which operations a run needs: those that its fetches and targets depend on, up to what is fed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.ir.traversal import reachable


def needed_operations(
    fetches: Iterable[Tensor], targets: Iterable[Operation], feeds: Collection[Tensor]
) -> tuple[Operation, ...]:
    """The operations to run, in an order in which producers and control inputs come first.

    An operation all of whose outputs are fed does not run, wherever it is asked for; what is fed hides its producers.
    """
    fed = frozenset(feeds)

    def wanted(tensors: Iterable[Tensor], others: Iterable[Operation]) -> list[Operation]:
        operations = [*(tensor.op for tensor in tensors if tensor not in fed), *others]
        return [operation for operation in operations if not _is_replaced(operation, fed)]

    needed = reachable(wanted(fetches, targets), lambda operation: wanted(operation.inputs, operation.control_inputs))
    # An operation is made after everything that it depends on.
    return tuple(sorted(needed, key=lambda operation: operation.id))


def _is_replaced(operation: Operation, fed: frozenset[Tensor]) -> bool:
    return bool(operation.outputs) and all(output in fed for output in operation.outputs)
