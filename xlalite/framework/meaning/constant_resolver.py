"""Finds the values of tensors that must be known when operations are compiled, by evaluating what they depend on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

import numpy as np

from xlalite.framework.graph.op_spec import VariableAccess
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array, HostContext, HostValue, LocalContext

RunOperation: TypeAlias = Callable[[Operation, Sequence[HostValue], HostContext], Sequence[HostValue]]

# A folded value beyond this many elements costs more in the program than it saves.
_MAX_FOLDED_ELEMENTS = 1 << 20


class ConstantResolver:
    """Values and sizes of tensors as far as they are known.

    Attributes:
        run_operation: Runs one operation by itself. `op_execution`, which lowers and so stands above, puts it here.
    """

    run_operation: ClassVar[RunOperation]

    def __init__(self, trusts_defaults: bool = True) -> None:
        """Knows nothing yet; whether the default of what may be fed counts as its value."""
        self._trusts_defaults = trusts_defaults
        self._values: dict[Tensor, Array] = {}
        self._dims: dict[Tensor, tuple[int, ...]] = {}
        self._inputs: set[Tensor] = set()

    def define(self, tensor: Tensor, value: Array) -> None:
        """Says what the value of `tensor` is."""
        self._values[tensor] = value
        self._dims[tensor] = value.shape

    def define_dims(self, tensor: Tensor, dims: tuple[int, ...]) -> None:
        """Says what the sizes of `tensor` are."""
        self._dims[tensor] = dims

    def dims(self, tensor: Tensor) -> tuple[int, ...] | None:
        """The sizes of `tensor` if they are known."""
        if tensor in self._dims:
            return self._dims[tensor]
        shape = tensor.shape if tensor.handle_data is None else tensor.handle_data.shape
        return shape.known_dims() if shape.is_fully_defined() else None

    def define_input(self, tensor: Tensor, dims: tuple[int, ...]) -> None:
        """Says what the sizes of `tensor` are, and that its value comes at run time whatever its producer."""
        self._dims[tensor] = dims
        self._inputs.add(tensor)

    def resolve(self, tensor: Tensor) -> Array | None:
        """The value of `tensor`, evaluating its producers where needed; None when it depends on a run-time value."""
        if tensor not in self._values:
            operations = self._foldable_producers(tensor)
            if operations is None:
                return None
            for operation in operations:
                self._run(operation)
        return self._values[tensor]

    def explain(self, tensor: Tensor) -> str:
        """Why `tensor` has no known value: the path to what it depends on."""
        path = [tensor.name]
        while self._may_fold(tensor):
            unknown = [t for t in tensor.op.inputs if self.resolve(t) is None]
            if not unknown:
                break
            tensor = unknown[0]
            path.append(tensor.name)
        source = tensor.op
        return f"it depends on the run-time value of {source.describe()} (path: {' <- '.join(path)})"

    def _foldable_producers(self, tensor: Tensor) -> list[Operation] | None:
        """The operations that give `tensor` its value, producers first; None when one of them cannot run now."""
        order: dict[Operation, None] = {}
        stack = [(tensor, False)]
        while stack:
            top, inputs_done = stack.pop()
            if top in self._values or top.op in order:
                continue
            if inputs_done:
                order[top.op] = None
                continue
            if not self._may_fold(top):
                return None
            stack.append((top, True))
            if not top.op.spec.is_metadata:
                stack.extend((producer, False) for producer in top.op.inputs)
        return list(order)

    def _may_fold(self, tensor: Tensor) -> bool:
        spec = tensor.op.spec
        if tensor in self._inputs or spec.is_stateful or (spec.is_default and not self._trusts_defaults):
            return False
        if spec.variable_access is not VariableAccess.NONE and not spec.is_metadata:
            return False
        if spec.is_constant:
            return True
        sizes = [self.dims(each) for each in (tensor.op.inputs if spec.is_metadata else tensor.op.outputs)]
        if spec.is_metadata:
            return None not in sizes
        return bool(tensor.op.inputs) and all(dims is None or math.prod(dims) <= _MAX_FOLDED_ELEMENTS for dims in sizes)

    def _run(self, operation: Operation) -> None:
        if operation.spec.is_metadata:
            # Only sizes matter, so one element seen many times stands for the input.
            inputs: tuple[HostValue, ...] = tuple(
                tensor.handle_data or np.broadcast_to(np.zeros((), tensor.dtype.numpy_dtype), self.dims(tensor) or ())
                for tensor in operation.inputs
            )
        else:
            inputs = tuple(self._values[tensor] for tensor in operation.inputs)
        results = ConstantResolver.run_operation(operation, inputs, LocalContext())
        for output, value in zip(operation.outputs, results, strict=True):
            assert isinstance(value, np.ndarray), f"{output.name} is no array"
            self.define(output, value)
