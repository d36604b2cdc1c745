"""Bodies of loops and branches: graphs of their own that take in tensors of the graph around them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.ir.traversal import reachable


class FunctionGraph(Graph):
    """A graph with inputs and outputs.

    Attributes:
        name: For messages and for names in HLO.
        outer_graph: The graph that the function was made in.
        inputs: Placeholders: the declared arguments first, then one for each captured tensor.
        outputs: Results in order.
        captures: Tensors of the outer graph and the placeholders that stand for them, in the order of first use.
    """

    def __init__(self, name: str, outer_graph: Graph) -> None:
        """A function without arguments, results or captures."""
        super().__init__()
        self.name = name
        self.outer_graph = outer_graph
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []
        self.captures: dict[Tensor, Tensor] = {}
        self._constants: dict[Tensor, Tensor] = {}
        self.seed = outer_graph.seed
        self.is_traced = outer_graph.is_traced

    @property
    def building_function(self) -> bool:
        """Whether this is the body of a loop or branch."""
        return True

    @property
    def outermost(self) -> Graph:
        """The graph around all loops and branches."""
        return self.outer_graph.outermost

    def add_argument(self, dtype: DType, shape: TensorShape, name: str) -> Tensor:
        """Declares one more argument."""
        placeholder = self.create_op("Placeholder", (), {"dtype": dtype, "shape": shape}, name).outputs[0]
        self.inputs.append(placeholder)
        return placeholder

    def capture(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of an enclosing graph; the tensor itself when it is of this one."""
        if tensor.graph is self:
            return tensor
        if tensor.op.spec.is_constant and not tensor.dtype.is_differentiable:
            return self._copy_constant(tensor)
        if tensor not in self.captures:
            outer = self.outer_graph.capture(tensor)
            with self.name_scope(None), self.control_dependencies(None):
                placeholder = self.add_argument(outer.dtype, outer.shape, f"capture_{len(self.captures)}")
            if outer.handle_data is not None:
                placeholder.set_handle_data(outer.handle_data)
            self.captures[tensor] = placeholder
        return self.captures[tensor]

    def control_operation(self, element: Any) -> Operation:
        """As in every graph; waiting for an outer tensor means waiting for its value to come in.

        Raises:
            GraphError: an operation of an outer graph, which has no value to wait for.
        """
        tensor = element if isinstance(element, Tensor) else None
        return super().control_operation(element if tensor is None else self.capture(tensor))

    def _copy_constant(self, tensor: Tensor) -> Tensor:
        """A copy inside, so that sizes, axes and limits are known when the function is compiled.

        Numbers that can have a gradient come in as every other tensor does: a copy would be cut off from the original.
        """
        if tensor not in self._constants:
            with self.name_scope(None), self.control_dependencies(None):
                copy = self.create_op(tensor.op.type, (), tensor.op.attrs, tensor.op.name.replace("/", "_"))
            self._constants[tensor] = copy.outputs[0]
        return self._constants[tensor]

    def stand_in(self, tensor: Tensor) -> Tensor | None:
        """What stands for a tensor of an enclosing graph here, if it was captured or copied."""
        return self.captures.get(tensor, self._constants.get(tensor))

    @property
    def captured(self) -> tuple[Tensor, ...]:
        """The captured tensors of the outer graph, in the order of their placeholders."""
        return tuple(self.captures)

    def drop_unused(self) -> None:
        """Removes what no result is computed from and has no effect, and the captures that only it looked at."""
        arguments = {tensor.op for tensor in self.inputs}
        starts = [tensor.op for tensor in self.outputs]
        starts += [each for each in self.get_operations() if each.spec.is_stateful and each not in arguments]
        needed = set(reachable(starts, lambda op: (*(tensor.op for tensor in op.inputs), *op.control_inputs)))
        dropped = {inner for inner in self.captures.values() if inner.op not in needed}
        self.captures = {tensor: inner for tensor, inner in self.captures.items() if inner not in dropped}
        self.inputs = [each for each in self.inputs if each not in dropped]
        needed.update(tensor.op for tensor in self.inputs)
        for operation in reversed(self.get_operations()):
            if operation not in needed:
                self._remove(operation)

    @cached_property
    def recorded(self) -> tuple[Tensor, ...]:
        """The values that would be others if the function ran again, in creation order; asked for once it is traced."""
        return tuple(
            output
            for operation in self.get_operations()
            if operation.spec.is_stateful and operation.type != "Placeholder"
            for output in operation.outputs
            if not output.dtype.is_host_only
        )

    def sources_of(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """The inputs and recorded tensors from which tensors of this graph are computed, in creation order."""
        ends = (*self.inputs, *self.recorded)
        listed = list(tensors)
        reached = {tensor for operation in producers_of(listed, ends) for tensor in operation.inputs}.union(listed)
        return [end for end in ends if end in reached]


def replay_function(function: FunctionGraph, outputs: Sequence[Tensor], known: Mapping[Tensor, Tensor]) -> list[Tensor]:
    """Copies what some outputs of `function` are made from into the default graph, and gives the copies of the outputs.

    Nothing that has an effect is copied, and nothing that would give another value the second time.

    Args:
        function: The function.
        outputs: Tensors of the function.
        known: What stands for those inputs and recorded tensors of the function that `sources_of` the outputs names.

    Raises:
        LookupError: a value that must be recorded is inside another loop or branch.
    """
    graph = get_default_graph()
    copies = dict(known)
    needed = producers_of(outputs, copies)
    for operation in function.get_operations():
        if operation not in needed:
            continue
        if any(isinstance(value, FunctionGraph) and value.recorded for value in operation.attrs.values()):
            raise LookupError(
                f"no gradient is defined for {operation.describe()}: it draws random numbers inside {function.name}, "
                "which is itself a loop or a branch"
            )
        with graph.attribute_scope(_annotations(operation)):
            given = [copies[tensor] for tensor in operation.inputs]
            attrs = {name: operation.get_attr(name) for name in operation.spec.attrs}
            copied = graph.create_op(operation.type, given, attrs, operation.name)
        for original, copy in zip(operation.outputs, copied.outputs, strict=True):
            copies.setdefault(original, copy)
            copy.set_shape(original.shape)
    return [copies[output] for output in outputs]


def producers_of(tensors: Iterable[Tensor], known: Container[Tensor], *, behind_shapes: bool = True) -> set[Operation]:
    """The operations that compute tensors from what is known; perhaps without what only gives others their sizes."""

    def unknown(given: Iterable[Tensor]) -> Iterable[Operation]:
        return (tensor.op for tensor in given if tensor not in known)

    return set(
        reachable(unknown(tensors), lambda op: unknown(op.inputs) if behind_shapes or not op.spec.is_metadata else ())
    )


def _annotations(operation: Operation) -> dict[str, Any]:
    return {name: value for name, value in operation.attrs.items() if name.startswith("_")}


def trace_function(
    name: str,
    outer_graph: Graph,
    arguments: Sequence[tuple[DType, TensorShape]],
    body: Callable[[tuple[Tensor, ...]], Sequence[Tensor]],
) -> FunctionGraph:
    """Runs `body` once in a new function graph and records what it makes."""
    function = FunctionGraph(name, outer_graph)
    with function.as_default(), function.attribute_scope(outer_graph.attribute_scope_values):
        inner = tuple(function.add_argument(dtype, shape, f"arg_{i}") for i, (dtype, shape) in enumerate(arguments))
        function.outputs = [function.capture(result) for result in body(inner)]
    return function
