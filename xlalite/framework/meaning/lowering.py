"""Turns operations of a graph into one HLO module, for concrete shapes.

A cluster, a single operation that runs by itself and the body of a loop all come through here. The module's parameters
are the arguments that are no constants, in the order given; its result is the tuple of outputs and updated variables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from xlalite.framework.graph.errors import InternalError, InvalidArgumentError
from xlalite.framework.graph.function_graph import FunctionGraph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import HandleData, Tensor, handle_data_of
from xlalite.framework.meaning.constant_resolver import ConstantResolver
from xlalite.framework.meaning.host import Array, uninitialized
from xlalite.framework.meaning.variable_use import CHANGES, state_of, variable_access, variables_of
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import LoweringError, ShapeError
from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class ParameterArgument:
    """An input whose value comes at run time."""

    tensor: Tensor
    shape: Shape


@dataclass(frozen=True, slots=True, eq=False)
class ConstantArgument:
    """An input whose value is known now; it gets no parameter."""

    tensor: Tensor
    value: Array


@dataclass(frozen=True, slots=True)
class VariableArgument:
    """A variable; without a shape it has no value yet and gets no parameter."""

    data: HandleData
    shape: Shape | None


Argument: TypeAlias = ParameterArgument | ConstantArgument | VariableArgument


@dataclass(frozen=True, slots=True)
class VariableUpdate:
    """A variable that the module assigns.

    Attributes:
        data: The variable.
        output_index: Position of its new value in the result tuple.
        parameter_number: The parameter with its old value, whose memory the new one may take; None when it had none.
    """

    data: HandleData
    output_index: int
    parameter_number: int | None


@dataclass(frozen=True, slots=True)
class LoweredOperations:
    """An HLO module and how it connects to the graph.

    Attributes:
        module: Its entry returns a tuple: the outputs in order, then the updated variables.
        parameters: The argument behind each parameter.
        output_count: Number of outputs before the updates.
        updates: The variables that the module assigns.
    """

    module: HloModule
    parameters: tuple[ParameterArgument | VariableArgument, ...]
    output_count: int
    updates: tuple[VariableUpdate, ...]


def lower_operations(
    operations: Sequence[Operation],
    arguments: Sequence[Argument],
    outputs: Sequence[Tensor],
    name: str = "cluster",
) -> LoweredOperations:
    """Builds the module of `operations`.

    Args:
        operations: In an order in which producers and control inputs come first.
        arguments: Everything that the operations take from outside, and every variable that they touch.
        outputs: Tensors whose values are wanted.
        name: Name of the module.

    Raises:
        LoweringError: an operation cannot be compiled, or a value that must be known is not.
        UninitializedError: a variable is read that has no value.
        InvalidArgumentError: the concrete shapes do not fit together.
    """
    builder = Builder(_hlo_name(name))
    variables = Variables()
    resolver = ConstantResolver()
    context = LoweringContext(builder, variables, resolver)
    parameters: list[ParameterArgument | VariableArgument] = []
    numbers: dict[str, int] = {}
    for argument in arguments:
        match argument:
            case ConstantArgument(tensor, value):
                resolver.define(tensor, value)
            case ParameterArgument(tensor, shape):
                parameters.append(argument)
                context.define_input(tensor, builder.parameter(shape, _hlo_name(tensor.op.name)))
            case VariableArgument(data, shape):
                if shape is not None:
                    numbers[data.name] = len(parameters)
                    parameters.append(argument)
                variables.declare(data, None if shape is None else builder.parameter(shape, _hlo_name(data.name)))
    context.lower_all(operations, outputs)
    results = [context.handle(tensor) for tensor in outputs]
    updates = []
    for data, handle in variables.assigned():
        updates.append(VariableUpdate(data, len(results), numbers.get(data.name)))
        results.append(handle)
    module = builder.build_module(builder.tuple(results))
    return LoweredOperations(module, tuple(parameters), len(outputs), tuple(updates))


class Variables:
    """The current values of variables while operations are lowered in order."""

    def __init__(self) -> None:
        self._values: dict[str, Handle | None] = {}
        self._data: dict[str, HandleData] = {}
        self._assigned: set[str] = set()

    def declare(self, data: HandleData, value: Handle | None) -> None:
        """Makes a variable known, with its value at entry."""
        self._values[data.name] = value
        self._data[data.name] = data

    def value(self, data: HandleData) -> Handle | None:
        """The current value, or None when there is none."""
        if data.name not in self._values:
            raise LoweringError(f"variable {data.name!r} is used but is not among the arguments")
        return self._values[data.name]

    def assign(self, data: HandleData, value: Handle) -> None:
        """Sets the current value."""
        self.value(data)
        self._values[data.name] = value
        self._assigned.add(data.name)

    def assigned(self) -> list[tuple[HandleData, Handle]]:
        """Variables that were assigned, in the order of declaration, with their final values."""
        return [
            (self._data[name], value)
            for name, value in self._values.items()
            if name in self._assigned and value is not None
        ]

    def initialized(self) -> list[tuple[HandleData, Handle]]:
        """Variables that have a value, in the order of declaration."""
        return [(self._data[name], value) for name, value in self._values.items() if value is not None]


class LoweringContext:
    """What an operation's `lower` function works with.

    Attributes:
        builder: Builds the HLO computation.
    """

    def __init__(self, builder: Builder, variables: Variables, resolver: ConstantResolver) -> None:
        """Starts without values."""
        self.builder = builder
        self._variables = variables
        self._resolver = resolver
        self._handles: dict[Tensor, Handle] = {}

    def define(self, tensor: Tensor, handle: Handle) -> None:
        """Says what `tensor` is in HLO."""
        self._handles[tensor] = handle
        self._resolver.define_dims(tensor, handle.dims)

    def define_input(self, tensor: Tensor, handle: Handle) -> None:
        """Says what `tensor` is in HLO, and that its value comes from outside, whatever its producer."""
        self._handles[tensor] = handle
        self._resolver.define_input(tensor, handle.dims)

    def handle(self, tensor: Tensor) -> Handle:
        """What `tensor` is in HLO; a known value becomes a constant when it is first asked for.

        Raises:
            LoweringError: nothing gives the tensor a value here.
        """
        if tensor not in self._handles:
            value = self._resolver.resolve(tensor)
            if value is None:
                raise LoweringError(f"tensor {tensor.name!r} is needed but neither computed here nor an argument")
            self.define(tensor, self.builder.constant(value, tensor.dtype.hlo))
        return self._handles[tensor]

    def dims(self, tensor: Tensor) -> tuple[int, ...]:
        """The concrete sizes of `tensor`."""
        known = self._resolver.dims(tensor)
        return self.handle(tensor).dims if known is None else known

    def constant(self, operation: Operation, name: str) -> Array:
        """The value of the input called `name`, which must be known now.

        Raises:
            LoweringError: it is not; the message traces it to what it depends on.
        """
        return self._constant(operation, operation.spec.input_range(name, len(operation.inputs))[0], f" ({name})")

    def constant_at(self, operation: Operation, position: int) -> Array:
        """The value of the input at a position, which must be known now.

        Raises:
            LoweringError: it is not; the message traces it to what it depends on.
        """
        return self._constant(operation, position, "")

    def _constant(self, operation: Operation, position: int, name: str) -> Array:
        tensor = operation.inputs[position]
        value = self._resolver.resolve(tensor)
        if value is None:
            raise LoweringError(
                f"{operation.describe()}: input {position}{name} must be known when the operation is compiled, but "
                f"{self._resolver.explain(tensor)}"
            )
        return value

    def constant_or_none(self, tensor: Tensor) -> Array | None:
        """The value of `tensor` if it is known now."""
        return self._resolver.resolve(tensor)

    def variable_or_none(self, handle: Tensor) -> Handle | None:
        """The current value of the variable behind a `resource` tensor, None when it has none."""
        return self._variables.value(handle_data_of(handle))

    def read_variable(self, operation: Operation, handle: Tensor) -> Handle:
        """The current value of the variable behind a `resource` tensor.

        Raises:
            UninitializedError: it has none.
        """
        value = self.variable_or_none(handle)
        if value is None:
            raise uninitialized(operation, handle_data_of(handle))
        return value

    def assign_variable(self, handle: Tensor, value: Handle) -> None:
        """Sets the variable behind a `resource` tensor.

        Raises:
            ShapeError: the value has another element type, or a shape that the variable does not allow.
        """
        data = handle_data_of(handle)
        if value.dtype is not data.dtype.hlo or not data.shape.is_compatible_with(value.dims):
            raise ShapeError(
                f"assigning to variable {data.name!r}: found {value.shape.text()}, "
                f"expected {data.dtype.name}{data.shape}"
            )
        self._variables.assign(data, value)

    def state(self, operation: Operation) -> Handle:
        """What the operation keeps, as its last run left it."""
        state = state_of(operation)
        value = None if state is None else self._variables.value(state.data)
        if state is None or value is None:
            raise InternalError(None, operation, "nothing was kept for it")
        return value

    def keep(self, operation: Operation, value: Handle) -> None:
        """Says what the operation's next run finds."""
        state = state_of(operation)
        assert state is not None, f"{operation.name} keeps nothing"
        self.assign(state.data, value)

    def assign(self, data: HandleData, value: Handle) -> None:
        """Sets a variable to a value that is known to fit."""
        self._variables.assign(data, value)

    def variables(self, operation: Operation) -> list[tuple[HandleData, Handle]]:
        """The variables that an operation touches and that have a value here."""
        touched = {data.name for data in variables_of(operation)}
        return [(data, value) for data, value in self._variables.initialized() if data.name in touched]

    def lower_all(self, operations: Sequence[Operation], outputs: Sequence[Tensor]) -> None:
        """Lowers the operations whose values are needed, in order."""
        needed = _needed_operations(operations, outputs)
        for operation in operations:
            given = [output in self._handles for output in operation.outputs]
            if operation in needed and not (given and all(given)):
                self._lower(operation)

    def lower_function(
        self,
        builder: Builder,
        function: FunctionGraph,
        inputs: Sequence[Handle | None],
        variables: Variables,
        also: Sequence[Tensor] = (),
    ) -> list[Handle]:
        """Lowers a function's body into another computation of the same module; gives its outputs.

        Args:
            builder: Builds that computation.
            function: The function.
            inputs: One for each input of the function; None for a variable's handle.
            variables: Values of variables in that computation; the body leaves their new values there.
            also: Further tensors of the body whose values are wanted, behind the outputs.
        """
        inner = LoweringContext(builder, variables, ConstantResolver())
        for placeholder, value in zip(function.inputs, inputs, strict=True):
            if value is not None:
                inner.define_input(placeholder, value)
        arguments = {placeholder.op for placeholder in function.inputs}
        operations = [operation for operation in function.get_operations() if operation not in arguments]
        wanted = (*function.outputs, *also)
        inner.lower_all(operations, wanted)
        return [inner.handle(output) for output in wanted]

    def _lower(self, operation: Operation) -> None:
        spec = operation.spec
        if spec.is_constant:
            return
        if spec.lower is None:
            raise LoweringError(f"{operation.describe()} cannot be compiled: {spec.why_host}")
        count = len(operation.inputs)
        left_out = {*spec.constant_input_positions(operation), *spec.preferred_constant_positions(count)}
        inputs = tuple(
            self.handle(tensor)
            for position, tensor in enumerate(operation.inputs)
            if position not in left_out and not tensor.dtype.is_host_only
        )
        location = operation.traceback
        metadata = Metadata(operation.type, operation.name, location.file, location.line)
        try:
            with self.builder.metadata(metadata):
                results = spec.lower(self, operation, inputs)
        except ShapeError as error:
            raise InvalidArgumentError(None, operation, str(error)) from None
        array_outputs = [output for output in operation.outputs if not output.dtype.is_host_only]
        for output, handle in zip(array_outputs, results, strict=True):
            _check_result(operation, output, handle)
            # An output that is an argument keeps the value from outside.
            if output not in self._handles:
                self.define(output, handle)


