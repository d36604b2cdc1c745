"""Functions that stand for a piece of a graph: `tf.function`, `Defun`, and `xla.compile`.

A call puts the operations of the function into the graph that is being built, under a name scope. What they do to
variables, and what else they do, happens in the order in which the function says it, before its results are there.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.jit_scope import jit_scope
from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.control_flow import control_dependencies, group, name_scope
from xlalite.ops.functions.custom_gradients import custom_gradient
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    experimental_compile: bool | None = None,
    **options: Any,
) -> Any:
    """A function whose calls are done as a whole, in the order of its text; also used as a decorator.

    Args:
        func: The function; it gives tensors, operations, None, or nestings of them.
        input_signature: Accepted for compatibility.
        autograph: Accepted for compatibility: `if` and `while` are Python's own, on values known to Python.
        jit_compile: Whether to compile the operations together.
        experimental_compile: The older name of `jit_compile`.
        options: Others of TensorFlow's, accepted for compatibility.
    """
    if func is None:
        return functools.partial(function, jit_compile=jit_compile, experimental_compile=experimental_compile)

    @functools.wraps(func)
    def called(*args: Any, **kwargs: Any) -> Any:
        scope = jit_scope() if jit_compile or experimental_compile else nullcontext()
        return _as_a_whole(lambda: func(*args, **kwargs), _scope_name(func), scope)

    def concrete(*args: Any) -> Callable[..., list[Any]]:
        """The function of the leaves of its arguments, which gives the leaves of its result."""
        structure = flatten(args)[1]
        return lambda *leaves: flatten(called(*rebuild(structure, leaves)))[0]

    called.get_concrete_function = concrete  # type: ignore[attr-defined]  # functions have attributes
    return called


class Defun:
    """`@Defun(float32, float32)`: a function of tensors of those types; without types, of any.

    Args:
        input_types: The element types of the arguments.
        options: `func_name`; `grad_func`, which takes arguments and gradients of the results; `python_grad_func`,
            which takes the call (`inputs`, `outputs`) and those gradients; others are accepted for compatibility.
    """

    def __init__(self, *input_types: Any, **options: Any) -> None:
        self._types = [as_dtype(each) for each in input_types]
        self._options = options

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function as calls see it."""
        name = self._options.get("func_name") or _scope_name(func)
        scope = functools.partial(jit_scope, bool(self._options.get("compiled", False)))

        @functools.wraps(func)
        def called(*args: Any, **kwargs: Any) -> Any:
            if self._types and len(args) != len(self._types):
                raise ValueError(f"{name} takes {len(self._types)} arguments, found {len(args)}")
            types = self._types or itertools.repeat(None)
            given = [convert_to_tensor(value, dtype) for value, dtype in zip(args, types, strict=False)]
            with name_scope(kwargs.get("name"), name):
                given = [node("Identity", [each]) for each in given]
                around = scope() if "compiled" in self._options else nullcontext()
                return _as_a_whole(lambda: self._with_gradient(func)(*given), None, around)

        return called

    def _with_gradient(self, func: Callable[..., Any]) -> Callable[..., Any]:
        of_arguments: Any = self._options.get("grad_func")
        of_call: Any = self._options.get("python_grad_func")
        if of_arguments is None and of_call is None:
            return func

        def with_gradient(*given: Tensor) -> tuple[Any, Callable[..., Any]]:
            result = func(*given)
            if of_call is None:
                return result, functools.partial(of_arguments, *given)
            call = _Call(given, [convert_to_tensor(each) for each in flatten(result)[0]])
            return result, functools.partial(of_call, call)

        return custom_gradient(with_gradient)


class _Call:
    """A call as a gradient function sees it."""

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        self.inputs = inputs
        self.outputs = outputs


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """What `computation(*inputs)` gives, compiled as one cluster where that is possible.

    A single result comes as a list of one. The results wait for the operations among what the computation returns;
    if it returns no tensor, there is one operation to run.
    """
    given = [convert_to_tensor(each) for each in inputs or ()]

    def whole() -> Any:
        result = computation(*[node("Identity", [each]) for each in given])
        return result if result is None or isinstance(result, list | tuple | dict | Operation) else [result]

    return _as_a_whole(whole, "cluster", jit_scope())


def _scope_name(func: Callable[..., Any]) -> str:
    """The function's name without what a name scope cannot begin with."""
    return getattr(func, "__name__", "").strip("<>_") or "function"


def _as_a_whole(body: Callable[[], Any], name: str | None, scope: AbstractContextManager[Any]) -> Any:
    """Runs the body, orders what it made that has effects, and lets the results wait for it."""
    graph = get_default_graph()
    first = graph.version
    with name_scope(name) if name else nullcontext(), scope:
        leaves, structure = flatten(body())
        effects = _in_order([each for each in graph.get_operations() if each.id >= first])
        effects += [each for each in leaves if isinstance(each, Operation)]
        values = [each for each in leaves if not isinstance(each, Operation)]
        if not values:
            return group(*effects)
        with control_dependencies(effects):
            results = [node("Identity", [convert_to_tensor(each)]) for each in values]
        if len(values) < len(leaves):
            return results[0] if len(results) == 1 else results
        return rebuild(structure, results)


def _in_order(operations: Sequence[Operation]) -> list[Operation]:
    """Makes operations on one variable, and those with other effects, wait for each other; gives those with effects."""
    last_write: dict[Any, Operation] = {}
    reads: dict[Any, list[Operation]] = {}
    effects: list[Operation] = []
    for operation in operations:
        handles = [tensor for tensor in operation.inputs if tensor.handle_data is not None]
        is_effect = operation.spec.is_stateful and operation.spec.lower is None and not operation.outputs
        is_read = operation.spec.variable_access is VariableAccess.READ
        for key in [*handles, *[None] * is_effect]:
            waits = [last_write[key]] if key in last_write else []
            if is_read:
                reads.setdefault(key, []).append(operation)
            else:
                waits += reads.pop(key, [])
                last_write[key] = operation
            operation.wait_for(waits)
        if is_effect or (handles and not is_read):
            effects.append(operation)
    return effects
