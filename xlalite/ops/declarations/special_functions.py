"""Functions of mathematics beyond the elementary ones. They are computed in f64, so that narrower types round once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xlalite.framework.graph.dtypes import FLOATING_TYPES
from xlalite.framework.graph.op_spec import OutputType
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.broadcasting import broadcast_dims
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_to
from xlalite.hlo.stablehlo.special_functions.bessel_functions import bessel_i0e, bessel_i1e
from xlalite.hlo.stablehlo.special_functions.error_functions import erf_inv, erfc, normal_quantile
from xlalite.hlo.stablehlo.special_functions.gamma_functions import digamma, lgamma, polygamma, zeta
from xlalite.hlo.types.dtype import DType as HloDType
from xlalite.ops.declarations.elementwise_unary import along
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.declare import ELEMENTWISE, declare, declare_binary, declare_unary
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, sum_to, sum_to_operands
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.shape_rules import broadcast_shapes, require_same_type, require_type

_F64 = HloDType.F64
Function = Callable[..., Handle]


def _in_f64(function: Function) -> Function:
    """A function of f64 numbers, for all types: the builder first."""

    def rounded(b: Builder, *operands: Handle) -> Handle:
        return b.convert(function(*(b.convert(operand, _F64) for operand in operands)), operands[0].dtype)

    return rounded


def _of(op_type: str, *operands: Tensor) -> Tensor:
    return node(op_type, operands)


def _x(op: Operation) -> Tensor:
    return op.inputs[0]


def _y(op: Operation) -> Tensor:
    return op.outputs[0]


def _like(x: Tensor, value: float) -> Tensor:
    return constant(value, x.dtype)


# One operand.


def _declare(name: str, function: Function, slope: Callable[[Operation], Tensor]) -> None:
    declare_unary(name, _in_f64(function), along(slope), FLOATING_TYPES)


def _i1e_slope(op: Operation) -> Tensor:
    """i0e - y (sign(x) + 1/x), which is 1/2 at 0."""
    x, y = _x(op), _y(op)
    is_zero = _of("Equal", x, node("ZerosLike", [x]))
    safe = _of("SelectV2", is_zero, node("OnesLike", [x]), x)
    slope = _of("BesselI0e", x) - y * (_of("Sign", x) + _of("Reciprocal", safe))
    return _of("SelectV2", is_zero, _like(x, 0.5), slope)


_declare("Lgamma", lgamma, lambda op: _of("Digamma", _x(op)))
_declare("Digamma", digamma, lambda op: _of("Polygamma", _like(_x(op), 1), _x(op)))
_declare("Erfc", erfc, lambda op: -2 / math.sqrt(math.pi) * _of("Exp", -_of("Square", _x(op))))
_declare("Erfinv", erf_inv, lambda op: math.sqrt(math.pi) / 2 * _of("Exp", _of("Square", _y(op))))
_declare("Ndtri", normal_quantile, lambda op: math.sqrt(2 * math.pi) * _of("Exp", _of("Square", _y(op)) / 2))
_declare("BesselI0e", bessel_i0e, lambda op: _of("BesselI1e", _x(op)) - _of("Sign", _x(op)) * _y(op))
_declare("BesselI1e", bessel_i1e, _i1e_slope)


# Two operands.


def _zeta_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    s, q = op.inputs
    return sum_to_operands(op, None, -grad * s * _of("Zeta", s + 1, q))


def _polygamma_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    n, x = op.inputs
    return sum_to_operands(op, None, grad * _of("Polygamma", n + 1, x))


declare_binary("Zeta", _in_f64(zeta), _zeta_gradient, FLOATING_TYPES)
declare_binary("Polygamma", _in_f64(polygamma), _polygamma_gradient, FLOATING_TYPES)


# The incomplete gamma and beta functions: sums and continued fractions, as many terms as the slowest element needs.

_MOST_TERMS = 2000
_TOLERANCE = 2.0**-54
_TINY = 1e-290


def _repeated(
    b: Builder, start: Sequence[Handle], captured: Sequence[Handle], step: Callable[..., Sequence[Handle]]
) -> list[Handle]:
    """Repeats `step(number, state, captured) -> (next state, whether each element goes on)` until no element does."""
    count = len(start)
    shape = start[0].dims
    first = b.tuple([b.constant(1.0, _F64), b.full(True, HloDType.PRED, shape), *start, *captured])

    def condition(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        state = parameters[0]
        goes_on = inner.reduce(state[1], inner.constant(False), range(len(shape)), "or")
        return goes_on & inner.compare(state[0], float(_MOST_TERMS), "LT")

    def body(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        state = parameters[0]
        values = [state[2 + i] for i in range(count)]
        more = [state[2 + count + i] for i in range(len(captured))]
        *following, goes_on = step(inner, state[0], values, more)
        active = state[1]
        kept = [inner.select(active, new, old) for new, old in zip(following, values, strict=True)]
        return inner.tuple([state[0] + 1.0, active & goes_on, *kept, *more])

    called = (
        b.subcomputation("some_go_on", (first.shape,), condition),
        b.subcomputation("one_more_term", (first.shape,), body),
    )
    result = b.op("while", (first,), None, called)
    return [result[2 + i] for i in range(count)]


def _power_and_exponential(a: Handle, x: Handle) -> Handle:
    """x^a e^-x / gamma(a + 1)."""
    b = a.builder
    return b.op("exponential", (a * b.op("log", (x,)) - x - lgamma(a + 1.0),))


def _gamma_series(a: Handle, x: Handle) -> tuple[Handle, Handle]:
    """The sum of x^n / ((a + 1) ... (a + n)) and its derivative by a."""
    b = a.builder
    one, zero = b.full(1.0, _F64, a.dims), b.full(0.0, _F64, a.dims)

    def step(b: Builder, n: Handle, state: Sequence[Handle], given: Sequence[Handle]) -> Sequence[Handle]:
        term, slope, total, total_slope = state
        divisor = given[0] + n
        factor = given[1] / divisor
        slope = (slope - term / divisor) * factor
        term = term * factor
        grows = b.compare(b.op("abs", (term,)), total * _TOLERANCE, "GT")
        size = b.op("abs", (total_slope,)) * _TOLERANCE
        grows = grows | b.compare(b.op("abs", (slope,)), size, "GT")
        return term, slope, total + term, total_slope + slope, grows

    _, _, total, slope = _repeated(b, [one, zero, one, zero], [a, x], step)
    return total, slope


def _gamma_fraction(a: Handle, x: Handle) -> Handle:
    """gamma(a) Q(a, x) e^x x^-a as a continued fraction, by Lentz's rule."""
    b = a.builder

    def step(b: Builder, n: Handle, state: Sequence[Handle], given: Sequence[Handle]) -> Sequence[Handle]:
        c, d, value = state
        a, x = given
        numerator = (a - n) * n
        denominator = x - a + 1.0 + n * 2.0
        d = 1.0 / _not_zero(denominator + numerator * d)
        c = _not_zero(denominator + numerator / c)
        change = c * d
        goes_on = b.compare(b.op("abs", (change - 1.0,)), _TOLERANCE, "GT")
        return c, d, value * change, goes_on

    first = _not_zero(x - a + 1.0)
    start = 1.0 / first
    return _repeated(b, [b.full(1 / _TINY, _F64, a.dims), start, start], [a, x], step)[2]


