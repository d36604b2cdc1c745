"""fft, cholesky, triangular-solve, batch normalisation, scan."""

import itertools

import numpy as np
import pytest
import scipy.linalg

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.batch_norm import BatchNormAttrs
from xlalite.hlo.ops.fourier import FftAttrs, FftType
from xlalite.hlo.ops.linear_algebra import CholeskyAttrs, Transpose, TriangularSolveAttrs
from xlalite.hlo.ops.scanning import ScanAttrs
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import ProgramShape, Shape

F32, F64 = DType.F32, DType.F64


def apply(opcode: str, attrs: object, *values: np.ndarray) -> Value:
    builder = Builder(opcode)
    operands = [builder.parameter(Shape.array(DType.from_numpy(value.dtype), value.shape)) for value in values]
    return evaluate(builder.build_module(builder.op(opcode, operands, attrs)), *values)


def transform_matrix(length: int, sign: int) -> np.ndarray:
    return np.exp(sign * 2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length)


@pytest.mark.parametrize("lengths", [(1,), (7,), (16,), (3, 4), (2, 3, 5)])
def test_fft_against_the_definition(lengths: tuple[int, ...], rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, *lengths)) + 1j * rng.standard_normal((2, *lengths))
    forward, backward = x, x
    for axis, length in enumerate(lengths, start=1):
        forward = np.moveaxis(np.tensordot(transform_matrix(length, -1), forward, (1, axis)), 0, axis)
        backward = np.moveaxis(np.tensordot(transform_matrix(length, 1) / length, backward, (1, axis)), 0, axis)
    np.testing.assert_allclose(apply("fft", FftAttrs(FftType.FFT, lengths), x), forward, atol=1e-12)
    np.testing.assert_allclose(apply("fft", FftAttrs(FftType.IFFT, lengths), x), backward, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 9, 10])
