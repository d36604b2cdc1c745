"""Numbers as integers of a quantised type, and back: integer n stands for (n - origin) unit + offset.

Each mode has units of its own, as TensorFlow's kernels compute them: MIN_COMBINED spreads the integers evenly over the
range, MIN_FIRST moves that so that 0 is one of the numbers, in SCALED the integer 0 stands for 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from xlalite.framework.graph.dtypes import QUANTIZED_TYPES, DType, bfloat16, float32
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.ops.helpers.declare import declare, declare_outputs
from xlalite.ops.helpers.shape_rules import normalize_axis, require_scalar, require_type

_MODES: Final = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
_INPUTS: Final = ("input", "min_range", "max_range")


def _one_of(op: Operation, attr: str, known: Sequence[str]) -> str:
    found: str = op.get_attr(attr)
    if found not in known:
        raise InvalidArgumentError(None, op, f"{attr} must be one of {', '.join(known)}, found {found!r}")
    return found


def _ends_shape(op: Operation) -> TensorShape:
    """The shape of the ends of the range: one for all, or one for each place along a dimension."""
    x, low, high = op.inputs
    require_type(low, {float32}, "min_range")
    require_type(high, {float32}, "max_range")
    _one_of(op, "mode", _MODES)
    axis = op.get_attr("axis")
    if axis == -1:
        require_scalar(low, "min_range")
        require_scalar(high, "max_range")
        return TensorShape(())
    ends = low.shape.with_rank(1).merge_with(high.shape)
    if x.shape.dims is None:
        return ends
    return ends.merge_with([x.shape.dims[normalize_axis(axis, len(x.shape.dims))]])


def _limits(op: Operation, dtype: DType) -> tuple[int, int]:
    """The least and the largest integer; the mode SCALED may leave out the least."""
    limits = dtype.limits()
    is_narrow = op.get_attr("mode") == "SCALED" and op.get_attr("narrow_range")
    return int(limits.min) + is_narrow, int(limits.max)


def _along(b: Builder, op: Operation, x: Handle, *ends: Handle) -> list[Handle]:
    along = [op.get_attr("axis") % len(x.dims)] if ends[0].dims else []
    return [b.broadcast(each, x.dims, along) for each in ends]


# Dequantize(input, min_range, max_range).


def _dequantize_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], QUANTIZED_TYPES)
    _ends_shape(op)
    if op.get_attr("dtype") not in (float32, bfloat16):
        raise InvalidArgumentError(None, op, f"dtype must be float32 or bfloat16, found {op.get_attr('dtype').name}")
    return [(op.get_attr("dtype"), op.inputs[0].shape)]


def _dequantize(b: Builder, op: Operation, x: Handle, low: Handle, high: Handle) -> Handle:
    mode = op.get_attr("mode")
    lowest, highest = _limits(op, op.inputs[0].dtype)
    if mode == "SCALED":
        unit = high / highest if lowest >= 0 else b.op("maximum", (low / lowest, high / highest))
        origin, offset = 0, b.full(0, unit.dtype, unit.dims)
    else:
        unit = (high - low) / (highest - lowest)
        origin, offset = lowest, low
        if mode == "MIN_FIRST":
            moved = b.op("round-nearest-afz", (low / unit,)) * unit
            offset = b.select(b.compare(low, high, "EQ"), low, moved)
    unit, offset = _along(b, op, x, unit, offset)
    return (b.convert(x, unit.dtype) - origin) * unit + offset


def _dequantize_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.convert(_dequantize(ctx.builder, op, *inputs), op.outputs[0].dtype.hlo)]


_DEQUANTIZE: Final = {"mode": "MIN_COMBINED", "narrow_range": False, "axis": -1, "dtype": float32}
declare(
    "Dequantize",
    _INPUTS,
    _dequantize_infer,
    _dequantize_lower,
    None,
    None,
    attrs=tuple(_DEQUANTIZE),
    defaults=_DEQUANTIZE,
)


# QuantizeV2(input, min_range, max_range): also gives the range that it took.


def _quantize_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], {float32})
    if op.get_attr("T") not in QUANTIZED_TYPES:
        raise InvalidArgumentError(None, op, f"T must be a quantised type, found {op.get_attr('T').name}")
    ends = _ends_shape(op)
    rounding = _one_of(op, "round_mode", ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN"))
    if rounding == "HALF_TO_EVEN" and op.get_attr("mode") != "SCALED":
        raise InvalidArgumentError(None, op, f"round_mode HALF_TO_EVEN needs mode SCALED, found {op.get_attr('mode')}")
    return [(op.get_attr("T"), op.inputs[0].shape), (float32, ends), (float32, ends)]


def _range(b: Builder, op: Operation, low: Handle, high: Handle) -> tuple[Handle, Handle]:
    """The range with 0 in it and some distance between its ends."""
    zero = b.full(0, low.dtype, low.dims)
    size = b.op("maximum", (b.op("abs", (low,)), b.op("abs", (high,))))
    least = b.op("maximum", (zero + 1, size)) * op.get_attr("ensure_minimum_range")
    low = b.op("minimum", (zero, low))
    return low, b.op("maximum", (zero, b.op("maximum", (high, low + least))))


def _scaled(b: Builder, limits: tuple[int, int], low: Handle, high: Handle) -> tuple[Handle, Handle, Handle]:
    """How many integers there are to 1, and the ends of the range that this makes."""
    none = b.full(np.finfo(np.float32).max, low.dtype, low.dims)
    scales = [
        b.select(b.compare(end * limit, 0, "GT"), b.full(limit, end.dtype, end.dims) / end, none)
        for limit, end in zip(limits, (low, high), strict=True)
    ]
    scale = b.op("minimum", (scales[0], scales[1]))
    first, last = (b.full(limit, scale.dtype, scale.dims) / scale for limit in limits)
    return scale, first, last


def _quantize_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, *given) = ctx.builder, inputs
    dtype, mode = op.get_attr("T"), op.get_attr("mode")
    lowest, highest = _limits(op, dtype)
    low, high = _range(b, op, *given)
    if mode == "SCALED":
        scale, low, high = _scaled(b, (lowest, highest), low, high)
    else:
        scale = b.full(highest - lowest, low.dtype, low.dims) / (high - low)
    rounded = "round-nearest-even" if op.get_attr("round_mode") == "HALF_TO_EVEN" else "round-nearest-afz"
    bottom, top, scales = _along(b, op, x, low, high, scale)
    inside = b.op("clamp", (bottom, x, top))
    if mode == "SCALED":
        found = b.op(rounded, (inside * scales,))
    elif mode == "MIN_COMBINED":
        found = b.op(rounded, ((inside - bottom) * scales + lowest,))
    else:
        moved = b.op(rounded, (x * scales,)) - b.op(rounded, (bottom * scales,)) + lowest
        found = b.op("clamp", (b.full(lowest, x.dtype, x.dims), moved, b.full(highest, x.dtype, x.dims)))
    return [b.convert(found, dtype.hlo), low, high]


_QUANTIZE: Final = {
    **{"mode": "MIN_COMBINED", "round_mode": "HALF_AWAY_FROM_ZERO", "narrow_range": False, "axis": -1},
    "ensure_minimum_range": 0.01,
}
declare_outputs(
    "QuantizeV2",
    _INPUTS,
    _quantize_infer,
    _quantize_lower,
    None,
    None,
    attrs=("T", *_QUANTIZE),
    defaults=_QUANTIZE,
)
