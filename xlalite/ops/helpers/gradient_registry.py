"""Gradients that programs define: by the type of an operation, or by a name that operations are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.op_spec import Gradient, GradientFunction
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.scoped_creation import GRADIENT_OVERRIDE
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node

F = TypeVar("F", bound=Callable[..., Any])

_REGISTERED: Final[dict[str, Callable[..., Any] | None]] = {}


class RegisterGradient:
    """`@RegisterGradient(name)`: the function gives an operation's gradients, from it and those of its outputs."""

    def __init__(self, op_type: str) -> None:
        """`op_type` is a type of operations, or a name for `Graph.gradient_override_map`."""
        self._name = op_type

    def __call__(self, f: F) -> F:
        """Registers the function.

        Raises:
            GraphError: the name has one.
        """
        _register(self._name, f)
        return f


def no_gradient(op_type: str) -> None:
    """Says that nothing flows back through operations of a type, or with that name for their gradient."""
    _register(op_type, None)


def gradient_of(operation: Operation) -> GradientFunction | None:
    """What gives the gradients of an operation: its override, what was registered for its type, or its declaration.

    Raises:
        LookupError: its override was never registered.
    """
    name = operation.attrs.get(GRADIENT_OVERRIDE)
    if name is not None and name not in _REGISTERED:
        raise LookupError(f"no gradient is registered as {name!r}, which {operation.describe()} asks for")
    chosen = operation.type if name is None else name
    if chosen not in _REGISTERED:
        return operation.spec.gradient
    function = _REGISTERED[chosen]
    return None if function is None else _adapted(function)


def is_overridden(operation: Operation) -> bool:
    """Whether its declaration does not say what the gradients of an operation are."""
    return GRADIENT_OVERRIDE in operation.attrs or operation.type in _REGISTERED


def _register(name: str, function: Callable[..., Any] | None) -> None:
    if name in _REGISTERED:
        raise GraphError(f"a gradient is registered as {name!r} already")
    _REGISTERED[name] = function


def _adapted(function: Callable[..., Any]) -> GradientFunction:
    """A function as users write it: gradients that do not arrive are zeros, a single one is given as it is."""

    def gradient(op: Operation, grads: tuple[Any, ...]) -> Sequence[Gradient | None]:
        arrived = [
            node("ZerosLike", [output]) if grad is None and output.dtype.is_differentiable else grad
            for output, grad in zip(op.outputs, grads, strict=True)
        ]
        found = function(op, *arrived)
        listed = list(found) if isinstance(found, list | tuple) else [found]
        return [each if each is None or isinstance(each, IndexedSlices) else convert_to_tensor(each) for each in listed]

    return gradient
