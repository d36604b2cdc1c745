"""Rows combined by the segment that each belongs to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, NUMERIC_TYPES, DType
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array, HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import MOVEMENT, REAL_TYPES, declare
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, of_one_output, shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_rank, require_scalar, require_type

# UnsortedSegment*(data, segment_ids, num_segments): row i of the result combines the rows of data with id i; rows with
# negative ids are left out.


def _unsorted_infer(allowed: Collection[DType]) -> Callable[[Operation], Sequence[OutputType]]:
    def infer(op: Operation) -> Sequence[OutputType]:
        data, ids, count = op.inputs
        require_type(data, allowed)
        require_type(ids, INTEGER_TYPES, "segment_ids")
        require_scalar(count, "num_segments")
        segments = constant_value(count)
        if data.shape.dims is None or ids.shape.dims is None:
            return [(data.dtype, unknown_shape())]
        rank = len(ids.shape.dims)
        TensorShape(data.shape.dims[:rank]).assert_is_compatible_with(ids.shape)
        return [(data.dtype, TensorShape([None if segments is None else int(segments), *data.shape.dims[rank:]]))]

    return infer


def _declare_unsorted(
    name: str,
    opcode: str,
    identity: Callable[[HloDType], complex | Array],
    gradient: OneOutputGradient,
    allowed: Collection[DType],
) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        b, (data, ids) = ctx.builder, inputs
        rank = len(ids.dims)
        if data.dims[:rank] != ids.dims:
            raise ShapeError(f"segment_ids of shape {ids.dims} do not fit data of shape {data.dims}")
        start = b.constant(np.asarray(identity(data.dtype)).astype(data.dtype.numpy), data.dtype)
        rows = b.broadcast(start, (int(ctx.constant(op, "num_segments")), *data.dims[rank:]))
        attrs = OPS["scatter"].attrs(
            update_window_dims=tuple(range(rank, len(data.dims))),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=rank,
        )
        return [b.op("scatter", (rows, ids, data), attrs, (b.scalar_function(opcode, data.dtype),))]

    declare(
        name,
        ("data", "segment_ids", "num_segments"),
        _unsorted_infer(allowed),
        lower,
        gradient,
        MOVEMENT,
        constant_inputs=("num_segments",),
    )


def _rows_of(values: Tensor, ids: Tensor) -> Tensor:
    """For each id the row of `values`; the first one for negative ids."""
    return node("GatherV2", [values, node("Maximum", [ids, node("ZerosLike", [ids])]), constant(0)])


def _has_segment(op: Operation) -> Tensor:
    """Whether each row of the data is in a segment, with sizes of 1 for what lies behind the ids."""
    data, ids, _ = op.inputs
    if data.shape.rank is None or ids.shape.rank is None:
        raise ShapeError(f"the gradient of {op.type} needs known ranks")
    kept = node("GreaterEqual", [ids, node("ZerosLike", [ids])])
    extra = constant(np.ones(data.shape.rank - ids.shape.rank, np.int32))
    return node("Reshape", [kept, node("ConcatV2", [shape_tensor(ids), extra, constant(0)])])


def _of_segments(op: Operation, rows: Tensor) -> Tensor:
    """`rows`, and zeros where there is no segment."""
    return node("SelectV2", [_has_segment(op), rows, node("ZerosLike", [rows])])


def _sum_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [_of_segments(op, _rows_of(grad, op.inputs[1])), None, None]


def _extreme_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Shared among the elements that are the extreme of their segment."""
    data, ids, count = op.inputs
    is_extreme = node("Equal", [data, _rows_of(op.outputs[0], ids)])
    chosen = _of_segments(op, node("Cast", [is_extreme], {"dtype": grad.dtype}))
    number = node("UnsortedSegmentSum", [chosen, ids, count])
    return [chosen * _rows_of(node("DivNoNan", [grad, number]), ids), None, None]


