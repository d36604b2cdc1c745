"""An output of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from xlalite.framework.graph.default_session import evaluate_tensor
from xlalite.framework.graph.dtypes import DType
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.operators import TensorOperators, apply_operator
from xlalite.framework.graph.tensor_shape import ShapeLike, TensorShape
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.framework.graph.graph import Graph
    from xlalite.framework.graph.operation import Operation


@dataclass(frozen=True, slots=True)
class HandleData:
    """What is known of the variable behind a `resource` tensor.

    Attributes:
        dtype: Element type of the variable.
        shape: Its shape, perhaps partly unknown.
        name: The variable's name, which keys its value in a session.
        is_state: Whether it is no variable of the user's but what an operation keeps.
    """

    dtype: DType
    shape: TensorShape
    name: str
    is_state: bool = False


class Tensor(TensorOperators):
    """One output of an operation: an element type, a shape that may be partly unknown, and no value."""

    __slots__ = ("_consumers", "_dtype", "_handle_data", "_index", "_op", "_shape")

    def __init__(self, op: Operation, index: int, dtype: DType, shape: TensorShape) -> None:
        """Made by `Graph.create_op` only."""
        self._op = op
        self._index = index
        self._dtype = dtype
        self._shape = shape
        self._consumers: list[Operation] = []
        self._handle_data: HandleData | None = None

    @property
    def op(self) -> Operation:
        """The operation that produces the tensor."""
        return self._op

    @property
    def index(self) -> int:
        """Position among the operation's outputs."""
        return self._index

    @property
    def value_index(self) -> int:
        """The same as `index`."""
        return self._index

    @property
    def graph(self) -> Graph:
        """The graph the tensor belongs to."""
        return self._op.graph

    @property
    def name(self) -> str:
        """`<operation name>:<index>`."""
        return f"{self._op.name}:{self._index}"

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """What is known of the shape."""
        return self._shape

    @property
    def device(self) -> str:
        """Requested device of the producer."""
        return self._op.device

    @property
    def handle_data(self) -> HandleData | None:
        """For a `resource` tensor, the variable behind it."""
        return self._handle_data

    def set_handle_data(self, data: HandleData) -> None:
        """Says which variable a `resource` tensor stands for."""
        self._handle_data = data

    @property
    def assign(self) -> Callable[..., Any]:
        """Of a slice of a variable, what replaces that part of it.

        Raises:
            AttributeError: the tensor is nothing of that sort.
        """
        if self._op.type != "StridedSlice" or self._op.inputs[0].op.type != "ReadVariableOp":
            raise AttributeError(f"tensor {self.name!r} is no slice of a variable, so it has no 'assign'")
        return partial(apply_operator, "assign_slice", self)

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self._shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Adds what `shape` says to what is known.

        Raises:
            ShapeError: the two contradict each other.
        """
        try:
            self._shape = self._shape.merge_with(shape)
        except ShapeError as error:
            raise ShapeError(f"set_shape on {self.name!r}: {error}") from None

    def consumers(self) -> list[Operation]:
        """Operations that take the tensor as an input, in creation order, each once."""
        return list(dict.fromkeys(self._consumers))

    def add_consumer(self, operation: Operation) -> None:
        """Records that `operation` takes the tensor as an input."""
        self._consumers.append(operation)

    def remove_consumer(self, operation: Operation) -> None:
        """Records that `operation`, which is taken out of its graph, no longer takes the tensor as an input."""
        self._consumers = [each for each in self._consumers if each is not operation]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """The tensor's value in `session` or the default session."""
        return evaluate_tensor(self, feed_dict, session)

    def _as_graph_element(self) -> Tensor:
        return self

    def __len__(self) -> NoReturn:
        """Not defined: the size may be unknown until the graph runs."""
        raise TypeError(f"tensor {self.name!r} has no len(); use its shape, or xlalite.shape() for its run-time shape")

    def __bool__(self) -> NoReturn:
        """Not defined: the value exists only while the graph runs."""
        raise TypeError(
            f"tensor {self.name!r} has no truth value while the graph is built; compare with `is None` to test for "
            "presence, and use xlalite.cond or xlalite.where for decisions at run time"
        )

    def __iter__(self) -> Iterator[Any]:
        """Slices along the first dimension, when its size is known."""
        rank = self._shape.rank
        size = self._shape.dims[0] if self._shape.dims else None
        if rank == 0 or size is None:
            raise TypeError(
                f"tensor {self.name!r} of shape {self._shape} cannot be iterated over: its first size is not known; "
                "use xlalite.unstack with num=, or xlalite.while_loop"
            )
        return iter([self[i] for i in range(size)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Not defined: the value exists only while the graph runs."""
        raise TypeError(f"tensor {self.name!r} has no value while the graph is built; run it in a session")

    __hash__ = object.__hash__  # every run looks for its tensors in dictionaries; a function in Python takes time

    def __eq__(self, other: object) -> bool:
        """By identity; `xlalite.equal` compares elements."""
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __repr__(self) -> str:
        return f"<xlalite.Tensor {self.name!r} shape={self._shape} dtype={self._dtype.name}>"


def handle_data_of(handle: Tensor) -> HandleData:
    """The variable behind a `resource` tensor.

    Raises:
        GraphError: the tensor is not a variable's handle.
    """
    if handle.handle_data is None:
        raise GraphError(f"tensor {handle.name!r} is not a variable handle")
    return handle.handle_data
