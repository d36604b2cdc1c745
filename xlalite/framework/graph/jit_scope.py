"""Marks operations for compilation as they are created: `with jit_scope(): ...`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.operation import Operation

XLA_COMPILE: Final = "_XlaCompile"
XLA_SCOPE: Final = "_XlaScope"
XLA_SEPARATE_GRADIENTS: Final = "_XlaSeparateCompiledGradients"
_SCOPE_COLLECTION: Final = ("__xla_scope",)


class _ScopeCounter:
    """How many outermost scopes a graph has had."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def jit_scope(
    compile_ops: bool | Callable[[Operation], bool] = True, separate_compiled_gradients: bool = False
) -> Iterator[None]:
    """Annotates operations created inside with `_XlaCompile` and `_XlaScope`.

    Operations of different scopes are not compiled together. A nested scope keeps the outer one's name and may change
    whether to compile. The annotations are wishes: what cannot be compiled stays out.

    Args:
        compile_ops: Whether to compile, or a function that says so for each operation.
        separate_compiled_gradients: Keep gradients in scopes of their own, one for each call of `gradients`.
    """
    graph = get_default_graph()
    chosen: Any = compile_ops if not callable(compile_ops) else lambda op: bool(compile_ops(op))
    attributes: dict[str, Any] = {
        XLA_COMPILE: chosen,
        XLA_SEPARATE_GRADIENTS: bool(separate_compiled_gradients),
    }
    if XLA_SCOPE not in graph.attribute_scope_values:
        counters = graph.get_collection_ref(_SCOPE_COLLECTION)
        if not counters:
            counters.append(_ScopeCounter())
        attributes[XLA_SCOPE] = f"jit_scope_{counters[0].count}"
        counters[0].count += 1
    with graph.attribute_scope(attributes):
        yield


experimental_jit_scope = jit_scope


def gradient_attributes(operation: Operation, gradients_scope: str) -> Mapping[str, Any]:
    """The annotations for the gradient of `operation`: its own, with another scope where that was asked for.

    Unlike in TensorFlow, a wish not to compile is passed on too.
    """
    attrs = operation.attrs
    if XLA_COMPILE not in attrs:
        return {}
    scope = attrs.get(XLA_SCOPE)
    separate = bool(attrs.get(XLA_SEPARATE_GRADIENTS, False))
    if scope is not None and separate:
        scope = f"{scope}_grad_{gradients_scope.rstrip('/').replace('/', '_')}"
    return {XLA_COMPILE: attrs[XLA_COMPILE], XLA_SCOPE: scope, XLA_SEPARATE_GRADIENTS: separate}
