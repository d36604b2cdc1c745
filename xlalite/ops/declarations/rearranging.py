"""Sequences turned round and shifted, and padding by reflection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import INTEGER_TYPES
from xlalite.framework.graph.op_spec import OpSpec, OutputType, register
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.graph.tensor_shape import TensorShape, unknown_shape
from xlalite.framework.meaning.host import Array
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.framework.meaning.static_value import constant_value
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.indexing import gather_slices
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.declare import MOVEMENT, declare
from xlalite.ops.helpers.gradient_rules import of_one_output
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import normalize_axis, require_rank, require_type

# ReverseSequence(input, seq_lengths): the first seq_lengths[i] elements of each sequence turned round.


def _sequence_infer(op: Operation) -> Sequence[OutputType]:
    x, lengths = op.inputs
    require_type(lengths, INTEGER_TYPES, "seq_lengths")
    require_rank(lengths, lambda rank: rank == 1, "a vector", "seq_lengths")
    if x.shape.rank is not None:
        sequence, batch = (normalize_axis(op.get_attr(name), x.shape.rank) for name in ("seq_dim", "batch_dim"))
        if sequence == batch:
            raise ShapeError(f"seq_dim and batch_dim are both {sequence}")
    return [(x.dtype, x.shape)]


def _sequence_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, lengths) = ctx.builder, inputs
    rank = len(x.dims)
    sequence, batch = (normalize_axis(op.get_attr(name), rank) for name in ("seq_dim", "batch_dim"))
    if lengths.dims != (x.dims[batch],):
        raise ShapeError(f"seq_lengths of shape {lengths.dims} do not fit dimension {batch} of {x.shape.text()}")
    if not x.shape.element_count:
        return [x]
    order = (batch, sequence, *(i for i in range(rank) if i not in (batch, sequence)))
    dims = (x.dims[batch], x.dims[sequence])
    place = b.iota(lengths.dtype, dims, 1)
    spread = b.broadcast(lengths, dims, [0])
    source = b.select(b.compare(place, spread, "LT"), spread - place - 1, place)
    row = b.iota(lengths.dtype, dims, 0)
    vectors = b.concatenate([b.reshape(each, (*dims, 1)) for each in (row, source)], 2)
    taken = gather_slices(b, b.transpose(x, order), vectors)
    return [b.transpose(taken, [order.index(i) for i in range(rank)])]


def _sequence_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    attrs = {name: op.get_attr(name) for name in ("seq_dim", "batch_dim")}
    return [node("ReverseSequence", [grad, op.inputs[1]], attrs), None]


declare(
    "ReverseSequence",
    ("input", "seq_lengths"),
    _sequence_infer,
    _sequence_lower,
    _sequence_gradient,
    MOVEMENT,
    attrs=("seq_dim", "batch_dim"),
)


# Roll(input, shift, axis): elements shifted along dimensions; what goes out at one end comes in at the other.


def _roll_infer(op: Operation) -> Sequence[OutputType]:
    x, shift, axis = op.inputs
    for tensor, what in ((shift, "shift"), (axis, "axis")):
        require_type(tensor, INTEGER_TYPES, what)
        require_rank(tensor, lambda rank: rank <= 1, "a scalar or a vector", what)
    return [(x.dtype, x.shape.with_rank_at_least(1))]


def _roll_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x = ctx.builder, inputs[0]
    axes = [normalize_axis(int(axis), len(x.dims)) for axis in np.ravel(ctx.constant(op, "axis"))]
    known = ctx.constant_or_none(op.inputs[1])
    shifts = None if known is None else np.ravel(known)
    if shifts is None:
        given = ctx.handle(op.inputs[1])
        shifts_at_run_time = b.scalars(b.reshape(given, (given.shape.element_count,)))
        for axis, amount in zip(axes, shifts_at_run_time, strict=True):
            x = _rolled_at_run_time(b, x, axis, amount)
        return [x]
    if len(shifts) != len(axes):
        raise ShapeError(f"{len(shifts)} shifts for {len(axes)} axes")
    for axis, amount in zip(axes, shifts, strict=True):
        x = _rolled(b, x, axis, int(amount))
    return [x]


def _rolled(b: Builder, x: Handle, axis: int, amount: int) -> Handle:
    size = x.dims[axis]
    cut = -amount % size if size else 0
    if not cut:
        return x
    starts, limits = [0] * len(x.dims), list(x.dims)
    starts[axis], limits[axis] = cut, cut
    return b.concatenate([b.slice(x, starts, x.dims), b.slice(x, [0] * len(x.dims), limits)], axis)


def _rolled_at_run_time(b: Builder, x: Handle, axis: int, amount: Handle) -> Handle:
    size = x.dims[axis]
    if not size:
        return x
    # The remainder has the sign of the dividend.
    start = (-amount % size + size) % size
    zero = b.constant(0, amount.dtype)
    starts = [start if i == axis else zero for i in range(len(x.dims))]
    return b.dynamic_slice(b.concatenate([x, x], axis), starts, x.dims)


def _roll_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("Roll", [grad, -op.inputs[1], op.inputs[2]]), None, None]


register(
    OpSpec(
        "Roll",
        _roll_infer,
        inputs=("input", "shift", "axis"),
        lower=_roll_lower,
        gradient=of_one_output(_roll_gradient),
        group=MOVEMENT,
        constant_inputs=("axis",),
        preferred_constant_inputs=("shift",),
    )
)


# MirrorPad(input, paddings): reflected at the ends, which are repeated if the mode is SYMMETRIC; MirrorPadGrad folds
# the padding back.


def _distance(op: Operation) -> int:
    """How far the mirror lies inside: 1 if the elements at the ends are not repeated."""
    mode = op.get_attr("mode")
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ShapeError(f"mode {mode!r} is not REFLECT or SYMMETRIC")
    return int(mode == "REFLECT")


def _mirror_infer(op: Operation) -> Sequence[OutputType]:
    x, paddings = op.inputs
    require_type(paddings, INTEGER_TYPES, "paddings")
    _distance(op)
    known = constant_value(paddings)
    if x.shape.dims is None or known is None:
        return [(x.dtype, unknown_shape(x.shape.rank))]
    sign = 1 if op.type == "MirrorPad" else -1
    _check_paddings(known, len(x.shape.dims))
    around = known.sum(1).tolist()
    sizes = [None if size is None else size + sign * more for size, more in zip(x.shape.dims, around, strict=True)]
    return [(x.dtype, TensorShape(sizes))]


def _check_paddings(paddings: Array, rank: int) -> None:
    if paddings.shape != (rank, 2) or (paddings < 0).any():
        raise ShapeError(f"paddings {paddings.tolist()} are not {rank} pairs of sizes")


def _part(b: Builder, x: Handle, axis: int, start: int, limit: int) -> Handle:
    starts, limits = [0] * len(x.dims), list(x.dims)
    starts[axis], limits[axis] = start, limit
    return b.slice(x, starts, limits)


def _mirror_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x, inset = ctx.builder, inputs[0], _distance(op)
    paddings = np.asarray(ctx.constant(op, "paddings"))
    _check_paddings(paddings, len(x.dims))
    for axis, (before, after) in enumerate(paddings.tolist()):
        size = x.dims[axis]
        if max(before, after) > size - inset:
            raise ShapeError(f"dimension {axis} of {x.shape.text()} is too short to be mirrored by {before}, {after}")
        front = b.reverse(_part(b, x, axis, inset, inset + before), [axis])
        back = b.reverse(_part(b, x, axis, size - inset - after, size - inset), [axis])
        x = b.concatenate([part for part in (front, x, back) if part.dims[axis]] or [x], axis)
    return [x]


def _mirror_grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, x, inset = ctx.builder, inputs[0], _distance(op)
    paddings = np.asarray(ctx.constant(op, "paddings"))
    _check_paddings(paddings, len(x.dims))
    zero = b.constant(0, x.dtype)
    for axis, (before, after) in enumerate(paddings.tolist()):
        size = x.dims[axis] - before - after
        inner = _part(b, x, axis, before, before + size)
        for part, start in (
            (_part(b, x, axis, 0, before), inset),
            (_part(b, x, axis, before + size, x.dims[axis]), size - inset - after),
        ):
            around = [(0, 0, 0)] * len(x.dims)
            around[axis] = (start, size - start - part.dims[axis], 0)
            inner = inner + b.pad(b.reverse(part, [axis]), zero, around)
        x = inner
    return [x]


def _mirror_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("MirrorPadGrad", [grad, op.inputs[1]], {"mode": op.get_attr("mode")}), None]


def _mirror_grad_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return [node("MirrorPad", [grad, op.inputs[1]], {"mode": op.get_attr("mode")}), None]


for _name, _lower, _gradient in (
    ("MirrorPad", _mirror_lower, _mirror_gradient),
    ("MirrorPadGrad", _mirror_grad_lower, _mirror_grad_gradient),
):
    declare(
        _name,
        ("input", "paddings"),
        _mirror_infer,
        _lower,
        _gradient,
        MOVEMENT,
        attrs=("mode",),
        constant_inputs=("paddings",),
    )