def test_real_transforms(length: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((3, length))
    spectrum = np.asarray(apply("fft", FftAttrs(FftType.RFFT, (length,)), x))
    np.testing.assert_allclose(spectrum, (x @ transform_matrix(length, -1))[:, : length // 2 + 1], atol=1e-12)
    np.testing.assert_allclose(apply("fft", FftAttrs(FftType.IRFFT, (length,)), spectrum), x, atol=1e-12)
    assert np.asarray(apply("fft", FftAttrs(FftType.RFFT, (length,)), x.astype(np.float32))).dtype == np.complex64


def test_empty_fft() -> None:
    found = apply("fft", FftAttrs(FftType.FFT, (0,)), np.zeros((2, 0), np.complex64))
    assert np.asarray(found).shape == (2, 0)


@pytest.mark.parametrize("frequencies", [0, 1])
def test_no_signal_has_no_frequency_or_one(frequencies: int) -> None:
    found = apply("fft", FftAttrs(FftType.IRFFT, (0,)), np.ones((2, frequencies), np.complex64))
    assert np.asarray(found).shape == (2, 0)


@pytest.mark.parametrize(
    ("kind", "operand", "lengths", "message"),
    [
        (FftType.FFT, Shape.array(F32, (8,)), (8,), "FFT takes c64 or c128, found f32"),
        (FftType.RFFT, Shape.array(DType.C64, (8,)), (8,), "RFFT takes f32 or f64, found c64"),
        (FftType.IRFFT, Shape.array(DType.C64, (8,)), (8,), r"needs last dimensions \[5\], found \[8\]"),
        (FftType.IRFFT, Shape.array(DType.C64, (2,)), (0,), r"needs last dimensions \[0\], found \[2\]"),
        (FftType.FFT, Shape.array(DType.C64, (8,)), (2, 4), "2 transformed dimensions for an operand of rank 1"),
        (FftType.FFT, Shape.array(DType.C64, (8,)), (-2,), r"fft_length must not be negative, found \[-2\]"),
        (FftType.FFT, Shape.array(DType.C64, (8,)), (), "1 to 3 entries, found 0"),
    ],
)
def test_fft_errors(kind: FftType, operand: Shape, lengths: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        OPS["fft"].infer_shape([operand], FftAttrs(kind, lengths))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(dtype: type, lower: bool, rng: np.random.Generator) -> None:
    root = rng.standard_normal((3, 4, 4)) + (1j * rng.standard_normal((3, 4, 4)) if dtype is np.complex128 else 0)
    matrix = (root @ np.conj(np.swapaxes(root, 1, 2)) + 4 * np.eye(4)).astype(dtype)
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    spoiled = triangle + np.where(triangle == 0, np.nan, 0).astype(dtype)
    factor = np.asarray(apply("cholesky", CholeskyAttrs(lower), spoiled))
    adjoint = np.conj(np.swapaxes(factor, 1, 2))
    tolerance = 1e-4 if dtype is np.float32 else 1e-12
    product = factor @ adjoint if lower else adjoint @ factor
    np.testing.assert_allclose(product, matrix, rtol=tolerance, atol=tolerance)
    assert not np.signbit(np.imag(factor)[np.imag(factor) == 0]).any()


def test_cholesky_of_an_indefinite_matrix_is_nan_and_spares_the_others() -> None:
    matrices = np.stack([np.eye(2), -np.eye(2), 4 * np.eye(2)])
    found = np.asarray(apply("cholesky", CholeskyAttrs(True), matrices))
    np.testing.assert_array_equal(found[[0, 2]], [np.eye(2), 2 * np.eye(2)])
    assert np.isnan(found[1]).all()
    for strange in (
        [[np.nan, 0], [1, 1]],
        [[1, 0], [np.nan, 1]],
        [[np.inf, 0], [-np.inf, 0]],
        [[np.inf, 0], [np.inf, 4]],
    ):
        found = np.asarray(apply("cholesky", CholeskyAttrs(True), np.array([np.eye(2), strange])))
        np.testing.assert_array_equal(found, [np.eye(2), np.full((2, 2), np.nan)])
    assert np.asarray(apply("cholesky", CholeskyAttrs(True), np.zeros((2, 0, 0)))).shape == (2, 0, 0)


@pytest.mark.parametrize(
    ("left", "lower", "unit", "transpose"),
    list(itertools.product([True, False], [True, False], [True, False], Transpose)),
)
def test_triangular_solve(left: bool, lower: bool, unit: bool, transpose: Transpose, rng: np.random.Generator) -> None:
    full = rng.standard_normal((2, 4, 4)) + 1j * rng.standard_normal((2, 4, 4)) + 3 * np.eye(4)
    rhs = rng.standard_normal((2, 4, 3) if left else (2, 3, 4)).astype(np.complex128)
    triangle = np.tril(full) if lower else np.triu(full)
    spoiled = np.where(triangle == 0, np.nan, triangle)
    found = apply("triangular-solve", TriangularSolveAttrs(left, lower, unit, transpose), spoiled, rhs)
    matrix = triangle.copy()
    if unit:
        matrix[:, range(4), range(4)] = 1
    if transpose is not Transpose.NO_TRANSPOSE:
        matrix = np.swapaxes(matrix, 1, 2)
    if transpose is Transpose.ADJOINT:
        matrix = np.conj(matrix)
    product = matrix @ np.asarray(found) if left else np.asarray(found) @ matrix
    np.testing.assert_allclose(product, rhs, atol=1e-11)


def test_triangular_solve_of_f32_agrees_with_scipy(rng: np.random.Generator) -> None:
    matrix, rhs = np.tril(rng.standard_normal((30, 30))) + 5 * np.eye(30), rng.standard_normal((30, 2))
    found = apply(
        "triangular-solve", TriangularSolveAttrs(True, True), matrix.astype(np.float32), rhs.astype(np.float32)
    )
    np.testing.assert_allclose(found, scipy.linalg.solve_triangular(matrix, rhs, lower=True), rtol=1e-4, atol=1e-5)


def test_linear_algebra_errors() -> None:
    square, flat = Shape.array(F32, (3, 3)), Shape.array(F32, (3, 4))
    with pytest.raises(ShapeError, match="last two dimensions must be equal"):
        OPS["cholesky"].infer_shape([flat], CholeskyAttrs())
    with pytest.raises(ShapeError, match="element type s32 is not floating-point or complex"):
        OPS["cholesky"].infer_shape([Shape.array(DType.S32, (3, 3))], CholeskyAttrs())
    with pytest.raises(ShapeError, match="the matrix has size 3, the other operand has 4 on that side"):
        OPS["triangular-solve"].infer_shape([square, flat], TriangularSolveAttrs(left_side=False))
    with pytest.raises(ShapeError, match="batch dimensions of the operands differ"):
        OPS["triangular-solve"].infer_shape([square, Shape.array(F32, (2, 3, 4))], TriangularSolveAttrs(True))


def test_batch_norm(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 3, 4))
    scale, offset = rng.standard_normal(3), rng.standard_normal(3)
    attrs = BatchNormAttrs(0.01, 1)
    normalised, mean, variance = apply("batch-norm-training", attrs, x, scale, offset)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2)), rtol=1e-12)
    np.testing.assert_allclose(variance, x.var(axis=(0, 2)), rtol=1e-12)
    spread = [v[None, :, None] for v in (scale, offset, x.mean(axis=(0, 2)), x.var(axis=(0, 2)))]
    expected = (x - spread[2]) / np.sqrt(spread[3] + 0.01) * spread[0] + spread[1]
    np.testing.assert_allclose(normalised, expected, rtol=1e-10, atol=1e-12)
    found = apply("batch-norm-inference", attrs, x, scale, offset, mean, variance)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_batch_norm_grad_against_differences(rng: np.random.Generator) -> None:
    x, scale, offset = rng.standard_normal((4, 3)), rng.standard_normal(3), rng.standard_normal(3)
    gradient, attrs = rng.standard_normal((4, 3)), BatchNormAttrs(0.1, 1)

    def loss(x: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> float:
        normalised = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 0.1)
        return float(((normalised * scale + offset) * gradient).sum())

    found = apply("batch-norm-grad", attrs, x, scale, x.mean(axis=0), x.var(axis=0), gradient)
    for position, (value, ours) in enumerate(zip((x, scale, offset), found, strict=True)):
        for index in np.ndindex(value.shape):
            arguments = [x, scale, offset]
            sides = []
            for step in (1e-6, -1e-6):
                arguments[position] = value.copy()
                arguments[position][index] += step
                sides.append(loss(*arguments))
            assert ours[index] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-7)


