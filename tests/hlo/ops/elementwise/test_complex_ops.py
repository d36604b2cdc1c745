"""Complex operations against mpmath, and their values at zero, infinity and NaN."""

import math

import mpmath
import numpy as np
import pytest

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.dtype import DType

mp = mpmath.mp.clone()
mp.prec = 200

UNARY = {
    "exponential": mp.exp,
    "exponential-minus-one": mp.expm1,
    "log": mp.log,
    "log-plus-one": lambda z: mp.log(1 + z),
    "logistic": lambda z: 1 / (1 + mp.exp(-z)),
    "tanh": mp.tanh,
    "tan": mp.tan,
    "sine": mp.sin,
    "cosine": mp.cos,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "sqrt": mp.sqrt,
    "rsqrt": lambda z: 1 / mp.sqrt(z),
    "sign": lambda z: z / abs(z),
    "negate": lambda z: -z,
}
BINARY = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "atan2": lambda y, x: -1j * mp.log((x + 1j * y) / mp.sqrt(x * x + y * y)),
}
EPSILON = {np.complex64: 2.0**-24, np.complex128: 2.0**-53}


def sample(rng, dtype, size=60):
    scale = 10.0 ** rng.uniform(-3, 1, size)
    return ((rng.normal(size=size) + 1j * rng.normal(size=size)) * scale).astype(dtype)


def check(found, truth, dtype, units):
    for value, true in zip(found, truth, strict=True):
        error = abs(mp.mpc(complex(value)) - true)
        assert error <= units * EPSILON[dtype] * abs(true), (value, complex(true))


@pytest.mark.parametrize("dtype", EPSILON, ids=["c64", "c128"])
@pytest.mark.parametrize("opcode", UNARY)
def test_unary_functions_are_accurate_in_norm(opcode, dtype, apply_op, rng):
    z = sample(rng, dtype)
    found = apply_op(opcode, z)
    assert found.dtype == dtype
    check(found, [UNARY[opcode](mp.mpc(complex(value))) for value in z], dtype, 2)


@pytest.mark.parametrize("dtype", EPSILON, ids=["c64", "c128"])
@pytest.mark.parametrize("opcode", BINARY)
def test_binary_functions_are_accurate_in_norm(opcode, dtype, apply_op, rng):
    x, y = sample(rng, dtype), sample(rng, dtype)
    found = apply_op(opcode, x, y)
    assert found.dtype == dtype
    truth = [BINARY[opcode](mp.mpc(complex(a)), mp.mpc(complex(b))) for a, b in zip(x, y, strict=True)]
    check(found, truth, dtype, 3 if opcode != "atan2" else 300)


def test_abs_real_and_imag_give_the_component_type(apply_op):
    for dtype, part in ((np.complex64, np.float32), (np.complex128, np.float64)):
        z = np.array([3 + 4j, -5 + 12j, complex(math.inf, math.nan)], dtype)
        for opcode, expected in (("abs", [5, 13, math.inf]), ("real", [3, -5, math.inf]), ("imag", [4, 12, math.nan])):
            found = apply_op(opcode, z)
            assert found.dtype == part
            np.testing.assert_array_equal(found, expected)


def test_abs_and_divide_do_not_overflow_on_the_way(apply_op):
    large = np.array([3e38 + 3e38j, 1e-38 + 1e-38j], np.complex64) * np.float32(0.5)
    np.testing.assert_allclose(apply_op("abs", large), np.abs(large.astype(np.complex128)), rtol=1e-7)
    np.testing.assert_allclose(apply_op("divide", large, large), [1, 1], rtol=1e-7)
    huge = np.array([1e308 + 1e308j, 1e-308 + 1e-308j, 5e-324 + 0j])
    np.testing.assert_allclose(apply_op("divide", huge, huge), [1, 1, 1], rtol=1e-15)


def test_real_and_imag_of_real_numbers(apply_op):
    x = np.array([1.5, -2], np.float32)
    np.testing.assert_array_equal(apply_op("real", x), x)
    np.testing.assert_array_equal(apply_op("imag", x), [0, 0])
    powers = np.array([1.0, 2.0]).astype(DType.F8E8M0FNU.numpy)  # a type without zero has NaN for it
    assert np.isnan(apply_op("imag", powers).astype(np.float32)).all()


