"""Runs one operation by itself: its host kernel if it has one, otherwise its HLO on the evaluator.

So an operation means the same whether it runs alone or in a compiled cluster. Modules are kept by signature.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from xlalite.framework.graph.errors import InternalError, InvalidArgumentError
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor
from xlalite.framework.meaning.constant_resolver import ConstantResolver
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import (
    Argument,
    ConstantArgument,
    ParameterArgument,
    VariableArgument,
    lower_operations,
)
from xlalite.framework.meaning.signatures import SignatureCache
from xlalite.framework.meaning.text_execution import has_text, run_on_text
from xlalite.framework.meaning.variable_use import CHANGES, begin_states, state_of, variable_access
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape


def run_operation_on_host(
    operation: Operation, inputs: Sequence[HostValue], context: HostContext
) -> tuple[HostValue, ...]:
    """The outputs of `operation`; variables are read from and written to `context`.

    Args:
        operation: Any operation.
        inputs: One value for each input: an array, or the variable's description for a `resource` tensor.
        context: Variables and state of the session.

    Raises:
        XlaliteError: the values do not fit the operation.
    """
    kernel = operation.spec.host_kernel
    if kernel is not None:
        try:
            return tuple(kernel(context, operation, tuple(inputs)))
        except ShapeError as error:
            raise InvalidArgumentError(None, operation, str(error)) from None
    if has_text(operation):
        return run_on_text(operation, inputs, context, _run_lowered)
    state = state_of(operation)
    if state is None:
        return _run_lowered(operation, inputs, context)
    begin_states([operation], context)
    with context.state(operation, threading.Lock):
        return _run_lowered(operation, [*inputs, state.data], context)


def _run_lowered(operation: Operation, inputs: Sequence[HostValue], context: HostContext) -> tuple[HostValue, ...]:
    """The outputs; behind the operation's inputs stands what it keeps, if anything."""
    values = [_current_value(each, context) for each in inputs]
    signature = _signature(operation, inputs, values)
    compiled = _CACHE.obtain(signature, lambda: _compile(operation, inputs, values))
    arguments = [value for position in compiled.parameter_positions if (value := values[position]) is not None]
    results = compiled.evaluator.call(compiled.computation, arguments)
    if not isinstance(results, tuple):
        raise InternalError(None, operation, "a lowered module must return a tuple")
    for output_index, position in compiled.updates:
        handle = inputs[position]
        assert isinstance(handle, HandleData), f"{operation.name}: input {position} is no variable"
        context.assign_variable(handle.name, _array(results[output_index]))
    return tuple(_array(result) for result in results[: compiled.output_count])


def run_function_on_host(
    function: FunctionGraph, inputs: Sequence[HostValue], context: HostContext, also: Sequence[Tensor] = ()
) -> tuple[HostValue, ...]:
    """The outputs of the body of a loop or branch, operation by operation, and other values of it."""
    values: dict[Tensor, HostValue] = dict(zip(function.inputs, inputs, strict=True))
    for operation in _needed(function):
        arguments = tuple(values[tensor] for tensor in operation.inputs)
        results = run_operation_on_host(operation, arguments, context)
        values.update(zip(operation.outputs, results, strict=True))
    return tuple(values[output] for output in (*function.outputs, *also))


def _needed(function: FunctionGraph) -> list[Operation]:
    """Operations that have an effect or lead to an output, in creation order, without the arguments."""
    arguments = {tensor.op for tensor in function.inputs}
    needed = {tensor.op for tensor in function.outputs}
    chosen: list[Operation] = []
    for operation in reversed(function.get_operations()):
        writes = variable_access(operation) in CHANGES
        if operation in arguments or not (operation in needed or writes or operation.spec.is_stateful):
            continue
        chosen.append(operation)
        needed.update(tensor.op for tensor in operation.inputs)
        needed.update(operation.control_inputs)
    return chosen[::-1]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """One operation as a module.

    Attributes:
        computation: Returns the outputs, then the updated variables.
        evaluator: Remembers in which order to evaluate it.
        parameter_positions: The operation's input behind each parameter.
        output_count: Number of outputs.
        updates: (position in the result, input position of the variable's handle).
    """

    computation: HloComputation
    evaluator: Evaluator
    parameter_positions: tuple[int, ...]
    output_count: int
    updates: tuple[tuple[int, int], ...]


