"""Largest elements, membership among them, and places in sorted sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, bool_, int32
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import sum_axes
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import REAL_TYPES, SORTING, declare, declare_outputs
from xlalite.ops.helpers.gradient_rules import shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_rank, require_same_type, require_scalar, require_type

# TopKV2(input, k): the k largest elements of each row in descending order, and their places; TopK has k as
# attribute; _SortRows gives the smallest ones in ascending order if asked.


def _top_k_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, REAL_TYPES)
    if op.type != "TopK":
        require_scalar(op.inputs[1], "k")
        value = constant_value(op.inputs[1])
        k = None if value is None else int(value)
    else:
        k = int(op.get_attr("k"))
    dims = x.shape.with_rank_at_least(1).dims
    if dims is not None and dims[-1] is not None and k is not None and not 0 <= k <= dims[-1]:
        raise ShapeError(f"k is {k}, but the rows of {x.name!r} {x.shape} have {dims[-1]} elements")
    shape = TensorShape(None if dims is None else [*dims[:-1], k])
    return [(x.dtype, shape), (int32, shape)]


def _top_k_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    k = int(op.get_attr("k")) if op.type == "TopK" else int(ctx.constant(op, "k"))
    if not 0 <= k <= x.dims[-1]:
        raise ShapeError(f"k is {k}, but rows have {x.dims[-1]} elements")
    largest = op.type != "_SortRows" or bool(op.get_attr("largest"))
    found = b.op("topk", (x,), OPS["topk"].attrs(k=k, largest=largest))
    return [found[0], found[1]]


def _top_k_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    """Each gradient goes back to where its element was."""
    x, places = op.inputs[0], op.outputs[1]
    none = [None] * (len(op.inputs) - 1)
    grad = grads[0]
    if grad is None:
        return [None, *none]
    flat, zero = constant(np.array([-1], np.int32)), constant(0)
    sizes = shape_tensor(x)
    columns = node("GatherV2", [sizes, constant(-1 + x.shape.rank if x.shape.rank else 0), zero])
    if x.shape.rank is None:
        raise ShapeError("the gradient of TopKV2 needs a known rank")
    k = node("GatherV2", [shape_tensor(places), constant(x.shape.rank - 1), zero])
    rows = node("Reshape", [places, node("Pack", [constant(-1), k], {"axis": 0})])
    count = node("GatherV2", [shape_tensor(rows), zero, zero])
    starts = node("Range", [zero, count, constant(1)]) * columns
    positions = node("Reshape", [rows + node("ExpandDims", [starts, constant(1)]), flat])
    summed = node("UnsortedSegmentSum", [node("Reshape", [grad, flat]), positions, count * columns])
    return [node("Reshape", [summed, sizes]), *none]


for _name, _attr in (("TopKV2", "sorted"), ("_SortRows", "largest")):
    declare_outputs(
        _name,
        ("input", "k"),
        _top_k_infer,
        _top_k_lower,
        _top_k_gradient,
        SORTING,
        attrs=(_attr,),
        constant_inputs=("k",),
    )
declare_outputs("TopK", ("input",), _top_k_infer, _top_k_lower, _top_k_gradient, SORTING, attrs=("k", "sorted"))


# InTopKV2(predictions, targets, k): whether each row's target is among its k largest; InTopK has k as attribute.


def _in_top_k_infer(op: Operation) -> Sequence[OutputType]:
    predictions, targets = op.inputs[:2]
    require_type(predictions, FLOATING_TYPES, "predictions")
    require_type(targets, INTEGER_TYPES, "targets")
    require_rank(predictions, lambda rank: rank == 2, "a matrix", "predictions")
    rows = TensorShape(None if predictions.shape.dims is None else predictions.shape.dims[:1])
    return [(bool_, rows.merge_with(targets.shape).with_rank(1))]


def _in_top_k_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """Fewer than k elements are larger; a row whose target or whose element at it is not finite has no such target."""
    b, (predictions, targets) = ctx.builder, inputs[:2]
    k = int(ctx.constant(op, "k")) if op.type == "InTopKV2" else int(op.get_attr("k"))
    dims = predictions.dims
    columns = b.iota(targets.dtype, dims, 1)
    is_target = b.compare(columns, b.broadcast(targets, dims, [0]), "EQ")
    own = sum_axes(b, b.select(is_target, predictions, b.full(0, predictions.dtype, dims)), [1])
    larger = b.compare(predictions, b.broadcast(own, dims, [0]), "GT")
    finite = b.op("is-finite", (predictions,))
    counted = b.convert(larger & finite, HloDType.S32)
    number = sum_axes(b, counted, [1])
    inside = b.compare(targets, 0, "GE") & b.compare(targets, dims[1], "LT")
    return [b.compare(number, k, "LT") & inside & b.op("is-finite", (own,))]


declare(
    "InTopKV2", ("predictions", "targets", "k"), _in_top_k_infer, _in_top_k_lower, None, None, constant_inputs=("k",)
)
declare("InTopK", ("predictions", "targets"), _in_top_k_infer, _in_top_k_lower, None, None, attrs=("k",))


# LowerBound, UpperBound(sorted_inputs, values): in each row, how many elements lie before (or not behind) each value.


def _bound_infer(op: Operation) -> Sequence[OutputType]:
    ordered, values = op.inputs
    require_same_type([ordered, values])
    for tensor in op.inputs:
        require_rank(tensor, lambda rank: rank == 2, "a matrix")
    return [(op.get_attr("out_type"), values.shape)]


def _counts_before(b: Builder, ordered: Handle, values: Handle, direction: str, dtype: HloDType) -> Handle:
    rows, length = ordered.dims
    dims = (rows, values.dims[1], length)
    lies_before = b.compare(b.broadcast(ordered, dims, [0, 2]), b.broadcast(values, dims, [0, 1]), direction)
    return sum_axes(b, b.convert(lies_before, dtype), [2])


def _declare_bound(name: str, direction: str) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        ordered, values = inputs
        return [_counts_before(ctx.builder, ordered, values, direction, op.get_attr("out_type").hlo)]

    declare(name, ("sorted_inputs", "values"), _bound_infer, lower, None, None, attrs=("out_type",))


_declare_bound("LowerBound", "LT")
_declare_bound("UpperBound", "LE")


# Bucketize(input): the number of boundaries that are not above each element.


def _bucketize_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], REAL_TYPES)
    return [(int32, op.inputs[0].shape)]


def _bucketize_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x,) = ctx.builder, inputs
    boundaries = np.asarray(op.get_attr("boundaries"), np.float32)
    if (np.diff(boundaries) < 0).any():
        raise ShapeError(f"Expected sorted boundaries, found {boundaries.tolist()}")
    wide = HloDType.F64 if x.dtype is HloDType.F64 else HloDType.F32
    values = b.convert(x, wide)
    dims = (*x.dims, boundaries.size)
    limits = b.broadcast(b.constant(boundaries.astype(wide.numpy)), dims, [len(x.dims)])
    passed = b.compare(b.broadcast(values, dims, range(len(x.dims))), limits, "GE")
    return [sum_axes(b, b.convert(passed, HloDType.S32), [len(x.dims)])]


declare("Bucketize", ("input",), _bucketize_infer, _bucketize_lower, None, None, attrs=("boundaries",))


# NthElement(input, n): the element that would be at position n of each row in ascending order.


def _nth_infer(op: Operation) -> Sequence[OutputType]:
    x = op.inputs[0]
    require_type(x, REAL_TYPES)
    dims = x.shape.with_rank_at_least(1).dims
    return [(x.dtype, unknown_shape() if dims is None else TensorShape(dims[:-1]))]


def _nth_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    n = int(ctx.constant(op, "n"))
    if not 0 <= n < x.dims[-1]:
        raise ShapeError(f"n is {n}, but rows have {x.dims[-1]} elements")
    largest = bool(op.get_attr("reverse"))
    found = b.op("topk", (x,), OPS["topk"].attrs(k=n + 1, largest=largest))[0]
    starts = [0] * (len(x.dims) - 1) + [n]
    return [b.reshape(b.slice(found, starts, [*x.dims[:-1], n + 1]), x.dims[:-1])]


def _nth_gradient(op: Operation, grads: tuple[Tensor | None, ...]) -> Sequence[Tensor | None]:
    x, grad = op.inputs[0], grads[0]
    if grad is None:
        return [None, None]
    chosen = node("Equal", [x, node("ExpandDims", [op.outputs[0], constant(-1)])])
    weights = node("Cast", [chosen], {"dtype": x.dtype})
    total = node("Sum", [weights, constant(-1)], {"keep_dims": True})
    return [weights / total * node("ExpandDims", [grad, constant(-1)]), None]


register(
    OpSpec(
        "NthElement",
        _nth_infer,
        inputs=("input", "n"),
        attrs=("reverse",),
        lower=_nth_lower,
        gradient=_nth_gradient,
        group=None,
        constant_inputs=("n",),
    )
)