def test_complex_joins_parts_exactly(apply_op):
    parts = np.array([0.0, -0.0, math.inf, math.nan, 1.0], np.float32)
    real, imag = (side.ravel() for side in np.meshgrid(parts, parts))
    found = apply_op("complex", real, imag)
    assert found.dtype == np.complex64
    np.testing.assert_array_equal(found.real.view(np.uint32), real.view(np.uint32))
    np.testing.assert_array_equal(found.imag.view(np.uint32), imag.view(np.uint32))
    with pytest.raises(ShapeError, match="the parts must be f32 or f64, found f16"):
        apply_op("complex", real.astype(np.float16), imag.astype(np.float16))


def test_division_by_zero_and_infinities(apply_op):
    x = np.array([1 + 1j, -1 + 2j, complex(math.inf, 1), 1 + 1j, 0j])
    y = np.array([0j, 0j, 1 + 1j, complex(math.inf, 0), 0j])
    found = apply_op("divide", x, y)
    assert found[0] == complex(math.inf, math.inf)
    assert found[1] == complex(-math.inf, math.inf)
    assert np.isinf(found[2])
    assert found[3] == 0
    assert np.isnan(found[4])


def test_power_at_special_values(apply_op):
    nan, inf = complex(math.nan, math.nan), complex(math.inf, 0)
    x = np.array([1, nan, 0, inf, inf, 0, 2])
    y = np.array([nan, 0, 0, 2, -2, 2, 3], complex)
    found = apply_op("power", x, y)
    np.testing.assert_array_equal(found[[0, 1, 2]], 1)
    assert found[3].real == math.inf
    np.testing.assert_array_equal(found[[4, 5]], 0)
    np.testing.assert_allclose(found[6], 8)


def test_special_values_follow_the_c_standard(apply_op):
    inf = math.inf
    cases = [
        ("exponential", complex(-inf, 1), 0),
        ("exponential", complex(inf, 0), complex(inf, 0)),
        ("exponential-minus-one", complex(inf, 0), complex(inf, 0)),
        ("log", 0j, complex(-inf, 0)),
        ("log", complex(-inf, 0), complex(inf, math.pi)),
        ("sqrt", complex(-4, -0.0), complex(0, -2)),
        ("sqrt", complex(-4, 0.0), complex(0, 2)),
        ("sqrt", complex(1, inf), complex(inf, inf)),
        ("tanh", complex(inf, 1), 1),
        ("sign", 0j, 0),
        ("logistic", complex(1e5, 1), 1),
        ("logistic", complex(-1e5, 1), 0),
        ("log-plus-one", -1 + 0j, complex(-inf, 0)),
        ("rsqrt", 4 + 0j, 0.5),
    ]
    for opcode, argument, expected in cases:
        np.testing.assert_array_equal(apply_op(opcode, np.array([argument])), [expected], err_msg=opcode)


def test_functions_near_zero_keep_their_digits(apply_op):
    z = np.array([1e-20 + 1e-20j, 1e-18 - 3e-19j])
    for opcode in ("exponential-minus-one", "log-plus-one", "tanh", "sine", "asin", "atan", "atanh"):
        np.testing.assert_allclose(apply_op(opcode, z), z, rtol=1e-15, err_msg=opcode)


@pytest.mark.parametrize("opcode", ["floor", "cbrt", "erf", "is-finite", "not", "popcnt"])
def test_operations_without_a_complex_meaning_are_rejected(opcode, apply_op):
    with pytest.raises(ShapeError, match="element type c64 is not"):
        apply_op(opcode, np.zeros(1, np.complex64))


@pytest.mark.parametrize("opcode", ["maximum", "remainder", "and", "mulhi"])
def test_binary_operations_without_a_complex_meaning_are_rejected(opcode, apply_op):
    z = np.zeros(1, np.complex64)
    with pytest.raises(ShapeError, match="element type c64 is not"):
        apply_op(opcode, z, z)
