"""Functions against mpmath: within half a unit (f64: one) of the true value in every format; their special values."""

import math

import ml_dtypes
import mpmath
import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

mp = mpmath.mp.clone()
mp.prec = 200

FUNCTIONS = {
    "exponential": (mp.exp, -750, 720),
    "exponential-minus-one": (mp.expm1, -50, 720),
    "log": (mp.log, 0, 1e300),
    "log-plus-one": (mp.log1p, -1, 1e300),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), -745, 50),
    "tanh": (mp.tanh, -25, 25),
    "tan": (mp.tan, -1e6, 1e6),
    "sine": (mp.sin, -1e30, 1e30),
    "cosine": (mp.cos, -1e30, 1e30),
    "asin": (mp.asin, -1, 1),
    "acos": (mp.acos, -1, 1),
    "atan": (mp.atan, -1e10, 1e10),
    "asinh": (mp.asinh, -1e300, 1e300),
    "acosh": (mp.acosh, 1, 1e300),
    "atanh": (mp.atanh, -1, 1),
    "sinh": (mp.sinh, -711, 711),
    "cosh": (mp.cosh, -711, 711),
    "sqrt": (mp.sqrt, 0, 1e308),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), 1e-308, 1e308),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), -1e300, 1e300),
    "erf": (mp.erf, -7, 7),
}
LARGEST_ERROR = {
    DType.F64: 1.0,
    DType.F32: 0.501,
    DType.F16: 0.5001,
    DType.BF16: 0.5001,
    DType.F8E4M3FN: 0.5001,
    DType.F8E5M2: 0.5001,
}


def sample(low, high, rng, dtype):
    """Numbers over the whole range, evenly in the logarithm too, in the element type."""
    size = 25
    even = rng.uniform(max(low, -1e3), min(high, 1e3), size)
    small = rng.choice([-1, 1], size) * 10.0 ** rng.uniform(-20, 2, size)
    large = rng.choice([-1, 1], size) * 10.0 ** rng.uniform(0, 300, size)
    x = np.concatenate([even, small, large, [0.5, 1.0, 2.0]]).astype(dtype.numpy)
    wide = x.astype(np.float64)
    return x[(wide >= low) & (wide <= high) & np.isfinite(wide)]


def unit_in_last_place(value, dtype):
    """Distance of neighbouring numbers of the type at a value, by the format's parameters."""
    info = ml_dtypes.finfo(dtype.numpy)
    exponent = max(math.frexp(value)[1] - 1 if value else -10000, int(info.minexp))
    return mp.ldexp(1, exponent - int(info.nmant))


@pytest.mark.parametrize("dtype", LARGEST_ERROR, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_functions_are_accurate_over_their_whole_range(opcode, dtype, apply_op, rng):
    function, low, high = FUNCTIONS[opcode]
    x = sample(low, high, rng, dtype)
    found = apply_op(opcode, x)
    assert found.dtype == dtype.numpy
    largest = float(np.finfo(np.float64).max)
    for a, value in zip(x.astype(np.float64), found.astype(np.float64), strict=True):
        true = function(mp.mpf(float(a)))
        if not np.isfinite(value) or abs(true) > largest:
            assert not np.isfinite(true.__float__()) or abs(true) > 0.9 * _max_of(dtype), (opcode, a, value)
            continue
        error = abs(mp.mpf(float(value)) - true) / unit_in_last_place(float(value), dtype)
        assert error <= LARGEST_ERROR[dtype], (opcode, a, value, float(true), float(error))


def _max_of(dtype):
    return float(ml_dtypes.finfo(dtype.numpy).max)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.F16], ids=lambda dtype: dtype.value)
def test_power_and_atan2_are_accurate(dtype, apply_op, rng):
    x, y = rng.lognormal(0, 3, 300).astype(dtype.numpy), rng.normal(0, 3, 300).astype(dtype.numpy)
    cases = {"power": mp.power, "atan2": mp.atan2}
    for opcode, function in cases.items():
        found = apply_op(opcode, x, y).astype(np.float64)
        for a, b, value in zip(x.astype(np.float64), y.astype(np.float64), found, strict=True):
            true = function(mp.mpf(float(a)), mp.mpf(float(b)))
            if np.isfinite(value):
                assert abs(mp.mpf(float(value)) - true) <= LARGEST_ERROR[dtype] * unit_in_last_place(value, dtype)


NAN, INF = math.nan, math.inf
SPECIAL = {
    "exponential": [(0.0, 1), (-0.0, 1), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e5, INF), (-1e5, 0.0)],
    "exponential-minus-one": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1), (NAN, NAN)],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN), (1.0, 0.0)],
    "log-plus-one": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN), (INF, INF), (NAN, NAN)],
    "logistic": [(0.0, 0.5), (INF, 1), (-INF, 0.0), (NAN, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "sine": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cosine": [(0.0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-1.5, NAN), (NAN, NAN)],
    "acos": [(1.0, 0.0), (1.5, NAN), (-1.5, NAN), (NAN, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (NAN, NAN)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (-1.0, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (NAN, NAN)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "cosh": [(0.0, 1), (INF, INF), (-INF, INF), (NAN, NAN)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (-1.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (-8.0, -2), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1), (-INF, -1), (NAN, NAN), (10.0, 1), (-10.0, -1)],
}


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("opcode", SPECIAL)
def test_functions_at_special_values(opcode, dtype, apply_op):
    arguments, expected = (np.array(column, np.float64) for column in zip(*SPECIAL[opcode], strict=True))
    x = arguments.astype(dtype.numpy)
    found = apply_op(opcode, x).astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=lambda dtype: dtype.value)
def test_power_at_special_values(dtype, apply_op):
    cases = [
        (1, NAN, 1),
        (NAN, 0, 1),
        (NAN, -0.0, 1),
        (1, INF, 1),
        (-1, INF, 1),
        (0.0, -1, INF),
        (-0.0, -1, -INF),
        (-0.0, -2, INF),
        (-0.0, 3, -0.0),
        (0.0, 0.0, 1),
        (-8, 1 / 3, NAN),
        (-2, 3, -8),
        (-2, -INF, 0),
        (0.5, -INF, INF),
        (-INF, 3, -INF),
        (-INF, -3, -0.0),
        (NAN, 1, NAN),
        (2, NAN, NAN),
    ]
    x, y, expected = (np.array(column, np.float64) for column in zip(*cases, strict=True))
    found = apply_op("power", x.astype(dtype.numpy), y.astype(dtype.numpy)).astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))


def test_atan2_knows_the_quadrants_and_signed_zeros(apply_op):
    y = np.array([0.0, -0.0, 0.0, -0.0, 1, -1, 1, INF, -INF, 1, NAN])
    x = np.array([1.0, 1.0, -1.0, -1.0, 0, 0, -1, INF, -INF, -INF, 1])
    expected = [0.0, -0.0, math.pi, -math.pi, math.pi / 2, -math.pi / 2, 3 * math.pi / 4, math.pi / 4]
    expected += [-3 * math.pi / 4, math.pi, NAN]
    found = apply_op("atan2", y, x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[:2]), [False, True])


def test_all_values_of_bf16_and_f16_are_rounded_right(apply_op, all_values, rng):
    for dtype in (DType.BF16, DType.F16):
        x = rng.choice(all_values(dtype), 300, replace=False)
        found = apply_op("tanh", x).astype(np.float64)
        for a, value in zip(x.astype(np.float64), found, strict=True):
            if np.isfinite(a):
                true = mp.tanh(mp.mpf(float(a)))
                assert abs(mp.mpf(float(value)) - true) <= 0.5001 * unit_in_last_place(float(value), dtype)
