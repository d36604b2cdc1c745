"""Elementwise operations of one operand."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.ir.op import Evaluator, OpDef, Trait
from xlalite.hlo.late import LateFunctions
from xlalite.hlo.numerics.rounding import (
    AnyArray,
    ArrayFunction,
    in_own_precision,
    in_whole_bytes,
    in_wider_precision,
)
from xlalite.hlo.ops.evaluation.lifting import elementwise
from xlalite.hlo.ops.rules.elementwise_rules import (
    TypeTest,
    is_float,
    is_float_or_complex,
    is_integral,
    is_number,
    is_pred_or_integral,
    is_signed_number,
    unary_rule,
)
from xlalite.hlo.types.dtype import DType

complex_functions = LateFunctions("xlalite.hlo.numerics.complex_functions")
error_function = LateFunctions("xlalite.hlo.numerics.erf")
integers = LateFunctions("xlalite.hlo.numerics.integers")
real = LateFunctions("xlalite.hlo.numerics.real")

_ELEMENTWISE = Trait.ELEMENTWISE
_TRANSCENDENTAL = Trait.ELEMENTWISE | Trait.TRANSCENDENTAL


def _unary(name: str, summary: str, test: TypeTest, evaluate: Evaluator) -> OpDef:
    return OpDef(name, summary, 1, unary_rule(test), evaluate, traits=_ELEMENTWISE)


def _exact(name: str, summary: str, function: ArrayFunction) -> OpDef:
    """A floating-point operation whose result is correctly rounded."""
    return _unary(name, summary, is_float, elementwise(real=in_own_precision(function)))


# Complex values at zero, infinity and NaN are those of the C standard's Annex G, also where XLA computes NaN instead:
# exp(inf + i inf) is infinite, exp(-inf + i NaN) and logistic(-inf + i NaN) are 0.
def _transcendental(
    name: str, summary: str, function: ArrayFunction, complex_function: ArrayFunction | None = None
) -> OpDef:
    """A function of real and complex numbers; NumPy's serves both where no other is given for complex numbers."""
    evaluate = elementwise(real=in_wider_precision(function), complex_=in_wider_precision(complex_function or function))
    return OpDef(name, summary, 1, unary_rule(is_float_or_complex), evaluate, traits=_TRANSCENDENTAL)


def _bits_of(values: AnyArray) -> int:
    return DType.from_numpy(values.dtype).bits


def _counting(count: ArrayFunction) -> ArrayFunction:
    """A count of bits, which needs the width of the element type and not that of its storage."""

    def apply(x: AnyArray) -> AnyArray:
        bits = _bits_of(x)
        return in_whole_bytes(lambda values: count(values, bits))(x)

    return apply


def _copy(x: AnyArray) -> AnyArray:
    return x


