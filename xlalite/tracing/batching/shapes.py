"""Operations that rearrange elements: their sizes and dimensions are those of one example, one further."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.operation import Operation
from xlalite.ops.declarations.strided_slice import MASKS
from xlalite.ops.functions import array
from xlalite.ops.helpers.constant import constant
from xlalite.tracing.batching.batch import Batch, Part, batches, copied, dims_of, known


@batches("Reshape", "ExpandDims", "Squeeze")
def reshape(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    return [Part(array.reshape(batch.front(parts[0]), [batch.size, *dims_of(op)]), 0)]


@batches("BroadcastTo", "Fill")
def broadcast(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    (value,) = [part for part in parts if part.axis is not None]
    x, dims = batch.front(value), dims_of(op)
    first, *rest = x.shape.known_dims()
    aligned = array.reshape(x, [first, *[1] * (len(dims) - len(rest)), *rest])
    return [Part(array.broadcast_to(aligned, [batch.size, *dims]), 0)]


@batches("Transpose")
def transpose(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    order = known(op, "perm")
    return [Part(array.transpose(batch.front(parts[0]), [0, *(order % max(order.size, 1) + 1)]), 0)]


@batches("Tile")
def tile(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    return [Part(array.tile(batch.front(parts[0]), [1, *known(op, "multiples").tolist()]), 0)]


@batches("Pad", "PadV2", "MirrorPad", "MirrorPadGrad")
def pad(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    if any(part.axis is not None for part in parts[1:]):
        return batch.one_by_one(op, parts)
    sizes = np.concatenate([np.zeros((1, 2), np.int32), known(op, "paddings")]).astype(np.int32)
    return [Part(copied(op, [batch.front(parts[0]), constant(sizes), *[part.tensor for part in parts[2:]]])[0], 0)]


@batches("ConcatV2")
def concat(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    axis = int(known(op, "axis")) % len(dims_of(op)) + 1
    return [Part(copied(op, [*map(batch.front, parts[:-1]), constant(axis)])[0], 0)]


@batches("Pack")
def pack(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    axis = int(op.get_attr("axis")) % len(dims_of(op)) + 1
    return [Part(copied(op, [*map(batch.front, parts)], axis=axis)[0], 0)]


@batches("Unpack")
def unpack(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    axis = int(op.get_attr("axis")) % len(op.inputs[0].shape.known_dims()) + 1
    return [Part(tensor, 0) for tensor in copied(op, [batch.front(parts[0])], axis=axis)]


@batches("Split", "SplitV")
def split(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    axis = constant(int(known(op, "split_dim")) % len(dims_of(op)) + 1)
    inputs = [part.tensor if part.axis is None else batch.front(part) for part in parts]
    inputs[0 if op.type == "Split" else 2] = axis
    return [Part(tensor, 0) for tensor in copied(op, inputs)]


@batches("StridedSlice", "StridedSliceGrad", "TensorStridedSliceUpdate")
def strided_slice(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    """A key with one more part in front, which takes all examples."""
    inputs = [part.tensor for part in parts]
    for name, whole in (("begin", 0), ("end", 0), ("strides", 1)):
        (position,) = op.spec.input_range(name, len(op.inputs))
        inputs[position] = constant(np.concatenate([[whole], known(op, name)]).astype(np.int32))
    masks = {name: int(op.get_attr(name)) << 1 for name in MASKS}
    masks["begin_mask"] |= 1
    masks["end_mask"] |= 1
    for position in {"StridedSlice": (0,), "StridedSliceGrad": (4,)}.get(op.type, (0, 4)):
        inputs[position] = batch.front(parts[position])
    if op.type == "StridedSliceGrad":
        inputs[0] = constant(np.array([batch.size, *dims_of(op)], np.int32))
    return [Part(copied(op, inputs, **masks)[0], 0)]


@batches("OneHot")
def one_hot(batch: Batch, op: Operation, parts: Sequence[Part]) -> Sequence[Part]:
    if any(part.axis is not None for part in parts[1:]):
        return batch.one_by_one(op, parts)
    axis = int(op.get_attr("axis"))
    inputs = [batch.front(parts[0]), *[part.tensor for part in parts[1:]]]
    return [Part(copied(op, inputs, axis=axis if axis < 0 else axis + 1)[0], 0)]
