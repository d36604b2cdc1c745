"""Gathers, scatters, slices, sums of segments, lists: the number of the example is one more index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import array, math
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node
from xlalite.tracing.batching.batch import Batch, Part, batches, copied, dims_of, known, rank_of


@batches("GatherV2")
def gather(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    whole, places = parts[:2]
    rank = rank_of(op.inputs[0])
    axis = int(known(op, "axis")) % max(rank, 1)
    count = rank_of(op.inputs[1])
    if places.axis is None:
        assert whole.axis is not None, "something differs between examples"
        behind = axis >= whole.axis
        found = array.gather(whole.tensor, places.tensor, axis=axis + behind)
        return [Part(found, whole.axis if behind else whole.axis - 1 + count)]
    if whole.axis is None:
        return [Part(array.gather(whole.tensor, batch.front(places), axis=axis), axis)]
    turned = array.transpose(batch.front(whole), [0, axis + 1, *[i + 1 for i in range(rank) if i != axis]])
    found = node("GatherNd", [turned, _with_number(batch, array.expand_dims(batch.front(places), -1))])
    # The dimensions of the indices go to where the gathered one was.
    others = [i + 1 + count for i in range(rank - 1)]
    order = [0, *others[:axis], *range(1, count + 1), *others[axis:]]
    return [Part(array.transpose(found, order), 0)]


@batches("GatherNd")
def gather_nd(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    whole, places = parts
    if whole.axis is None:
        return [Part(node("GatherNd", [whole.tensor, batch.front(places)]), 0)]
    return [Part(node("GatherNd", [batch.front(whole), _with_number(batch, batch.front(places))]), 0)]


@batches("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin")
def scatter_into(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    whole, places, values = map(batch.front, parts)
    return [Part(copied(op, [whole, _with_number(batch, places), values])[0], 0)]


@batches("ScatterNd")
def scatter(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    places, values = map(batch.front, parts[:2])
    sizes = constant(np.array([batch.size, *dims_of(op)]), op.inputs[2].dtype)
    return [Part(copied(op, [_with_number(batch, places), values, sizes])[0], 0)]


@batches("Slice")
def sliced(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    if parts[1].axis is not None:
        return batch.one_by_one(op, parts)
    zero = constant(np.zeros(1), op.inputs[1].dtype)
    begin = array.concat([zero, parts[1].tensor], 0)
    sizes = constant(np.array([batch.size, *dims_of(op)]), op.inputs[2].dtype)
    return [Part(copied(op, [batch.front(parts[0]), begin, sizes])[0], 0)]


@batches("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def segments(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """Each example has segments of its own; numbers out of range stay so."""
    count, dims = int(known(op, "num_segments")), dims_of(op)
    numbers = batch.front(parts[1])
    first = array.reshape(_numbers(batch, numbers), [-1, *[1] * (len(numbers.shape.known_dims()) - 1)]) * count
    inside = math.logical_and(math.greater_equal(numbers, 0), math.less(numbers, count))
    own = array.where_v2(inside, numbers + first, array.zeros_like(numbers) - 1)
    found = copied(op, [batch.front(parts[0]), own, constant(batch.size * count, op.inputs[2].dtype)])[0]
    return [Part(array.reshape(found, [batch.size, *dims]), 0)]


@batches("LowerBound", "UpperBound")
def bound(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """Rows of examples are more rows."""
    rows = [batch.front(part) for part in parts]
    flat = [array.reshape(each, [-1, each.shape.known_dims()[-1]]) for each in rows]
    return [Part(array.reshape(copied(op, flat)[0], [batch.size, *dims_of(op)]), 0)]


@batches("TensorListFromTensor", "TensorListStack")
def as_list(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """The elements of a list of many examples hold all of them: they lie in its second dimension."""
    return [Part(batch.moved(parts[0], 1), 1)]


@batches("TensorListSetItem")
def set_item(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    whole, place, item = parts
    if place.axis is not None:
        spread = array.reshape(batch.front(place), [batch.size, 1])
        return scatter_row(batch, whole, spread, item)
    return [Part(copied(op, [batch.moved(whole, 1), place.tensor, batch.front(item)])[0], 1)]


def scatter_row(batch: Batch, whole: Part, place: Tensor, item: Part) -> Sequence[Part]:
    """A list in which each example has its item at a place of its own."""
    rows = node("TensorScatterUpdate", [batch.front(whole), _with_number(batch, place), batch.front(item)])
    return [Part(rows, 0)]


@batches("TensorListGetItem", "TensorListGather")
def get_item(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    whole, places = parts[:2]
    count = rank_of(op.inputs[1])
    if places.axis is None:
        return [Part(array.gather(batch.moved(whole, 1), places.tensor, axis=0), count)]
    if whole.axis is None:
        return [Part(array.gather(whole.tensor, batch.front(places), axis=0), 0)]
    indices = _with_number(batch, array.expand_dims(batch.front(places), -1))
    return [Part(node("GatherNd", [batch.front(whole), indices]), 0)]


def _numbers(batch: Batch, like: Tensor) -> Tensor:
    return constant(np.arange(batch.size).astype(like.dtype.numpy_dtype))


def _with_number(batch: Batch, places: Tensor) -> Tensor:
    """Index vectors with the number of the example in front."""
    dims = places.shape.known_dims()
    column = array.reshape(_numbers(batch, places), [batch.size, *[1] * (len(dims) - 1)])
    return array.concat([array.broadcast_to(column, [*dims[:-1], 1]), places], -1)
