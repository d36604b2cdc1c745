"""Running sums and products along a dimension, and sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, NUMERIC_TYPES, int32
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.cumulative import cumulative, cumulative_log_sum_exp
from xlalite.hlo.errors import ShapeError
from xlalite.ops.declarations.segments import highest, lowest
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import REAL_TYPES, declare
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, shape_tensor
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import constant_axes, normalize_axis, require_scalar, require_type


def _infer(op: Operation) -> Sequence[OutputType]:
    x, axis = op.inputs
    allowed = {"CumulativeLogsumexp": FLOATING_TYPES, "_Cummax": REAL_TYPES, "_Cummin": REAL_TYPES}
    require_type(x, allowed.get(op.type, NUMERIC_TYPES))
    require_type(axis, INTEGER_TYPES, "axis")
    require_scalar(axis, "axis")
    if x.shape.rank is not None:
        constant_axes(axis, x.shape.rank)
    return [(x.dtype, x.shape)]


def _declare(name: str, combine: Callable[..., Handle], gradient: OneOutputGradient) -> None:
    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        x = inputs[0]
        axis = normalize_axis(int(ctx.constant(op, "axis")), x.shape.rank)
        return [combine(x, axis, reverse=bool(op.get_attr("reverse")), exclusive=bool(op.get_attr("exclusive")))]

    declare(
        name, ("x", "axis"), _infer, lower, gradient, None, attrs=("exclusive", "reverse"), constant_inputs=("axis",)
    )


def _sum_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    attrs = {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
    return [node("Cumsum", [grad, op.inputs[1]], attrs), None]


def _product_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Not defined where an element is 0, as in TensorFlow."""
    x, axis = op.inputs
    attrs = {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
    return [node("Cumsum", [op.outputs[0] * grad, axis], attrs) / x, None]


_declare("Cumsum", partial(cumulative, combine="add", identity=0), _sum_gradient)
_declare("Cumprod", partial(cumulative, combine="multiply", identity=1), _product_gradient)


# _Cummax(x, axis), _Cummin(x, axis): the largest or smallest element so far; its gradient goes to where it came first.


def _extreme(x: Handle, axis: int, *, combine: str, reverse: bool, exclusive: bool) -> Handle:
    limit = lowest(x.dtype) if combine == "maximum" else highest(x.dtype)
    identity = np.copysign(np.inf, limit) if x.dtype.is_floating else limit
    return cumulative(x, axis, combine, identity.item(), reverse=reverse, exclusive=exclusive)


def _extreme_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, axis = op.inputs
    known = None if x.shape.rank is None else constant_axes(axis, x.shape.rank)
    if known is None:
        raise ShapeError(f"the gradient of {op.type} needs a known rank")
    reverse = bool(op.get_attr("reverse"))
    before = node(op.type, [x, axis], {"exclusive": True, "reverse": reverse})
    ones = node("Cast", [node("OnesLike", [x])], {"dtype": int32})
    number = node("Cumsum", [ones, axis], {"exclusive": True, "reverse": reverse})
    is_better = node("Greater" if op.type == "_Cummax" else "Less", [x, before])
    starts = node("LogicalOr", [is_better, node("Equal", [number, constant(0)])])
    latest = node("SelectV2", [starts, number, node("ZerosLike", [number])])
    latest = node("_Cummax", [latest, axis], {"exclusive": False, "reverse": reverse})
    sizes, flat, zero = shape_tensor(x), constant(np.array([-1], np.int32)), constant(0)
    later = constant(np.arange(known[0] + 1, x.shape.rank, dtype=np.int32))
    stride = node("Prod", [node("GatherV2", [sizes, later, zero]), zero], {"keep_dims": False})
    distance = (number - latest) * stride
    count = node("Prod", [sizes, zero], {"keep_dims": False})
    places = node("Reshape", [node("Range", [zero, count, constant(1)]), sizes])
    target = places + distance if reverse else places - distance
    parts = [node("Reshape", [each, flat]) for each in (grad, target)]
    return [node("Reshape", [node("UnsortedSegmentSum", [*parts, count]), sizes]), None]


_declare("_Cummax", partial(_extreme, combine="maximum"), _extreme_gradient)
_declare("_Cummin", partial(_extreme, combine="minimum"), _extreme_gradient)


def _logsumexp_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """Running sums from the other side of what arrived over e^y, positive and negative parts by their logarithms."""
    x, axis = op.inputs
    attrs = {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}
    nothing = node("ZerosLike", [grad])

    def part(sign: int) -> Tensor:
        signed = grad if sign > 0 else -grad
        is_positive = node("Greater", [signed, nothing])
        safe = node("SelectV2", [is_positive, signed, node("OnesLike", [grad])])
        shifted = node("Log", [safe]) - op.outputs[0]
        logarithm = node("SelectV2", [is_positive, shifted, nothing - math.inf])
        return node("Exp", [node("CumulativeLogsumexp", [logarithm, axis], attrs) + x])

    return [part(1) - part(-1), None]


_declare("CumulativeLogsumexp", cumulative_log_sum_exp, _logsumexp_gradient)
