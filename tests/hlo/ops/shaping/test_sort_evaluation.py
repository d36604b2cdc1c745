"""sort and topk."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction
from xlalite.hlo.ops.sorting import SortAttrs, TopkAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import ProgramShape, Shape

F32, S32 = DType.F32, DType.S32
Body = Callable[[Builder, tuple[Handle, ...]], Handle]


def sort(body: Body, *values: np.ndarray, dimension: int = 0, stable: bool = True) -> list[np.ndarray]:
    builder = Builder("sort")
    pairs = [Shape.array(DType.from_numpy(v.dtype)) for v in values for _ in range(2)]
    comparator = builder.subcomputation("comparator", pairs, body)
    operands = [builder.parameter(Shape.array(DType.from_numpy(v.dtype), v.shape)) for v in values]
    root = builder.op("sort", operands, SortAttrs((dimension,), stable), (comparator,))
    found = evaluate(builder.build_module(root), *values)
    return list(found) if isinstance(found, tuple) else [np.asarray(found)]


def less(b: Builder, p: tuple[Handle, ...]) -> Handle:
    return b.compare(p[0], p[1], "LT")


def greater(b: Builder, p: tuple[Handle, ...]) -> Handle:
    return b.compare(p[0], p[1], "GT")


def total_order(b: Builder, p: tuple[Handle, ...]) -> Handle:
    return b.op("compare", p[:2], CompareAttrs(Direction.LT, ComparisonType.TOTALORDER))


def by_absolute_value(b: Builder, p: tuple[Handle, ...]) -> Handle:
    return b.compare(b.op("abs", p[:1]), b.op("abs", p[1:2]), "LT")


def lexicographic(b: Builder, p: tuple[Handle, ...]) -> Handle:
    first, tie = b.compare(p[0], p[1], "LT"), b.compare(p[0], p[1], "EQ")
    return first | (tie & b.compare(p[2], p[3], "GT"))


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_array and not d.is_complex], ids=lambda d: d.value)
def test_every_type_sorts_up_and_down(dtype: DType, rng: np.random.Generator) -> None:
    if dtype is DType.PRED:
        x = rng.random(40) < 0.5
    else:
        x = rng.integers(0, 100, 40).astype(np.float32).astype(dtype.numpy)
        x = x[~np.isnan(x.astype(np.float64))]
    numbers = x.astype(np.float64)
    np.testing.assert_array_equal(sort(less, x)[0].astype(np.float64), np.sort(numbers))
    np.testing.assert_array_equal(sort(greater, x)[0].astype(np.float64), -np.sort(-numbers))


@pytest.mark.parametrize("body", [less, greater, by_absolute_value])
def test_equal_elements_keep_their_order(body: Body, rng: np.random.Generator) -> None:
    keys = rng.integers(-5, 5, 300).astype(np.float32)
    shown = {less: keys, greater: -keys, by_absolute_value: np.abs(keys)}[body]
    found, positions = sort(body, keys, np.arange(300, dtype=np.int32))
    np.testing.assert_array_equal(positions, np.argsort(shown, kind="stable"))
    np.testing.assert_array_equal(found, keys[positions])


@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 8, 100, 257])
def test_comparators_without_a_key_use_the_merge_sort(length: int, rng: np.random.Generator) -> None:
    first, second = (rng.integers(0, 6, (3, length)).astype(np.int32) for _ in range(2))
    numbers = np.tile(np.arange(length, dtype=np.int32), (3, 1))
    *_, positions = sort(lexicographic, first, second, numbers, dimension=1)
    for row in range(3):
        np.testing.assert_array_equal(positions[row], np.lexsort((numbers[row], -second[row], first[row])))


def test_float_order_treats_zeros_as_equal_and_total_order_does_not() -> None:
    x = np.array([0.0, -0.0, 1.0, -0.0, 0.0], np.float32)
    numbers = np.arange(5, dtype=np.int32)
    assert sort(less, x, numbers)[1].tolist() == [0, 1, 3, 4, 2]
    assert sort(total_order, x, numbers)[1].tolist() == [1, 3, 0, 4, 2]


def test_total_order_has_a_place_for_nan() -> None:
    x = np.array([np.nan, 1, -np.inf, -np.nan, np.inf], np.float32)
    found = sort(total_order, x)[0]
    assert np.signbit(found[0])
    assert np.isnan(found[[0, 4]]).all()
    np.testing.assert_array_equal(found[1:4], [-np.inf, 1, np.inf])


def test_nan_in_a_float_comparison_loses_no_element() -> None:
    x = np.array([3, np.nan, 1, np.nan, 2, 0], np.float32)
    found = sort(less, x)[0]
    assert sorted(found[~np.isnan(found)]) == [0, 1, 2, 3]
    assert np.isnan(found).sum() == 2


def test_any_dimension(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 5, 6))
    for dimension in range(3):
        np.testing.assert_array_equal(sort(less, x, dimension=dimension)[0], np.sort(x, axis=dimension))


def test_sort_errors() -> None:
    vector, scalar, pred = Shape.array(F32, (3,)), Shape.array(F32), Shape.array(DType.PRED)
    program = ProgramShape((scalar, scalar), pred)
    with pytest.raises(ShapeError, match="dimensions must have exactly one entry"):
        OPS["sort"].infer_shape([vector], SortAttrs(()), [program])
    with pytest.raises(ShapeError, match="sizes of operands 0 and 1 differ"):
        OPS["sort"].infer_shape([vector, Shape.array(F32, (4,))], SortAttrs((0,)), [program])
    with pytest.raises(ShapeError, match=r"to_apply gives f32\[\], expected pred\[\]"):
        OPS["sort"].infer_shape([vector], SortAttrs((0,)), [ProgramShape((scalar, scalar), scalar)])
    with pytest.raises(ShapeError, match=r"it is given \(f32\[\], f32\[\], f32\[\], f32\[\]\)"):
        OPS["sort"].infer_shape([vector, vector], SortAttrs((0,)), [program])


def top(x: np.ndarray, k: int, *, largest: bool = True) -> tuple[np.ndarray, np.ndarray]:
    builder = Builder("topk")
    operand = builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape))
    values, positions = evaluate(builder.build_module(builder.op("topk", (operand,), TopkAttrs(k, largest))), x)
    return values, positions


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, ml_dtypes.bfloat16, ml_dtypes.int4, np.bool_])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_prefers_the_first_of_equal_elements(dtype: type, largest: bool, rng: np.random.Generator) -> None:
    x = rng.integers(0, 7, (3, 30)).astype(dtype)
    values, positions = top(x, 5, largest=largest)
    numbers = x.astype(np.float64)
    expected = np.argsort(-numbers if largest else numbers, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(positions, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis=1))
    assert positions.dtype == np.int32


def test_topk_edges() -> None:
    values, positions = top(np.array([1, np.nan, np.inf], np.float32), 2)
    assert np.isnan(values[0])
    assert positions.tolist() == [1, 2]
    assert top(np.zeros((2, 3), np.float32), 0)[0].shape == (2, 0)
    with pytest.raises(ShapeError, match=r"k 4 is not in \[0, 3\]"):
        OPS["topk"].infer_shape([Shape.array(F32, (2, 3))], TopkAttrs(4))
    with pytest.raises(ShapeError, match="element type c64 is not pred, integral or floating-point"):
        OPS["topk"].infer_shape([Shape.array(DType.C64, (2, 3))], TopkAttrs(1))
