"""Local response normalisation: each value beside the squares of the channels around it."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import accumulator_type
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.ops.helpers.declare import WINDOW_WITH_ELEMENTWISE, declare
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import require_same_type, require_type

_DEFAULTS = {"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
_ATTRS = tuple(_DEFAULTS)


def _infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], FLOATING_TYPES)
    if op.get_attr("depth_radius") < 0:
        raise ShapeError(f"depth_radius must not be negative, found {op.get_attr('depth_radius')}")
    shape = op.inputs[0].shape.with_rank(4)
    for tensor in op.inputs[1:]:
        shape = shape.merge_with(tensor.shape)
    return [(dtype, shape)]


def _sum_of_neighbours(b: Builder, op: Operation, x: Handle) -> Handle:
    """For each channel the sum over those at most `depth_radius` away."""
    radius = op.get_attr("depth_radius")
    around = WindowDimension(2 * radius + 1, 1, radius, radius)
    attrs = OPS["reduce-window"].attrs(window=Window((*[WindowDimension(1)] * 3, around)))
    return b.op("reduce-window", (x, b.constant(0, x.dtype)), attrs, (b.scalar_function("add", x.dtype),))


def _norm(b: Builder, op: Operation, x: Handle) -> Handle:
    bias, alpha = float(op.get_attr("bias")), float(op.get_attr("alpha"))
    return _sum_of_neighbours(b, op, x * x) * alpha + bias


def _power(b: Builder, x: Handle, exponent: float) -> Handle:
    return b.op("power", (x, b.full(exponent, x.dtype, x.dims)))


def _lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (narrow,) = ctx.builder, inputs
    x = b.convert(narrow, accumulator_type(narrow.dtype))
    return [b.convert(x * _power(b, _norm(b, op, x), -op.get_attr("beta")), narrow.dtype)]


def _grad_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    """dx_k = dy_k N_k^-beta - 2 alpha beta x_k sum_j dy_j y_j / N_j over the neighbours j of k."""
    b = ctx.builder
    grad, x, y = (b.convert(each, accumulator_type(each.dtype)) for each in inputs)
    norm = _norm(b, op, x)
    shared = _sum_of_neighbours(b, op, grad * y / norm)
    pulled = x * shared * (-2 * op.get_attr("alpha") * op.get_attr("beta"))
    return [b.convert(grad * _power(b, norm, -op.get_attr("beta")) + pulled, inputs[0].dtype)]


def _gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    attrs = {name: op.get_attr(name) for name in _ATTRS}
    return [node("LRNGrad", [grad, op.inputs[0], op.outputs[0]], attrs)]


declare("LRN", ("input",), _infer, _lower, _gradient, WINDOW_WITH_ELEMENTWISE, attrs=_ATTRS, defaults=_DEFAULTS)
declare(
    "LRNGrad",
    ("input_grads", "input_image", "output_image"),
    _infer,
    _grad_lower,
    None,
    WINDOW_WITH_ELEMENTWISE,
    attrs=_ATTRS,
    defaults=_DEFAULTS,
)
