"""What operations do to variables, and the order that follows from it.

Operations that touch the same variable keep their execution order when one of them changes it, so a clustered run
sees what an operation-by-operation run sees, even where the graph itself states no order. Inside a cluster every order
can be represented: its operations are lowered one after another on the variables' current values. So the only rule for
clusters is that these orders, like data, must not close a cycle. Different variables never constrain each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData
from xlalite.framework.meaning.compilability import function_attributes
from xlalite.framework.meaning.operation_state import state_of

_CHANGES = frozenset({VariableAccess.WRITE, VariableAccess.MODIFY})


def variable_access(operation: Operation) -> VariableAccess:
    """What the operation, with the bodies it calls, does to the variables whose handles it takes."""
    functions = function_attributes(operation)
    if not functions:
        return operation.spec.variable_access
    return VariableAccess.MODIFY if any(map(_changes_variables, functions)) else VariableAccess.READ


def variables_of(operation: Operation) -> Iterator[HandleData]:
    """The variables that the operation touches: one for each handle it takes, and what it keeps itself."""
    yield from (tensor.handle_data for tensor in operation.inputs if tensor.handle_data is not None)
    state = state_of(operation)
    if state is not None:
        yield state.data


def ordered_by_variables(operations: Sequence[Operation]) -> Iterator[tuple[int, int]]:
    """Positions (earlier, later) of operations that must keep their order because of a variable.

    Pairs whose order follows from others are left out, so their number is linear in the number of accesses.
    """
    last_change: dict[str, int] = {}
    reads_since: dict[str, list[int]] = {}
    for position, operation in enumerate(operations):
        names = {data.name: None for data in variables_of(operation)}
        access = variable_access(operation) if names else VariableAccess.NONE
        if access is VariableAccess.NONE:
            continue
        for name in names:
            if access not in _CHANGES:
                reads_since.setdefault(name, []).append(position)
                earlier = [last_change[name]] if name in last_change else []
            else:
                earlier = reads_since.pop(name, []) or ([last_change[name]] if name in last_change else [])
                last_change[name] = position
            yield from ((each, position) for each in earlier)


def _changes_variables(function: FunctionGraph) -> bool:
    arguments = {tensor.op for tensor in function.inputs}
    return any(variable_access(inner) in _CHANGES for inner in function.get_operations() if inner not in arguments)
