"""convert between all pairs of element types, against exact arithmetic on each value."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.dtype import DType

ARRAYS = [dtype for dtype in DType if dtype.is_array]
REAL = [dtype for dtype in ARRAYS if not dtype.is_complex]
FLOATS = [dtype for dtype in ARRAYS if dtype.is_floating]
SATURATING = {DType.F4E2M1FN, DType.F6E2M3FN, DType.F6E3M2FN}
WITH_INFINITY = {DType.F8E3M4, DType.F8E4M3, DType.F8E5M2, DType.F16, DType.BF16, DType.F32, DType.F64}


def integer_limits(dtype):
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    return low, low + (1 << dtype.bits) - 1


def sources(dtype, all_values, rng):
    """Values worth converting: all of a narrow type; edges, halves and random bits of a wide one."""
    if dtype is DType.PRED:
        return np.array([False, True])
    if dtype.bits <= 8:
        return all_values(dtype)
    if dtype.is_integral:
        low, high = integer_limits(dtype)
        powers = [sign * ((1 << k) + d) for k in range(dtype.bits) for d in (-1, 0, 1) for sign in (1, -1)]
        halves = [
            (1 << k) + (1 << max(k - p, 0)) + d for k in range(64) for p in (4, 8, 11, 24, 53) for d in (-1, 0, 1)
        ]
        numbers = sorted({n for n in [*powers, *halves, low, high] if low <= n <= high})
        return np.array(numbers, dtype.numpy)
    powers = np.ldexp(1.0, np.arange(-30, 70))
    positive = np.concatenate(
        [powers, powers * 1.5, powers - 1, powers - 0.5, powers + 1, [0.0, 0.5, 1e-40, 1e300, np.inf]]
    )
    bits = rng.integers(0, 1 << dtype.bits, 200, np.uint64).astype(f"u{dtype.size_bytes}").view(dtype.numpy)
    return np.concatenate([np.concatenate([positive, -positive, [np.nan]]).astype(dtype.numpy), bits])


def expected_integer(number, dtype, from_integer):
    low, high = integer_limits(dtype)
    if from_integer:
        number &= (1 << dtype.bits) - 1
        return number - (1 << dtype.bits) if number > high else number
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return high if number > 0 else low
    return min(max(math.trunc(number), low), high)


def check_float(found, number, dtype, exact_round):
    if isinstance(number, float) and math.isnan(number):
        assert math.isnan(found) or dtype in SATURATING
        return
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    infinite = isinstance(number, float) and math.isinf(number)
    rounded = None if infinite else exact_round(Fraction(number), dtype)
    if not infinite and abs(rounded) <= largest:
        assert found == float(rounded), (number, found, float(rounded))
    elif dtype in SATURATING:
        assert found == math.copysign(largest, number)
    elif dtype in WITH_INFINITY:
        assert found == math.copysign(math.inf, number)
    else:
        assert math.isnan(found), (number, found)


@pytest.mark.parametrize("target", [t for t in REAL if t is not DType.F8E8M0FNU], ids=lambda dtype: dtype.value)
def test_convert_every_pair(target, apply_op, all_values, exact_round, rng):
    for source in REAL:
        values = sources(source, all_values, rng)
        found = apply_op("convert", values, result=target)
        assert found.dtype == target.numpy
        numbers = [float(value) if source.is_floating else int(value) for value in values]
        for number, value in zip(numbers, found, strict=True):
            if target is DType.PRED:
                assert bool(value) == (number != 0), (source, number)
            elif target.is_integral:
                assert int(value) == expected_integer(number, target, not source.is_floating), (source, number)
            else:
                check_float(float(value), number, target, exact_round)


def test_negative_zero_and_nan_keep_their_nature_in_floating_point(apply_op):
    for target in (DType.F16, DType.BF16, DType.F32, DType.F64, DType.F8E5M2, DType.F8E4M3FN):
        for source in (np.float32, np.float64):
            found = apply_op("convert", np.array([-0.0, np.nan], source), result=target).astype(np.float64)
            assert np.signbit(found[0])
            assert np.isnan(found[1])


def test_f8e8m0fnu_rounds_to_a_power_of_two(apply_op):
    x = np.array([1.0, 1.4, 1.6, 2.9, 3.1, np.nan, -1.0])
    found = apply_op("convert", x, result=DType.F8E8M0FNU).astype(np.float64)
    np.testing.assert_array_equal(found, [1, 1, 2, 2, 4, np.nan, np.nan])


@pytest.mark.parametrize("target", [DType.F4E2M1FN, DType.F6E2M3FN, DType.F6E3M2FN])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_types_without_nan_have_minus_zero_for_it(source, target, apply_op):
    """As in XLA, whatever the sign of the NaN, which nobody promises."""
    found = apply_op("convert", np.array([np.nan, -np.nan], source), result=target).astype(np.float32)
    assert np.signbit(found).all()
    np.testing.assert_array_equal(found, [0, 0])


def test_doubles_are_not_rounded_twice(apply_op):
    """The double just above a tie of the narrow format rounds up, though it is the tie in float32."""
    x = np.array([1 + 2.0**-9 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8 + 2.0**-8 + 2.0**-8])
    found = apply_op("convert", x, result=DType.BF16).astype(np.float64)
    np.testing.assert_array_equal(found, [1, 1, 1 + 2.0**-6])
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-4 + 2.0**-40])
    np.testing.assert_array_equal(apply_op("convert", x[:1], result=DType.BF16).astype(np.float64), [1 + 2.0**-7])
    np.testing.assert_array_equal(apply_op("convert", x[1:], result=DType.F8E4M3FN).astype(np.float64), [1 + 2.0**-3])
    large = np.array([2**62 + 2**54 + 1])
    np.testing.assert_array_equal(apply_op("convert", large, result=DType.BF16).astype(np.float64), [2.0**62 + 2.0**55])


@pytest.mark.parametrize("target", [DType.C64, DType.C128], ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("source", ARRAYS, ids=lambda dtype: dtype.value)
def test_convert_to_complex_has_zero_imaginary_part(source, target, apply_op):
    values = np.array([-1 if source is DType.S1 else 1, 0], np.float32).astype(source.numpy)
    found = apply_op("convert", values, result=target)
    assert found.dtype == target.numpy
    np.testing.assert_array_equal(found, values.astype(target.numpy) if source.is_complex else found.real + 0j)
    assert abs(found.real[0]) == 1


def test_complex_infinities_survive_conversion(apply_op):
    found = apply_op("convert", np.array([np.inf, -np.inf]), result=DType.C64)
    np.testing.assert_array_equal(found.real, [np.inf, -np.inf])
    np.testing.assert_array_equal(found.imag, [0, 0])


@pytest.mark.parametrize("target", [DType.F32, DType.S32, DType.PRED], ids=lambda dtype: dtype.value)
def test_complex_to_real_is_rejected(target, apply_op):
    with pytest.raises(ShapeError, match="take the real part first"):
        apply_op("convert", np.zeros(2, np.complex64), result=target)


def test_convert_needs_the_operands_sizes(apply_op):
    with pytest.raises(ShapeError, match="must have the operand's sizes"):
        apply_op("convert", np.zeros(2, np.float32), result=DType.S32, dims=(3,))