def test_batch_norm_errors() -> None:
    x, good, bad = Shape.array(F32, (4, 3)), Shape.array(F32, (3,)), Shape.array(F32, (4,))
    with pytest.raises(ShapeError, match="one number for each of the 3 features"):
        OPS["batch-norm-training"].infer_shape([x, good, bad], BatchNormAttrs(0.1, 1))
    with pytest.raises(ShapeError, match="feature_index has 2, which is not a dimension of rank 2"):
        OPS["batch-norm-training"].infer_shape([x, good, good], BatchNormAttrs(0.1, 2))


def running(b: Builder, p: tuple[Handle, ...]) -> Handle:
    x, total = p
    new = total * 2.0 + x
    return b.tuple((b.convert(new, DType.S32), new))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("written", [True, False])
def test_scan_stacks_outputs_and_hands_carries_on(reverse: bool, written: bool, rng: np.random.Generator) -> None:
    x, start = rng.integers(-5, 5, (3, 6)).astype(np.float64), rng.integers(-5, 5, 3).astype(np.float64)
    builder = Builder("scan")
    row = Shape.array(F64, (3,))
    body = builder.subcomputation("body", [row, row], running)
    operands = [builder.parameter(Shape.array(F64, value.shape)) for value in (x, start)]
    attrs = ScanAttrs((1,), 1 if written else -1, reverse)
    outputs, final = evaluate(builder.build_module(builder.op("scan", operands, attrs, (body,))), x, start)
    total, expected = start, np.empty((3, 6), np.int32)
    for step in reversed(range(6)) if reverse else range(6):
        total = total * 2 + x[:, step]
        expected[:, step] = total
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(final, total)


def test_scan_over_nothing_gives_the_initial_carry() -> None:
    builder = Builder("scan")
    scalar = Shape.array(F64)
    body = builder.subcomputation("body", [scalar, scalar], running)
    operands = [builder.parameter(Shape.array(F64, (0,))), builder.parameter(scalar)]
    root = builder.op("scan", operands, ScanAttrs((0,), num_carries=1), (body,))
    outputs, final = evaluate(builder.build_module(root), np.zeros(0), np.float64(3))
    assert outputs.shape == (0,)
    assert final == 3


def test_scan_errors() -> None:
    x, s = Shape.array(F32, (5,)), Shape.array(F32)
    with pytest.raises(ShapeError, match="needs at least one input besides its 2 carries"):
        OPS["scan"].infer_shape([x, s], ScanAttrs((0,), num_carries=2), [ProgramShape((s, s), s)])
    with pytest.raises(ShapeError, match=r"to_apply has the signature \(f32\[\]\) -> f32\[\], it is given"):
        OPS["scan"].infer_shape([x, s], ScanAttrs((0,), num_carries=1), [ProgramShape((s,), s)])
    pair = Shape.tuple([s, Shape.array(DType.S32)])
    with pytest.raises(ShapeError, match="which does not end with the 1 carries"):
        OPS["scan"].infer_shape([x, s], ScanAttrs((0,), num_carries=1), [ProgramShape((s, s), pair)])
