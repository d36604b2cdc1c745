"""Graphs without a session."""

from collections.abc import Container, Sequence
from typing import Any

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor


def needed(elements: Sequence[Any], feeds: Container[Tensor]) -> list[Operation]:
    """Operations that lead to the elements, in creation order."""
    waiting = [e.op if isinstance(e, Tensor) else e for e in elements if e not in feeds]
    found: set[Operation] = set()
    while waiting:
        operation = waiting.pop()
        if operation in found or (operation.outputs and all(output in feeds for output in operation.outputs)):
            continue
        found.add(operation)
        waiting += [tensor.op for tensor in operation.inputs if tensor not in feeds]
        waiting += operation.control_inputs
    return sorted(found, key=lambda operation: operation.id)