def _needed_operations(operations: Sequence[Operation], outputs: Sequence[Tensor]) -> set[Operation]:
    """Operations that must be lowered: for their effect, for an output, or for another that must be.

    What is wanted only as a compile-time constant is left out; the resolver computes it.
    """
    as_value = {tensor.op for tensor in outputs}
    as_constant: set[Operation] = set()
    for operation in reversed(operations):
        spec = operation.spec
        if variable_access(operation) in CHANGES:
            as_value.add(operation)
        count = len(operation.inputs)
        if operation in as_value:
            constant_only = set(spec.constant_input_positions(operation))
            preferred = set(spec.preferred_constant_positions(count))
            as_value.update(t.op for i, t in enumerate(operation.inputs) if i not in constant_only)
            as_constant.update(t.op for i, t in enumerate(operation.inputs) if i in constant_only | preferred)
        if operation in as_constant:
            (as_value if spec.is_metadata else as_constant).update(tensor.op for tensor in operation.inputs)
    return as_value


def _check_result(operation: Operation, output: Tensor, handle: Handle) -> None:
    if handle.dtype is not output.dtype.hlo or not output.shape.is_compatible_with(handle.dims):
        raise InternalError(
            None,
            operation,
            f"lowering gave {handle.shape.text()} for {output.name!r}, expected {output.dtype.name}{output.shape}",
        )


def _hlo_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)
