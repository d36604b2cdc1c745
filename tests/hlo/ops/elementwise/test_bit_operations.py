"""bitcast-convert, bitcast and reduce-precision."""

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops.conversion import ReducePrecisionAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Layout, Shape


def bits_of(array, dtype):
    """Each element as the integer its bits are."""
    mask = (1 << dtype.bits) - 1
    raw = np.ascontiguousarray(array).view(f"u{dtype.size_bytes}").reshape(array.shape)
    return [int(pattern) & mask for pattern in raw.ravel()]


PAIRS = [
    (a, b)
    for a in DType
    for b in DType
    if a.is_array and b.is_array and not a.is_complex and not b.is_complex and DType.PRED not in (a, b)
    if max(a.bits, b.bits) % min(a.bits, b.bits) == 0
]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{a.value}-{b.value}" for a, b in PAIRS])
def test_bitcast_convert_keeps_the_bits_little_end_first(source, target, apply_op, rng):
    ratio = max(source.bits // target.bits, target.bits // source.bits, 1)
    dims = (3, ratio) if source.bits < target.bits else (3,)
    patterns = rng.integers(0, 1 << min(source.bits, 63), dims, np.uint64)
    if source.is_integral and source.bits < 8:
        x = patterns.astype(np.uint8).astype(np.int8).astype(source.numpy)
    else:
        x = patterns.astype(f"u{source.size_bytes}").view(source.numpy)
    wanted_dims = (*dims, ratio) if source.bits > target.bits else dims[:-1] if source.bits < target.bits else dims
    found = apply_op("bitcast-convert", x, result=target, dims=wanted_dims)
    assert found.shape == wanted_dims
    assert found.dtype == target.numpy
    narrow, wide = (bits_of(x, source), bits_of(found, target))
    if source.bits > target.bits:
        narrow, wide = wide, narrow
    width = min(source.bits, target.bits)
    for i, pattern in enumerate(wide):
        parts = narrow[i * ratio : (i + 1) * ratio]
        assert sum(part << (k * width) for k, part in enumerate(parts)) == pattern


def test_bitcast_convert_reads_the_known_pattern_of_one(apply_op):
    found = apply_op("bitcast-convert", np.array([1.0, -0.0], np.float32), result=DType.U32)
    np.testing.assert_array_equal(found, [0x3F800000, 0x80000000])
    found = apply_op("bitcast-convert", np.array([0x12345678], np.uint32), result=DType.U8, dims=(1, 4))
    np.testing.assert_array_equal(found, [[0x78, 0x56, 0x34, 0x12]])
    found = apply_op("bitcast-convert", np.array([0x2D], np.int8), result=DType.S4, dims=(1, 2))
    np.testing.assert_array_equal(found.astype(int), [[-3, 2]])


def test_bitcast_convert_between_complex_types(apply_op):
    x = np.array([1 + 2j, 3 - 4j], np.complex64)
    found = apply_op("bitcast-convert", x, result=DType.C128, dims=())
    assert found.tobytes() == x.tobytes()
    np.testing.assert_array_equal(apply_op("bitcast-convert", found, result=DType.C64, dims=(2,)), x)


def test_bitcast_convert_of_strided_and_empty_arrays(apply_op):
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    np.testing.assert_array_equal(apply_op("bitcast-convert", x, result=DType.S32), x.copy().view(np.int32))
    assert apply_op("bitcast-convert", np.zeros((0, 4), np.uint8), result=DType.F32, dims=(0,)).shape == (0,)
    assert apply_op("bitcast-convert", np.zeros((0,), np.float32), result=DType.S4, dims=(0, 8)).shape == (0, 8)


def test_bitcast_convert_rejects_what_has_no_meaning(apply_op):
    with pytest.raises(ShapeError, match="the result must have sizes"):
        apply_op("bitcast-convert", np.zeros(4, np.float32), result=DType.S8)
    with pytest.raises(ShapeError, match="must hold the parts"):
        apply_op("bitcast-convert", np.zeros(3, np.uint8), result=DType.F32, dims=())
    with pytest.raises(ShapeError, match="bits of pred"):
        apply_op("bitcast-convert", np.zeros(3, np.bool_), result=DType.U8)
    with pytest.raises(ShapeError, match="real and imag"):
        apply_op("bitcast-convert", np.zeros(3, np.complex64), result=DType.F64)


def bitcast(x, source, target):
    builder = Builder("test")
    root = builder.op("bitcast", (builder.parameter(source),), shape=target)
    return evaluate(builder.build(root), x)


def test_bitcast_reads_memory_in_the_order_of_the_layouts(rng):
    x = rng.normal(size=(2, 3)).astype(np.float32)
    row, column = Layout((1, 0)), Layout((0, 1))
    by_rows = Shape.array(DType.F32, (2, 3), row)
    by_columns = Shape.array(DType.F32, (2, 3), column)
    turned = Shape.array(DType.F32, (3, 2), row)
    np.testing.assert_array_equal(bitcast(x, by_columns, turned), x.T)
    np.testing.assert_array_equal(bitcast(x, by_rows, turned), x.reshape(3, 2))
    np.testing.assert_array_equal(bitcast(x, by_rows, by_columns), x.ravel().reshape(3, 2).T)
    np.testing.assert_array_equal(bitcast(x, by_rows, Shape.array(DType.F32, (6,))), x.ravel())


def test_bitcast_may_change_the_element_type(rng):
    x = rng.normal(size=(2, 3)).astype(np.float32)
    found = bitcast(x, Shape.array(DType.F32, (2, 3)), Shape.array(DType.U8, (24,)))
    assert found.tobytes() == x.tobytes()
    found = bitcast(found, Shape.array(DType.U8, (24,)), Shape.array(DType.F64, (3,)))
    assert found.tobytes() == x.tobytes()


def test_bitcast_needs_as_many_bits():
    with pytest.raises(ShapeError, match="as many bits"):
        bitcast(np.zeros(3, np.float32), Shape.array(DType.F32, (3,)), Shape.array(DType.F64, (3,)))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64], ids=lambda dtype: dtype.value)
