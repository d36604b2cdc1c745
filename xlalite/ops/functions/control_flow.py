"""Order, groups, assertions, branches and loops: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import bool_, int32
from xlalite.framework.graph.errors import ElementTypeError, GraphError
from xlalite.framework.graph.function_graph import trace_function
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import ShapeLike, as_shape
from xlalite.framework.structure import flatten, have_same_names, rebuild
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation


def control_dependencies(control_inputs: Iterable[Any] | None) -> AbstractContextManager[None]:
    """Makes operations created inside wait for the given ones; None lifts all outer dependencies."""
    return get_default_graph().control_dependencies(control_inputs)


def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> AbstractContextManager[str]:
    """Prefixes names of operations created inside."""
    return get_default_graph().name_scope(name if name is not None else default_name)


def device(device_name_or_function: Any) -> AbstractContextManager[None]:
    """Requests a device for operations created inside."""
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: Any, ignore_existing: bool = False) -> AbstractContextManager[None]:
    """Requests for operations created inside the device of another, or of a tensor's or variable's."""
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name: str) -> AbstractContextManager[str]:
    """Accepted for compatibility: what a session keeps lies in one place."""
    return nullcontext(container_name)


def add_to_collection(name: Any, value: Any) -> None:
    """Appends to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def no_op(name: str | None = None) -> Operation:
    """An operation that does nothing but wait for its control dependencies."""
    return operation("NoOp", (), None, name)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """An operation that waits for all inputs: operations, tensors, variables, or sequences of them."""
    elements = flatten(inputs)[0]
    with control_dependencies([_operation_of(element) for element in elements]):
        return no_op(name or "group_deps")


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] = ()) -> list[Tensor | None]:
    """The tensors, none of which is available before all are."""
    found = [None if value is None else convert_to_tensor(value) for value in tensors]
    waits = [tensor.op for tensor in found if tensor is not None] + [_operation_of(each) for each in control_inputs]
    with name_scope(name or "tuple"):
        gate = group(*waits)
        with control_dependencies([gate]):
            return [None if tensor is None else node("Identity", [tensor]) for tensor in found]


def with_dependencies(dependencies: Sequence[Any], output: Any, name: str | None = None) -> Tensor:
    """`output`, available only after the dependencies have run."""
    with control_dependencies(dependencies):
        return node("Identity", [convert_to_tensor(output)], None, name)


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> Operation:
    """Fails the step, showing `data`, when the condition is false."""
    tensors = [convert_to_tensor(value) for value in data]
    return operation("Assert", [convert_to_tensor(condition, bool_), *tensors], None, name)


def _operation_of(element: Any) -> Operation:
    found = getattr(element, "op", element)
    if not isinstance(found, Operation):
        raise TypeError(f"expected an operation, a tensor or a variable, found {element!r}")
    return found


# Branches.


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
    strict: bool = False,
) -> Any:
    """What `true_fn()` gives if `pred` holds, otherwise what `false_fn()` gives; only one of them runs.

    Operations made outside the functions run in any case.

    Raises:
        GraphError: the functions give different structures.
        ElementTypeError: they give different element types.
    """
    then_function, else_function = true_fn or fn1, false_fn or fn2
    if then_function is None or else_function is None:
        raise TypeError("cond needs both true_fn and false_fn")
    predicate = convert_to_tensor(pred)
    if not predicate.dtype.is_bool or predicate.shape.rank not in (0, None):
        raise ElementTypeError(f"cond: the predicate must be a bool scalar, found {predicate!r}")
    scope = name or "cond"
    then_branch, then_structure = _trace_branch(f"{scope}_true", then_function)
    else_branch, else_structure = _trace_branch(f"{scope}_false", else_function)
    if len(then_branch.outputs) != len(else_branch.outputs):
        raise GraphError(
            f"cond: true_fn gives {len(then_branch.outputs)} values and false_fn {len(else_branch.outputs)}"
        )
    if not have_same_names(then_structure, else_structure):
        raise GraphError("cond: true_fn and false_fn give dictionaries with different keys")
    inputs = [predicate, *then_branch.captured, *else_branch.captured]
    results = operation("If", inputs, {"then_branch": then_branch, "else_branch": else_branch}, scope)
    values = list(results.outputs[: len(then_branch.outputs)])
    if then_structure is None or else_structure is None:
        return results
    packed = rebuild(then_structure, values)
    single = not strict and isinstance(packed, list | builtins.tuple) and len(packed) == 1
    return packed[0] if single else packed


