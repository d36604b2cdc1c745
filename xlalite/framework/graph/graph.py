"""A graph: operations by name, made under scopes; collections lie beside them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from xlalite.framework.graph.collections import Collections
from xlalite.framework.graph.dtypes import resource
from xlalite.framework.graph.errors import ElementTypeError, GraphError, MissingElementError
from xlalite.framework.graph.graph_stack import use_as_default
from xlalite.framework.graph.op_spec import OpSpec, find_spec
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.scoped_creation import ScopedCreation, checked_name
from xlalite.framework.graph.source_location import user_location
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.limits import DEFAULT_LIMITS


class Graph(ScopedCreation, Collections):
    """Operations in creation order, each with a unique name. Creation is safe from several threads.

    Attributes:
        seed: What random numbers follow from, with the seed of an operation.
        is_traced: Whether it is a function that is traced for sizes that are known; equal numbers in it may be one
            operation, and whatever depends on its arguments is never known when it is compiled.
        shared_constants: The numbers that are one operation, by their bits.
    """

    def __init__(self) -> None:
        ScopedCreation.__init__(self)
        Collections.__init__(self)
        self._operations: dict[str, Operation] = {}
        self._unfeedable: set[Tensor] = set()
        self._version = 0
        self.seed: int | None = None
        self.is_traced = False
        self.shared_constants: dict[Hashable, Tensor] = {}

    to_message: ClassVar[Callable[..., Any]]
    """Makes a `GraphDef` of a graph; `xlalite.messages.graph_messages`, which stands above, puts it here."""

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The graph as a `GraphDef`.

        Args:
            from_version: Leaves out the operations that were there when the graph had this version.
            add_shapes: Whether each node says the shapes of its outputs.
        """
        return Graph.to_message(self, from_version, add_shapes)

    to_network: ClassVar[Callable[..., Any]]
    """Makes a graph of networkx; `xlalite.ops.functions.graph_network`, which stands above, puts it here."""

    def to_networkx(self) -> Any:
        """The operations, by name, as a `networkx.MultiDiGraph`: an edge for each input and for each control input."""
        return Graph.to_network(self)

    # Operations.

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor] = (),
        attrs: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Operation:
        """Adds an operation under the open scopes.

        Args:
            op_type: A declared operation type.
            inputs: Tensors of this graph.
            attrs: The declared attributes; those with defaults may be left out.
            name: Wanted name, the type by default; made unique. With a trailing `/` it is taken as it stands.

        Raises:
            ShapeError: the shapes of the inputs do not fit the operation.
            ElementTypeError: their element types do not.
            GraphError: the name is not valid, or an input belongs to another graph.
            FinalizedGraphError: the graph was finalised.
        """
        spec = find_spec(op_type)
        given = {**spec.defaults, **(attrs or {})}
        assert spec.accepts_input_count(len(inputs)), f"{op_type} does not take {len(inputs)} inputs"
        assert set(spec.attrs) <= set(given), f"{op_type} lacks attributes {set(spec.attrs) - set(given)}"
        with self._lock:
            self._check_mutable()
            producers = [self._own(tensor).op for tensor in inputs]
            full_name = self._name_for_new_op(name or op_type.lstrip("_"))
            control = self._scopes.control_inputs_for(producers)
            operation = Operation(self, spec, full_name, inputs, control, given, user_location())
            outputs = self._infer_outputs(operation, spec)
            operation.attach(outputs, self._version)
            for key, value in self._scopes.attributes_for(operation).items():
                operation.set_attr(key, value)
            if self._scopes.devices:
                operation.set_device(self._scopes.device_for(operation))
            self._operations[full_name] = operation
            self._scopes.record_created(operation)
            self._version += 1
        return operation

    def get_operations(self) -> list[Operation]:
        """All operations in creation order."""
        with self._lock:
            return list(self._operations.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation called `name`.

        Raises:
            MissingElementError: there is none.
        """
        found = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(found, Operation)
        return found

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called `name`, as in `"x:0"`.

        Raises:
            MissingElementError: there is none.
            GraphError: the name is not a tensor's.
        """
        found = self.as_graph_element(name, allow_operation=False)
        assert isinstance(found, Tensor)
        return found

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Tensor | Operation:
        """The tensor or operation that `obj` (an element, a variable or a name) stands for in this graph.

        Raises:
            MissingElementError: a name that nothing has.
            GraphError: an element of another graph, or one of the wrong sort.
            TypeError: the object cannot stand for an element at all.
        """
        wanted = " or ".join(filter(None, ["a Tensor" * allow_tensor, "an Operation" * allow_operation]))
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation)
        converter = getattr(obj, "_as_graph_element", None)
        element = converter() if converter is not None else obj
        if not isinstance(element, Tensor | Operation):
            raise TypeError(f"cannot use a {type(obj).__name__} ({obj!r}) where {wanted} of a graph is expected")
        if not (allow_tensor if isinstance(element, Tensor) else allow_operation):
            raise TypeError(f"cannot use {element!r}: {wanted} is expected")
        if element.graph is not self:
            raise GraphError(f"{element!r} belongs to another graph")
        return element

    def as_default(self) -> AbstractContextManager[Graph]:
        """Makes this the thread's default graph for a `with` block."""
        return use_as_default(self)

    # State.

    @property
    def version(self) -> int:
        """Grows with every operation; equal versions mean an unchanged graph."""
        return self._version

    @property
    def building_function(self) -> bool:
        """Whether this is the body of a loop or branch."""
        return False

    @property
    def outermost(self) -> Graph:
        """The graph that a session runs: this one, or that around all loops and branches being built."""
        return self

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Forbids feeding `tensor`."""
        self._unfeedable.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether `tensor` may be fed."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, operation: Operation) -> None:
        """Accepted for compatibility: every operation here can be fetched."""

    def is_fetchable(self, element: Tensor | Operation) -> bool:
        """Whether the element may be fetched."""
        return True

    def capture(self, tensor: Tensor) -> Tensor:
        """`tensor` as an element of this graph.

        Raises:
            GraphError: it belongs to another graph. Bodies of loops and branches take it in instead.
        """
        return self._own(tensor)

    def control_operation(self, element: Any) -> Operation:
        """The operation of this graph that an element names as a control input.

        Raises:
            TypeError: the element is neither an operation, a tensor nor a variable.
            GraphError: it belongs to another graph.
        """
        converter = getattr(element, "_as_graph_element", None)
        found = converter() if converter is not None else element
        operation = found.op if isinstance(found, Tensor) else found
        if not isinstance(operation, Operation):
            raise TypeError(f"a control input must be an Operation, a Tensor or a variable, found {element!r}")
        if operation.graph is not self:
            raise GraphError(f"control input {operation.name!r} belongs to another graph")
        return operation

    # Private.

    def _own(self, tensor: Tensor) -> Tensor:
        if tensor.graph is not self:
            raise GraphError(f"tensor {tensor.name!r} belongs to another graph; all inputs must be of one graph")
        return tensor

    def _name_for_new_op(self, name: str) -> str:
        if name.endswith("/"):
            return name[:-1]
        return self.unique_name(checked_name(name, "operation"))

    def _remove(self, operation: Operation) -> None:
        """Takes an operation out that nothing uses."""
        for tensor in dict.fromkeys(operation.inputs):
            tensor.remove_consumer(operation)
        if operation.spec.is_constant:
            self.shared_constants = {
                key: each for key, each in self.shared_constants.items() if each.op is not operation
            }
        del self._operations[operation.name]

    def _infer_outputs(self, operation: Operation, spec: OpSpec) -> list[Tensor]:
        try:
            inferred = spec.infer(operation)
            for _, shape in inferred:
                if (shape.num_elements() or 0) > DEFAULT_LIMITS.elements:
                    raise ShapeError(f"{shape} has more than {DEFAULT_LIMITS.elements} elements")
        except (ShapeError, ElementTypeError) as error:
            raise type(error)(f"{error}\n  in {operation.describe()}") from None
        outputs = [Tensor(operation, index, dtype, shape) for index, (dtype, shape) in enumerate(inferred)]
        # What passes a variable's handle on passes on which variable it is.
        for source, output in zip(operation.inputs, outputs, strict=False):
            if source.handle_data is not None and output.dtype is resource:
                output.set_handle_data(source.handle_data)
        if spec.handle is not None:
            outputs[0].set_handle_data(spec.handle(operation))
        return outputs

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Tensor | Operation:
        op_name, colon, index = name.partition(":")
        operation = self._operations.get(op_name)
        if not colon:
            if operation is None:
                raise MissingElementError(f"the graph has no operation named {name!r}")
            if not allow_operation:
                raise GraphError(
                    f"{name!r} names an Operation; a Tensor's name has the form '<operation>:<output index>'"
                )
            return operation
        if not index.isdecimal():
            raise GraphError(f"{name!r} is not a tensor name; expected '<operation>:<output index>'")
        if operation is None:
            raise MissingElementError(f"the graph has no tensor named {name!r}: there is no operation {op_name!r}")
        if not allow_tensor:
            raise GraphError(f"{name!r} names a Tensor, but an Operation is expected")
        if int(index) >= len(operation.outputs):
            raise MissingElementError(
                f"the graph has no tensor named {name!r}: operation {op_name!r} has {len(operation.outputs)} outputs"
            )
        return operation.outputs[int(index)]
