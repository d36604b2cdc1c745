"""Queues between threads, and the operations on them. They run on the host."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xlalite.framework.graph.dtypes import DType, bool_, int32, int64
from xlalite.framework.graph.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
)
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import WAIT_LIMIT, Array, HostContext, HostValue
from xlalite.ops.helpers.declare import declare_on_host
from xlalite.ops.helpers.handles import handle_of, object_of, one_handle
from xlalite.ops.helpers.shape_rules import no_outputs

_WHY_HOST: Final = "it waits for other threads"
Entry = tuple[Array, ...]


class Queue:
    """Entries on their way from some threads to others. Safe for concurrent calls, which wait for each other.

    Waiting ends when another thread adds or takes, closes the queue, or cancels everything as a session that closes.
    """

    def __init__(self, op: Operation) -> None:
        """The queue that an operation makes, empty."""
        self._op = op
        capacity = op.get_attr("capacity")
        self.component_types = component_types(op)
        self._capacity = capacity if capacity >= 0 else float("inf")
        self._entries = _STORES[op.type](op)
        self._changed = threading.Condition()
        self._is_closed = False
        self._cancelled_before = 0
        self._arrivals = 0
        self._is_cancelled = False

    @property
    def size(self) -> int:
        """How many entries there are."""
        return len(self._entries)

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be added any more."""
        return self._is_closed

    def enqueue(self, entries: Sequence[Entry]) -> None:
        """Adds entries, one after the other, as there is room.

        Raises:
            CancelledError: the queue is closed, or is closed and cancelled meanwhile.
        """
        with self._changed:
            if self._is_closed:
                raise CancelledError(None, self._op, f"{self._name} is closed.")
            self._arrivals += 1
            number = self._arrivals
            for entry in entries:
                self._wait(lambda: self.size < self._capacity or number <= self._cancelled_before)
                if number <= self._cancelled_before:
                    raise CancelledError(None, self._op, "Enqueue operation was cancelled")
                self._entries.put(entry)
                self._changed.notify_all()

    def dequeue(self, count: int, *, fewer: bool = False) -> list[Entry]:
        """Takes entries out, as they come.

        Raises:
            OutOfRangeError: the queue is closed and has too few; with `fewer`, none.
        """
        taken: list[Entry] = []
        with self._changed:
            try:
                while len(taken) < count:
                    self._wait(lambda: self._entries.is_ready(self._is_closed) or self._ended)
                    if not self.size:
                        break
                    taken.append(self._entries.get())
                    self._changed.notify_all()
            except BaseException:
                self._put_back(taken)
                raise
            if len(taken) == count or (fewer and taken):
                return taken
            self._put_back(taken)
            raise OutOfRangeError(
                None,
                self._op,
                f"{self._name} is closed and has insufficient elements (requested {count}, current size {self.size})",
            )

    def close(self, cancel_pending: bool) -> None:
        """Lets nothing more be added; what waits to be added still is, unless it is cancelled."""
        with self._changed:
            if self._is_closed and not cancel_pending:
                raise CancelledError(None, self._op, f"{self._name} is already closed.")
            self._is_closed = True
            if cancel_pending:
                self._cancelled_before = self._arrivals
            self._changed.notify_all()

    def cancel(self) -> None:
        """Ends all waiting: the session is closed."""
        with self._changed:
            self._is_cancelled = self._is_closed = True
            self._changed.notify_all()

    def _put_back(self, taken: list[Entry]) -> None:
        self._entries.put_back(taken)
        self._changed.notify_all()

    @property
    def _ended(self) -> bool:
        """Whether nothing more will come: what waits for room comes when there is some."""
        return self._is_closed and not self.size

    @property
    def _name(self) -> str:
        return f"{self._op.type.removesuffix('V2')} '{self._op.name}'"

    def _wait(self, holds: Callable[[], bool]) -> None:
        limit = WAIT_LIMIT.get()
        seconds = None if limit is None else max(0.0, limit - time.monotonic())
        if not self._changed.wait_for(lambda: self._is_cancelled or holds(), seconds):
            raise DeadlineExceededError(None, self._op, f"{self._name}: the step waited too long")
        if self._is_cancelled:
            raise CancelledError(None, self._op, "Session was closed while an operation on a queue waited")


class _FirstIn:
    """Entries in the order of their arrival."""

    def __init__(self, op: Operation) -> None:
        self._held: deque[Entry] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def put(self, entry: Entry) -> None:
        self._held.append(entry)

    def get(self) -> Entry:
        return self._held.popleft()

    def put_back(self, entries: list[Entry]) -> None:
        self._held.extendleft(reversed(entries))

    def is_ready(self, is_closed: bool) -> bool:
        return bool(self._held)