@pytest.mark.parametrize("narrow", [DType.F16, DType.BF16, DType.F32], ids=lambda dtype: dtype.value)
def test_reduce_precision_is_conversion_there_and_back_but_for_denormals(dtype, narrow, apply_op, rng):
    exponent_bits, mantissa_bits = {DType.F16: (5, 10), DType.BF16: (8, 7), DType.F32: (8, 23)}[narrow]
    values = np.concatenate([rng.normal(size=500) * 10.0 ** rng.uniform(-3, 5.5, 500), [np.inf, -np.inf, 0.0, -0.0]])
    values = values[(np.abs(values) > 1e-4) | (values == 0)]
    x = values.astype(dtype.numpy)
    back = apply_op("convert", apply_op("convert", x, result=narrow), result=dtype)
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(exponent_bits, mantissa_bits))
    np.testing.assert_array_equal(found, back)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(back))


def test_reduce_precision_flushes_the_denormals_of_a_narrower_exponent(apply_op):
    smallest = 2.0**-14
    x = np.array([smallest, smallest / 2, -smallest / 2, smallest * (1 - 2.0**-12)], np.float32)
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(5, 10))
    np.testing.assert_array_equal(found, [smallest, 0, 0, smallest])
    assert np.signbit(found[2])
    denormal = np.array([1e-40], np.float32)
    np.testing.assert_array_equal(apply_op("reduce-precision", denormal, attrs=ReducePrecisionAttrs(8, 23)), denormal)


def test_reduce_precision_of_nan_and_of_formats_without_mantissa(apply_op):
    x = np.array([np.nan, np.inf, 1.0, 1.4, 1.5, 1.6, 3.0, 3.1, -6.5], np.float32)
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(5, 1))
    np.testing.assert_array_equal(found, [np.nan, np.inf, 1, 1.5, 1.5, 1.5, 3, 3, -6])
    # Without mantissa the last bit kept is the exponent's, so 1.5 rounds up and 3 down.
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(5, 0))
    np.testing.assert_array_equal(found, [np.nan, np.inf, 1, 1, 2, 2, 2, 4, -8])


def test_reduce_precision_ties_go_to_even_and_large_values_become_infinite(apply_op):
    x = np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8, 65520, 65519, -1e38, np.finfo(np.float32).max], np.float32)
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(5, 7))
    np.testing.assert_array_equal(found, [1, 1 + 2.0**-6, np.inf, np.inf, -np.inf, np.inf])
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(8, 22))
    np.testing.assert_array_equal(found[-1:], [np.inf])


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F8E5M2, DType.F8E4M3FN], ids=lambda dtype: dtype.value)
def test_reduce_precision_of_narrow_types(dtype, apply_op):
    x = np.array([1.0, 1.25, 1.75, -3.5, 0.0]).astype(dtype.numpy)
    found = apply_op("reduce-precision", x, attrs=ReducePrecisionAttrs(4, 1)).astype(np.float64)
    np.testing.assert_array_equal(found, [1.0, 1.0, 2.0, -4.0, 0.0])


def test_reduce_precision_checks_its_format(apply_op):
    for attrs, message in (
        (ReducePrecisionAttrs(0, 5), "exponent_bits must be at least 1"),
        (ReducePrecisionAttrs(5, -1), "mantissa_bits must not be negative"),
    ):
        with pytest.raises(ShapeError, match=message):
            apply_op("reduce-precision", np.zeros(1, np.float32), attrs=attrs)
    with pytest.raises(ShapeError, match="is not floating-point"):
        apply_op("reduce-precision", np.zeros(1, np.int32), attrs=ReducePrecisionAttrs(5, 5))
