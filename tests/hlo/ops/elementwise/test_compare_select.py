"""compare in all its orders, and select."""

import itertools
import operator

import numpy as np
import pytest

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction, default_comparison_type
from xlalite.hlo.types.dtype import DType

RELATIONS = {
    Direction.EQ: operator.eq,
    Direction.NE: operator.ne,
    Direction.GE: operator.ge,
    Direction.GT: operator.gt,
    Direction.LE: operator.le,
    Direction.LT: operator.lt,
}
REAL = [dtype for dtype in DType if dtype.is_array and not dtype.is_complex]


def interesting(dtype, all_values):
    if dtype is DType.PRED:
        return np.array([False, True])
    if dtype.bits <= 8:
        return all_values(dtype)[:: max(1, (1 << dtype.bits) // 32)]
    if dtype.is_integral:
        low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
        return np.array([low, low + 1, 0, 1, 2, high - 1, high], dtype.numpy)
    return np.array([-np.inf, -1e5, -1, -1e-7, -0.0, 0.0, 1e-7, 1, 1e5, np.inf, np.nan]).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", REAL, ids=lambda dtype: dtype.value)
def test_compare_follows_the_element_types_order(dtype, apply_op, all_values):
    values = interesting(dtype, all_values)
    x, y = (side.ravel() for side in np.meshgrid(values, values))
    numbers = [float(v) if dtype.is_floating else int(v) for v in values]
    for direction, relation in RELATIONS.items():
        found = apply_op("compare", x, y, attrs=CompareAttrs(direction))
        assert found.dtype == np.bool_
        expected = [relation(a, b) for b, a in itertools.product(numbers, numbers)]
        assert found.tolist() == expected


@pytest.mark.parametrize("dtype", [d for d in REAL if d.is_floating], ids=lambda dtype: dtype.value)
def test_total_order_sorts_bits_by_sign_and_size(dtype, apply_op, all_values):
    if dtype.bits <= 8:
        values = all_values(dtype)
    else:
        numbers = np.array([-np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan]).astype(dtype.numpy)
        values = np.concatenate([numbers, np.copysign(np.float64(np.nan), -1).astype(dtype.numpy).reshape(1)])
    raw = values.view(f"u{dtype.size_bytes}").astype(object)
    top = 1 << (dtype.bits - 1)
    has_sign = dtype is not DType.F8E8M0FNU
    keys = [-(bits & (top - 1)) - 1 if bits & top and has_sign else bits for bits in map(int, raw)]
    if "fnuz" in dtype.value:  # their one NaN has the sign bit alone
        keys = [-top - 1 if key == -1 else key for key in keys]
    x, y = (side.ravel() for side in np.meshgrid(values[::3], values))
    pairs = list(itertools.product(keys, keys[::3]))
    for direction, relation in RELATIONS.items():
        found = apply_op("compare", x, y, attrs=CompareAttrs(direction, ComparisonType.TOTALORDER))
        assert found.tolist() == [relation(a, b) for b, a in pairs]


def test_total_order_places_nan_and_zeros(apply_op):
    x = np.array([-0.0, np.inf, -np.nan if np.signbit(-np.nan) else np.nan, np.nan], np.float32)
    x[2:] = np.array([0xFFC00000, 0x7FC00000], np.uint32).view(np.float32)
    y = np.array([0.0, np.nan, -np.inf, np.nan], np.float32)
    found = apply_op("compare", x, y, attrs=CompareAttrs(Direction.LT, ComparisonType.TOTALORDER))
    np.testing.assert_array_equal(found, [True, True, True, False])
    found = apply_op("compare", x, y, attrs=CompareAttrs(Direction.EQ, ComparisonType.TOTALORDER))
    np.testing.assert_array_equal(found, [False, False, False, True])


def test_complex_numbers_are_equal_or_not_but_have_no_order(apply_op):
    x = np.array([1 + 2j, 1 + 2j, complex(np.nan, 0)], np.complex64)
    y = np.array([1 + 2j, 1 + 3j, complex(np.nan, 0)], np.complex64)
    np.testing.assert_array_equal(apply_op("compare", x, y, attrs=CompareAttrs(Direction.EQ)), [True, False, False])
    np.testing.assert_array_equal(apply_op("compare", x, y, attrs=CompareAttrs(Direction.NE)), [False, True, True])
    with pytest.raises(ShapeError, match="complex numbers have no order"):
        apply_op("compare", x, y, attrs=CompareAttrs(Direction.LT))


def test_comparison_types_must_fit_the_element_type(apply_op):
    x = np.zeros(1, np.int32)
    apply_op("compare", x, x, attrs=CompareAttrs(Direction.LT, ComparisonType.SIGNED))
    for wrong in (ComparisonType.FLOAT, ComparisonType.UNSIGNED, ComparisonType.TOTALORDER):
        with pytest.raises(ShapeError, match=f"comparison type {wrong.value} does not fit element type s32"):
            apply_op("compare", x, x, attrs=CompareAttrs(Direction.LT, wrong))


def test_default_comparison_types():
    assert default_comparison_type(DType.BF16) is ComparisonType.FLOAT
    assert default_comparison_type(DType.C64) is ComparisonType.FLOAT
    assert default_comparison_type(DType.S4) is ComparisonType.SIGNED
    assert default_comparison_type(DType.U8) is ComparisonType.UNSIGNED
    assert default_comparison_type(DType.PRED) is ComparisonType.UNSIGNED


def test_directions_swap_and_invert():
    for direction, relation in RELATIONS.items():
        for a, b in ((1, 2), (2, 1), (1, 1)):
            assert RELATIONS[direction.swapped](b, a) == relation(a, b)
            assert RELATIONS[direction.inverse](a, b) != relation(a, b)


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_array], ids=lambda dtype: dtype.value)
def test_select_takes_each_element_from_one_side(dtype, apply_op):
    ones, zeros = (np.full(4, v, np.float32).astype(dtype.numpy) for v in (1, 0))
    condition = np.array([True, False, True, False])
    found = apply_op("select", condition, ones, zeros)
    assert found.dtype == dtype.numpy
    assert found.tobytes() == np.where(condition, ones, zeros).tobytes()
    assert apply_op("select", np.array(True), ones, zeros).tobytes() == ones.tobytes()


