"""Queues, through which threads hand elements to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xlalite.framework.graph.dtypes import DType, as_dtype, int32, int64
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, as_shape
from xlalite.framework.random_seed import get_seed
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.node import node, operation


class QueueBase:
    """A queue of tensors, or of tuples or dictionaries of them.

    Attributes:
        queue_ref: What stands for the queue in the graph.
        dtypes: Element types of the components.
        shapes: Their shapes, as far as known.
        names: Their names; None when elements are no dictionaries.
    """

    op_type: ClassVar[str]

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any,
        name: str,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        several = isinstance(dtypes, list | tuple)
        self.dtypes: list[DType] = [as_dtype(each) for each in (dtypes if several else [dtypes])]
        listed = () if shapes is None else shapes if _are_several(shapes, len(self.dtypes)) else [shapes]
        self.shapes: list[TensorShape] = [as_shape(each) for each in listed]
        if self.shapes and len(self.shapes) != len(self.dtypes):
            raise ValueError(f"Queue shapes must have the same length as dtypes, found {shapes!r} and {dtypes!r}")
        self.names: list[str] | None = None if names is None else [names] if isinstance(names, str) else list(names)
        if self.names is not None and len(self.names) != len(self.dtypes):
            raise ValueError(f"Queue names must have the same length as dtypes, found {names!r} and {dtypes!r}")
        given = {"component_types": tuple(self.dtypes), "shapes": tuple(self.shapes), "capacity": capacity}
        self.queue_ref: Tensor = node(self.op_type, (), {**given, **(attrs or {})}, name)
        self._types = self.dtypes

    @staticmethod
    def from_list(index: Any, queues: Sequence[Any]) -> QueueBase:
        """The queue of that number, known when a step runs; shapes and names are those that all have.

        Raises:
            TypeError: something is no queue, or their components differ in type.
            ValueError: their names differ.
        """
        if not queues or not all(isinstance(each, QueueBase) for each in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(each.dtypes != first.dtypes for each in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(each.names != first.names for each in queues):
            raise ValueError("Queues do not have matching component names.")
        made = QueueBase.__new__(QueueBase)
        made.dtypes = made._types = first.dtypes
        made.names = first.names
        alike = all([*map(str, each.shapes)] == [*map(str, first.shapes)] for each in queues)
        made.shapes = first.shapes if alike else []
        made.queue_ref = node("_SelectQueue", [convert_to_tensor(index, int32), *(each.queue_ref for each in queues)])
        return made

    @property
    def name(self) -> str:
        """The name of the operation that makes the queue."""
        return self.queue_ref.op.name

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that adds an element, when there is room."""
        return self._enqueue("QueueEnqueueV2", vals, name, lambda shape: shape)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that adds the rows of tensors as elements."""
        return self._enqueue("QueueEnqueueManyV2", vals, name, lambda shape: TensorShape([None]).concatenate(shape))

    def dequeue(self, name: str | None = None) -> Any:
        """The next element, when there is one."""
        return self._dequeue("QueueDequeueV2", (), name)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next elements, one on top of the other, when there are so many."""
        return self._dequeue("QueueDequeueManyV2", (convert_to_tensor(n, int32),), name)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """The same; fewer, when the queue is closed and has no more."""
        return self._dequeue("QueueDequeueUpToV2", (convert_to_tensor(n, int32),), name)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation after which nothing can be added; what waits to be added still is, unless it is cancelled."""
        attrs = {"cancel_pending_enqueues": cancel_pending_enqueues}
        return operation("QueueCloseV2", [self.queue_ref], attrs, name or f"{self.name}_Close")

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        return node("QueueIsClosedV2", [self.queue_ref], None, name or f"{self.name}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are."""
        return node("QueueSizeV2", [self.queue_ref], None, name or f"{self.name}_Size")

    def _enqueue(self, op: str, vals: Any, name: str | None, whole: Any) -> Operation:
        if isinstance(vals, Mapping) != (self.names is not None):
            wanted = "elements must be dictionaries" if self.names else "it must have names to take dictionaries"
            raise ValueError(f"{self.name}: {wanted}")
        listed = [vals[each] for each in self.names] if self.names is not None else vals
        if len(self._types) == 1 and not (isinstance(listed, list | tuple) and len(listed) == 1):
            listed = [listed]
        if len(listed) != len(self._types):
            raise ValueError(f"{self.name}: elements have {len(self._types)} components, found {len(listed)}")
        tensors = [convert_to_tensor(value, dtype) for value, dtype in zip(listed, self._types, strict=True)]
        for tensor, shape in zip(tensors, self._known_shapes(), strict=False):
            if not tensor.shape.is_compatible_with(whole(shape)):
                raise ShapeError(f"{self.name}: {tensor.name!r} of shape {tensor.shape} is not of {whole(shape)}")
        return operation(op, [self.queue_ref, *tensors], None, name or f"{self.name}_enqueue")

    def _known_shapes(self) -> list[TensorShape]:
        return self.shapes

    def _dequeue(self, op: str, more: Sequence[Tensor], name: str | None) -> Any:
        attrs = {"component_types": tuple(self._types)}
        found = operation(op, [self.queue_ref, *more], attrs, name or f"{self.name}_Dequeue").outputs
        if self.names is not None:
            return dict(zip(self.names, found, strict=True))
        return found[0] if len(found) == 1 else list(found)


def _are_several(shapes: Any, count: int) -> bool:
    """Whether something is a list of shapes rather than one."""
    if isinstance(shapes, TensorShape) or not isinstance(shapes, list | tuple):
        return False
    return len(shapes) == count and not all(each is None or isinstance(each, int) for each in shapes)


class FIFOQueue(QueueBase):
    """A queue that gives elements in the order in which they came."""

    op_type = "FIFOQueueV2"

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, name)


class PaddingFIFOQueue(QueueBase):
    """The same; elements of different sizes come out together, with zeros behind the smaller ones."""

    op_type = "PaddingFIFOQueueV2"

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        super().__init__(capacity, dtypes, shapes, names, name)


class RandomShuffleQueue(QueueBase):
    """A queue that gives elements in random order, out of at least `min_after_dequeue` others."""

    op_type = "RandomShuffleQueueV2"

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        first, second = get_seed(seed)
        attrs = {"min_after_dequeue": min_after_dequeue, "seed": first, "seed2": second}
        super().__init__(capacity, dtypes, shapes, names, name, attrs)


class PriorityQueue(QueueBase):
    """A queue that gives the element with the smallest number first, which it begins with."""

    op_type = "PriorityQueueV2"

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        super().__init__(capacity, types, shapes, names, name)
        self._types = [int64, *self.dtypes]

    def _known_shapes(self) -> list[TensorShape]:
        return [TensorShape([]), *self.shapes]