def _product_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The product of the other elements: by division, but of the others themselves where one element is 0."""
    data, ids, count = op.inputs
    is_zero = node("Equal", [data, node("ZerosLike", [data])])
    zeros = node("UnsortedSegmentSum", [node("Cast", [is_zero], {"dtype": data.dtype}), ids, count])
    one = node("OnesLike", [data])
    others = node("UnsortedSegmentProd", [node("SelectV2", [is_zero, one, data]), ids, count])
    zeros_here = _rows_of(zeros, ids)
    by_division = _rows_of(op.outputs[0], ids) / node("SelectV2", [is_zero, one, data])
    only_zero = node("Equal", [zeros_here, one])
    without = node("SelectV2", [only_zero, _rows_of(others, ids), node("ZerosLike", [data])])
    slope = node("SelectV2", [is_zero, without, by_division])
    return [_of_segments(op, slope * _rows_of(grad, ids)), None, None]


def lowest(dtype: HloDType) -> Array:
    """The lowest number of a type."""
    return np.asarray(_limits(dtype).min)


def highest(dtype: HloDType) -> Array:
    """The highest number of a type."""
    return np.asarray(_limits(dtype).max)


def _limits(dtype: HloDType) -> DType:
    return next(each for each in REAL_TYPES if each.hlo is dtype)


_declare_unsorted("UnsortedSegmentSum", "add", lambda dtype: 0, _sum_gradient, NUMERIC_TYPES)
_declare_unsorted("UnsortedSegmentProd", "multiply", lambda dtype: 1, _product_gradient, NUMERIC_TYPES)
_declare_unsorted("UnsortedSegmentMax", "maximum", lowest, _extreme_gradient, REAL_TYPES)
_declare_unsorted("UnsortedSegmentMin", "minimum", highest, _extreme_gradient, REAL_TYPES)


# Segment*(data, segment_ids): ids in ascending order; the last one says how many rows there are.

_WHY_HOST = "the number of its rows is the last segment id plus one"


def _sorted_ids(ids: Array, count: int) -> Array:
    if ids.shape != (count,):
        raise ShapeError(f"segment_ids have shape {ids.shape}; expected ({count},), one for each row")
    if ids.size and (ids[0] < 0 or (np.diff(ids) < 0).any()):
        raise ShapeError("segment_ids must not be negative and must ascend")
    return ids


def _sorted_infer(op: Operation) -> Sequence[OutputType]:
    data, *_, ids = op.inputs
    require_type(data, NUMERIC_TYPES)
    require_type(ids, INTEGER_TYPES, "segment_ids")
    require_rank(ids, lambda rank: rank == 1, "a vector", "segment_ids")
    rows = None if data.shape.dims is None else data.shape.with_rank_at_least(1).dims
    return [(data.dtype, TensorShape(None if rows is None else [None, *rows[1:]]))]


def _combined(data: Array, ids: Array, ufunc: np.ufunc, start: float) -> Array:
    """Rows of each segment, combined in order; `start` where there is none."""
    count = int(ids[-1]) + 1 if ids.size else 0
    wide = data.astype(np.float32) if data.dtype.itemsize == 2 and data.dtype.kind not in "iu" else data
    result = np.full((count, *data.shape[1:]), start, wide.dtype)
    if ids.size:
        firsts = np.flatnonzero(np.r_[True, np.diff(ids) > 0])
        result[ids[firsts]] = ufunc.reduceat(wide, firsts, axis=0)
    return result.astype(data.dtype)


def _sizes(ids: Array) -> Array:
    return np.bincount(ids, minlength=int(ids[-1]) + 1 if ids.size else 0)


def _mean(data: Array, ids: Array, power: float = 1.0) -> Array:
    total = _combined(data, ids, np.add, 0)
    sizes = np.maximum(_sizes(ids), 1).reshape(-1, *[1] * (data.ndim - 1))
    if data.dtype.kind in "iu":
        return np.asarray(total // sizes).astype(data.dtype)
    return np.asarray(total / sizes**power).astype(data.dtype)


_COMBINATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "Sum": lambda data, ids: _combined(data, ids, np.add, 0),
    "Prod": lambda data, ids: _combined(data, ids, np.multiply, 1),
    "Max": lambda data, ids: _combined(data, ids, np.maximum, 0),
    "Min": lambda data, ids: _combined(data, ids, np.minimum, 0),
    "Mean": _mean,
    "SqrtN": lambda data, ids: _mean(data, ids, 0.5),
}


def _segment_scale(ids: Tensor, grad: Tensor, power: float) -> Tensor:
    """For each row the size of its segment, to a power, with sizes of 1 behind."""
    if grad.shape.rank is None:
        raise ShapeError("the gradient of a mean over segments needs a known rank")
    ones = node("Cast", [node("OnesLike", [ids])], {"dtype": grad.dtype})
    size = node("GatherV2", [node("SegmentSum", [ones, ids]), ids, constant(0)])
    scaled = size if power == 1 else node("Sqrt", [size])
    return node("Reshape", [scaled, constant(np.array([-1, *[1] * (grad.shape.rank - 1)], np.int32))])


def _rows_gradient(op: Operation, grad: Tensor) -> Tensor:
    """The gradient for each row that went into a segment."""
    ids = op.inputs[-1]
    kind = op.type.rpartition("Segment")[2]
    rows = node("GatherV2", [grad, ids, constant(0)])
    share: Tensor
    if kind in ("Mean", "SqrtN"):
        share = rows / _segment_scale(ids, grad, 1.0 if kind == "Mean" else 0.5)
        return share
    if kind in ("Max", "Min"):
        chosen = node("Equal", [op.inputs[0], node("GatherV2", [op.outputs[0], ids, constant(0)])])
        weights = node("Cast", [chosen], {"dtype": grad.dtype})
        total = node("GatherV2", [node("SegmentSum", [weights, ids]), ids, constant(0)])
        share = rows * weights / total
        return share
    return rows


def _declare_sorted(kind: str, gradient: OneOutputGradient | None) -> None:
    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        data, ids = np.asarray(inputs[0]), np.asarray(inputs[1])
        return [_COMBINATIONS[kind](data, _sorted_ids(ids, len(data)))]

    _register(f"Segment{kind}", ("data", "segment_ids"), kernel, gradient)


def _declare_sparse(kind: str) -> None:
    """SparseSegment*(data, indices, segment_ids): the same of the rows of data at indices."""

    def kernel(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
        data, indices, ids = (np.asarray(value) for value in inputs)
        if indices.size and not (indices.min() >= 0 and indices.max() < len(data)):
            raise ShapeError(f"an index is out of range, expected 0 to {len(data) - 1}")
        return [_COMBINATIONS[kind](data[indices], _sorted_ids(ids, len(indices)))]

    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        data, indices, _ = op.inputs
        count = node("GatherV2", [shape_tensor(data), constant(0), constant(0)])
        return [node("UnsortedSegmentSum", [_rows_gradient(op, grad), indices, count]), None, None]

    _register(f"SparseSegment{kind}", ("data", "indices", "segment_ids"), kernel, gradient)


def _register(
    name: str,
    inputs: tuple[str, ...],
    kernel: Callable[[HostContext, Operation, tuple[HostValue, ...]], Sequence[HostValue]],
    gradient: OneOutputGradient | None,
) -> None:
    register(
        OpSpec(
            name,
            _sorted_infer,
            inputs=inputs,
            host_kernel=kernel,
            gradient=None if gradient is None else of_one_output(gradient),
            group=None,
            why_host=_WHY_HOST,
        )
    )


for _kind in ("Sum", "Mean", "Max", "Min"):
    _declare_sorted(_kind, lambda op, grad: [_rows_gradient(op, grad), None])
_declare_sorted("Prod", None)
for _kind in ("Sum", "Mean", "SqrtN"):
    _declare_sparse(_kind)


# Bincount(arr, size, weights): how often each number below size comes, or the sum of its weights.


def _bincount_infer(op: Operation) -> Sequence[OutputType]:
    numbers, size, weights = op.inputs
    require_type(numbers, INTEGER_TYPES, "arr")
    require_scalar(size, "size")
    known = constant_value(size)
    return [(weights.dtype, TensorShape([None if known is None else int(known)]))]


def _bincount_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    numbers, size, weights = (np.asarray(value) for value in inputs)
    numbers = np.atleast_1d(numbers)
    kept = (numbers >= 0) & (numbers < size)
    result = np.zeros(int(size), weights.dtype)
    np.add.at(result, numbers[kept], np.atleast_1d(weights)[kept] if weights.size else np.ones((), weights.dtype))
    return [result]


register(
    OpSpec(
        "Bincount",
        _bincount_infer,
        inputs=("arr", "size", "weights"),
        host_kernel=_bincount_on_host,
        gradient=None,
        group=None,
        why_host="the number of its results is a value",
    )
)


# HistogramFixedWidth(values, value_range, nbins): counts in bins of equal width; what lies outside is in the last ones.


def _histogram_infer(op: Operation) -> Sequence[OutputType]:
    values, limits, bins = op.inputs
    require_type(values, FLOATING_TYPES | INTEGER_TYPES)
    require_type(limits, {values.dtype}, "value_range")
    known = constant_value(bins)
    return [(op.get_attr("dtype"), TensorShape([None if known is None else int(known)]))]


def _histogram_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (values, limits) = ctx.builder, inputs
    count = int(ctx.constant(op, "nbins"))
    wide = HloDType.F64
    low, high = b.scalars(b.convert(limits, wide))
    place = b.op("floor", ((b.convert(values, wide) - low) / (high - low) * float(count),))
    zero, last = b.constant(0.0, wide), b.constant(float(count - 1), wide)
    inside = b.convert(b.op("clamp", (zero, place, last)), HloDType.S32)
    flat = b.reshape(inside, (inside.shape.element_count, 1))
    dtype = op.get_attr("dtype").hlo
    attrs = OPS["scatter"].attrs(inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1)
    operands = (b.full(0, dtype, (count,)), flat, b.full(1, dtype, flat.dims[:1]))
    return [b.op("scatter", operands, attrs, (b.scalar_function("add", dtype),))]


declare(
    "HistogramFixedWidth",
    ("values", "value_range", "nbins"),
    _histogram_infer,
    _histogram_lower,
    None,
    MOVEMENT,
    attrs=("dtype",),
    constant_inputs=("nbins",),
)
