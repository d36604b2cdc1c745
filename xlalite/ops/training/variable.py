"""Variables: state that lives in a session and is read and changed by operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.default_session import evaluate_tensor
from xlalite.framework.graph.dtypes import DType, as_dtype, string
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.indexed_slices import IndexedSlices
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.operators import TensorOperators
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import ShapeLike, TensorShape, as_shape
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import stack
from xlalite.ops.functions.control_flow import cond, group, no_op
from xlalite.ops.functions.scatter_updates import scatter_rows
from xlalite.ops.functions.selection import boolean_mask
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to


class Variable(TensorOperators):
    """A tensor that keeps its value from step to step; wherever a tensor is expected, its current value is read."""

    _save_slice_info: Any = None
    """Which part of a whole it is, if it is one."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        collections: Sequence[Any] | None = None,
        validate_shape: bool = True,
        name: str | None = None,
        dtype: Any = None,
        shape: ShapeLike = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
    ) -> None:
        """Adds a variable to the default graph.

        Args:
            initial_value: A value, a tensor, or a function that gives one.
            trainable: Whether optimisers change it by default.
            collections: Collections to join; the global variables by default.
            validate_shape: Whether the shape is fixed by the initial value.
            name: Name, made unique.
            dtype: Element type; that of the initial value by default.
            shape: Shape, where it should be less known than the initial value's.
            constraint: Applied to the value after each update by an optimiser.
            use_resource: Accepted for compatibility; there is only one sort of variable.

        Raises:
            GraphError: there is no initial value, or it is a tensor of the loop or branch that is being made.
            ShapeError: its shape is not fully known although it should be.
        """
        if initial_value is None:
            raise GraphError("Variable: initial_value is needed")
        inner = get_default_graph()
        if isinstance(initial_value, Tensor) and initial_value.graph.building_function:
            raise GraphError(
                f"Variable {name or ''!r}: the initial value {initial_value.name!r} is made inside a loop or branch; "
                "pass a function that makes it"
            )
        graph = inner.outermost
        self._constraint = constraint
        self._trainable = trainable
        full_name = _scope_name(graph, name or "Variable")
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope(full_name) as scope:
            with graph.name_scope("Initializer"):
                value = initial_value() if callable(initial_value) else initial_value
                initial = _initial_tensor(value, dtype)
            self._initial_value = initial
            declared = TensorShape(None) if not validate_shape else initial.shape if shape is None else as_shape(shape)
            if validate_shape and shape is None and not declared.is_fully_defined():
                raise ShapeError(
                    f"Variable {scope[:-1]!r}: the initial value {initial.name!r} has shape {declared}, which is not "
                    "fully known; pass validate_shape=False"
                )
            self._handle = node("VarHandleOp", (), {"dtype": initial.dtype, "shape": declared}, scope)
            with graph.name_scope("IsInitialized"):
                self._is_initialized = node("VarIsInitializedOp", [self._handle])
            self._initializer = operation("AssignVariableOp", [self._handle, initial], None, "Assign")
            with graph.name_scope("Read"):
                self._graph_element = node("ReadVariableOp", [self._handle])
        wanted = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in wanted:
            wanted.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(wanted, self)

    @classmethod
    def of_operations(cls, read: Tensor, initial: Tensor, initializer: Operation, *, trainable: bool) -> Variable:
        """The variable whose operations a graph has already; `read` is its value."""
        variable = cls.__new__(cls)
        variable._constraint = None
        variable._trainable = trainable
        variable._initial_value = initial
        (variable._handle,) = read.op.inputs
        asked = [each for each in variable._handle.consumers() if each.type == "VarIsInitializedOp"]
        variable._is_initialized = asked[0].outputs[0] if asked else node("VarIsInitializedOp", [variable._handle])
        variable._initializer = initializer
        variable._graph_element = read
        return variable

    @property
    def name(self) -> str:
        """The name of the handle, with `:0` as a tensor has it."""
        return f"{self._handle.op.name}:0"

    @property
    def op(self) -> Operation:
        """The operation that makes the handle."""
        return self._handle.op

    @property
    def handle(self) -> Tensor:
        """The `resource` tensor that stands for the variable."""
        return self._handle

    @property
    def graph(self) -> Graph:
        """The graph the variable belongs to."""
        return self._handle.graph

    @property
    def device(self) -> str:
        """Requested device."""
        return self._handle.op.device

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._graph_element.dtype

    @property
    def shape(self) -> TensorShape:
        """Shape."""
        return self._graph_element.shape

    @property
    def trainable(self) -> bool:
        """Whether optimisers change it by default."""
        return self._trainable

    @property
    def constraint(self) -> Callable[[Tensor], Tensor] | None:
        """Applied to the value after each update by an optimiser."""
        return self._constraint

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        return self._initializer

    @property
    def create(self) -> Operation:
        """The same as `initializer`."""
        return self._initializer

    @property
    def initial_value(self) -> Tensor:
        """The initial value."""
        return self._initial_value

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    def begin_with(self, value: Tensor) -> None:
        """Makes another tensor the initial value; what asked for the initializer before keeps the old one."""
        self._initial_value = value
        self._initializer = operation("AssignVariableOp", [self._handle, value], None, f"{self.op.name}/Assign")

    def is_initialized(self) -> Tensor:
        """Whether the variable has a value."""
        return self._is_initialized

    def value(self) -> Tensor:
        """The current value, read where control dependencies put it."""
        graph = get_default_graph()
        target = graph if graph.building_function else self.graph
        return target.create_op("ReadVariableOp", [target.capture(self._handle)], None, "ReadVariableOp").outputs[0]

    def read_value(self) -> Tensor:
        """The same as `value`."""
        return self.value()

    def initialized_value(self) -> Tensor:
        """The current value, or the initial one if there is none yet."""
        found = cond(self._is_initialized, self.value, lambda: self._initial_value)
        assert isinstance(found, Tensor)
        return found

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Replaces the value; gives the value after it, or the operation when `read_value` is false."""
        return self._change("AssignVariableOp", value, name or "Assign", read_value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value; gives the value after it, or the operation when `read_value` is false."""
        return self._change("AssignAddVariableOp", delta, name or "AssignAddVariableOp", read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value; gives the value after it, or the operation when `read_value` is false."""
        return self._change("AssignSubVariableOp", delta, name or "AssignSubVariableOp", read_value)

    def count_up_to(self, limit: int) -> Tensor:
        """The value, which is one more afterwards; at the limit, a step fails with `OutOfRangeError`."""
        return node("ResourceCountUpTo", [self._handle], {"limit": limit})

    def load(self, value: Any, session: Any = None) -> None:
        """Assigns at once, in `session` or the default session."""
        self._initializer.run({self._initial_value: np.asarray(value)}, session)

    def eval(self, session: Any = None) -> Any:
        """The current value in `session` or the default session."""
        return evaluate_tensor(self._graph_element, None, session)

    def _change(self, op_type: str, value: Any, name: str, read_value: bool) -> Any:
        new = cast_to(convert_to_tensor(value, preferred_dtype=self.dtype), self.dtype)
        done = operation(op_type, [self._handle, new], None, name)
        return self.after(done) if read_value else done

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Replaces the rows that an `IndexedSlices` names; gives the value after it."""
        return scatter_rows("Update", self, sparse_delta, name)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds to the rows that an `IndexedSlices` names; gives the value after it."""
        return scatter_rows("Add", self, sparse_delta, name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts from the rows that an `IndexedSlices` names; gives the value after it."""
        return scatter_rows("Sub", self, sparse_delta, name)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows of the current value."""
        return node("ResourceGather", [self._handle, convert_to_tensor(indices)], None, name)

    def after(self, change: Operation) -> AssignedValue:
        """The value once an operation has changed it."""
        return AssignedValue(self, change)

    def _as_tensor(self) -> Tensor:
        return self.value()

    def _as_graph_element(self) -> Tensor:
        return self._graph_element

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __iter__(self) -> Any:
        """Not defined for variables."""
        raise TypeError(f"variable {self.name!r} cannot be iterated over; unstack its value")

    def __repr__(self) -> str:
        return f"<xlalite.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


class AssignedValue(TensorOperators):
    """A variable's value after an assignment; `op` is the assignment, so grouping it does not read anything."""

    __slots__ = ("_value", "op", "variable")

    def __init__(self, variable: Variable, assignment: Operation) -> None:
        """Reads the variable after the assignment."""
        self.variable = variable
        self.op = assignment
        with assignment.graph.control_dependencies([assignment]):
            self._value = variable.value()

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self._value.name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._value.dtype

    @property
    def shape(self) -> TensorShape:
        """Shape."""
        return self._value.shape

    @property
    def graph(self) -> Graph:
        """The graph the tensor belongs to."""
        return self._value.graph

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Assigns, and gives the new value."""
        return evaluate_tensor(self._value, feed_dict, session)

    def _as_tensor(self) -> Tensor:
        return self._value

    def _as_graph_element(self) -> Tensor:
        return self._value


def assign(
    ref: Variable | Tensor, value: Any, validate_shape: Any = None, use_locking: Any = None, name: Any = None
) -> Any:
    """Replaces the value of a variable or of a slice of one; gives the variable's value after it."""
    return ref.assign(value, name=name)


def assign_add(ref: Variable, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    """Adds to a variable; gives the value after it."""
    return ref.assign_add(value, name=name)


def assign_sub(ref: Variable, value: Any, use_locking: Any = None, name: Any = None) -> Any:
    """Subtracts from a variable; gives the value after it."""
    return ref.assign_sub(value, name=name)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """The value of a variable, which is one more afterwards; at the limit, a step fails with `OutOfRangeError`."""
    return ref.count_up_to(limit)


def global_variables(scope: str | None = None) -> list[Variable]:
    """Variables shared by all steps."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """Variables of one process."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """Variables that optimisers change."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """Variables that belong to a model."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def variables_initializer(var_list: Iterable[Variable], name: str = "init") -> Operation:
    """One operation that gives all listed variables their initial values."""
    listed = list(var_list)
    return group(*[variable.initializer for variable in listed], name=name) if listed else no_op(name)


def global_variables_initializer() -> Operation:
    """One operation that gives all global variables their initial values."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """One operation that gives all local variables their initial values."""
    return variables_initializer(local_variables(), "init_local")


def report_uninitialized_variables(
    var_list: Iterable[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value yet, a vector of strings; of all variables if none are listed."""
    listed = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    with get_default_graph().name_scope(name):
        if not listed:
            return convert_to_tensor(np.zeros(0, object), string)
        names = convert_to_tensor([variable.op.name for variable in listed], string)
        lacking = [node("LogicalNot", [variable.is_initialized()]) for variable in listed]
        return boolean_mask(names, stack(lacking))


def is_variable_initialized(variable: Variable) -> Tensor:
    """Whether the variable has a value."""
    return variable.is_initialized()


def _scope_name(graph: Graph, name: str) -> str:
    """The variable's unique full name with a trailing slash, to be entered as a scope."""
    return name if name.endswith("/") else graph.unique_name(name) + "/"


def _initial_tensor(value: Any, dtype: Any) -> Tensor:
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        tensor = convert_to_tensor(value)
        return tensor if wanted is None else cast_to(tensor, wanted)
    return convert_to_tensor(value, wanted, "initial_value")
