"""Queues in front of a training loop: what goes in, epoch by epoch, and batches of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import int64, string
from xlalite.framework.graph.errors import GraphError, UnimplementedError
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.structure import flatten, rebuild
from xlalite.ops.functions.array import gather, shape, size
from xlalite.ops.functions.control_flow import Assert
from xlalite.ops.functions.math import greater, range as numbers
from xlalite.ops.functions.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from xlalite.ops.functions.random_ops import random_shuffle
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.training.queue_runner import QueueRunner, add_queue_runner
from xlalite.ops.training.variable import Variable

# What goes in.


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """The tensor, so many times; then the input is at its end. A local variable counts."""
    given = convert_to_tensor(tensor)
    if num_epochs is None:
        return given
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0, not {num_epochs}")
    graph = get_default_graph()
    with graph.name_scope(name or "limit_epochs") as scope:
        collections = [GraphKeys.LOCAL_VARIABLES]
        epochs = Variable(constant(0, int64), trainable=False, collections=collections, name="epochs")
        counted = epochs.count_up_to(num_epochs)
        with graph.control_dependencies([counted]):
            return node("Identity", [given], None, scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of the rows of a tensor, over and over, in random order each time."""
    with get_default_graph().name_scope(name or "input_producer"):
        given = convert_to_tensor(input_tensor)
        row = TensorShape(given.shape.dims[1:] if given.shape.dims else element_shape)
        rows = random_shuffle(given, seed) if shuffle else given
        queue = FIFOQueue(capacity, [given.dtype], [row])
        added = queue.enqueue_many([limit_epochs(rows, num_epochs)])
        add_queue_runner(QueueRunner(queue, [added], cancel_op=cancel_op))
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """A queue of strings, usually the names of files.

    Raises:
        ValueError: there are none.
    """
    if not isinstance(string_tensor, Tensor) and not len(string_tensor):
        raise ValueError("string_input_producer requires a non-null input tensor")
    with get_default_graph().name_scope(name or "input_producer"):
        given = convert_to_tensor(string_tensor, string)
        there = Assert(greater(size(given), 0), ["string_input_producer requires a non-null input tensor"])
        with get_default_graph().control_dependencies([there]):
            given = node("Identity", [given])
        return input_producer(given, None, num_epochs, shuffle, seed, capacity, cancel_op=cancel_op, name="strings")


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """A queue of the whole numbers below a limit."""
    with get_default_graph().name_scope(name or "input_producer"):
        return input_producer(numbers(limit), [], num_epochs, shuffle, seed, capacity, name="numbers")


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """One row of each of several tensors of one length, the next each time."""
    with get_default_graph().name_scope(name or "input_producer"):
        tensors = [convert_to_tensor(each) for each in tensor_list]
        if not tensors:
            raise ValueError("slice_input_producer: expected at least one tensor")
        queue = range_input_producer(shape(tensors[0])[0], num_epochs, shuffle, seed, capacity)
        place = queue.dequeue()
        return [gather(each, place) for each in tensors]


# Batches.


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches of what tensors give time after time, through a queue that threads fill.

    Args:
        tensors: A tensor, or a list or dictionary of them; a list of one gives a tensor too.
        batch_size: How many elements a batch has.
        num_threads: How many threads fill the queue.
        capacity: How many elements it holds.
        enqueue_many: Whether tensors give many elements at once.
        shapes: The shapes of elements; as the tensors say by default.
        dynamic_pad: Whether elements of different sizes are padded with zeros.
        allow_smaller_final_batch: Whether the last batch may be smaller.
        shared_name: Accepted for compatibility.
        name: Name scope.
    """
    lists = [tensors] * num_threads
    return batch_join(
        lists, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, None, name or "batch"
    )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """The same of several lists or dictionaries of tensors, with a thread for each."""
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue

    def make(types: Any, sizes: Any) -> QueueBase:
        return kind(capacity, types, sizes)

    smaller = allow_smaller_final_batch
    return _batches(tensors_list, batch_size, make, enqueue_many, shapes, smaller, name or "batch_join", dynamic_pad)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Batches in random order, out of at least `min_after_dequeue` other elements; otherwise as `batch`."""
    lists = [tensors] * num_threads
    return shuffle_batch_join(
        lists,
        batch_size,
        capacity,
        min_after_dequeue,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        None,
        name or "shuffle_batch",
    )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """The same of several lists or dictionaries of tensors, with a thread for each."""

    def make(types: Any, sizes: Any) -> QueueBase:
        return RandomShuffleQueue(capacity, min_after_dequeue, types, sizes, seed=seed)

    smaller = allow_smaller_final_batch
    return _batches(tensors_list, batch_size, make, enqueue_many, shapes, smaller, name or "shuffle_batch_join")


def _batches(
    tensors_list: Sequence[Any],
    batch_size: Any,
    make: Any,
    enqueue_many: bool,
    shapes: Any,
    smaller: bool,
    name: str,
    pads: bool = False,
) -> Any:
    if not tensors_list:
        raise ValueError(f"{name}: expected at least one set of tensors")
    with get_default_graph().name_scope(name):
        flat: list[list[Tensor]] = []
        for each in tensors_list:
            leaves, around = flatten(each)
            if any(isinstance(leaf, SparseTensor) for leaf in leaves):
                raise UnimplementedError(None, None, f"{name}: sparse tensors are not batched; use tf.data")
            flat.append([convert_to_tensor(leaf) for leaf in leaves])
        first = flat[0]
        sizes = (
            list(shapes)
            if shapes is not None
            else [_element_shape(each, enqueue_many) for each in zip(*flat, strict=True)]
        )
        unknown = [tensor.name for tensor, size in zip(first, sizes, strict=True) if not _is_usable(size, pads)]
        if unknown:
            raise GraphError(f"{name}: all shapes must be fully defined; those of {unknown} are not")
        queue = make([tensor.dtype for tensor in first], sizes)
        add = queue.enqueue_many if enqueue_many else queue.enqueue
        add_queue_runner(QueueRunner(queue, [add(each) for each in flat]))
        found = queue.dequeue_up_to(batch_size) if smaller else queue.dequeue_many(batch_size)
        listed = found if isinstance(found, list) else [found]
        known = batch_size if isinstance(batch_size, int) and not smaller else None
        for tensor in listed:
            tensor.set_shape(TensorShape([known]).concatenate(_element_shape([tensor], True)))
        return listed[0] if len(listed) == 1 and not isinstance(tensors_list[0], dict) else rebuild(around, listed)


def _element_shape(tensors: Sequence[Tensor], enqueue_many: bool) -> TensorShape:
    """What the shapes of elements from all threads have in common."""
    shapes = [tensor.shape for tensor in tensors]
    if enqueue_many:
        shapes = [TensorShape(None if each.dims is None else each.dims[1:]) for each in shapes]
    dims = [each.dims for each in shapes]
    if any(each is None or len(each) != len(dims[0] or ()) for each in dims):
        return TensorShape(None)
    return TensorShape([sizes[0] if len({*sizes}) == 1 else None for sizes in zip(*dims, strict=True)])


def _is_usable(size: Any, pads: bool) -> bool:
    known = TensorShape(size)
    return known.rank is not None if pads else known.is_fully_defined()
