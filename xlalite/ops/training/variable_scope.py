"""Variables by name: `get_variable` makes a variable or finds it again, under the open variable scopes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import as_dtype, float32
from xlalite.framework.graph.errors import GraphError, UnimplementedError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import ShapeLike, as_shape
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.ops.training.initializers import default_initializer
from xlalite.ops.training.partitioned_variable import PartitionedVariable, SaveSliceInfo, parts_of
from xlalite.ops.training.partitioners import Partitioner
from xlalite.ops.training.variable import Variable

_Made = TypeVar("_Made", bound=Variable | PartitionedVariable)
_IN_ONE_PIECE = False
"""Instead of a partitioner: none, whatever the scope says."""
_STORE_COLLECTION = ("__variable_store",)


class ReuseMode(Enum):
    """Whether a variable is made, found, or whichever applies."""

    CREATE = False
    REUSE = True
    AUTO = "auto"


AUTO_REUSE = ReuseMode.AUTO


@dataclass(frozen=True)
class VariableScope:
    """What `get_variable` takes from the open scopes.

    Attributes:
        name: Prefix of variable names, without a trailing slash.
        reuse: Whether variables are made or found.
        initializer: Default initialiser.
        regularizer: Default regulariser.
        dtype: Default element type.
        partitioner: Says in how many parts variables lie.
        original_name_scope: The name scope that was opened together with the scope, with a trailing slash.
    """

    name: str = ""
    reuse: ReuseMode = ReuseMode.CREATE
    initializer: Any = None
    regularizer: Callable[[Tensor], Tensor | None] | None = None
    dtype: Any = float32
    partitioner: Partitioner | None = None
    original_name_scope: str = ""

    def reuse_variables(self) -> None:
        """Makes the open scope find variables from now on."""
        _STATE.set(get_default_graph().outermost, replace(get_variable_scope(), reuse=ReuseMode.REUSE))

    def set_initializer(self, initializer: Any) -> None:
        """Gives the open scope another default initialiser."""
        _STATE.set(get_default_graph().outermost, replace(get_variable_scope(), initializer=initializer))

    def set_regularizer(self, regularizer: Any) -> None:
        """Gives the open scope another default regulariser."""
        _STATE.set(get_default_graph().outermost, replace(get_variable_scope(), regularizer=regularizer))

    def set_partitioner(self, partitioner: Any) -> None:
        """Makes variables of the open scope lie in other parts."""
        _STATE.set(get_default_graph().outermost, replace(get_variable_scope(), partitioner=partitioner))

    def set_use_resource(self, use_resource: bool) -> None:
        """Does nothing: every variable is a resource variable."""


class _Store:
    """The variables of one graph by full name, and how often each scope name was made."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}
        self.scope_counts: dict[str, int] = {}


class _State(threading.local):
    """The open scope of each graph in this thread."""

    def __init__(self) -> None:
        self._scopes: dict[int, VariableScope] = {}

    def get(self, graph: Graph) -> VariableScope:
        return self._scopes.get(id(graph), VariableScope())

    def set(self, graph: Graph, scope: VariableScope) -> None:
        if scope == VariableScope():
            self._scopes.pop(id(graph), None)
        else:
            self._scopes[id(graph)] = scope


_STATE = _State()