class _Shuffled:
    """Entries in random order; some always stay, as long as more may come."""

    def __init__(self, op: Operation) -> None:
        self._held: list[Entry] = []
        self._least = op.get_attr("min_after_dequeue")
        import random  # few programs have such queues

        seeds = op.get_attr("seed"), op.get_attr("seed2")
        self._random = random.Random(f"{seeds}" if any(seeds) else None)

    def __len__(self) -> int:
        return len(self._held)

    def put(self, entry: Entry) -> None:
        self._held.append(entry)

    def get(self) -> Entry:
        place = self._random.randrange(len(self._held))
        self._held[place], self._held[-1] = self._held[-1], self._held[place]
        return self._held.pop()

    def put_back(self, entries: list[Entry]) -> None:
        self._held += entries

    def is_ready(self, is_closed: bool) -> bool:
        return len(self._held) > (0 if is_closed else self._least)


class _ByPriority:
    """Entries by the number that each begins with, the smallest first."""

    def __init__(self, op: Operation) -> None:
        self._held: list[tuple[int, int, Entry]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._held)

    def put(self, entry: Entry) -> None:
        self._count += 1
        heapq.heappush(self._held, (int(entry[0]), self._count, entry))

    def get(self) -> Entry:
        return heapq.heappop(self._held)[2]

    def put_back(self, entries: list[Entry]) -> None:
        for number, entry in enumerate(entries, -len(entries)):
            heapq.heappush(self._held, (int(entry[0]), number, entry))

    def is_ready(self, is_closed: bool) -> bool:
        return bool(self._held)


_STORES: Final[dict[str, Callable[[Operation], Any]]] = {
    "FIFOQueueV2": _FirstIn,
    "PaddingFIFOQueueV2": _FirstIn,
    "PriorityQueueV2": _ByPriority,
    "RandomShuffleQueueV2": _Shuffled,
}


# The queues.