def _not_zero(x: Handle) -> Handle:
    b = x.builder
    return b.select(b.compare(b.op("abs", (x,)), _TINY, "LT"), b.full(_TINY, _F64, x.dims), x)


def _incomplete_gamma(a: Handle, x: Handle, upper: bool) -> Handle:
    """P(a, x), or Q(a, x) = 1 - P: the sum up to a + 1, the fraction beyond; what is not asked for is not iterated."""
    b = a.builder
    one = b.full(1.0, _F64, a.dims)
    valid = b.compare(a, 0.0, "GT") & b.compare(x, 0.0, "GE")
    at_zero, at_infinity = b.compare(x, 0.0, "EQ"), b.compare(x, math.inf, "EQ")
    inner = valid & ~at_zero & ~at_infinity
    by_sum = b.compare(x, a + 1.0, "LE")
    safe_a, safe_x = b.select(inner, a, one), b.select(inner, x, one)
    near_a, near_x = b.select(by_sum, safe_a, one), b.select(by_sum, safe_x, one)
    far_a, far_x = b.select(by_sum, one, safe_a), b.select(by_sum, b.full(3.0, _F64, a.dims), safe_x)
    near = _power_and_exponential(near_a, near_x) * _gamma_series(near_a, near_x)[0]
    far = _power_and_exponential(far_a, far_x) * far_a * _gamma_fraction(far_a, far_x)
    found = b.select(by_sum, 1.0 - near, far) if upper else b.select(by_sum, near, 1.0 - far)
    found = b.select(at_zero, one if upper else one * 0.0, found)
    found = b.select(at_infinity, one * 0.0 if upper else one, found)
    return b.select(valid, found, one * math.nan)


def _gamma_slope(a: Handle, x: Handle) -> Handle:
    """The derivative of P(a, x) by a, from that of the sum; where x is so large that the sum overflows it is 0."""
    b = a.builder
    zero = b.full(0.0, _F64, a.dims)
    inner = b.compare(a, 0.0, "GT") & b.compare(x, 0.0, "GT") & b.compare(x, a + 600.0, "LT")
    safe_a, safe_x = b.select(inner, a, zero + 1.0), b.select(inner, x, zero + 1.0)
    total, slope = _gamma_series(safe_a, safe_x)
    of_factor = b.op("log", (safe_x,)) - digamma(safe_a + 1.0)
    return b.select(inner, _power_and_exponential(safe_a, safe_x) * (total * of_factor + slope), zero)


