"""A graph: operations by name, collections, and the scopes in which operations are created."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from xlalite.framework.graph import default_graph
from xlalite.framework.graph.device import DeviceSpec
from xlalite.framework.graph.dtypes import resource
from xlalite.framework.graph.errors import ElementTypeError, FinalizedGraphError, GraphError, MissingElementError
from xlalite.framework.graph.op_spec import OpSpec, find_spec
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.scopes import ControlFrame, Scopes
from xlalite.framework.graph.source_location import user_location
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError

_VALID_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


class Graph:
    """Operations in creation order, each with a unique name. Creation is safe from several threads."""

    def __init__(self) -> None:
        """An empty graph."""
        self._lock = threading.RLock()
        self._operations: dict[str, Operation] = {}
        self._name_counts: dict[str, int] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._unfeedable: set[Tensor] = set()
        self._scopes = Scopes()
        self._finalized = False
        self._version = 0
        self.seed: int | None = None

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
            attrs: The declared attributes.
            name: Wanted name, the type by default; made unique. With a trailing `/` it is taken as it stands.

        Raises:
            ShapeError: the shapes of the inputs do not fit the operation.
            ElementTypeError: their element types do not.
            GraphError: the name is not valid, or an input belongs to another graph.
            FinalizedGraphError: the graph was finalised.
        """
        spec = find_spec(op_type)
        given = dict(attrs or {})
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

    # Names and scopes.

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` under the open name scope, with a number when it is taken; case does not distinguish names."""
        with self._lock:
            scoped = f"{self._scopes.name}/{name}" if self._scopes.name else name
            key = scoped.lower()
            count = self._name_counts.get(key, 0)
            if mark_as_used:
                self._name_counts[key] = count + 1
            if count == 0:
                return scoped
            while f"{key}_{count}" in self._name_counts:
                count += 1
            if mark_as_used:
                self._name_counts[f"{key}_{count}"] = 1
                self._name_counts[key] = count + 1
            return f"{scoped}_{count}"

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefixes names of operations created inside; yields the scope with a trailing `/`.

        A name that ends in `/` enters that scope again; None or an empty name returns to the root.
        """
        if name and not _VALID_NAME.match(name):
            raise GraphError(f"{name!r} is not a valid scope name")
        outer = self._scopes.name
        if not name:
            inner = ""
        elif name.endswith("/"):
            inner = name[:-1]
        else:
            inner = self.unique_name(name)
        self._scopes.name = inner
        try:
            yield inner + "/" if inner else ""
        finally:
            self._scopes.name = outer

    def get_name_scope(self) -> str:
        """The open name scope, without a trailing `/`."""
        return self._scopes.name

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Makes operations created inside wait for `control_inputs`; None lifts all outer dependencies."""
        outer = self._scopes.control
        if control_inputs is None:
            self._scopes.control = ()
        else:
            self._scopes.control = (*outer, ControlFrame(tuple(map(self.control_operation, control_inputs))))
        try:
            yield
        finally:
            self._scopes.control = outer

    @contextmanager
    def device(self, device: str | DeviceSpec | Callable[[Operation], Any] | None) -> Iterator[None]:
        """Requests a device for operations created inside; None lifts all outer requests."""
        outer = self._scopes.devices
        if device is None:
            self._scopes.devices = ()
        elif callable(device):
            self._scopes.devices = (*outer, device)
        else:
            self._scopes.devices = (*outer, str(DeviceSpec.from_string(str(device))))
        try:
            yield
        finally:
            self._scopes.devices = outer

    @contextmanager
    def attribute_scope(self, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Annotates operations created inside; a callable value is asked per operation, None removes an outer value."""
        outer = self._scopes.attributes
        merged = {**outer, **attributes}
        self._scopes.attributes = {key: value for key, value in merged.items() if value is not None}
        try:
            yield
        finally:
            self._scopes.attributes = outer

    @property
    def attribute_scope_values(self) -> Mapping[str, Any]:
        """The open attribute scopes of this thread, merged."""
        return self._scopes.attributes

    def as_default(self) -> AbstractContextManager[Graph]:
        """Makes this the thread's default graph for a `with` block."""
        return default_graph.use_as_default(self)

    # Collections.

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends to a collection, which is created when needed."""
        with self._lock:
            self._check_mutable()
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Iterable[Any] | str | None, value: Any) -> None:
        """Appends to several collections; a single name is accepted too."""
        for name in dict.fromkeys([names] if isinstance(names, str) else names or ()):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with `scope`, only items whose name matches that regular expression at its start."""
        with self._lock:
            items = list(self._collections.get(name, ()))
        if scope is None:
            return items
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself; changes to the list change the graph."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """Names of the collections that are not empty."""
        with self._lock:
            return [name for name, items in self._collections.items() if items]

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        with self._lock:
            self._check_mutable()
            self._collections.pop(name, None)

    # State.

    @property
    def version(self) -> int:
        """Grows with every operation; equal versions mean an unchanged graph."""
        return self._version

    @property
    def lock(self) -> threading.RLock:
        """Held while the graph changes; take it to see a consistent graph."""
        return self._lock

    @property
    def finalized(self) -> bool:
        """Whether the graph refuses changes."""
        return self._finalized

    @property
    def building_function(self) -> bool:
        """Whether this is the body of a loop or branch."""
        return False

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

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
        if tensor.graph is not self:
            raise GraphError(f"tensor {tensor.name!r} belongs to another graph; all inputs must be of one graph")
        return tensor

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

    def _check_mutable(self) -> None:
        if self._finalized:
            raise FinalizedGraphError("the graph is finalised and cannot be changed")

    def _name_for_new_op(self, name: str) -> str:
        if name.endswith("/"):
            return name[:-1]
        if not _VALID_NAME.match(name):
            raise GraphError(f"{name!r} is not a valid operation name")
        return self.unique_name(name)

    def _infer_outputs(self, operation: Operation, spec: OpSpec) -> list[Tensor]:
        try:
            inferred = spec.infer(operation)
        except (ShapeError, ElementTypeError) as error:
            raise type(error)(f"{error}\n  in {operation.describe()}") from None
        outputs = [Tensor(operation, index, dtype, shape) for index, (dtype, shape) in enumerate(inferred)]
        # What passes a variable's handle on passes on which variable it is.
        for source, output in zip(operation.inputs, outputs, strict=False):
            if source.handle_data is not None and output.dtype is resource:
                output.set_handle_data(source.handle_data)
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
        if not index.isdigit():
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
