"""Elements of operations on complex numbers: sums and products here, functions from `complex_math`."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.complex_math import COMPLEX_FUNCTIONS, emit_complex
from xlalite.backends.codegen.elements.elementwise import ComplexRule
from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.hlo.types.dtype import DType

Complex = tuple[Value, Value]


def add(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """Sum."""
    return fb.fadd(x[0], y[0]), fb.fadd(x[1], y[1])


def subtract(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """Difference."""
    return fb.fsub(x[0], y[0]), fb.fsub(x[1], y[1])


def multiply(fb: FunctionBuilder, x: Complex, y: Complex) -> Complex:
    """(ac - bd) + (ad + bc)i."""
    a, b = x
    c, d = y
    return (
        fb.fsub(fb.fmul(a, c, ""), fb.fmul(b, d, ""), ""),
        fb.fadd(fb.fmul(a, d, ""), fb.fmul(b, c, ""), ""),
    )


def _function(name: str) -> ComplexRule:
    def rule(fb: FunctionBuilder, dtype: DType, operands: tuple[Complex, ...]) -> Element:
        return emit_complex(fb, name, *operands)

    return rule


COMPLEX_RULES: dict[str, ComplexRule] = {
    "add": lambda fb, dtype, xs: add(fb, *xs),
    "subtract": lambda fb, dtype, xs: subtract(fb, *xs),
    "multiply": lambda fb, dtype, xs: multiply(fb, *xs),
    "negate": lambda fb, dtype, xs: (fb.fneg(xs[0][0]), fb.fneg(xs[0][1])),
    "real": lambda fb, dtype, xs: xs[0][0],
    "imag": lambda fb, dtype, xs: xs[0][1],
    **{name: _function(name) for name in COMPLEX_FUNCTIONS},
}
