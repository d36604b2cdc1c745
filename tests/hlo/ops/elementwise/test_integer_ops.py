"""Integer operations against Python's integers: every pair of values of the narrow types, edges of the wide ones."""

import itertools

import numpy as np
import pytest

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.types.dtype import DType

NARROW = [DType.S1, DType.S2, DType.S4, DType.S8, DType.U1, DType.U2, DType.U4, DType.U8]
WIDE = [DType.S16, DType.S32, DType.S64, DType.U16, DType.U32, DType.U64]


def values_of(dtype):
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = low + (1 << dtype.bits) - 1
    if dtype.bits <= 8:
        step = 1 if dtype.bits < 8 else 3
        numbers = {*range(low, high + 1, step), low + 1, -1, 0, 1, high - 1, high}
        return sorted(number for number in numbers if low <= number <= high)
    near = {0, 1, 2, 3, 7, 10, dtype.bits - 1, dtype.bits, dtype.bits + 1, 0x5555, 0x3E7F}
    signed = {-number for number in near} if dtype.is_signed else set()
    return sorted(
        {
            *near,
            *signed,
            low,
            low + 1,
            high,
            high - 1,
            high // 3,
            low // 2 if low else high // 2,
            1 << (dtype.bits // 2),
        }
    )


def wrap(number, dtype):
    number &= (1 << dtype.bits) - 1
    return number - (1 << dtype.bits) if dtype.is_signed and number >> (dtype.bits - 1) else number


def unsigned(number, dtype):
    return number & ((1 << dtype.bits) - 1)


def divide(x, y, dtype):
    if y == 0:
        return -1
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def power(x, y, dtype):
    if y < 0:
        return x ** (y % 2) if x in (1, -1) else 0
    return pow(x, y, 1 << dtype.bits)


BINARY = {
    "add": lambda x, y, t: x + y,
    "subtract": lambda x, y, t: x - y,
    "multiply": lambda x, y, t: x * y,
    "divide": divide,
    "remainder": lambda x, y, t: x if y == 0 else x - y * divide(x, y, t),
    "mulhi": lambda x, y, t: (x * y) >> t.bits,
    "power": power,
    "maximum": lambda x, y, t: max(x, y),
    "minimum": lambda x, y, t: min(x, y),
    "and": lambda x, y, t: x & y,
    "or": lambda x, y, t: x | y,
    "xor": lambda x, y, t: x ^ y,
    "shift-left": lambda x, y, t: x << unsigned(y, t) if unsigned(y, t) < t.bits else 0,
    "shift-right-logical": lambda x, y, t: unsigned(x, t) >> unsigned(y, t) if unsigned(y, t) < t.bits else 0,
    "shift-right-arithmetic": lambda x, y, t: top_extended(x, t) >> min(unsigned(y, t), t.bits - 1),
}

UNARY = {
    "abs": lambda x, t: abs(x),
    "negate": lambda x, t: -x,
    "sign": lambda x, t: (x > 0) - (x < 0),
    "not": lambda x, t: ~x,
    "popcnt": lambda x, t: unsigned(x, t).bit_count(),
    "count-leading-zeros": lambda x, t: t.bits - unsigned(x, t).bit_length(),
}


def top_extended(number, dtype):
    """The number with its top bit read as a sign, whatever the type says."""
    number = unsigned(number, dtype)
    return number - (1 << dtype.bits) if number >> (dtype.bits - 1) else number


def as_ints(array):
    return [int(element) for element in array]


@pytest.mark.parametrize("dtype", NARROW + WIDE, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("opcode", BINARY)
def test_binary_integers_wrap_and_have_a_value_for_everything(opcode, dtype, apply_op, make_array):
    pairs = list(itertools.product(values_of(dtype), repeat=2))
    x, y = make_array([p[0] for p in pairs], dtype), make_array([p[1] for p in pairs], dtype)
    expected = [wrap(BINARY[opcode](a, b, dtype), dtype) for a, b in pairs]
    result = apply_op(opcode, x, y)
    assert result.dtype == dtype.numpy
    assert as_ints(result) == expected


@pytest.mark.parametrize("dtype", NARROW + WIDE, ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("opcode", UNARY)
def test_unary_integers(opcode, dtype, apply_op, make_array):
    if opcode in ("abs", "sign") and not dtype.is_signed:
        with pytest.raises(ShapeError, match="is not signed integral"):
            apply_op(opcode, make_array([1], dtype))
        return
    numbers = values_of(dtype)
    expected = [wrap(UNARY[opcode](number, dtype), dtype) for number in numbers]
    assert as_ints(apply_op(opcode, make_array(numbers, dtype))) == expected


@pytest.mark.parametrize("dtype", [DType.S32, DType.U64, DType.S4], ids=lambda dtype: dtype.value)
def test_operations_keep_sizes_of_scalars_and_of_empty_arrays(dtype, apply_op, make_array):
    for dims in ((), (0,), (2, 0, 3), (2, 1, 3)):
        x = make_array(np.ones(dims), dtype)
        for opcode in BINARY:
            result = apply_op(opcode, x, x)
            assert result.shape == dims
            assert result.dtype == dtype.numpy


def test_pred_adds_as_or_and_multiplies_as_and(apply_op):
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    for opcode, expected in {
        "add": x | y,
        "multiply": x & y,
        "maximum": x | y,
        "minimum": x & y,
        "and": x & y,
        "or": x | y,
        "xor": x ^ y,
    }.items():
        np.testing.assert_array_equal(apply_op(opcode, x, y), expected)
    np.testing.assert_array_equal(apply_op("not", x), ~x)


@pytest.mark.parametrize("opcode", ["subtract", "divide", "remainder", "power", "mulhi", "shift-left", "atan2"])
def test_pred_has_no_other_arithmetic(opcode, apply_op):
    with pytest.raises(ShapeError, match="element type pred is not"):
        apply_op(opcode, np.array([True]), np.array([True]))


@pytest.mark.parametrize("opcode", ["and", "or", "xor", "shift-left", "mulhi", "popcnt", "count-leading-zeros", "not"])
def test_floats_have_no_bits_to_combine(opcode, apply_op):
    x = np.array([1.0], np.float32)
    operands = (x,) if opcode in ("popcnt", "count-leading-zeros", "not") else (x, x)
    with pytest.raises(ShapeError, match="element type f32 is not"):
        apply_op(opcode, *operands)


def test_clamp_of_integers(apply_op, make_array):
    for dtype in (DType.S8, DType.U32, DType.S4, DType.S64):
        x = make_array([0, 1, 5, 7, 6], dtype)
        np.testing.assert_array_equal(
            as_ints(apply_op("clamp", make_array(1, dtype), x, make_array(6, dtype))), [1, 1, 5, 6, 6]
        )
        # The upper bound wins when the bounds cross.
        np.testing.assert_array_equal(
            as_ints(apply_op("clamp", make_array(6, dtype), x, make_array(1, dtype))), [1] * 5
        )
