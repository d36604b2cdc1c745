"""Complex functions against mpmath over the whole plane: all magnitudes, axes, branch cuts, poles, cancellations.

Errors are counted in units in the last place: of the number's larger part ("in norm"), and of each part by itself.
"""

import mpmath
import numpy as np
import pytest
from numerics.functions import COMPLEX, MP
from numerics.points import complex_numbers, complex_partners

from xlalite.hlo.types.dtype import DType

# Functions of one number whose parts may each cancel where the number does not.
ACCURATE_IN_NORM_ONLY = ("exponential-minus-one", "logistic", "power", "atan2")
IN_NORM, IN_PARTS = 4.0, 4.0


def unit_of(number: mpmath.mpf, info: np.finfo) -> mpmath.mpf:
    """The distance of neighbouring floats about a number."""
    least = int(info.minexp)
    exponent = max(MP.frexp(abs(number))[1] - 1, least) if number else least
    return MP.mpf(2) ** (exponent - info.nmant)


def errors(found: complex, true: mpmath.mpc, info: np.finfo) -> tuple[float, float]:
    """(in norm, in the worse part); an infinite part is right where the error in norm may reach there."""
    limit = MP.mpf(float(info.max)) * (1 + MP.mpf(2) ** -(info.nmant + 2))
    norm = unit_of(max(abs(true.real), abs(true.imag)), info)
    in_norm = in_parts = 0.0
    for got, wanted in ((float(found.real), true.real), (float(found.imag), true.imag)):
        if not np.isfinite(got):
            reach = wanted + IN_NORM * norm * (1 if got > 0 else -1)
            right = np.isinf(got) and (got > 0) == (reach > 0) and abs(reach) > limit
            in_norm, in_parts = (in_norm, in_parts) if right else (np.inf, np.inf)
            continue
        distance = abs(MP.mpf(got) - wanted)
        in_norm = max(in_norm, float(distance / norm))
        in_parts = max(in_parts, float(distance / unit_of(wanted, info)))
    return in_norm, in_parts


def truth(opcode: str, x: np.ndarray, y: np.ndarray) -> list[mpmath.mpc]:
    function = COMPLEX[opcode]
    sides = [[MP.mpc(float(z.real), float(z.imag)) for z in side] for side in (x, y)][: function.arity]
    with MP.workprec(function.bits):
        return [MP.mpc(function.exact(*numbers)) for numbers in zip(*sides, strict=True)]


def away_from_zero(z: np.ndarray, exponent: int) -> np.ndarray:
    """Whether both parts are between 2^-exponent and 2^exponent in size."""
    parts = np.abs(np.stack([z.real, z.imag]).astype(np.float64))
    return np.all((parts >= 2.0**-exponent) & (parts <= 2.0**exponent), axis=0)


def check(opcode, dtype, ways, apply_complex, rng, count):
    x = complex_numbers(rng, DType.from_numpy(dtype), count)
    y = complex_partners(opcode, rng, x)
    if opcode == "atan2":
        # It jumps where x^2 + y^2 is negative; which side a number lies on must be visible in floating point. Where
        # y + ix and y - ix have one direction, that is the sign of a zero.
        x, y = (np.where(away_from_zero(z, 50), z, 1 - 1j).astype(dtype) for z in (x, y))
        direction = (y + 1j * x) * np.conj(y - 1j * x)
        y = np.where((x * x + y * y == 0) | (direction.imag == 0), (3 + 1j) * y, y).astype(dtype)
    expected, info = truth(opcode, x, y), np.finfo(dtype)
    # Denormal parts have fewer digits, and the products of a quotient may lose what lies far below the other part.
    by_parts = away_from_zero(x, -int(info.minexp)) & away_from_zero(y, -int(info.minexp))
    by_parts &= opcode not in ACCURATE_IN_NORM_ONLY
    wrong = []
    for way in ways:
        found = apply_complex((opcode,), way, x, y)[opcode]
        pairs = [errors(got, true, info) for got, true in zip(found, expected, strict=True)]
        worst = [max(pairs, key=lambda pair, by=by: pair[by]) for by in (0, 1)]
        print(f"{opcode} {way}: {worst[0][0]:.3g} in norm, {worst[1][1]:.3g} in parts")
        for n, (in_norm, in_parts) in enumerate(pairs):
            if in_norm > IN_NORM or (in_parts > IN_PARTS and by_parts[n]):
                wrong.append(f"{way}: {opcode}({x[n]}, {y[n]}) = {found[n]}, true {complex(expected[n])}: {pairs[n]}")
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize("opcode", COMPLEX)
def test_functions_are_accurate_over_the_plane(opcode, complex_type, apply_complex, rng):
    check(opcode, complex_type, ("evaluator", ""), apply_complex, rng, 48)


@pytest.mark.slow
@pytest.mark.parametrize("opcode", COMPLEX)
def test_functions_are_accurate_over_many_points(opcode, complex_type, apply_complex, rng):
    check(opcode, complex_type, ("evaluator", "AVX512", "AVX2", "SSE2"), apply_complex, rng, 4000)
