"""Bodies of loops and branches: graphs of their own that take in tensors of the graph around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.framework.default_graph import get_default_graph
from xlalite.framework.dtypes import DType
from xlalite.framework.graph import Graph
from xlalite.framework.operation import Operation
from xlalite.framework.tensor import Tensor
from xlalite.framework.tensor_shape import TensorShape


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

    @property
    def building_function(self) -> bool:
        """Whether this is the body of a loop or branch."""
        return True

    def add_argument(self, dtype: DType, shape: TensorShape, name: str) -> Tensor:
        """Declares one more argument."""
        placeholder = self.create_op("Placeholder", (), {"dtype": dtype, "shape": shape}, name).outputs[0]
        self.inputs.append(placeholder)
        return placeholder

    def capture(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of an enclosing graph; the tensor itself when it is of this one."""
        if tensor.graph is self:
            return tensor
        if tensor.op.spec.is_constant:
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
        """A copy inside, so that its value is known when the function is compiled."""
        if tensor not in self._constants:
            with self.name_scope(None), self.control_dependencies(None):
                copy = self.create_op(tensor.op.type, (), tensor.op.attrs, tensor.op.name.replace("/", "_"))
            self._constants[tensor] = copy.outputs[0]
        return self._constants[tensor]

    @property
    def captured(self) -> tuple[Tensor, ...]:
        """The captured tensors of the outer graph, in the order of their placeholders."""
        return tuple(self.captures)


def inline_function(function: FunctionGraph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Copies the operations of `function` into the default graph, on other inputs; gives the copies of its outputs."""
    graph = get_default_graph()
    copies: dict[Tensor, Tensor] = dict(zip(function.inputs, inputs, strict=True))
    arguments = {placeholder.op for placeholder in function.inputs}
    twins: dict[Operation, Operation] = {}
    for operation in function.get_operations():
        if operation in arguments:
            continue
        waits = [twins[control] for control in operation.control_inputs if control in twins]
        with graph.control_dependencies(waits), graph.attribute_scope(_annotations(operation)):
            given = [copies[tensor] for tensor in operation.inputs]
            attrs = {name: operation.get_attr(name) for name in operation.spec.attrs}
            twins[operation] = twin = graph.create_op(operation.type, given, attrs, operation.name)
        for original, copy in zip(operation.outputs, twin.outputs, strict=True):
            copies[original] = copy
            copy.set_shape(original.shape)
    return [copies[output] for output in function.outputs]


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
