"""Arrays made of one value or of a sequence, and repetition of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import COMPILABLE_TYPES, INTEGER_TYPES, NUMERIC_TYPES, int32
from xlalite.framework.graph.errors import ElementTypeError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value, constant_value_as_shape
from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.limits import DEFAULT_LIMITS
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import ELEMENTWISE, MOVEMENT, declare
from xlalite.ops.helpers.gradient_rules import shape_tensor, sum_to
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_rank, require_same_type, require_scalar, require_type, unchanged

# Fill(dims, value).


def _fill_infer(op: Operation) -> Sequence[OutputType]:
    dims, value = op.inputs
    require_type(dims, INTEGER_TYPES, "dims")
    require_rank(dims, lambda rank: rank == 1, "a vector", "dims")
    require_scalar(value, "value")
    return [(value.dtype, constant_value_as_shape(dims))]


def _fill_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.broadcast(inputs[0], _sizes(ctx.constant(op, "dims")))]


def _fill_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [None, node("Sum", [grad, all_axes(grad)], {"keep_dims": False})]


def _sizes(value: Array) -> tuple[int, ...]:
    if (np.asarray(value) < 0).any():
        raise ShapeError(f"sizes must not be negative, found {np.asarray(value).tolist()}")
    return tuple(int(size) for size in value)


def all_axes(x: Tensor) -> Tensor:
    """All dimension numbers of `x` as a vector."""
    if x.shape.rank is not None:
        return constant(np.arange(x.shape.rank, dtype=np.int32))
    rank = node("Rank", [x], {"out_type": int32})
    return node("Range", [constant(0), rank, constant(1)])


declare("Fill", ("dims", "value"), _fill_infer, _fill_lower, _fill_gradient, MOVEMENT, constant_inputs=("dims",))


# ZerosLike(x) and OnesLike(x).


def _declare_like(name: str, number: int) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        dtype = op.outputs[0].dtype.hlo
        return [ctx.builder.full(number, dtype, ctx.dims(op.inputs[0]))]

    declare(name, ("x",), unchanged(COMPILABLE_TYPES), lower, None, ELEMENTWISE)


_declare_like("ZerosLike", 0)
_declare_like("OnesLike", 1)


# BroadcastTo(input, shape).


def _broadcast_to_infer(op: Operation) -> Sequence[OutputType]:
    x, shape = op.inputs
    require_type(shape, INTEGER_TYPES, "shape")
    require_rank(shape, lambda rank: rank == 1, "a vector", "shape")
    target = constant_value_as_shape(shape)
    if x.shape.dims is not None and target.dims is not None:
        _check_stretch(x.shape, target)
    return [(x.dtype, target)]


def _check_stretch(source: TensorShape, target: TensorShape) -> None:
    own, wanted = source.as_list(), target.as_list()
    aligned = wanted[len(wanted) - len(own) :] if len(own) <= len(wanted) else None
    if aligned is None or any(
        a is not None and a != 1 and b is not None and a != b for a, b in zip(own, aligned, strict=True)
    ):
        raise ShapeError(f"cannot broadcast {source} to {target}")


def _broadcast_to_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    sizes = _sizes(ctx.constant(op, "shape"))
    _check_stretch(TensorShape(inputs[0].dims), TensorShape(sizes))
    assert broadcast_dims(inputs[0].dims, sizes) == sizes
    return [broadcast_to(ctx.builder, inputs[0], sizes)]


def _broadcast_to_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [sum_to(grad, op.inputs[0], grad), None]


declare(
    "BroadcastTo",
    ("input", "shape"),
    _broadcast_to_infer,
    _broadcast_to_lower,
    _broadcast_to_gradient,
    MOVEMENT,
    constant_inputs=("shape",),
)


# Tile(input, multiples).


def _tile_infer(op: Operation) -> Sequence[OutputType]:
    x, multiples = op.inputs
    require_type(multiples, INTEGER_TYPES, "multiples")
    counts = constant_value_as_shape(multiples)
    if x.shape.dims is None or counts.dims is None:
        return [(x.dtype, unknown_shape(x.shape.rank if x.shape.rank is not None else counts.rank))]
    if len(counts.dims) != len(x.shape.dims):
        raise ShapeError(f"multiples has {len(counts.dims)} entries for an input of shape {x.shape}")
    pairs = zip(x.shape.dims, counts.dims, strict=True)
    return [(x.dtype, TensorShape([None if a is None or n is None else a * n for a, n in pairs]))]


def _tile_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    x, counts = inputs[0], _sizes(ctx.constant(op, "multiples"))
    interleaved = [size for pair in zip(counts, x.dims, strict=True) for size in pair]
    repeated = ctx.builder.broadcast(x, interleaved, [2 * i + 1 for i in range(len(x.dims))])
    return [ctx.builder.reshape(repeated, [n * size for n, size in zip(counts, x.dims, strict=True)])]


def _tile_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """The gradient cut into copies, which are summed."""
    x, multiples = op.inputs
    counts = node("Cast", [multiples], {"dtype": int32})
    stacked = node("Pack", [counts, shape_tensor(x)], {"axis": 1})
    split = node("Reshape", [stacked, constant(np.array([-1], np.int32))])
    rank = x.shape.rank if x.shape.rank is not None else (multiples.shape.dims or (None,))[0]
    if rank is None:
        raise ShapeError("the gradient of Tile needs an input of known rank")
    axes = constant(np.arange(0, 2 * rank, 2, dtype=np.int32))
    return [node("Sum", [node("Reshape", [grad, split]), axes], {"keep_dims": False}), None]


declare(
    "Tile", ("input", "multiples"), _tile_infer, _tile_lower, _tile_gradient, MOVEMENT, constant_inputs=("multiples",)
)


# Range(start, limit, delta): start, start + delta, ... before limit.


def _range_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], NUMERIC_TYPES)
    if dtype.is_complex:
        raise ElementTypeError("a range of complex numbers has no order")
    for tensor, what in zip(op.inputs, ("start", "limit", "delta"), strict=True):
        require_scalar(tensor, what)
    values = [constant_value(tensor) for tensor in op.inputs]
    known = [value for value in values if value is not None]
    return [(dtype, TensorShape([_range_values(*known).size if len(known) == 3 else None]))]


def _range_values(start: Array, limit: Array, delta: Array) -> Array:
    if delta == 0:
        raise ShapeError("the step of a range must not be 0")
    # Integers stay exact and small floating-point types count in f64, as the number of elements follows from both.
    wide = np.float64 if start.dtype.kind not in "iu" else object
    begin, end, step = (value.astype(wide).reshape(())[()] for value in (start, limit, delta))
    with np.errstate(invalid="ignore"):
        parts = -((begin - end) // step)
    if not abs(parts) < DEFAULT_LIMITS.elements:
        raise ShapeError(f"a range from {begin} to {end} by {step} has {parts} elements")
    count = max(0, int(parts))
    steps = np.arange(count).astype(start.dtype)
    return np.asarray(start + steps * delta).astype(start.dtype)


def _range_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    values = _range_values(*(np.asarray(ctx.constant(op, name)) for name in ("start", "limit", "delta")))
    return [ctx.builder.constant(values, op.outputs[0].dtype.hlo)]


declare(
    "Range",
    ("start", "limit", "delta"),
    _range_infer,
    _range_lower,
    None,
    MOVEMENT,
    constant_inputs=("start", "limit", "delta"),
)


# LinSpace(start, stop, num): evenly spaced, both ends included.


def _linspace_infer(op: Operation) -> Sequence[OutputType]:
    start, stop, num = op.inputs
    dtype = require_same_type([start, stop])
    value = constant_value(num)
    return [(dtype, TensorShape([None if value is None else int(value.reshape(()))]))]


def _linspace_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (start, stop) = ctx.builder, inputs
    count = int(ctx.constant(op, "num").reshape(()))
    if count <= 0:
        raise ShapeError(f"num must be positive, found {count}")
    if count == 1:
        return [b.reshape(start, [1])]
    step = (stop - start) / (count - 1)
    line = start + b.iota(start.dtype, [count], 0) * step
    is_last = b.compare(b.iota(int32.hlo, [count], 0), count - 1, "EQ")
    return [b.select(is_last, b.broadcast(stop, [count]), line)]


declare(
    "LinSpace", ("start", "stop", "num"), _linspace_infer, _linspace_lower, None, MOVEMENT, constant_inputs=("num",)
)