def test_select_checks_its_operands(apply_op):
    x = np.zeros(3, np.float32)
    with pytest.raises(ShapeError, match="the condition must be pred, found f32"):
        apply_op("select", x, x, x)
    with pytest.raises(ShapeError, match="element types f32 and s32 differ"):
        apply_op("select", x > 0, x, x.astype(np.int32))
    with pytest.raises(ShapeError, match="the condition must be a scalar or have"):
        apply_op("select", np.zeros(2, np.bool_), x, x)
    with pytest.raises(ShapeError, match="sizes of both choices"):
        apply_op("select", np.array(True), x, x[:2])


def test_binary_operations_do_not_broadcast_and_do_not_mix_types(apply_op):
    x = np.zeros(3, np.float32)
    with pytest.raises(ShapeError, match="HLO does not broadcast implicitly"):
        apply_op("add", x, x[:1])
    with pytest.raises(ShapeError, match="element types f32 and s32 differ"):
        apply_op("compare", x, x.astype(np.int32), attrs=CompareAttrs(Direction.EQ))
    with pytest.raises(ShapeError, match="takes 2 operands, found 1"):
        apply_op("add", x)
    with pytest.raises(ShapeError, match="the upper bound is f64"):
        apply_op("clamp", x, x, x.astype(np.float64))
    with pytest.raises(ShapeError, match="the lower bound must be a scalar or have"):
        apply_op("clamp", x[:2], x, x)
