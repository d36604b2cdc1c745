"""Functions of single elements that look at what numbers are made of, and guarded ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.framework.graph.dtypes import (
    FLOATING_TYPES,
    INTEGER_TYPES,
    NUMERIC_TYPES,
    bool_,
    complex64,
    complex128,
    float32,
    float64,
    uint8,
)
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import HostContext, HostValue
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_pair, broadcast_to
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.hlo.types.shape import Shape
from xlalite.ops.declarations.elementwise_binary import conjugate, is_not_zero
from xlalite.ops.declarations.elementwise_unary import conjugated
from xlalite.ops.helpers.declare import (
    COMPLEX_TYPES,
    ELEMENTWISE,
    FLOAT_OR_COMPLEX,
    REAL_TYPES,
    declare,
    declare_binary,
    declare_outputs,
    declare_unary,
)
from xlalite.ops.helpers.gradient_rules import of_one_output, sum_to, sum_to_operands
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import broadcast_shapes, require_same_type, require_type, unchanged

# Hyperbolic inverses.

declare_unary("Asinh", "asinh", lambda op, grad: [grad / conjugate(node("Cosh", [op.outputs[0]]))])
declare_unary("Acosh", "acosh", lambda op, grad: [grad / conjugate(node("Sinh", [op.outputs[0]]))])
declare_unary("Atanh", "atanh", lambda op, grad: [grad / conjugate(1 - op.inputs[0] * op.inputs[0])])


# Products and quotients that are 0 where a factor is.


def _unless_zero(b: Builder, x: Handle, value: Handle) -> Handle:
    return b.select(b.compare(x, 0, "EQ"), b.full(0, x.dtype, x.dims), value)


def _xlog1py_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, grad * node("Xlog1py", [is_not_zero(x), y]), grad * node("Xdivy", [x, y + 1]))


def _xdivy_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    by_y = node("Xdivy", [-x, y * y])
    return sum_to_operands(op, grad * node("Xdivy", [is_not_zero(x), y]), grad * by_y)


def _mul_no_nan_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, y = op.inputs
    return sum_to_operands(op, node("MulNoNan", [grad, y]), node("MulNoNan", [x, grad]))


declare_binary(
    "Xlog1py",
    lambda b, x, y: _unless_zero(b, x, x * b.op("log-plus-one", (y,))),
    _xlog1py_gradient,
    FLOATING_TYPES,
)
declare_binary("Xdivy", lambda b, x, y: _unless_zero(b, x, x / y), _xdivy_gradient, FLOAT_OR_COMPLEX)
declare_binary("MulNoNan", lambda b, x, y: _unless_zero(b, y, x * y), _mul_no_nan_gradient, FLOAT_OR_COMPLEX)


# Bits.


def _next_after(b: Builder, x: Handle, y: Handle) -> Handle:
    """The neighbour of x towards y: its bit pattern, read as an integer, plus or minus 1."""
    integer = HloDType.from_name(f"s{x.dtype.bits}")

    def as_bits(value: Handle, dtype: HloDType) -> Handle:
        return b.op("bitcast-convert", (value,), shape=Shape.array(dtype, value.dims))

    bits = as_bits(x, integer)
    away = b.compare(b.compare(y, x, "GT"), b.compare(x, 0.0, "GT"), "EQ")
    neighbour = b.select(away, bits + 1, bits - 1)
    smallest = (as_bits(y, integer) & -(1 << (x.dtype.bits - 1))) | 1
    neighbour = b.select(b.compare(x, 0.0, "EQ"), smallest, neighbour)
    result = b.select(b.compare(x, y, "EQ"), y, as_bits(neighbour, x.dtype))
    ordered = b.compare(x, x, "EQ") & b.compare(y, y, "EQ")
    return b.select(ordered, result, x + y)


declare_binary("NextAfter", _next_after, None, {float32, float64})
declare_unary(
    "PopulationCount",
    lambda b, x: b.convert(b.op("popcnt", (x,)), HloDType.U8),
    None,
    INTEGER_TYPES,
    uint8,
)


# Complex numbers and their parts.

_COMPLEX_OF = {float32: complex64, float64: complex128}
_REAL_OF = {made: part for part, made in _COMPLEX_OF.items()}


def _complex_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], _COMPLEX_OF)
    return [(_COMPLEX_OF[dtype], broadcast_shapes(op.inputs[0].shape, op.inputs[1].shape))]


def _complex_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    return [ctx.builder.op("complex", broadcast_pair(ctx.builder, *inputs))]


def _complex_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    return sum_to_operands(op, node("Real", [grad]), node("Imag", [grad]))


declare("Complex", ("real", "imag"), _complex_infer, _complex_lower, _complex_gradient, ELEMENTWISE)


def _angle_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], COMPLEX_TYPES)
    return [(_REAL_OF[op.inputs[0].dtype], op.inputs[0].shape)]


def _angle_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b = ctx.builder
    return [b.op("atan2", (b.op("imag", inputs), b.op("real", inputs)))]


def _angle_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """I z / |z|^2 for each z, in the direction in which the angle grows."""
    z = op.inputs[0]
    return [node("Cast", [grad], {"dtype": z.dtype}) * 1j / conjugate(z)]


declare("Angle", ("input",), _angle_infer, _angle_lower, _angle_gradient, ELEMENTWISE)


# Comparison with a tolerance, bounds, and a check.


def _approximate_infer(op: Operation) -> Sequence[OutputType]:
    return unchanged(NUMERIC_TYPES, bool_)(op)


def _approximate_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, y) = ctx.builder, inputs
    distance = b.op("abs", (x - y,))
    tolerance = np.float32(op.get_attr("tolerance"))
    wide = HloDType.F32 if distance.dtype is HloDType.F32 else HloDType.F64
    return [b.compare(b.convert(distance, wide), b.constant(tolerance.astype(wide.numpy)), "LT")]


declare("ApproximateEqual", ("x", "y"), _approximate_infer, _approximate_lower, None, ELEMENTWISE, attrs=("tolerance",))


def _clip_infer(op: Operation) -> Sequence[OutputType]:
    require_same_type(op.inputs)
    x, low, high = op.inputs
    require_type(x, REAL_TYPES)
    return [(x.dtype, broadcast_shapes(broadcast_shapes(x.shape, low.shape), high.shape))]


def _clip_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    b, (x, low, high) = ctx.builder, inputs
    bounds = [broadcast_to(b, bound, x.dims) for bound in (low, high)]
    return [b.op("maximum", (b.op("minimum", (x, bounds[1])), bounds[0]))]


def _clip_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    x, low, high = op.inputs
    zeros = node("ZerosLike", [grad])
    below, above = node("Less", [x, low]), node("Greater", [x, high])
    inside = node("LogicalNot", [node("LogicalOr", [below, above])])
    chosen = [node("SelectV2", [where, grad, zeros]) for where in (inside, below, above)]
    return [sum_to(part, own, x) for part, own in zip(chosen, op.inputs, strict=True)]


declare("ClipByValue", ("t", "clip_value_min", "clip_value_max"), _clip_infer, _clip_lower, _clip_gradient, ELEMENTWISE)


def _check_infer(op: Operation) -> Sequence[OutputType]:
    require_type(op.inputs[0], FLOATING_TYPES)
    return [(op.inputs[0].dtype, op.inputs[0].shape)]


def _check_on_host(context: HostContext, op: Operation, inputs: tuple[HostValue, ...]) -> Sequence[HostValue]:
    x = np.asarray(inputs[0])
    wide = x.astype(np.float64)
    found = [what for what, wrong in (("Inf", np.isinf(wide)), ("NaN", np.isnan(wide))) if wrong.any()]
    if found:
        raise InvalidArgumentError(None, op, f"{op.get_attr('message')} : Tensor had {' and '.join(found)} values")
    return [x]


# As in TensorFlow a compiled check lets everything pass.
declare_outputs(
    "CheckNumerics",
    ("tensor",),
    _check_infer,
    lambda ctx, op, inputs: inputs,
    of_one_output(lambda op, grad: [grad]),
    ELEMENTWISE,
    attrs=("message",),
    host_kernel=_check_on_host,
)


# Derivatives in terms of the result y, as operations of their own: (y, dy) -> dx.


def _root_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = op.inputs
    return [-grad * dy / (2 * conjugate(y * y)), grad / (2 * conjugate(y))]


def _inverse_root_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = conjugate(op.inputs[0]), op.inputs[1]
    return [grad * dy * -1.5 * y * y, node("RsqrtGrad", [op.inputs[0], grad])]


def _inverse_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    y, dy = conjugate(op.inputs[0]), op.inputs[1]
    return [grad * dy * -2 * y, node("ReciprocalGrad", [op.inputs[0], grad])]


_DERIVATIVES = unchanged(FLOAT_OR_COMPLEX)


def _sqrt_grad(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    y, dy = inputs
    return [dy * 0.5 / conjugated(ctx.builder, y)]


def _rsqrt_grad(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    y, dy = conjugated(ctx.builder, inputs[0]), inputs[1]
    return [dy * -0.5 * y * y * y]


def _inverse_grad(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    y, dy = conjugated(ctx.builder, inputs[0]), inputs[1]
    return [-dy * y * y]


declare("SqrtGrad", ("y", "dy"), _DERIVATIVES, _sqrt_grad, _root_gradient, ELEMENTWISE)
declare("RsqrtGrad", ("y", "dy"), _DERIVATIVES, _rsqrt_grad, _inverse_root_gradient, ELEMENTWISE)
for _name in ("ReciprocalGrad", "InvGrad"):
    declare(_name, ("y", "dy"), _DERIVATIVES, _inverse_grad, _inverse_gradient, ELEMENTWISE)
