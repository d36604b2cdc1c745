"""Polynomials in one variable, evaluated with fused multiply-adds."""

from collections.abc import Mapping, Sequence

from xlalite.backends.codegen.llvm import F64, FunctionBuilder, Type, Value, constant


def horner(fb: FunctionBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """`c[0] + c[1] * x + ...` by Horner's rule: fewest instructions, longest chain."""
    result = constant(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fb.mul_add(result, x, constant(x.type, coefficient))
    return result


def estrin(fb: FunctionBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """`c[0] + c[1] * x + ...` by pairing terms: a few more instructions, a chain of logarithmic length."""
    terms = [constant(x.type, coefficient) for coefficient in coefficients]
    power = x
    while len(terms) > 1:
        pairs = [fb.mul_add(power, high, low) for low, high in zip(terms[::2], terms[1::2], strict=False)]
        if len(terms) % 2:
            pairs.append(terms[-1])
        terms = pairs
        if len(terms) > 1:
            power = fb.fmul(power, power)
    return terms[0]


def polynomial(fb: FunctionBuilder, x: Value, coefficients: Mapping[Type, Sequence[float]]) -> Value:
    """The polynomial with the coefficients for the type of x: short ones, of f32, by Horner's rule."""
    scalar = x.type.scalar
    return (estrin if scalar is F64 else horner)(fb, x, coefficients[scalar])