def _made(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [handle_of(context.state(op, lambda: Queue(op)))]


def queue_of(op: Operation, handle: HostValue) -> Queue:
    """The queue behind a handle."""
    return object_of(op, handle, Queue, "queue")


_OF_ALL: Final = ("component_types", "shapes", "capacity")
_USUAL: Final[dict[str, object]] = {"shapes": (), "capacity": -1}
for _name, _attrs, _defaults in (
    ("FIFOQueueV2", _OF_ALL, _USUAL),
    ("PaddingFIFOQueueV2", _OF_ALL, _USUAL),
    ("PriorityQueueV2", _OF_ALL, {**_USUAL, "component_types": ()}),
    (
        "RandomShuffleQueueV2",
        (*_OF_ALL, "min_after_dequeue", "seed", "seed2"),
        {**_USUAL, "min_after_dequeue": 0, "seed": 0, "seed2": 0},
    ),
):
    declare_on_host(_name, (), one_handle, _made, _WHY_HOST, attrs=_attrs, defaults=_defaults, is_stateful=True)


def _selected(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    number, handles = int(np.asarray(inputs[0])), inputs[1:]
    if not 0 <= number < len(handles):
        raise InvalidArgumentError(None, op, f"indices = {number} is not in [0, {len(handles)})")
    return [handles[number]]


declare_on_host("_SelectQueue", ("index", "queues*"), one_handle, _selected, _WHY_HOST)


def component_types(made: Operation) -> tuple[DType, ...]:
    """The element types of what a queue holds."""
    types: tuple[DType, ...] = made.get_attr("component_types")
    return (int64, *types) if made.type == "PriorityQueueV2" else types


def component_shapes(op: Operation) -> tuple[TensorShape, ...] | None:
    """What is known of the shapes of a queue's components, as an operation on it sees them."""
    made = op.inputs[0].op
    if made.type not in _STORES or not made.get_attr("shapes"):
        return None
    shapes: tuple[TensorShape, ...] = made.get_attr("shapes")
    return (TensorShape(()), *shapes) if made.type == "PriorityQueueV2" else shapes


# QueueEnqueueV2(handle, components...), QueueEnqueueManyV2(handle, components...).


def _checked(op: Operation, queue: Queue, components: Sequence[Array]) -> Sequence[Array]:
    found_types = tuple(tensor.dtype for tensor in op.inputs[1:])
    if found_types != queue.component_types or not found_types:
        names = [[each.name for each in types] for types in (queue.component_types, found_types)]
        raise InvalidArgumentError(None, op, f"the queue has components of types {names[0]}, found {names[1]}")
    if op.type == "QueueEnqueueManyV2" and not all(value.ndim for value in components):
        raise InvalidArgumentError(None, op, "rows are added of tensors that have some; found a scalar")
    for number, (value, shape) in enumerate(zip(components, component_shapes(op) or (), strict=False)):
        found = value.shape[1:] if op.type == "QueueEnqueueManyV2" else value.shape
        if not shape.is_compatible_with(found):
            raise InvalidArgumentError(
                None,
                op,
                f"Shape mismatch in tuple component {number}. Expected {list(shape.dims or ())}, got {list(found)}",
            )
    return components


def _enqueue(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    # The queue keeps arrays: copies, since others may belong to whoever fed them.
    queue = queue_of(op, inputs[0])
    queue.enqueue([tuple(_checked(op, queue, [np.array(value) for value in inputs[1:]]))])
    return ()


def _enqueue_many(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    queue = queue_of(op, inputs[0])
    components = _checked(op, queue, [np.array(value) for value in inputs[1:]])
    if len({len(value) for value in components}) > 1:
        raise InvalidArgumentError(None, op, f"components have lengths {[len(value) for value in components]}")
    rows = [tuple(_row(value, number) for value in components) for number in range(len(components[0]))]
    queue.enqueue(rows)
    return ()


def _row(value: Array, number: int) -> Array:
    row = value[number]
    return row if isinstance(row, np.ndarray) else np.array(row, value.dtype)


declare_on_host("QueueEnqueueV2", ("handle", "components*"), no_outputs, _enqueue, _WHY_HOST, is_stateful=True)
declare_on_host("QueueEnqueueManyV2", ("handle", "components*"), no_outputs, _enqueue_many, _WHY_HOST, is_stateful=True)


# QueueDequeueV2(handle), QueueDequeueManyV2(handle, n), QueueDequeueUpToV2(handle, n).


def _dequeue_infer(op: Operation) -> Sequence[OutputType]:
    types = op.get_attr("component_types")
    shapes = component_shapes(op) or [unknown_shape()] * len(types)
    if op.type != "QueueDequeueV2":
        shapes = [TensorShape([None]).concatenate(shape) for shape in shapes]
    return list(zip(types, shapes, strict=True))


def _dequeue(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    (entry,) = queue_of(op, inputs[0]).dequeue(1)
    return entry


def _dequeue_many(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    count = int(np.asarray(inputs[1]))
    if count < 0:
        raise InvalidArgumentError(None, op, f"DequeueMany must request a non-negative number of elements, not {count}")
    if component_shapes(op) is None:
        raise InvalidArgumentError(None, op, "DequeueMany needs a queue whose components have shapes")
    entries = queue_of(op, inputs[0]).dequeue(count, fewer=op.type == "QueueDequeueUpToV2")
    return [_padded([entry[place] for entry in entries], output) for place, output in enumerate(op.outputs)]


def _padded(parts: list[Array], output: Any) -> Array:
    """Arrays with a new first dimension, each with zeros behind it where others are longer."""
    sizes = [size or 0 for size in output.shape.dims[1:]]
    if parts:
        sizes = [max(each) for each in zip(*(part.shape for part in parts), strict=True)]
    whole = np.full((len(parts), *sizes), b"" if output.dtype.name == "string" else 0, output.dtype.numpy_dtype)
    for number, part in enumerate(parts):
        place: tuple[Any, ...] = (number, *(slice(size) for size in part.shape))
        whole[place] = part if part.ndim else part[()]
    return whole


for _name, _inputs, _kernel in (
    ("QueueDequeueV2", ("handle",), _dequeue),
    ("QueueDequeueManyV2", ("handle", "n"), _dequeue_many),
    ("QueueDequeueUpToV2", ("handle", "n"), _dequeue_many),
):
    declare_on_host(_name, _inputs, _dequeue_infer, _kernel, _WHY_HOST, attrs=("component_types",), is_stateful=True)


# QueueCloseV2(handle), QueueSizeV2(handle), QueueIsClosedV2(handle).


def _close(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    queue_of(op, inputs[0]).close(op.get_attr("cancel_pending_enqueues"))
    return ()


def _size(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [np.asarray(queue_of(op, inputs[0]).size, np.int32)]


def _asked(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    return [np.asarray(queue_of(op, inputs[0]).is_closed)]


declare_on_host(
    "QueueCloseV2",
    ("handle",),
    no_outputs,
    _close,
    _WHY_HOST,
    attrs=("cancel_pending_enqueues",),
    defaults={"cancel_pending_enqueues": False},
    is_stateful=True,
)
declare_on_host("QueueSizeV2", ("handle",), lambda op: [(int32, TensorShape(()))], _size, _WHY_HOST, is_stateful=True)
declare_on_host(
    "QueueIsClosedV2", ("handle",), lambda op: [(bool_, TensorShape(()))], _asked, _WHY_HOST, is_stateful=True
)
