"""Floating-point arithmetic against exact fractions, in every format; one rounding, ties to even."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

EIGHT_BITS = [
    DType.F4E2M1FN,
    DType.F6E2M3FN,
    DType.F6E3M2FN,
    DType.F8E3M4,
    DType.F8E4M3,
    DType.F8E4M3FN,
    DType.F8E4M3B11FNUZ,
    DType.F8E4M3FNUZ,
    DType.F8E5M2,
    DType.F8E5M2FNUZ,
]
WIDER = [DType.F16, DType.BF16, DType.F32, DType.F64]

ARITHMETIC = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y if y else None,
    "remainder": lambda x, y: x - y * int(x / y) if y else None,
    "maximum": max,
    "minimum": min,
}


def pairs_of(dtype, all_values, rng):
    if dtype in EIGHT_BITS:
        values = all_values(dtype)[: 1 << dtype.bits]
        values = values[np.isfinite(values.astype(np.float32))]
        if values.size > 32:
            values = rng.choice(values, 32, replace=False)
        x, y = np.meshgrid(values, values)
        return x.ravel(), y.ravel()
    bits = rng.integers(0, 1 << dtype.bits, (2, 1500), np.uint64).astype(f"u{dtype.size_bytes}")
    # Exponents near each other, so that sums and remainders are not trivial.
    mask = np.array((1 << (dtype.bits - 4)) - 1, bits.dtype)
    bits[:, 300:] = (bits[:, 300:] & mask) | (bits[:1, 300:] & ~mask)
    x, y = bits.view(dtype.numpy)
    finite = np.isfinite(x.astype(np.float64)) & np.isfinite(y.astype(np.float64))
    return x[finite], y[finite]


@pytest.mark.parametrize("dtype", EIGHT_BITS + WIDER, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("opcode", ARITHMETIC)
def test_arithmetic_rounds_the_exact_result_once(opcode, dtype, apply_op, all_values, exact_round, rng):
    x, y = pairs_of(dtype, all_values, rng)
    result = apply_op(opcode, x, y)
    assert result.dtype == dtype.numpy
    largest = Fraction(float(ml_dtypes.finfo(dtype.numpy).max))
    for a, b, found in zip(x.astype(np.float64), y.astype(np.float64), result.astype(np.float64), strict=True):
        exact = ARITHMETIC[opcode](Fraction(a), Fraction(b))
        if exact is None:
            continue
        expected = exact_round(exact, dtype)
        if abs(expected) > largest:
            assert np.isinf(found) or np.isnan(found) or abs(Fraction(found)) == largest, (opcode, a, b, found)
        else:
            assert Fraction(found) == expected, (opcode, a, b, found, float(expected))


@pytest.mark.parametrize("dtype", EIGHT_BITS + WIDER, ids=lambda dtype: dtype.value)
def test_square_root_is_correctly_rounded(dtype, apply_op, all_values, exact_round, rng):
    x, _ = pairs_of(dtype, all_values, rng)
    x = x[x.astype(np.float64) >= 0][:1000]
    found = apply_op("sqrt", x).astype(np.float64)
    for a, root in zip(x.astype(np.float64), found, strict=True):
        # The neighbours' midpoints enclose the root: compare squares, which are exact.
        up = exact_round(Fraction(root) * (1 + Fraction(1, 2**60)), dtype)
        assert up == Fraction(root)
        unit = Fraction(float(np.spacing(np.float64(root)))) if dtype is DType.F64 else None
        if unit is not None:
            assert (Fraction(root) - unit / 2) ** 2 <= Fraction(a) <= (Fraction(root) + unit / 2) ** 2
        elif a:
            wide = Fraction(float(np.sqrt(np.float64(a))))
            assert Fraction(root) == exact_round(wide, dtype)


@pytest.mark.parametrize("dtype", EIGHT_BITS + WIDER, ids=lambda dtype: dtype.value)
def test_rounding_to_integers(dtype, apply_op, all_values, exact_round, rng):
    def half_away(number):
        return (1 if number >= 0 else -1) * int(abs(number) + Fraction(1, 2))

    truth = {
        "floor": lambda a: a.__floor__(),
        "ceil": lambda a: a.__ceil__(),
        "round-nearest-even": round,
        "round-nearest-afz": half_away,
    }
    x, _ = pairs_of(dtype, all_values, rng)
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.25, -0.25, -0.0, 0.0]).astype(dtype.numpy)
    x = np.concatenate([halves, x[:500]])
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    for opcode, function in truth.items():
        for a, found in zip(x.astype(np.float64), apply_op(opcode, x).astype(np.float64), strict=True):
            expected = exact_round(Fraction(function(Fraction(a))), dtype)
            if abs(expected) <= largest:
                assert Fraction(found) == expected, (opcode, a, found)


@pytest.mark.parametrize("opcode", ["floor", "ceil", "round-nearest-even", "round-nearest-afz", "abs", "sign", "sqrt"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64, DType.F8E5M2], ids=lambda d: d.value)
def test_signed_zeros_infinities_and_nan_go_through(opcode, dtype, apply_op):
    x = np.array([0.0, -0.0, np.inf, np.nan]).astype(dtype.numpy)
    found = apply_op(opcode, x).astype(np.float64)
    assert found[0] == 0
    assert not np.signbit(found[0])
    assert found[1] == 0
    assert np.signbit(found[1]) == (opcode != "abs")
    assert found[2] == (1 if opcode == "sign" else np.inf)
    assert np.isnan(found[3])


def test_negate_flips_the_sign_of_zero_and_infinity(apply_op):
    for dtype in WIDER:
        x = np.array([0.0, -0.0, np.inf, 1.5, 1e-7]).astype(dtype.numpy)
        found = apply_op("negate", x).astype(np.float64)
        np.testing.assert_array_equal(found, -x.astype(np.float64))
        np.testing.assert_array_equal(np.signbit(found), ~np.signbit(x.astype(np.float64)))


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", WIDER, ids=lambda dtype: dtype.value)
def test_extrema_propagate_nan_from_either_side_and_order_zeros(opcode, dtype, apply_op):
    x = np.array([np.nan, 1, np.nan, -np.inf, 0.0, -0.0, np.inf]).astype(dtype.numpy)
    y = np.array([1, np.nan, np.nan, np.inf, -0.0, 0.0, np.nan]).astype(dtype.numpy)
    found = apply_op(opcode, x, y).astype(np.float64)
    assert np.isnan(found[[0, 1, 2, 6]]).all()
    assert found[3] == (np.inf if opcode == "maximum" else -np.inf)
    np.testing.assert_array_equal(np.signbit(found[4:6]), opcode == "minimum")


def test_remainder_has_the_dividends_sign(apply_op):
    x = np.array([5.5, -5.5, 5.5, -5.5, 3.0, -0.0, np.inf, 1.0, np.nan, -6.0], np.float32)
    y = np.array([2.0, 2.0, -2.0, -2.0, np.inf, 2.0, 2.0, 0.0, 1.0, 3.0], np.float32)
    expected = np.array([1.5, -1.5, 1.5, -1.5, 3.0, -0.0, np.nan, np.nan, np.nan, -0.0], np.float32)
    found = apply_op("remainder", x, y)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[[5, 9]]), [True, True])


def test_division_by_zero_gives_infinities_and_nan(apply_op):
    x, y = np.array([1, -1, 0, 1, np.inf], np.float32), np.array([0.0, 0.0, 0.0, -0.0, np.inf], np.float32)
    np.testing.assert_array_equal(apply_op("divide", x, y), np.array([np.inf, -np.inf, np.nan, -np.inf, np.nan]))


def test_is_finite_knows_each_formats_own_values(apply_op, all_values):
    for dtype in [*EIGHT_BITS, DType.F16, DType.BF16]:
        values = all_values(dtype)
        np.testing.assert_array_equal(apply_op("is-finite", values), np.isfinite(values.astype(np.float32)))


def test_clamp_propagates_nan_from_each_operand(apply_op):
    one, nan = np.float32(1), np.float32(np.nan)
    x = np.array([0.5, np.nan, 3.0, -np.inf, np.inf], np.float32)
    np.testing.assert_array_equal(apply_op("clamp", one, x, np.float32(2)), np.array([1, np.nan, 2, 1, 2], np.float32))
    assert np.isnan(apply_op("clamp", nan, x, one)).all()
    assert np.isnan(apply_op("clamp", one, x, nan)).all()


def test_f8e8m0fnu_has_powers_of_two_only(apply_op):
    x = np.array([1.0, 2.0, 0.25], np.float32).astype(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(apply_op("multiply", x, x).astype(np.float32), [1.0, 4.0, 0.0625])
    np.testing.assert_array_equal(apply_op("divide", x, x[::-1]).astype(np.float32), [4.0, 1.0, 0.25])
    assert np.isnan(apply_op("negate", x).astype(np.float32)).all()


def test_denormals_are_kept(apply_op):
    tiny = np.array([np.finfo(np.float32).smallest_subnormal * 3], np.float32)
    one = np.ones(1, np.float32)
    for opcode in ("multiply", "divide", "power"):
        np.testing.assert_array_equal(apply_op(opcode, tiny, one), tiny)
    np.testing.assert_array_equal(apply_op("maximum", tiny, -one), tiny)
    np.testing.assert_array_equal(apply_op("sine", tiny), tiny)
    np.testing.assert_array_equal(apply_op("exponential", np.array([-103.0], np.float32)) > 0, [True])
