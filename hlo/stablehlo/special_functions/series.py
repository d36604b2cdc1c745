"""Polynomials and Chebyshev series of handles."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Handle


def unary(opcode: str, x: Handle) -> Handle:
    """An operation of one operand."""
    return x.builder.op(opcode, (x,))


def polynomial(x: Handle, coefficients: Sequence[float]) -> Handle:
    """c0 + c1 x + c2 x^2 + ..., by Horner's rule."""
    result = x * 0.0 + coefficients[-1] if len(coefficients) == 1 else x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * x + coefficient
    return result


def chebyshev(x: Handle, coefficients: Sequence[float]) -> Handle:
    """c0/2 + c1 T1(x) + c2 T2(x) + ... for x in [-1, 1], by Clenshaw's recurrence; at least three coefficients."""
    twice = x * 2.0
    older: Handle = x * 0.0 + coefficients[-1]
    newer: Handle = twice * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[1:-2]):
        older, newer = newer, twice * newer - older + coefficient
    return x * newer - older + coefficients[0] / 2
