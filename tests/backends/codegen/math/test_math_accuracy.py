"""Every function against exact truth: at most 1 ulp (f64) and 2 ulp (f32) from the correctly rounded result."""

import numpy as np
import pytest
from numerics import functions
from numerics.functions import LONG, MP

from xlalite.backends.codegen.math import MATH_FUNCTIONS

REAL = functions.REAL | {"exponential-few-denormals": functions.REAL["exponential"]}
UNARY = [name for name, function in MATH_FUNCTIONS.items() if function.arity == 1]
BINARY = [name for name, function in MATH_FUNCTIONS.items() if function.arity == 2]


def test_every_function_is_tested():
    assert set(REAL) == set(MATH_FUNCTIONS)


def sample(dtype, rng, count):
    """All magnitudes, values around 1 and around multiples of pi / 2, and the neighbours of landmarks."""
    bits = {4: np.uint32, 8: np.uint64}[dtype().itemsize]
    anything = rng.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(dtype)
    usual = rng.standard_normal(2 * count) * rng.choice([1e-3, 0.1, 1, 5, 30, 300], 2 * count)
    near_one = 1 + rng.standard_normal(count // 2) * 10.0 ** rng.uniform(-12, 0, count // 2)
    inside = rng.uniform(-1, 1, count // 2)
    turns = np.pi / 2 * rng.integers(-(2**20), 2**20, count // 4)
    far_turns = np.pi / 2 * np.rint(2.0 ** rng.uniform(17, 50, count // 8))
    landmarks = np.array(
        [0.5, 1, 2, 88.72, -103.9, 709.78, -745.1, 0.55, 0.875, 1.09, 131072, 2.0**30, 2.0**40, 3.95, 19.1]
    )
    with np.errstate(over="ignore"):
        landmarks = landmarks.astype(dtype)
        parts = [part.astype(dtype) for part in (anything, usual, near_one, inside, turns, far_turns)]
    around = [np.nextafter(landmarks, dtype(side)) for side in (-np.inf, np.inf)]
    found = np.concatenate([*parts, landmarks, -landmarks, *around])
    return found[np.isfinite(found)]


def correctly_rounded(name, arrays):
    """Results by mpmath, and where there are any."""
    function = REAL[name]
    out = np.full(arrays[0].size, np.nan)
    defined = np.zeros(out.size, bool)
    with MP.workprec(function.bits):
        for i, numbers in enumerate(zip(*arrays, strict=True)):
            value = function.exact(*[MP.mpf(float(number)) for number in numbers])
            if value is not None:
                out[i], defined[i] = _nearest_double(value), True
    return out, defined


def _nearest_double(value):
    """To nearest even, denormals and overflow included."""
    if value == 0:
        return 0.0
    mantissa, exponent = MP.frexp(value)
    if exponent > 1024:
        return float(MP.sign(value)) * np.inf
    kept = min(53, exponent + 1074)
    if kept < 0:
        return 0.0
    return float(MP.ldexp(MP.nint(MP.ldexp(mantissa, kept)), exponent - kept))


@pytest.mark.parametrize("name", UNARY)
def test_double_is_within_one_ulp(apply_math, ulp_distance, rng, name):
    x = sample(np.float64, rng, 40)
    if REAL[name].bits == LONG:
        # The double nearest to a multiple of pi / 2.
        x = np.append(x, 6381956970095103.0 * 2.0**797)
    expected, defined = correctly_rounded(name, [x])
    got = apply_math(name, x)
    assert ulp_distance(got, expected)[defined].max() <= 1
    assert not np.isfinite(got[~defined]).any()


@pytest.mark.parametrize("target", ["host", "avx2", "baseline"])
@pytest.mark.parametrize("name", UNARY)
def test_single_is_within_two_ulp(apply_math, ulp_distance, rng, name, target):
    x = sample(np.float32, rng, 4000 if target == "host" else 400)
    with np.errstate(all="ignore"):
        expected = REAL[name].extended(x.astype(np.longdouble)).astype(np.float32)
    assert ulp_distance(apply_math(name, x, target=target), expected).max() <= 2


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float32, -106, -86), (np.float64, -747, -707)])
def test_exponentials_too_small_to_be_normal_are_rounded_once(apply_math, dtype, low, high):
    """Counted in least numbers, they are what arithmetic gives."""
    x = np.linspace(low, high, 40_001).astype(dtype)
    np.testing.assert_array_equal(apply_math("exponential", x), apply_math("exponential-few-denormals", x))


@pytest.mark.parametrize("target", ["avx2", "baseline"])
@pytest.mark.parametrize("name", UNARY)
def test_double_without_the_newest_instructions(apply_math, ulp_distance, rng, name, target):
    """On other machines the code differs, the result by an ulp at most."""
    x = sample(np.float64, rng, 200)
    distance = ulp_distance(apply_math(name, x, target=target), apply_math(name, x))
    assert distance.max() <= 1


def pairs(dtype, rng, count, name):
    x = sample(dtype, rng, count)
    y = rng.permutation(x)
    with np.errstate(over="ignore"):
        base = np.abs(rng.standard_normal(count) * 10).astype(dtype)
        near_one = (1 + rng.standard_normal(count) * 1e-4).astype(dtype)
        exponents = (rng.standard_normal(2 * count) * rng.choice([2, 50, 1e4], 2 * count)).astype(dtype)
    x = np.concatenate([x, base, near_one])
    y = np.concatenate([y, exponents])
    if name == "remainder":
        y[y == 0] = 1
    return x, y


@pytest.mark.parametrize("name", BINARY)
def test_double_of_two_operands_is_within_one_ulp(apply_math, ulp_distance, rng, name):
    arrays = pairs(np.float64, rng, 60, name)
    with np.errstate(all="ignore"):
        expected, defined = correctly_rounded(name, arrays)
    assert ulp_distance(apply_math(name, *arrays), expected)[defined].max() <= (name != "remainder")


@pytest.mark.parametrize("target", ["host", "avx2", "baseline"])
@pytest.mark.parametrize("name", BINARY)
def test_single_of_two_operands_is_within_two_ulp(apply_math, ulp_distance, rng, name, target):
    arrays = pairs(np.float32, rng, 4000 if target == "host" else 400, name)
    with np.errstate(all="ignore"):
        expected = REAL[name].extended(*[a.astype(np.longdouble) for a in arrays]).astype(np.float32)
    assert ulp_distance(apply_math(name, *arrays, target=target), expected).max() <= 2 * (name != "remainder")
