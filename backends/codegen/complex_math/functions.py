"""The table of functions, and their place: short ones where they are used, long ones as functions of the module."""

from __future__ import annotations

import math
from collections.abc import Callable

from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.complex_math.parts import Complex
from xlalite.backends.codegen.llvm import F32, F64, Function, FunctionBuilder, Value, number_of, struct, zero
from xlalite.hlo.late import imported
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class ComplexFunction:
    """How one function is emitted.

    Attributes:
        place: Where the function is that appends the instructions for f64 parts, with contraction switched off.
        arity: Number of operands.
        of_singles: The same for f64 parts that are f32 numbers, where that is shorter; it stands in place.
    """

    place: str
    arity: int = 1
    of_singles: str | None = None


COMPLEX_FUNCTIONS: dict[str, ComplexFunction] = {
    "divide": ComplexFunction(".algebraic:quotient", 2, ".algebraic:quotient_of_singles"),
    "abs": ComplexFunction(".algebraic:absolute", 1, ".algebraic:absolute_of_single"),
    "sign": ComplexFunction(".algebraic:direction", 1, ".algebraic:direction_of_single"),
    "sqrt": ComplexFunction(".algebraic:square_root"),
    "rsqrt": ComplexFunction(".algebraic:reciprocal_root"),
    "exponential": ComplexFunction(".exponential:exponential", 1, ".exponential:exponential_of_single"),
    "exponential-minus-one": ComplexFunction(
        ".exponential:exponential_minus_one", 1, ".exponential:exponential_minus_one_of_single"
    ),
    "logistic": ComplexFunction(".exponential:logistic", 1, ".exponential:logistic_of_single"),
    "sinh": ComplexFunction(".exponential:hyperbolic_sine", 1, ".exponential:hyperbolic_sine_of_single"),
    "cosh": ComplexFunction(".exponential:hyperbolic_cosine", 1, ".exponential:hyperbolic_cosine_of_single"),
    "tanh": ComplexFunction(".exponential:hyperbolic_tangent", 1, ".exponential:hyperbolic_tangent_of_single"),
    "sine": ComplexFunction(".exponential:sine", 1, ".exponential:sine_of_single"),
    "cosine": ComplexFunction(".exponential:cosine", 1, ".exponential:cosine_of_single"),
    "tan": ComplexFunction(".exponential:tangent", 1, ".exponential:tangent_of_single"),
    "log": ComplexFunction(".logarithm:logarithm"),
    "log-plus-one": ComplexFunction(".logarithm:logarithm_plus_one"),
    "power": ComplexFunction(".logarithm:power", 2, ".logarithm:power_of_singles"),
    "atan2": ComplexFunction(".logarithm:atan2", 2),
    "asin": ComplexFunction(".inverse:arc_sine"),
    "acos": ComplexFunction(".inverse:arc_cosine"),
    "atan": ComplexFunction(".inverse:arc_tangent"),
    "asinh": ComplexFunction(".inverse:inverse_hyperbolic_sine"),
    "acosh": ComplexFunction(".inverse:inverse_hyperbolic_cosine"),
    "atanh": ComplexFunction(".inverse:inverse_hyperbolic_tangent"),
}


def emit_complex(fb: FunctionBuilder, name: str, *operands: Complex) -> Element:
    """Appends a function of complex numbers with f32 or f64 parts and returns its result, complex or real."""
    function, narrow = COMPLEX_FUNCTIONS[name], operands[0][0].type.scalar is F32
    wide = [(fb.fpext(a, F64), fb.fpext(b, F64)) if narrow else (a, b) for a, b in operands]
    with fb.contraction(False):
        if name == "divide" and not narrow and _is_real_number(wide[1]):
            result = _function(".algebraic:quotient_by_real")(fb, *wide)
        elif narrow and function.of_singles is not None:
            result = _function(function.of_singles)(fb, *wide)
        else:
            result = _call(fb, name, function, wide)
    if not narrow:
        return result
    if isinstance(result, Value):
        return fb.fptrunc(result, F32)
    return fb.fptrunc(result[0], F32), fb.fptrunc(result[1], F32)


def _is_real_number(z: Complex) -> bool:
    """Whether it is known now, real, finite and not 0."""
    real, imaginary = map(number_of, z)
    return real is not None and real != 0 and math.isfinite(real) and imaginary == 0


def _call(fb: FunctionBuilder, name: str, function: ComplexFunction, operands: list[Complex]) -> Element:
    """A call of the module's own function, which is defined at the first."""
    part = operands[0][0].type
    pair = struct(part, part)

    def define() -> Function:
        body = fb.module.function(
            fb.module.unique_name(f"xlalite.complex.{name}.{part.mangled}"),
            pair,
            (part,) * (2 * function.arity),
            attributes=("nounwind", "willreturn", "memory(none)"),
            linkage="internal",
            contract=False,
        )
        parts = body.parameters
        result = _function(function.place)(body, *zip(parts[::2], parts[1::2], strict=True))
        real, imaginary = (result, result) if isinstance(result, Value) else result
        body.ret(body.insert_value(body.insert_value(zero(pair), real, 0), imaginary, 1))
        return body.function

    callee = fb.module.define_once(("complex", name, part), define)
    result = fb.call(callee, *[part for operand in operands for part in operand])
    real = fb.extract_value(result, 0)
    return real if name == "abs" else (real, fb.extract_value(result, 1))


def _function(place: str) -> Callable[..., Element]:
    function: Callable[..., Element] = imported(place, __package__)
    return function
