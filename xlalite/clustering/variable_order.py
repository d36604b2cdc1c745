"""What operations do to variables, and the order that follows from it.

Operations that touch the same variable keep their execution order when one of them changes it, so a clustered run
sees what an operation-by-operation run sees, even where the graph itself states no order. Inside a cluster every order
can be represented: its operations are lowered one after another on the variables' current values. So the only rule for
clusters is that these orders, like data, must not close a cycle. Different variables never constrain each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.variable_use import CHANGES, variable_access, variables_of


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
            if access not in CHANGES:
                reads_since.setdefault(name, []).append(position)
                earlier = [last_change[name]] if name in last_change else []
            else:
                earlier = reads_since.pop(name, []) or ([last_change[name]] if name in last_change else [])
                last_change[name] = position
            yield from ((each, position) for each in earlier)