def get_variable_scope() -> VariableScope:
    """The open variable scope."""
    return _STATE.get(get_default_graph().outermost)


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: bool | ReuseMode | None = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Opens a scope for `get_variable`, and a name scope with it.

    Args:
        name_or_scope: Name to append, or a scope to enter again; None takes `default_name`, made unique.
        default_name: Name when none is given.
        values: Accepted for compatibility.
        initializer: Default initialiser inside.
        regularizer: Default regulariser inside.
        caching_device: Accepted for compatibility.
        partitioner: Says in how many parts variables lie: called with `shape` and `dtype`.
        custom_getter: Must be None.
        reuse: True finds variables, `AUTO_REUSE` finds or makes them, None inherits.
        dtype: Default element type inside.
        use_resource: Accepted for compatibility.
        constraint: Must be None.
        auxiliary_name_scope: Whether to open a name scope too.

    Raises:
        GraphError: there is neither a name nor a default name.
        UnimplementedError: there is a getter or a constraint.
    """
    if custom_getter is not None or constraint is not None:
        raise UnimplementedError(None, None, "variable_scope: custom_getter and constraint must be None here")
    graph = get_default_graph().outermost
    outer = _STATE.get(graph)
    if isinstance(name_or_scope, VariableScope):
        base, name_part = name_or_scope, name_or_scope.name.rpartition("/")[2]
    else:
        name_part = name_or_scope if name_or_scope is not None else _unique_scope(graph, outer, default_name)
        base = replace(outer, name=f"{outer.name}/{name_part}" if outer.name else name_part)
    inner = replace(
        base,
        initializer=initializer if initializer is not None else base.initializer,
        regularizer=regularizer if regularizer is not None else base.regularizer,
        dtype=as_dtype(dtype) if dtype is not None else base.dtype,
        partitioner=partitioner if partitioner is not None else base.partitioner,
        reuse=_combined(outer.reuse if not isinstance(name_or_scope, VariableScope) else base.reuse, reuse),
    )
    counts = _store(graph).scope_counts
    before = dict(counts) if isinstance(name_or_scope, VariableScope) else None
    counts[inner.name] = counts.get(inner.name, 0) + 1
    try:
        if auxiliary_name_scope:
            with get_default_graph().name_scope(name_part or None) as opened:
                inner = replace(inner, original_name_scope=opened)
                _STATE.set(graph, inner)
                yield inner
        else:
            _STATE.set(graph, inner)
            yield inner
    finally:
        _STATE.set(graph, outer)
        # Who opens a scope again finds the default names inside as they were the first time.
        for scope in [scope for scope in counts if scope.startswith(f"{inner.name}/")]:
            del counts[scope]
        if before is not None:
            counts.clear()
            counts.update(before)


def get_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Sequence[Any] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
) -> Variable:
    """The variable of that name under the open scope: made, or found when the scope reuses.

    Inside a loop or branch a variable is made outside of it.

    Args:
        name: Name inside the scope.
        shape: Shape; may be left out when the initialiser is a value.
        dtype: Element type.
        initializer: An initialiser, a function without arguments, or a value.
        regularizer: Gives a loss that joins the REGULARIZATION_LOSSES.
        trainable: Whether optimisers change it by default.
        collections: Collections to join.
        caching_device: Accepted for compatibility.
        partitioner: Says in how many parts the variable lies: called with `shape` and `dtype`.
        validate_shape: Whether the shape is fixed by the initial value.
        use_resource: Accepted for compatibility.
        custom_getter: Accepted for compatibility.
        constraint: Applied to the value after each update by an optimiser.

    Raises:
        GraphError: the variable exists although the scope does not reuse, or the reverse.
        ShapeError: a variable that is found has another shape or type.
    """
    graph = get_default_graph().outermost
    scope, store = _STATE.get(graph), _store(graph)
    full_name = f"{scope.name}/{name}" if scope.name else name
    found = store.variables.get(full_name)
    wanted = as_dtype(dtype) if dtype is not None else as_dtype(scope.dtype)
    if partitioner is None:
        partitioner = scope.partitioner
    if callable(partitioner):
        settings = (regularizer, trainable, collections, caching_device, _IN_ONE_PIECE)
        made = _in_parts(name, full_name, shape, dtype or wanted, initializer, partitioner, settings)
        if made is not None:
            return made  # type: ignore[return-value]  # only those get parts who ask for them
    if full_name in store.partitioned:
        raise GraphError(f"variable {full_name!r} exists and lies in parts, but no partitioner was given")
    if found is not None:
        return _reused(found, scope, full_name, shape, dtype)
    if scope.reuse is ReuseMode.REUSE:
        raise GraphError(f"variable {full_name!r} does not exist, but the variable scope reuses variables")
    chosen = initializer if initializer is not None else scope.initializer
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None):
        initial = _initial_value(chosen, shape, wanted, full_name)
        variable = Variable(
            initial,
            trainable,
            collections,
            validate_shape,
            full_name,
            wanted if dtype is not None or callable(initial) else None,
            constraint=constraint,
        )
    store.variables[full_name] = variable
    _regularize(graph, regularizer if regularizer is not None else scope.regularizer, variable, full_name)
    return variable


def _in_parts(
    name: str,
    full_name: str,
    shape: ShapeLike,
    dtype: Any,
    initializer: Any,
    partitioner: Partitioner,
    settings: tuple[Any, ...],
) -> PartitionedVariable | None:
    """The variable in parts, made or found; None for a scalar, which has none."""
    graph = get_default_graph().outermost
    scope, store = _STATE.get(graph), _store(graph)
    if full_name in store.variables:
        if not store.variables[full_name].shape.rank:
            return None
        raise GraphError(f"variable {full_name!r} exists and lies in one piece, but a partitioner was given")
    held = store.partitioned.get(full_name)
    if held is not None:
        return _reused(held, scope, full_name, shape, None)
    if shape is None and initializer is not None and not callable(initializer):
        shape = initializer.shape if isinstance(initializer, Tensor) else np.shape(initializer)
    dims = as_shape(shape)
    if not dims.rank:
        return None
    infos = parts_of(full_name, dims, partitioner(shape=dims, dtype=dtype))
    parts = [
        get_variable(f"{name}/part_{number}", info.var_shape, dtype, _of_part(initializer, info), *settings)
        for number, info in enumerate(infos)
    ]
    for part, info in zip(parts, infos, strict=True):
        part._save_slice_info = info
    counts = [len(infos) if size != whole else 1 for size, whole in zip(infos[0].var_shape, dims, strict=True)]
    made = PartitionedVariable(full_name, dims, parts[0].dtype, parts, counts)
    store.partitioned[full_name] = made
    return made


def _of_part(initializer: Any, info: SaveSliceInfo) -> Any:
    """What a part begins with: values are divided, initialisers asked anew."""
    if initializer is None or callable(initializer):
        return initializer
    places = tuple(slice(start, start + size) for start, size in zip(info.var_offset, info.var_shape, strict=True))
    return initializer[places] if isinstance(initializer, Tensor) else np.asarray(initializer)[places]


def _initial_value(initializer: Any, shape: ShapeLike, dtype: Any, full_name: str) -> Any:
    if initializer is not None and not callable(initializer):
        return initializer
    if isinstance(initializer, type):
        initializer = initializer()
    if shape is None:
        if initializer is None:
            raise ShapeError(f"get_variable {full_name!r}: a shape is needed when the initialiser is no value")
        return initializer
    dims = as_shape(shape)
    if not dims.is_fully_defined():
        raise ShapeError(f"get_variable {full_name!r}: the shape {dims} is not fully known")
    make = initializer if initializer is not None else default_initializer(dtype)
    return lambda: make(list(dims.known_dims()), dtype)


def _reused(found: _Made, scope: VariableScope, full_name: str, shape: ShapeLike, dtype: Any) -> _Made:
    if scope.reuse is ReuseMode.CREATE:
        first = next(iter(found)) if isinstance(found, PartitionedVariable) else found
        raise GraphError(
            f"variable {full_name!r} exists already (made at {first.op.traceback}); to share it, open its scope with "
            "reuse=True or reuse=AUTO_REUSE"
        )
    if shape is not None and not found.shape.is_compatible_with(shape):
        raise ShapeError(f"variable {full_name!r} has shape {found.shape}; asked for {as_shape(shape)}")
    if dtype is not None and found.dtype is not as_dtype(dtype):
        raise ShapeError(
            f"variable {full_name!r} has element type {found.dtype.name}; asked for {as_dtype(dtype).name}"
        )
    return found


def _regularize(graph: Graph, regularizer: Any, variable: Variable, full_name: str) -> None:
    if regularizer is None:
        return
    with graph.as_default(), graph.name_scope(f"{full_name}/Regularizer/"):
        loss = regularizer(variable.value())
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _combined(inherited: ReuseMode, asked: bool | ReuseMode | None) -> ReuseMode:
    """A scope that reuses makes all scopes inside reuse."""
    if asked is None or asked is False or inherited is ReuseMode.REUSE:
        return inherited
    return asked if isinstance(asked, ReuseMode) else ReuseMode(asked)


def _unique_scope(graph: Graph, outer: VariableScope, default_name: str | None) -> str:
    if default_name is None:
        raise GraphError("variable_scope: name_or_scope or default_name is needed")
    counts = _store(graph).scope_counts
    full = f"{outer.name}/{default_name}" if outer.name else default_name
    number = 0
    while counts.get(f"{full}_{number}" if number else full):
        number += 1
    return f"{default_name}_{number}" if number else default_name


def _store(graph: Graph) -> _Store:
    stores = graph.get_collection_ref(_STORE_COLLECTION)
    if not stores:
        stores.append(_Store())
    store: _Store = stores[0]
    return store
