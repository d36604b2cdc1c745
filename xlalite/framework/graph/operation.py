"""One node of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from xlalite.framework.graph.default_session import run_operation
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.op_spec import OpSpec
from xlalite.framework.graph.source_location import SourceLocation
from xlalite.framework.graph.tensor import Tensor

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph


class Operation:
    """A node of a graph: a type, inputs, attributes and outputs. Made by `Graph.create_op`; has identity."""

    __slots__ = (
        "__weakref__",
        "_attrs",
        "_control_inputs",
        "_control_outputs",
        "_device",
        "_graph",
        "_id",
        "_inputs",
        "_name",
        "_outputs",
        "_spec",
        "_traceback",
    )

    to_message: ClassVar[Callable[..., Any]]
    """Makes a `NodeDef` of an operation; `xlalite.messages.graph_messages`, which stands above, puts it here."""

    def __init__(
        self,
        graph: Graph,
        spec: OpSpec,
        name: str,
        inputs: Sequence[Tensor],
        control_inputs: Sequence[Operation],
        attrs: Mapping[str, Any],
        traceback: SourceLocation,
    ) -> None:
        """Makes the node without its outputs and without telling its neighbours; `attach` does both."""
        self._graph = graph
        self._spec = spec
        self._name = name
        self._inputs = tuple(inputs)
        self._control_inputs = tuple(control_inputs)
        self._attrs = dict(attrs)
        self._traceback = traceback
        self._outputs: tuple[Tensor, ...] = ()
        self._control_outputs: list[Operation] = []
        self._device = ""
        self._id = -1

    def attach(self, outputs: Sequence[Tensor], op_id: int) -> None:
        """Completes the node: sets its outputs and number and makes it known to its producers."""
        self._outputs = tuple(outputs)
        self._id = op_id
        for tensor in self._inputs:
            tensor.add_consumer(self)
        for control in self._control_inputs:
            control._control_outputs.append(self)

    def wait_for(self, operations: Sequence[Operation]) -> None:
        """Adds control dependencies on operations that were made before this one."""
        known = {*self._control_inputs, *(tensor.op for tensor in self._inputs)}
        for operation in operations:
            assert operation._id < self._id, f"{self._name} would wait for {operation._name}, made after it"
            if operation not in known:
                known.add(operation)
                self._control_inputs += (operation,)
                operation._control_outputs.append(self)

    @property
    def graph(self) -> Graph:
        """The graph the operation belongs to."""
        return self._graph

    @property
    def spec(self) -> OpSpec:
        """The declaration of its type."""
        return self._spec

    @property
    def name(self) -> str:
        """Unique name in the graph, scopes included."""
        return self._name

    @property
    def type(self) -> str:
        """What kind of operation it is, such as `MatMul`."""
        return self._spec.name

    @property
    def id(self) -> int:
        """Number in creation order; an operation is created after all it depends on."""
        return self._id

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Data inputs in order."""
        return self._inputs

    @property
    def control_inputs(self) -> tuple[Operation, ...]:
        """Operations that must have run before."""
        return self._control_inputs

    @property
    def control_outputs(self) -> tuple[Operation, ...]:
        """Operations that wait for this one by a control dependency."""
        return tuple(self._control_outputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Outputs in order."""
        return self._outputs

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes by name, read-only."""
        return MappingProxyType(self._attrs)

    @property
    def node_def(self) -> Any:
        """The operation as a `NodeDef`."""
        return Operation.to_message(self)

    @property
    def device(self) -> str:
        """Requested device, empty when none was."""
        return self._device

    @property
    def traceback(self) -> SourceLocation:
        """The user's line that made the operation."""
        return self._traceback

    def get_attr(self, name: str) -> Any:
        """One attribute.

        Raises:
            GraphError: the operation has no attribute of that name.
        """
        if name not in self._attrs:
            raise GraphError(
                f"operation {self._name!r} ({self.type}) has no attribute {name!r}; it has {[*self._attrs]}"
            )
        return self._attrs[name]

    def set_attr(self, name: str, value: Any) -> None:
        """Sets an annotation such as `_XlaCluster`; declared attributes never change.

        Raises:
            GraphError: `name` is not an annotation, which begin with an underscore.
        """
        if not name.startswith("_"):
            raise GraphError(f"operation {self._name!r}: attribute {name!r} is part of its meaning and cannot change")
        self._attrs[name] = value

    def set_device(self, device: str) -> None:
        """Sets the requested device."""
        self._device = device

    def describe(self) -> str:
        """Type, name, inputs and the user's line, for error messages."""
        inputs = ", ".join(f"{tensor.dtype.name}{tensor.shape}" for tensor in self._inputs)
        return f"{self.type} {self._name!r} ({inputs}), made at {self._traceback}"

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Runs the operation in `session` or the default session."""
        run_operation(self, feed_dict, session)

    def __repr__(self) -> str:
        return f"<xlalite.Operation {self._name!r} type={self.type}>"