def _trace_branch(name: str, function: Callable[[], Any]) -> Any:
    """The branch as a function graph and the structure of what it gives; None when it gives only operations."""
    structure: list[Any] = []

    def body(arguments: Sequence[Tensor]) -> list[Tensor]:
        result = function()
        values, around = flatten(None if isinstance(result, Operation) else result)
        structure.append(around)
        return [convert_to_tensor(value) for value in values]

    graph = trace_function(name, get_default_graph(), [], body)
    return graph, structure[0]


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """What the function of the first predicate that holds gives, otherwise what `default` gives, or the last function.

    Args:
        pred_fn_pairs: Pairs (predicate, function), or a dictionary of them.
        default: What to do when no predicate holds; without, the last function runs then.
        exclusive: Fail when more than one predicate holds.
        strict: As for `cond`.
        name: Name scope.

    Raises:
        GraphError: there are no functions.
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        raise GraphError("case: there are no pairs of predicates and functions")
    with name_scope(name):
        predicates = [convert_to_tensor(predicate) for predicate, _ in pairs]
        waits: list[Operation] = []
        if exclusive and len(pairs) > 1:
            counted = node("AddN", [node("Cast", [each], {"dtype": int32}) for each in predicates])
            waits = [Assert(node("LessEqual", [counted, constant(1)]), [counted])]
        with control_dependencies(waits):
            chosen = default if default is not None else pairs.pop()[1]
            for predicate, (_, function) in reversed(builtins.list(zip(predicates, pairs, strict=False))):
                chosen = _either(node("Identity", [predicate]), function, chosen, strict)
            return chosen()


def _either(
    predicate: Tensor, function: Callable[[], Any], otherwise: Callable[[], Any], strict: bool
) -> Callable[[], Any]:
    return lambda: cond(predicate, function, otherwise, strict=strict)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """What the function with a number gives; `default`, or the function with the largest number, for other numbers.

    Raises:
        GraphError: there are no functions, or two with one number.
    """
    listed = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    pairs = [each if isinstance(each, builtins.tuple) else (number, each) for number, each in enumerate(listed)]
    functions: dict[int, Callable[[], Any]] = dict(pairs)
    if not functions or len(functions) != len(pairs):
        raise GraphError("switch_case: functions need different numbers, and there must be one")
    index = convert_to_tensor(branch_index)
    last = default if default is not None else functions.pop(max(functions))
    if not functions:
        return last()
    equal = [(node("Equal", [index, constant(key, index.dtype)]), each) for key, each in sorted(functions.items())]
    return case(equal, last, name=name)


# Loops.


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Replaces the loop variables by what `body` gives as long as `cond` holds; gives their final values.

    Args:
        cond: Takes the loop variables, gives a bool scalar.
        body: Takes the loop variables, gives their next values.
        loop_vars: The initial values, a sequence (of nested sequences or dictionaries).
        shape_invariants: Shapes that hold in every iteration, where they are less known than those at the start.
        parallel_iterations: Accepted for compatibility.
        back_prop: Whether gradients flow through the loop; without, the results are constants to them.
        swap_memory: Accepted for compatibility.
        name: Name of the operation.
        maximum_iterations: Stop after so many iterations.
        return_same_structure: Give a sequence even if there is only one loop variable.

    Raises:
        ShapeError: a loop variable changes its shape without an invariant that allows it.
        ElementTypeError: a loop variable changes its element type, or the condition is no bool scalar.
    """
    given, structure = flatten(loop_vars)
    starts = [convert_to_tensor(value) for value in given]
    if not starts:
        raise GraphError("while_loop: there are no loop variables")
    shapes = [start.shape for start in starts]
    if shape_invariants is not None:
        shapes = [as_shape(each) for each in _invariants(shape_invariants)]
    if len(shapes) != len(starts):
        raise GraphError(f"while_loop: {len(shapes)} shape invariants for {len(starts)} loop variables")
    for start, shape in zip(starts, shapes, strict=True):
        if not start.shape.is_compatible_with(shape):
            raise ShapeError(f"while_loop: {start.name!r} of shape {start.shape} does not fit its invariant {shape}")
    limit = None if maximum_iterations is None else convert_to_tensor(maximum_iterations)
    counter = [] if limit is None else [constant(0, limit.dtype)]
    first = len(counter)

    def condition(arguments: Sequence[Tensor]) -> list[Tensor]:
        holds = convert_to_tensor(cond(*rebuild(structure, arguments[first:])))
        if not holds.dtype.is_bool or holds.shape.rank not in (0, None):
            raise ElementTypeError(f"while_loop: the condition must be a bool scalar, found {holds!r}")
        return [holds if limit is None else node("LogicalAnd", [holds, arguments[0] < limit])]

    def step(arguments: Sequence[Tensor]) -> list[Tensor]:
        results, around = flatten(body(*rebuild(structure, arguments[first:])))
        if len(results) != len(starts):
            raise GraphError(f"while_loop: the body gives {len(results)} values for {len(starts)} loop variables")
        if not have_same_names(structure, around):
            raise GraphError("while_loop: the body gives dictionaries with other keys than the loop variables have")
        following = [_as_loop_value(value, start) for value, start in zip(results, starts, strict=True)]
        return following if limit is None else [arguments[0] + 1, *following]

    outer = get_default_graph()
    scope = name or "while"
    signature = [(tensor.dtype, tensor.shape) for tensor in counter]
    signature += [(start.dtype, shape) for start, shape in zip(starts, shapes, strict=True)]
    cond_graph = trace_function(f"{scope}_cond", outer, signature, condition)
    body_graph = trace_function(f"{scope}_body", outer, signature, step)
    inputs = [*counter, *starts, *cond_graph.captured, *body_graph.captured]
    loop = operation("While", inputs, {"cond": cond_graph, "body": body_graph}, scope)
    results = list(loop.outputs[first : first + len(starts)])
    if not back_prop:
        results = [node("StopGradient", [result]) for result in results]
    packed = rebuild(structure, results)
    return packed[0] if len(results) == 1 and not return_same_structure else packed


def _as_loop_value(value: Any, start: Tensor) -> Tensor:
    return convert_to_tensor(value, preferred_dtype=start.dtype)


def _invariants(structure: Any) -> list[ShapeLike]:
    if isinstance(structure, list | builtins.tuple) and not all(
        each is None or isinstance(each, int) for each in structure
    ):
        return [leaf for each in structure for leaf in _invariants(each)]
    return [structure]