_CACHE: SignatureCache[_Compiled] = SignatureCache(most=4096)


def _compile(operation: Operation, inputs: Sequence[HostValue], values: Sequence[Array | None]) -> _Compiled:
    known = _facts_of(operation).known_positions
    arguments: list[Argument] = []
    positions: list[int] = []
    seen: dict[object, int] = {}
    for position, (tensor, given, value) in enumerate(zip(_subjects(operation, inputs), inputs, values, strict=True)):
        subject = given.name if isinstance(given, HandleData) else tensor
        if subject in seen:
            continue
        seen[subject] = position
        if isinstance(given, HandleData):
            shape = None if value is None else Shape.array(given.dtype.hlo, value.shape)
            arguments.append(VariableArgument(given, shape))
            positions += [] if value is None else [position]
            continue
        assert tensor is not None
        assert value is not None
        if position in known:
            arguments.append(ConstantArgument(tensor, value))
        else:
            arguments.append(ParameterArgument(tensor, Shape.array(tensor.dtype.hlo, value.shape)))
            positions.append(position)
    outputs = [output for output in operation.outputs if not output.dtype.is_host_only]
    lowered = lower_operations([operation], arguments, outputs, operation.type)
    updates = tuple((update.output_index, seen[update.data.name]) for update in lowered.updates)
    return _Compiled(lowered.module.entry_computation, Evaluator(), tuple(positions), lowered.output_count, updates)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a signature takes from the operation itself.

    Attributes:
        key: Type, attributes and element types.
        known_positions: Inputs whose values, not only shapes, count.
    """

    key: Hashable
    known_positions: frozenset[int]


_FACTS: WeakKeyDictionary[Operation, _Facts] = WeakKeyDictionary()


def _facts_of(operation: Operation) -> _Facts:
    found = _FACTS.get(operation)
    if found is None:
        types = tuple(tensor.dtype.name for tensor in operation.inputs)
        key = (operation.type, attributes_key(operation.attrs), types)
        found = _FACTS[operation] = _Facts(key, _known_positions(operation))
    return found


def _known_positions(operation: Operation) -> frozenset[int]:
    count = len(operation.inputs)
    spec = operation.spec
    positions = (*spec.constant_input_positions(operation), *spec.preferred_constant_positions(count))
    # A tensor that is known in one place is known in all.
    known_tensors = {operation.inputs[position] for position in positions}
    return frozenset(position for position, tensor in enumerate(operation.inputs) if tensor in known_tensors)


def _subjects(operation: Operation, inputs: Sequence[HostValue]) -> Sequence[Tensor | None]:
    """The tensor behind each input; None behind what the operation keeps."""
    return (*operation.inputs, None)[: len(inputs)]


def _current_value(value: HostValue, context: HostContext) -> Array | None:
    return context.read_variable(value.name) if isinstance(value, HandleData) else np.asarray(value)


def _signature(operation: Operation, inputs: Sequence[HostValue], values: Sequence[Array | None]) -> Hashable:
    facts = _facts_of(operation)
    known = facts.known_positions
    first_use: dict[object, int] = {}
    parts: list[Hashable] = []
    for position, (tensor, given, value) in enumerate(zip(_subjects(operation, inputs), inputs, values, strict=True)):
        variable = (given.dtype.name, given.shape) if isinstance(given, HandleData) else None
        same_as = first_use.setdefault(given.name if isinstance(given, HandleData) else tensor, position)
        contents = value.tobytes() if value is not None and position in known else None
        parts.append((variable, same_as, None if value is None else value.shape, contents))
    return facts.key, tuple(parts)


def attributes_key(attrs: Mapping[str, Any]) -> Hashable:
    """What the attributes say about an operation's meaning, as a dictionary key; annotations are left out."""
    return tuple((name, _value_key(value)) for name, value in sorted(attrs.items()) if not name.startswith("_"))


def _value_key(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple | list):
        return tuple(map(_value_key, value))
    hash(value)
    return value  # type: ignore[no-any-return]


def _array(value: object) -> Array:
    return np.asarray(value)


ConstantResolver.run_operation = staticmethod(run_operation_on_host)
