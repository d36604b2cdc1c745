"""dot, ragged-dot and scaled-dot."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.dot import DotAlgorithm, DotAttrs
from xlalite.hlo.ops.special_dots import RaggedDotAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

F32 = DType.F32
MATRIX = DotAttrs((), (1,), (), (0,))


def dot(lhs: np.ndarray, rhs: np.ndarray, attrs: DotAttrs = MATRIX, result: DType | None = None) -> np.ndarray:
    builder = Builder("dot")
    operands = [builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape)) for x in (lhs, rhs)]
    inferred = OPS["dot"].infer_shape(
        [operand.shape for operand in operands], attrs, (), None if result is None else Shape.array(result, ())
    )
    module = builder.build_module(builder.op("dot", operands, attrs, shape=inferred))
    return np.asarray(evaluate(module, lhs, rhs))


def test_every_arrangement_of_dimensions(rng: np.random.Generator) -> None:
    sizes = {"b": 2, "c": 3, "k": 4, "l": 2, "m": 3, "n": 5}
    for lhs_order, rhs_order in itertools.islice(
        zip(itertools.permutations("bckm"), itertools.permutations("bckn"), strict=True), 24
    ):
        lhs_labels, rhs_labels = "".join(lhs_order), "".join(reversed(rhs_order))
        lhs = rng.standard_normal([sizes[label] for label in lhs_labels])
        rhs = rng.standard_normal([sizes[label] for label in rhs_labels])
        attrs = DotAttrs(
            (lhs_labels.index("c"), lhs_labels.index("b")),
            (lhs_labels.index("k"),),
            (rhs_labels.index("c"), rhs_labels.index("b")),
            (rhs_labels.index("k"),),
        )
        expected = np.einsum(f"{lhs_labels},{rhs_labels}->cbmn", lhs, rhs)
        np.testing.assert_allclose(dot(lhs, rhs, attrs), expected, rtol=1e-12)


def test_several_contracting_dimensions(rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((3, 4, 5)), rng.standard_normal((5, 2, 3))
    found = dot(lhs, rhs, DotAttrs((), (2, 0), (), (0, 2)))
    np.testing.assert_allclose(found, np.einsum("imk,kni->mn", lhs, rhs), rtol=1e-12)


INTEGERS = [dtype for dtype in DType if dtype.is_integral]


@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda dtype: dtype.value)
def test_integers_wrap(dtype: DType, rng: np.random.Generator) -> None:
    limit = 1 << dtype.bits
    raw = [[[int(v) for v in row] for row in rng.integers(0, 2**63, shape)] for shape in ((3, 8), (8, 2))]
    lhs, rhs = (np.array([[v * 3 % limit for v in row] for row in m], np.uint64).astype(dtype.numpy) for m in raw)
    lhs_exact, rhs_exact = (x.astype(object if dtype.bits >= 8 else np.int64).astype(object) for x in (lhs, rhs))
    expected = np.array([[int(v) % limit for v in row] for row in lhs_exact.dot(rhs_exact)], np.uint64)
    np.testing.assert_array_equal(dot(lhs, rhs), expected.astype(dtype.numpy))


def test_narrow_integers_accumulate_in_the_result_type() -> None:
    lhs, rhs = np.full((1, 1000), -128, np.int8), np.full((1000, 1), -128, np.int8)
    assert dot(lhs, rhs, result=DType.S32) == 16_384_000
    assert dot(lhs, rhs) == np.int64(16_384_000).astype(np.int8)


def test_low_precision_accumulates_exactly_and_rounds_once(rng: np.random.Generator) -> None:
    lhs = rng.standard_normal((4, 300)).astype(ml_dtypes.bfloat16)
    rhs = rng.standard_normal((300, 3)).astype(ml_dtypes.bfloat16)
    exact = lhs.astype(np.float64) @ rhs.astype(np.float64)
    np.testing.assert_array_equal(dot(lhs, rhs, result=F32), exact.astype(np.float32))
    assert np.abs(dot(lhs, rhs).astype(np.float64) - exact).max() <= np.abs(exact).max() * 2**-8


def test_mixed_f8_operands_need_a_declared_result() -> None:
    lhs, rhs = np.ones((2, 3), ml_dtypes.float8_e4m3fn), np.ones((3, 2), ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(dot(lhs, rhs, result=F32), np.full((2, 2), 3, np.float32))
    with pytest.raises(ShapeError, match="the result shape must be given: neither f8e4m3fn nor f8e5m2 is the wider"):
        dot(lhs, rhs)


def test_pred_is_or_of_ands() -> None:
    lhs = np.array([[True, False, True], [False, False, True]])
    rhs = np.array([[False, True], [True, True], [False, False]])
    np.testing.assert_array_equal(dot(lhs, rhs), [[False, True], [False, False]])
    np.testing.assert_array_equal(dot(lhs, lhs.T.copy(), result=DType.S32), [[2, 1], [1, 1]])


@pytest.mark.parametrize("dtype", [F32, DType.S32, DType.PRED, DType.C64, DType.BF16])
def test_empty_contraction_gives_zeros(dtype: DType) -> None:
    found = dot(np.zeros((2, 0), dtype.numpy), np.zeros((0, 3), dtype.numpy))
    np.testing.assert_array_equal(found, np.zeros((2, 3), dtype.numpy))
    assert dot(np.zeros((0, 4), dtype.numpy), np.zeros((4, 3), dtype.numpy)).shape == (0, 3)


def test_nan_and_infinity_propagate() -> None:
    found = dot(np.array([[np.inf, 1], [np.nan, 0]], np.float32), np.array([[0], [1]], np.float32))
    assert np.isnan(found).all()


def test_infinite_complex_numbers_multiply_by_parts() -> None:
    """XLA gives -inf-infi; products of matrices as a whole may come out as NaN."""
    infinite, row = np.zeros((4, 4), np.complex64), np.zeros((4, 4), np.complex64)
    infinite[3, 0], row[2, 3] = complex(np.inf, -1), complex(-1, -1)
    found = dot(row, infinite)
    assert (found[2, 0].real, found[2, 0].imag) == (-np.inf, -np.inf)
    assert not np.isnan(found[2, :]).any()


@pytest.mark.parametrize("algorithm", DotAlgorithm)
def test_algorithms_take_no_precision_away(algorithm: DotAlgorithm, rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((3, 50)).astype(np.float32), rng.standard_normal((50, 4)).astype(np.float32)
    found = dot(lhs, rhs, DotAttrs((), (1,), (), (0,), algorithm=algorithm))
    np.testing.assert_array_equal(found, dot(lhs, rhs, MATRIX))


@pytest.mark.parametrize(
    ("lhs", "rhs", "attrs", "message"),
    [
        ((2, 3), (4, 5), MATRIX, r"contracting sizes differ: lhs f32\[2,3\] dim 1 is 3, rhs f32\[4,5\] dim 0 is 4"),
        ((2, 3), (3, 5), DotAttrs((), (1,), (), ()), "lhs has 1 contracting dimensions, rhs has 0"),
        ((2, 3), (3, 5), DotAttrs((0,), (0,), (1,), (0,)), r"lhs dims \[0, 0\] names a dimension twice"),
        ((2, 3), (3, 5), DotAttrs((0,), (1,), (1,), (0,)), "batch sizes differ"),
        ((2, 3), (3, 5), DotAttrs((), (2,), (), (0,)), "lhs dims has 2, which is not a dimension of rank 2"),
    ],
)
def test_dot_errors(lhs: tuple, rhs: tuple, attrs: DotAttrs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        OPS["dot"].infer_shape([Shape.array(F32, lhs), Shape.array(F32, rhs)], attrs)


@pytest.mark.parametrize(
    ("operand", "result"), [(F32, DType.S32), (DType.S32, DType.S8), (DType.C64, F32), (DType.S32, DType.PRED)]
)
def test_dot_refuses_results_that_cannot_hold_a_product(operand: DType, result: DType) -> None:
    shapes = [Shape.array(operand, (2, 2))] * 2
    with pytest.raises(ShapeError, match=f"cannot have element type {result.value}"):
        OPS["dot"].infer_shape(shapes, MATRIX, (), Shape.array(result, (2, 2)))


@pytest.mark.parametrize(
    ("lhs", "rhs", "wider"),
    [
        (F32, DType.S32, F32),
        (DType.S64, DType.BF16, DType.BF16),
        (DType.PRED, DType.S4, DType.S4),
        (DType.F64, DType.C64, DType.C64),
        (DType.S8, DType.S32, DType.S32),
    ],
)
def test_dot_of_mixed_kinds_gives_the_wider(lhs: DType, rhs: DType, wider: DType) -> None:
    for operands in ((lhs, rhs), (rhs, lhs)):
        shapes = [Shape.array(dtype, (2, 2)) for dtype in operands]
        assert OPS["dot"].infer_shape(shapes, MATRIX).dtype is wider


def test_dot_of_equally_wide_types_needs_its_shape() -> None:
    with pytest.raises(ShapeError, match="neither s32 nor u32 is the wider type"):
        OPS["dot"].infer_shape([Shape.array(DType.S32, (2, 2)), Shape.array(DType.U32, (2, 2))], MATRIX)


def test_dot_flops() -> None:
    builder = Builder("flops")
    operands = [builder.parameter(Shape.array(F32, dims)) for dims in ((2, 3, 5), (2, 5, 7))]
    instruction = builder.op("dot", operands, DotAttrs((0,), (2,), (0,), (1,))).instruction
    assert instruction.op.flops is not None
    assert instruction.op.flops(instruction) == 2 * 2 * 3 * 5 * 7


def ragged(lhs: np.ndarray, rhs: np.ndarray, sizes: np.ndarray, attrs: RaggedDotAttrs) -> np.ndarray:
    builder = Builder("ragged")
    values = (lhs, rhs, sizes)
    operands = [builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape)) for x in values]
    return np.asarray(evaluate(builder.build_module(builder.op("ragged-dot", operands, attrs)), *values))


def test_ragged_rows_have_their_own_rhs(rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((11, 5)), rng.standard_normal((3, 5, 7))
    found = ragged(lhs, rhs, np.array([4, 0, 5]), RaggedDotAttrs((), (1,), (), (1,), (), (0,), (0,)))
    expected = np.concatenate([lhs[:4] @ rhs[0], lhs[4:9] @ rhs[2], np.zeros((2, 7))])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_ragged_rows_with_batches_and_sizes_of_their_own(rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 3, 5, 6))
    sizes = np.array([[1, 3, 0], [2, 1, 1]])
    found = ragged(lhs, rhs, sizes, RaggedDotAttrs((0,), (2,), (0,), (2,), (), (1,), (1,)))
    for b in range(2):
        group = np.repeat(np.arange(3), sizes[b])
        for row in range(4):
            np.testing.assert_allclose(found[b, row], lhs[b, row] @ rhs[b, group[row]], rtol=1e-12)


def test_ragged_contraction_gives_a_result_for_each_group(rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((4, 9)), rng.standard_normal((9, 6))
    lhs[:, 0] = np.nan
    found = ragged(lhs, rhs, np.array([1, 5, 2]), RaggedDotAttrs((), (1,), (), (0,), (), (1,), ()))
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], lhs[:, 1:6] @ rhs[1:6], rtol=1e-12)
    np.testing.assert_allclose(found[2], lhs[:, 6:8] @ rhs[6:8], rtol=1e-12)


def test_ragged_batch_is_a_plain_dot(rng: np.random.Generator) -> None:
    lhs, rhs = rng.standard_normal((5, 2, 3)), rng.standard_normal((5, 3, 4))
    found = ragged(lhs, rhs, np.array([2, 3]), RaggedDotAttrs((0,), (2,), (0,), (1,), (), (0,), ()))
    np.testing.assert_allclose(found, lhs @ rhs, rtol=1e-12)


def test_ragged_dot_errors() -> None:
    shapes = [Shape.array(F32, (4, 5)), Shape.array(F32, (3, 5, 7)), Shape.array(DType.S32, (2,))]
    with pytest.raises(ShapeError, match="rhs has 3 groups, the group sizes 2"):
        OPS["ragged-dot"].infer_shape(shapes, RaggedDotAttrs((), (1,), (), (1,), (), (0,), (0,)))
    with pytest.raises(ShapeError, match="a ragged free dimension needs 1 rhs_group_dims"):
        OPS["ragged-dot"].infer_shape(shapes, RaggedDotAttrs((), (1,), (), (1,), (), (0,), ()))
    square = [shapes[0], Shape.array(F32, (2, 5, 5)), shapes[2]]
    with pytest.raises(ShapeError, match=r"rhs dims .*0, 0"):
        OPS["ragged-dot"].infer_shape(square, RaggedDotAttrs((), (1,), (), (0,), (), (0,), (0,)))


def test_scaled_dot_multiplies_blocks_by_their_scales(rng: np.random.Generator) -> None:
    lhs = rng.standard_normal((3, 8)).astype(ml_dtypes.float8_e4m3fn)
    rhs = rng.standard_normal((8, 2)).astype(ml_dtypes.float8_e4m3fn)
    lhs_scale = np.exp2(rng.integers(-3, 4, (3, 2))).astype(ml_dtypes.float8_e8m0fnu)
    rhs_scale = np.exp2(rng.integers(-3, 4, (4, 2))).astype(ml_dtypes.float8_e8m0fnu)
    builder = Builder("scaled")
    values = (lhs, rhs, lhs_scale, rhs_scale)
    operands = [builder.parameter(Shape.array(DType.from_numpy(x.dtype), x.shape)) for x in values]
    module = builder.build_module(builder.op("scaled-dot", operands, MATRIX, shape=Shape.array(F32, (3, 2))))
    left = lhs.astype(np.float64) * np.repeat(lhs_scale.astype(np.float64), 4, axis=1)
    right = rhs.astype(np.float64) * np.repeat(rhs_scale.astype(np.float64), 2, axis=0)
    np.testing.assert_array_equal(evaluate(module, *values), (left @ right).astype(np.float32))
