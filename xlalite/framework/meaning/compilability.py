"""Whether an operation can be lowered to HLO, and if not, why: a question about its type and its element types."""

from __future__ import annotations

from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.variable_use import function_attributes

_MAX_NESTING = 50


def why_not_compilable(operation: Operation, depth: int = 0) -> str | None:
    """The reason why `operation` cannot be compiled, or None when it can."""
    spec = operation.spec
    if spec.lower is None:
        return f"{operation.type}: {spec.why_host}"
    for tensor in (*operation.inputs, *operation.outputs):
        if tensor.dtype.name == "resource":
            if tensor.handle_data is None:
                return f"{operation.type}: {tensor.name!r} is not a known variable"
        elif tensor.dtype.is_host_only:
            return f"{operation.type}: element type {tensor.dtype.name} of {tensor.name!r} cannot be compiled"
    own = None if spec.why_not_compilable is None else spec.why_not_compilable(operation)
    return f"{operation.type}: {own}" if own is not None else _why_bodies_are_not(operation, depth)


def _why_bodies_are_not(operation: Operation, depth: int) -> str | None:
    for function in function_attributes(operation):
        if depth == _MAX_NESTING:
            return f"{operation.type}: functions are nested deeper than {_MAX_NESTING}"
        arguments = {tensor.op for tensor in function.inputs}
        for inner in function.get_operations():
            if inner in arguments:
                continue
            reason = why_not_compilable(inner, depth + 1)
            if reason is not None:
                return f"{operation.type}: in {function.name}, {reason}"
    return None
