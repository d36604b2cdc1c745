"""Operations whose results have as many elements as their values say: they run on the host, in TensorFlow too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES, int64
from xlalite.framework.graph.op_spec import GradientFunction, InferFunction, OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.gradient_rules import all_gradients, shape_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.shape_rules import require_rank, require_same_type, require_type

Kernel = Callable[[Operation, tuple[Array, ...]], Sequence[Array]]

_WHY_HOST = "the number of its results depends on values"


def _declare(
    name: str,
    inputs: tuple[str, ...],
    infer: InferFunction,
    compute: Kernel,
    gradient: GradientFunction | None,
    attrs: tuple[str, ...] = (),
) -> None:
    def infer_sizes(op: Operation) -> Sequence[OutputType]:
        """What the graph alone says: all of it, where the inputs are part of the graph."""
        inferred = infer(op)
        if not all(tensor.op.spec.is_constant for tensor in op.inputs):
            return inferred
        values = compute(op, tuple(tensor.op.get_attr("value") for tensor in op.inputs))
        return [(dtype, TensorShape(value.shape)) for (dtype, _), value in zip(inferred, values, strict=True)]

    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        return compute(op, tuple(np.asarray(value) for value in inputs))

    register(
        OpSpec(
            name,
            infer_sizes,
            inputs=inputs,
            attrs=attrs,
            host_kernel=kernel,
            gradient=gradient,
            group=None,
            why_host=_WHY_HOST,
        )
    )


# Where(condition): the positions of true, or non-zero, elements, in row-major order: int64 [n, rank].


def _where_infer(op: Operation) -> Sequence[OutputType]:
    return [(int64, TensorShape([None, op.inputs[0].shape.rank]))]


_declare(
    "Where",
    ("condition",),
    _where_infer,
    lambda op, inputs: [np.argwhere(inputs[0] != 0).astype(np.int64).reshape(-1, inputs[0].ndim)],
    None,
)


# Unique(x): each value once, in the order in which it comes first, and where each element of x is in that list.


def _unique_infer(op: Operation) -> Sequence[OutputType]:
    x, index_type = op.inputs[0], op.get_attr("out_idx")
    require_rank(x, lambda rank: rank == 1, "a vector")
    outputs = [(x.dtype, TensorShape([None])), (index_type, x.shape.with_rank(1)), (index_type, TensorShape([None]))]
    return outputs if op.type == "UniqueWithCounts" else outputs[:2]


def _unique(op: Operation, inputs: tuple[Array, ...]) -> Sequence[Array]:
    (x,) = inputs
    if x.ndim != 1:
        raise ShapeError(f"unique expects a vector, found shape {x.shape}")
    index_type = op.get_attr("out_idx").numpy_dtype
    _, first, place, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    rank_of = np.empty_like(order)
    rank_of[order] = np.arange(order.size)
    found = [x[first[order]], rank_of[place.reshape(-1)].astype(index_type), counts[order].astype(index_type)]
    return found if op.type == "UniqueWithCounts" else found[:2]


_declare("Unique", ("x",), _unique_infer, _unique, None, ("out_idx",))
_declare("UniqueWithCounts", ("x",), _unique_infer, _unique, None, ("out_idx",))


# ListDiff(x, y): the elements of x that are not in y, and their positions.


def _list_diff_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    for tensor in op.inputs:
        require_rank(tensor, lambda rank: rank == 1, "a vector")
    return [(dtype, TensorShape([None])), (op.get_attr("out_idx"), TensorShape([None]))]


def _list_diff(op: Operation, inputs: tuple[Array, ...]) -> Sequence[Array]:
    x, y = inputs
    kept = np.flatnonzero(~np.isin(x, y))
    return [x[kept], kept.astype(op.get_attr("out_idx").numpy_dtype)]


_declare("ListDiff", ("x", "y"), _list_diff_infer, _list_diff, None, ("out_idx",))


# DynamicPartition(data, partitions): the rows of data in num_partitions lists.


def _partition_infer(op: Operation) -> Sequence[OutputType]:
    data, partitions = op.inputs
    require_type(partitions, INTEGER_TYPES, "partitions")
    row = unknown_shape()
    if data.shape.dims is not None and partitions.shape.rank is not None:
        data.shape[: partitions.shape.rank].assert_is_compatible_with(partitions.shape)
        row = TensorShape([None, *data.shape.dims[partitions.shape.rank :]])
    return [(data.dtype, row)] * op.get_attr("num_partitions")


def _partition(op: Operation, inputs: tuple[Array, ...]) -> Sequence[Array]:
    data, partitions = inputs
    count = op.get_attr("num_partitions")
    if data.shape[: partitions.ndim] != partitions.shape:
        raise ShapeError(f"partitions of shape {partitions.shape} do not fit data of shape {data.shape}")
    if partitions.size and not (partitions.min() >= 0 and partitions.max() < count):
        raise ShapeError(f"a partition is out of range, expected 0 to {count - 1}")
    return [data[partitions == number] for number in range(count)]


def _partition_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    data, partitions = op.inputs
    count = op.get_attr("num_partitions")
    sizes = shape_tensor(partitions)
    flat = constant(np.array([-1], np.int32))
    number = node("Prod", [sizes, constant(np.array([0], np.int32))], {"keep_dims": False})
    positions = node("Range", [constant(0), number, constant(1)])
    whole = node("Reshape", [positions, sizes])
    places = operation("DynamicPartition", [whole, partitions], {"num_partitions": count}).outputs
    rows = all_gradients(op, grads)
    stitched = node("DynamicStitch", [*(node("Reshape", [place, flat]) for place in places), *rows], {"N": count})
    return [node("Reshape", [stitched, shape_tensor(data)]), None]


_declare(
    "DynamicPartition",
    ("data", "partitions"),
    _partition_infer,
    _partition,
    _partition_gradient,
    ("num_partitions",),
)
