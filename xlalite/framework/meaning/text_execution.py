"""Operations that move or compare strings, run on numbers that stand for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from xlalite.framework.graph.dtypes import int32, string
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.host import Array, HostContext, HostValue

Run = Callable[[Operation, Sequence[HostValue], HostContext], Sequence[HostValue]]

_STAND_INS: Final[WeakKeyDictionary[Operation, Operation]] = WeakKeyDictionary()


def has_text(operation: Operation) -> bool:
    """Whether an operation takes or gives strings."""
    return any(tensor.dtype is string for tensor in (*operation.inputs, *operation.outputs))


def run_on_text(
    operation: Operation, inputs: Sequence[HostValue], context: HostContext, run: Run
) -> tuple[HostValue, ...]:
    """The outputs; `run` gives those of the same operation on numbers. The empty string is zero."""
    numbers: dict[bytes, int] = {b"": 0}
    given = [
        _as_numbers(np.asarray(value), numbers) if tensor.dtype is string else value
        for tensor, value in zip(operation.inputs, inputs, strict=True)
    ]
    found = run(_stand_in(operation), given, context)
    texts = np.empty(len(numbers), object)
    texts[:] = list(numbers)
    return tuple(
        _as_text(np.asarray(value), texts) if tensor.dtype is string else value
        for tensor, value in zip(operation.outputs, found, strict=True)
    )


def _as_numbers(value: Array, numbers: dict[bytes, int]) -> Array:
    flat = [numbers.setdefault(each, len(numbers)) for each in value.ravel()]
    return np.array(flat, np.int32).reshape(value.shape)


def _as_text(value: Array, texts: Array) -> Array:
    found = np.empty(value.shape, object)
    found[...] = texts[value]
    return found


def _stand_in(operation: Operation) -> Operation:
    """The operation on numbers in place of strings."""
    if operation not in _STAND_INS:
        graph = Graph()
        inputs = []
        for tensor in operation.inputs:
            dtype = int32 if tensor.dtype is string else tensor.dtype
            inputs.append(graph.create_op("Placeholder", (), {"dtype": dtype, "shape": tensor.shape}).outputs[0])
        attrs = {name: _without_string(operation.get_attr(name)) for name in operation.spec.attrs}
        _STAND_INS[operation] = graph.create_op(operation.type, inputs, attrs)
    return _STAND_INS[operation]


def _without_string(value: Any) -> Any:
    return int32 if value is string else value
