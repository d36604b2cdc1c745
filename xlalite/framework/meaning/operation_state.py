"""What operations keep in a session between their runs: variables that nobody sees, and that need no initializer."""

from __future__ import annotations

from collections.abc import Iterable

from xlalite.framework.graph.op_spec import OperationState
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.host import HostContext


def state_of(operation: Operation) -> OperationState | None:
    """What the operation keeps, if anything."""
    state = operation.spec.state
    return None if state is None else state(operation)


def begin_states(operations: Iterable[Operation], context: HostContext) -> None:
    """Gives the states that have no value yet in a session their first."""
    for operation in operations:
        state = state_of(operation)
        if state is not None and context.read_variable(state.data.name) is None:
            context.assign_variable(state.data.name, state.first())
