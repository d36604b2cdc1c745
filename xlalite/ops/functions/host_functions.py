"""Python functions and printing as operations, and checks while a graph runs, under TensorFlow's names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.errors import ElementTypeError, InvalidArgumentError
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions import math as m
from xlalite.ops.functions.array import rank as rank_of
from xlalite.ops.functions.control_flow import Assert, no_op
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import promote


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """What a Python function of arrays gives, as a tensor or several; an operation if it gives nothing.

    Args:
        func: The function.
        inp: Its arguments.
        Tout: The element type of what it gives, or several.
        stateful: Whether it must be called again for the same arguments.
        name: Name of the operation.
    """
    several = isinstance(Tout, list | tuple)
    types = tuple(as_dtype(each) for each in (Tout if several else [Tout]))
    inputs = [convert_to_tensor(each) for each in inp]
    op_type = "PyFunc" if stateful else "PyFuncStateless"
    made = operation(op_type, inputs, {"token": func, "Tout": types}, name or "PyFunc")
    if not types:
        return made
    return list(made.outputs) if several else made.outputs[0]


numpy_function = py_func


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The input; prints the first elements of the data when it is computed.

    Args:
        input_: What is handed on.
        data: What is printed.
        message: What is printed before it.
        first_n: How many times at most.
        summarize: How many elements of each; 3 by default, -1 for all.
        name: Name of the operation.
    """
    attrs = {
        "message": message or "",
        "first_n": -1 if first_n is None else first_n,
        "summarize": 3 if summarize is None else summarize,
    }
    return node("Print", [convert_to_tensor(input_), *(convert_to_tensor(each) for each in data)], attrs, name)


def print_(*inputs: Any, output_stream: Any = sys.stderr, sep: str = " ", end: str = "\n", **unused: Any) -> Operation:
    """An operation that prints values and texts."""
    stream = "stdout" if output_stream is sys.stdout else "stderr"
    tensors = [convert_to_tensor(each) for each in inputs]
    return operation("PrintV2", tensors, {"output_stream": stream, "sep": sep, "end": end})


# Checks: operations that fail the step; what is known not to hold fails at once.


def _checked(
    name: str, condition: Tensor, data: Sequence[Any], given: Any, message: str | None, summarize: int | None
) -> Operation:
    known = constant_value(condition)
    text = f"{message or ''} {name} failed".strip()
    if known is not None:
        if not known.all():
            raise InvalidArgumentError(None, None, f"{text}: {[getattr(each, 'name', each) for each in data]}")
        return no_op(name)
    return Assert(condition, [constant(text), *(data if given is None else given)], summarize, name)


def _comparison(name: str, compare: Callable[[Any, Any], Tensor]) -> Callable[..., Operation]:
    def check(
        x: Any,
        y: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with get_default_graph().name_scope(name or full_name):
            both = promote(x, y)
            return _checked(full_name, m.reduce_all(compare(*both)), both, data, message, summarize)

    full_name = f"assert_{name}"
    check.__name__ = check.__qualname__ = full_name
    check.__doc__ = f"Fails the step unless `{name}` holds for all elements."
    return check


assert_equal = _comparison("equal", m.equal)
assert_none_equal = _comparison("none_equal", m.not_equal)
assert_less = _comparison("less", m.less)
assert_less_equal = _comparison("less_equal", m.less_equal)
assert_greater = _comparison("greater", m.greater)
assert_greater_equal = _comparison("greater_equal", m.greater_equal)


def _sign_check(name: str, compare: Callable[[Any, Any], Tensor]) -> Callable[..., Operation]:
    def check(
        x: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        with get_default_graph().name_scope(name or full_name):
            tensor = convert_to_tensor(x)
            return _checked(full_name, m.reduce_all(compare(tensor, 0)), [tensor], data, message, summarize)

    full_name = f"assert_{name}"
    check.__name__ = check.__qualname__ = full_name
    check.__doc__ = f"Fails the step unless all elements are {name.replace('_', ' ')}."
    return check


assert_positive = _sign_check("positive", m.greater)
assert_negative = _sign_check("negative", m.less)
assert_non_negative = _sign_check("non_negative", m.greater_equal)
assert_non_positive = _sign_check("non_positive", m.less_equal)


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Fails the step unless `|x - y| <= atol + rtol * |y|` everywhere; both are ten roundings by default."""
    with get_default_graph().name_scope(name or "assert_near"):
        first, second = promote(x, y)
        epsilon = 10 * {"float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}.get(first.dtype.name, 2.0**-23)
        limit = (epsilon if atol is None else atol) + m.abs(second) * (epsilon if rtol is None else rtol)
        holds = m.reduce_all(m.less_equal(m.abs(m.subtract(first, second)), limit))
        return _checked("assert_near", holds, [first, second], data, message, summarize)


def _rank_check(name: str, accepts: Callable[[Any, Any], Any], compare: Callable[[Any, Any], Tensor]) -> Any:
    def check(
        x: Any,
        rank: Any,
        data: Sequence[Any] | None = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        tensor, known = convert_to_tensor(x), constant_value(convert_to_tensor(rank))
        if tensor.shape.rank is not None and known is not None:
            if not accepts(tensor.shape.rank, known):
                raise ShapeError(f"{message or ''} {full_name}: {tensor.name!r} has shape {tensor.shape}, not {known}")
            return no_op(full_name)
        with get_default_graph().name_scope(name or full_name):
            holds = m.reduce_any(compare(rank_of(tensor), rank))
            return _checked(full_name, holds, [tensor], data, message, summarize)

    full_name = f"assert_rank{name}"
    check.__name__ = check.__qualname__ = full_name
    check.__doc__ = f"Fails unless the number of dimensions of `x` is{name.replace('_', ' ')} `rank`."
    return check


assert_rank = _rank_check("", lambda found, wanted: found == int(wanted), m.equal)
assert_rank_at_least = _rank_check("_at_least", lambda found, wanted: found >= int(wanted), m.greater_equal)
assert_rank_in = _rank_check("_in", lambda found, wanted: found in wanted, m.equal)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises ElementTypeError unless the tensor has that element type."""
    found = convert_to_tensor(tensor)
    if found.dtype is not as_dtype(tf_type):
        raise ElementTypeError(f"{message or ''} {found.name!r} has element type {found.dtype.name}, not {tf_type}")
    return no_op(name)


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises ElementTypeError unless the elements are integers."""
    found = convert_to_tensor(x)
    if not found.dtype.is_integer:
        raise ElementTypeError(f"{message or ''} {found.name!r} has element type {found.dtype.name}, expected integers")
    return no_op(name)


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor; raises ShapeError when it is known not to be a scalar."""
    found = convert_to_tensor(tensor)
    if found.shape.rank not in (0, None):
        raise ShapeError(f"{message or ''} expected a scalar, {found.name!r} has shape {found.shape}")
    return found


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether something is a tensor of numbers."""
    return isinstance(tensor, Tensor) and not (tensor.dtype.is_bool or tensor.dtype.is_host_only)