OPS = (
    OpDef(
        "abs",
        "|x|; the smallest integer stays; of a complex number its magnitude",
        1,
        unary_rule(is_signed_number, lambda dtype: dtype.component),
        elementwise(
            integer=in_whole_bytes(np.abs),
            real=in_own_precision(np.abs),
            complex_=in_wider_precision(complex_functions.magnitude),
        ),
        traits=_ELEMENTWISE,
    ),
    _unary(
        "negate",
        "-x; integers wrap",
        is_number,
        elementwise(integer=in_whole_bytes(np.negative), real=in_own_precision(np.negative), complex_=np.negative),
    ),
    _unary(
        "sign",
        "-1, 0 or 1 with the sign of zero and NaN kept; of a complex number x/|x|, and of an infinite part beside a "
        "finite one the limit (XLA: NaN)",
        is_signed_number,
        elementwise(
            integer=in_whole_bytes(np.sign),
            real=in_own_precision(real.sign),
            complex_=in_wider_precision(complex_functions.sign),
        ),
    ),
    _unary(
        "not",
        "logical not of pred, bitwise not of integers",
        is_pred_or_integral,
        elementwise(pred=np.logical_not, integer=in_whole_bytes(np.invert)),
    ),
    _unary("popcnt", "number of bits set", is_integral, elementwise(integer=_counting(integers.population_count))),
    _unary(
        "count-leading-zeros",
        "number of zero bits above the highest one; the width for 0",
        is_integral,
        elementwise(integer=_counting(integers.count_leading_zeros)),
    ),
    _exact("ceil", "smallest integer >= x", np.ceil),
    _exact("floor", "largest integer <= x", np.floor),
    _exact("round-nearest-afz", "nearest integer, halves away from zero", real.round_half_away),
    _exact("round-nearest-even", "nearest integer, halves to even", np.rint),
    OpDef(
        "is-finite",
        "neither infinite nor NaN",
        1,
        unary_rule(is_float, lambda dtype: DType.PRED),
        elementwise(real=lambda x: np.isfinite(x if x.dtype.isbuiltin == 1 else x.astype(np.float32))),
        traits=_ELEMENTWISE,
    ),
    _transcendental("exponential", "e^x", np.exp),
    _transcendental("exponential-minus-one", "e^x - 1, accurate near 0", np.expm1, complex_functions.exp_minus_one),
    _transcendental("log", "natural logarithm", np.log),
    _transcendental("log-plus-one", "log(1 + x), accurate near 0", np.log1p, complex_functions.log_plus_one),
    _transcendental("logistic", "1 / (1 + e^-x)", real.logistic, complex_functions.logistic),
    _transcendental("tanh", "hyperbolic tangent", np.tanh),
    _transcendental("tan", "tangent", np.tan),
    _transcendental("sine", "sine", np.sin),
    _transcendental("cosine", "cosine", np.cos),
    _transcendental("asin", "inverse sine", np.arcsin),
    _transcendental("acos", "inverse cosine", np.arccos),
    _transcendental("atan", "inverse tangent", np.arctan),
    _transcendental("asinh", "inverse hyperbolic sine", np.arcsinh),
    _transcendental("acosh", "inverse hyperbolic cosine", np.arccosh),
    _transcendental("atanh", "inverse hyperbolic tangent", np.arctanh),
    _transcendental("sinh", "hyperbolic sine", np.sinh),
    _transcendental("cosh", "hyperbolic cosine", np.cosh),
    _unary(
        "sqrt",
        "square root; NaN for negative numbers",
        is_float_or_complex,
        elementwise(real=in_own_precision(np.sqrt), complex_=in_wider_precision(np.sqrt)),
    ),
    _transcendental("rsqrt", "1 / sqrt(x)", lambda x: 1 / np.sqrt(x), complex_functions.reciprocal_square_root),
    OpDef(
        "cbrt",
        "cube root, with the sign of x",
        1,
        unary_rule(is_float),
        elementwise(real=in_wider_precision(np.cbrt)),
        traits=_TRANSCENDENTAL,
    ),
    OpDef(
        "erf",
        "2/sqrt(pi) * integral of exp(-t^2) from 0 to x",
        1,
        unary_rule(is_float),
        elementwise(real=in_wider_precision(error_function.erf)),
        traits=_TRANSCENDENTAL,
    ),
    OpDef(
        "real",
        "real part; x itself for real types",
        1,
        unary_rule(is_float_or_complex, lambda dtype: dtype.component),
        elementwise(real=_copy, complex_=lambda x: x.real),
        traits=_ELEMENTWISE,
        flops=lambda instruction: 0,
    ),
    OpDef(
        "imag",
        "imaginary part; 0 for real types",
        1,
        unary_rule(is_float_or_complex, lambda dtype: dtype.component),
        elementwise(real=lambda x: np.zeros(x.shape).astype(x.dtype), complex_=lambda x: x.imag),
        traits=_ELEMENTWISE,
        flops=lambda instruction: 0,
    ),
)
