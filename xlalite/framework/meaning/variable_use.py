"""Which variables operations touch, and what they do to them, with the bodies of loops and branches.

Among them is what operations keep in a session between their runs: variables that nobody sees and nobody initialises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.op_spec import OperationState, VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData
from xlalite.framework.meaning.host import HostContext

CHANGES = frozenset({VariableAccess.WRITE, VariableAccess.MODIFY})


def function_attributes(operation: Operation) -> tuple[FunctionGraph, ...]:
    """The functions that a loop or branch calls."""
    return tuple(value for value in operation.attrs.values() if isinstance(value, FunctionGraph))


def state_of(operation: Operation) -> OperationState | None:
    """What the operation itself keeps, if anything."""
    state = operation.spec.state
    return None if state is None else state(operation)


def states_of(operation: Operation) -> Iterator[OperationState]:
    """What the operation keeps, and the operations of the bodies that it calls."""
    state = state_of(operation)
    if state is not None:
        yield state
    for function in function_attributes(operation):
        for inner in function.get_operations():
            yield from states_of(inner)


def begin_states(operations: Iterable[Operation], context: HostContext) -> None:
    """Gives the states that have no value yet in a session their first."""
    for operation in operations:
        for state in states_of(operation):
            if context.read_variable(state.data.name) is None:
                context.assign_variable(state.data.name, state.first())


def variables_of(operation: Operation) -> Iterator[HandleData]:
    """The variables that the operation touches: one for each handle it takes, and what is kept for it."""
    yield from (tensor.handle_data for tensor in operation.inputs if tensor.handle_data is not None)
    yield from (state.data for state in states_of(operation))


def variable_access(operation: Operation) -> VariableAccess:
    """What the operation, with the bodies it calls, does to its variables."""
    functions = function_attributes(operation)
    if not functions:
        return operation.spec.variable_access
    return VariableAccess.MODIFY if any(map(changed_in, functions)) else VariableAccess.READ


def changed_in(function: FunctionGraph) -> dict[str, HandleData]:
    """The variables that a body assigns, with the bodies that it calls, by name."""
    changed: dict[str, HandleData] = {}
    for operation in function.get_operations():
        functions = function_attributes(operation)
        for inner in functions:
            changed.update(changed_in(inner))
        if not functions and operation.spec.variable_access in CHANGES:
            changed.update({data.name: data for data in variables_of(operation)})
    return changed