def _gamma_gradient(sign: int) -> OneOutputGradient:
    def gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
        a, x = op.inputs
        density = node("Exp", [(a - 1) * _of("Log", x) - x - _of("Lgamma", a)])
        signed = grad * sign
        return sum_to_operands(op, signed * _of("IgammaGradA", a, x), signed * density)

    return gradient


declare_binary("Igamma", _in_f64(lambda a, x: _incomplete_gamma(a, x, False)), _gamma_gradient(1), FLOATING_TYPES)
declare_binary("Igammac", _in_f64(lambda a, x: _incomplete_gamma(a, x, True)), _gamma_gradient(-1), FLOATING_TYPES)
declare_binary("IgammaGradA", _in_f64(_gamma_slope), None, FLOATING_TYPES)


def _sample_slope(alpha: Handle, sample: Handle) -> Handle:
    """How a gamma-distributed number grows with its parameter while its probability stays (Figurnov et al. 2018)."""
    b = alpha.builder
    log_density = (alpha - 1.0) * b.op("log", (sample,)) - sample - lgamma(alpha)
    return -_gamma_slope(alpha, sample) / b.op("exponential", (log_density,))


declare_binary("RandomGammaGrad", _in_f64(_sample_slope), None, FLOATING_TYPES)


# Betainc(a, b, x).


def _beta_fraction(a: Handle, b: Handle, x: Handle) -> Handle:
    """The continued fraction of the incomplete beta function, two of its steps at a time, by Lentz's rule."""
    builder = a.builder

    def step(inner: Builder, n: Handle, state: Sequence[Handle], given: Sequence[Handle]) -> Sequence[Handle]:
        c, d, value = state
        a, b, x = given
        even = (b - n) * n * x / ((a + n * 2.0 - 1.0) * (a + n * 2.0))
        odd = -((a + n) * (a + b + n)) * x / ((a + n * 2.0) * (a + n * 2.0 + 1.0))
        change = None
        for coefficient in (even, odd):
            d = 1.0 / _not_zero(coefficient * d + 1.0)
            c = _not_zero(coefficient / c + 1.0)
            change = c * d
            value = value * change
        assert change is not None, "there are two steps"
        goes_on = inner.compare(inner.op("abs", (change - 1.0,)), _TOLERANCE, "GT")
        return c, d, value, goes_on

    one = builder.full(1.0, _F64, a.dims)
    d = 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1.0))
    return _repeated(builder, [one, d, d], [a, b, x], step)[2]


def _incomplete_beta(a: Handle, b: Handle, x: Handle) -> Handle:
    """I_x(a, b); beyond the mean it is 1 - I_(1 - x)(b, a)."""
    builder = a.builder
    one = builder.full(1.0, _F64, a.dims)
    valid = builder.compare(a, 0.0, "GT") & builder.compare(b, 0.0, "GT")
    valid = valid & builder.compare(x, 0.0, "GE") & builder.compare(x, 1.0, "LE")
    ends = builder.compare(x, 0.0, "EQ") | builder.compare(x, 1.0, "EQ")
    inner = valid & ~ends
    a, b = builder.select(inner, a, one), builder.select(inner, b, one)
    given, x = x, builder.select(inner, x, one * 0.5)
    turned = builder.compare(x, (a + 1.0) / (a + b + 2.0), "GT")
    p, q = builder.select(turned, b, a), builder.select(turned, a, b)
    y = builder.select(turned, 1.0 - x, x)
    powers = p * builder.op("log", (y,)) + q * builder.op("log-plus-one", (-y,))
    factor = builder.op("exponential", (powers + lgamma(p + q) - lgamma(p) - lgamma(q),)) / p
    found = factor * _beta_fraction(p, q, y)
    found = builder.select(turned, 1.0 - found, found)
    return builder.select(valid, builder.select(ends, given, found), one * math.nan)


def _betainc_infer(op: Operation) -> Sequence[OutputType]:
    dtype = require_same_type(op.inputs)
    require_type(op.inputs[0], FLOATING_TYPES)
    a, b, x = (tensor.shape for tensor in op.inputs)
    return [(dtype, broadcast_shapes(broadcast_shapes(a, b), x))]


def _betainc_lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
    a, b, x = inputs
    dims = broadcast_dims(broadcast_dims(a.dims, b.dims), x.dims)
    return [_in_f64(_incomplete_beta)(ctx.builder, *(broadcast_to(ctx.builder, each, dims) for each in inputs))]


def _betainc_gradient(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    """By x only, as in TensorFlow; all operands have one shape, or are scalars."""
    a, b, x = op.inputs
    logarithm = _of("Lgamma", a + b) - _of("Lgamma", a) - _of("Lgamma", b)
    powers = (b - 1) * _of("Log1p", -x) + (a - 1) * _of("Log", x)
    slope = grad * _of("Exp", powers + logarithm)
    return [None, None, sum_to(slope, x, slope)]


declare("Betainc", ("a", "b", "x"), _betainc_infer, _betainc_lower, _betainc_gradient, ELEMENTWISE)
