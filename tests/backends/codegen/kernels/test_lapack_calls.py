"""Factorisations that jax asks of LAPACK: they agree with the evaluator and give their matrices back."""

import itertools
from typing import Any

import numpy as np
import pytest
from halves import HALVES
from lapack_programs import LETTERS, adjoint, call, half_of_sizes, listed, matrices

from xlalite.hlo.errors import ExecutionError
from xlalite.hlo.types.dtype import DType

SIZES = ((1, 1), (5, 3), (3, 5), (16, 16), (70, 70), (90, 20), (20, 90), (1, 7), (7, 1))
"""Square, tall and wide: with and without whole blocks of rows and whole panels."""

WITH_BATCHES = tuple(zip((*SIZES, (130, 100)), itertools.cycle(((), (3,), (2, 2))), strict=False))


def cholesky(dtype: str, dims: tuple[int, ...], uplo: str) -> str:
    results = f"($T{listed(*dims)}, s32{listed(*dims[:-2])})"
    return call("potrf", dtype, {"x": dims}, results, f"uplo = {ord(uplo)} : ui8")


def lu(dtype: str, dims: tuple[int, ...]) -> str:
    batch, k = dims[:-2], min(dims[-2:])
    return call("getrf", dtype, {"x": dims}, f"($T{listed(*dims)}, s32{listed(*batch, k)}, s32{listed(*batch)})")


def positive(rng: np.random.Generator, dtype: str, *dims: int) -> np.ndarray:
    x = matrices(rng, dtype, *dims)
    product = x @ np.conj(np.swapaxes(x, -1, -2)) + dims[-1] * np.eye(dims[-1])
    return product.astype(x.dtype)


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", LETTERS)
def test_cholesky_keeps_the_other_triangle(
    check: Any, kernels: Any, rng: np.random.Generator, dtype: str, uplo: str
) -> None:
    for dims in ((1, 1), (3, 5, 5), (2, 2, 33, 33), (70, 70)):
        executable = check(cholesky(dtype, dims, uplo), positive(rng, dtype, *dims), ulps=64)
        assert kernels(executable) == ["cholesky"]


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_cholesky_says_which_pivot_was_not_positive(
    check: Any, rng: np.random.Generator, dtype: str, uplo: str
) -> None:
    for at, pivot in itertools.product((0, 3, 20), (-1, 0, np.nan)):
        x = positive(rng, dtype, 3, 21, 21)
        x[1, at, at] = pivot
        if pivot == 0:
            x[1, at, :] = x[1, :, at] = 0
        executable = check(cholesky(dtype, x.shape, uplo), x, ulps=64)
        np.testing.assert_array_equal(executable(x)[1], [0, at + 1, 0])


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("dtype", LETTERS)
def test_lu_gives_the_matrix_back(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, half: int) -> None:
    drawn = [(matrices(rng, dtype, *batch, *size), batch) for size, batch in WITH_BATCHES[:-1]]
    for x, batch in half_of_sizes(drawn, dtype, half):
        rows, columns = x.shape[-2:]
        executable = check(lu(dtype, x.shape), x, ulps=2000)
        assert kernels(executable) == ["lu"]
        packed, pivots, info = executable(x)
        k = min(rows, columns)
        product = (np.tril(packed, -1)[..., :k] + np.eye(rows, k)) @ np.triu(packed)[..., :k, :]
        for one, other, swaps in zip(
            *(a.reshape(-1, *a.shape[len(batch) :]) for a in (product, x, pivots)), strict=True
        ):
            for step, chosen in enumerate(swaps - 1):
                other[[step, chosen]] = other[[chosen, step]]
            np.testing.assert_allclose(one, other, atol=100 * np.finfo(x.dtype).eps * np.abs(x).max())
        assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_lu_of_what_has_no_inverse(check: Any, dtype: str) -> None:
    rank_two = np.array([[1, 2, 3, 4], [2, 4, 6, 8], [1, 1, 1, 1], [0, 0, 0, 0]])
    x = np.stack([rank_two, np.zeros((4, 4)), np.eye(4)]).astype(DType(dtype).numpy)
    executable = check(lu(dtype, x.shape), x)
    np.testing.assert_array_equal(executable(x)[2], [3, 1, 0])


@pytest.mark.parametrize("scale", [1e-30, 1e37])
def test_lu_of_very_small_and_large_numbers(check: Any, rng: np.random.Generator, scale: float) -> None:
    x = (rng.integers(-8, 9, (2, 20, 20)) * scale / 8).astype(np.float32)
    check(lu("f32", x.shape), x, ulps=2000)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_lu_takes_the_first_nan_for_the_largest(check: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 3, 40, 40)
    x[0, 7, 0] = x[0, 9, 0] = np.nan
    x[1, 20, 0] = np.inf
    x[2, 39, 39] = -np.inf
    check(lu(dtype, x.shape), x, ulps=2000)


def test_of_equal_elements_the_first_is_the_pivot(check: Any) -> None:
    x = np.array([[1.0, 2], [-1, 5], [1, 7]] * 12, np.float32)
    check(lu("f32", x.shape), x)


def qr(dtype: str, dims: tuple[int, ...]) -> str:
    batch, k = dims[:-2], min(dims[-2:])
    return call("geqrf", dtype, {"x": dims}, f"($T{listed(*dims)}, $T{listed(*batch, k)})")


def named(routine: str, dtype: str) -> str:
    """The routine's name for real or complex numbers."""
    return routine.replace("or", "un") if DType(dtype).is_complex else routine


def make_q(dtype: str, packed: tuple[int, ...], taus: tuple[int, ...]) -> str:
    return call(named("orgqr", dtype), dtype, {"x": packed, "taus": taus}, f"$T{listed(*packed)}")


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("dtype", LETTERS)
def test_qr_gives_the_matrix_back(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, half: int) -> None:
    drawn = [(matrices(rng, dtype, *batch, *size), batch) for size, batch in WITH_BATCHES]
    for x, batch in half_of_sizes(drawn, dtype, half):
        rows, k = x.shape[-2], min(x.shape[-2:])
        executable = check(qr(dtype, x.shape), x, ulps=100)
        assert kernels(executable) == ["qr"]
        packed, taus = executable(x)
        reflections = np.ascontiguousarray(packed[..., :k])
        executable = check(make_q(dtype, reflections.shape, taus.shape), reflections, taus, ulps=100)
        assert kernels(executable) == ["reflections"]
        q, allowed = executable(reflections, taus), 20 * rows * np.finfo(x.dtype).eps
        np.testing.assert_allclose(adjoint(q) @ q, np.broadcast_to(np.eye(k), (*batch, k, k)), atol=allowed)
        np.testing.assert_allclose(q @ np.triu(packed)[..., :k, :], x, atol=allowed)


@pytest.mark.parametrize("dtype", LETTERS)
def test_fewer_reflections_than_columns(check: Any, rng: np.random.Generator, dtype: str) -> None:
    """All of Q, as for complete factorisations; what stands behind the reflections is not read."""
    packed, taus = np.linalg.qr(matrices(rng, dtype, 2, 30, 5), mode="raw")
    wide = matrices(rng, dtype, 2, 30, 30)
    wide[..., :5] = np.swapaxes(packed, -1, -2)
    wide[..., 5:] = np.nan
    taus = taus.astype(wide.dtype)
    executable = check(make_q(dtype, wide.shape, taus.shape), wide, taus, ulps=100)
    q = executable(wide, taus)
    np.testing.assert_allclose(adjoint(q) @ q, np.stack([np.eye(30)] * 2), atol=600 * np.finfo(q.dtype).eps)


@pytest.mark.parametrize("transpose", ["true", "false"])
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("dtype", LETTERS)
def test_products_with_q(
    check: Any, kernels: Any, rng: np.random.Generator, dtype: str, left: str, transpose: str
) -> None:
    for rows, count, others in ((7, 3, 5), (100, 90, 70)):
        packed, taus = np.linalg.qr(matrices(rng, dtype, 2, rows, count), mode="raw")
        packed, taus = (part.astype(DType(dtype).numpy) for part in (np.swapaxes(packed, -1, -2), taus))
        c = matrices(rng, dtype, 2, *((rows, others) if left == "true" else (others, rows)))
        operands = {"x": packed.shape, "taus": taus.shape, "c": c.shape}
        options = f"left = {left}, transpose = {transpose}"
        text = call(named("ormqr", dtype), dtype, operands, f"$T{listed(*c.shape)}", options)
        assert kernels(check(text, np.ascontiguousarray(packed), taus, c, ulps=200)) == ["reflections"]


@pytest.mark.parametrize("dtype", ["f32", "c64", "f64"])
@pytest.mark.parametrize("place", ["least", "most"])
def test_qr_of_very_small_and_large_numbers(check: Any, rng: np.random.Generator, dtype: str, place: str) -> None:
    limits = np.finfo(DType(dtype).component.numpy)
    scale = float(limits.tiny) * 1e3 if place == "least" else float(limits.max) / 1e3
    x = (matrices(rng, dtype, 20, 12) * scale).astype(DType(dtype).numpy)
    check(qr(dtype, x.shape), x, ulps=1000)
    x = matrices(rng, dtype, 20, 12)
    x[:, ::3] *= scale
    check(qr(dtype, x.shape), x, ulps=1000)


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_qr_of_columns_that_are_done(check: Any, dtype: str) -> None:
    x = np.zeros((3, 6, 5), DType(dtype).numpy)
    x[1, 0] = [1, -2, 0, 3, 4]
    x[2] = np.triu(np.ones((6, 5)))
    executable = check(qr(dtype, x.shape), x)
    np.testing.assert_array_equal(executable(x)[1], 0)


def test_qr_of_what_is_not_finite_stays_in_its_matrix(compile_text: Any, rng: np.random.Generator) -> None:
    x = matrices(rng, "f32", 3, 9, 9)
    x[1] = 1
    x[1, 4, 0] = np.nan
    packed, taus = compile_text(qr("f32", x.shape))(x)
    assert np.isnan(packed[1]).any()
    assert np.isfinite(packed[[0, 2]]).all()
    assert np.isfinite(taus[[0, 2]]).all()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = positive(rng, dtype, 9, 70, 70)
    for text in (cholesky(dtype, x.shape, "L"), lu(dtype, x.shape), qr(dtype, x.shape)):
        one, two, five = (compile_text(text, num_threads=threads)(x) for threads in (1, 2, 5))
        for parts in zip(one, two, five, strict=True):
            np.testing.assert_array_equal(parts[0], parts[1])
            np.testing.assert_array_equal(parts[0], parts[2])


@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_threads_share_one_matrix(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    square = positive(rng, dtype, 331, 331)
    lower, upper = (cholesky(dtype, square.shape, letter) for letter in "LU")
    programs = [(lower, square), (upper, square), (qr(dtype, square.shape), square)]
    programs += [(lu(dtype, part.shape), part) for part in (square, square[:, :200], square[:200])]
    for text, x in programs:
        executables = [compile_text(text, num_threads=threads) for threads in (1, 2, 5)]
        figures = [
            [d.numbers.get("threads", 1) for d in each.decisions() if "dims" in d.numbers] for each in executables
        ]
        assert [max(each) for each in figures] == [1, 2, 5]
        one, two, five = (each(x) for each in executables)
        for parts in zip(one, two, five, strict=True):
            np.testing.assert_array_equal(parts[0], parts[1])
            np.testing.assert_array_equal(parts[0], parts[2])


def test_one_matrix_takes_the_memory_of_one_thread(compile_text: Any) -> None:
    def peak(count: int, threads: int) -> int:
        return int(compile_text(lu("f32", (count, 90, 90)), num_threads=threads).memory_analysis().peak_bytes)

    assert peak(1, 8) == peak(1, 1)
    assert peak(8, 8) > peak(8, 1)


def test_code_does_not_grow_with_the_matrix(compile_text: Any) -> None:
    lengths = []
    for size in (100, 400):
        found = [compile_text(each("f64", (size, size)), num_threads=1) for each in (lu, qr)]
        lengths.append([len(each.as_text("llvm-before-optimizations").splitlines()) for each in found])
    assert all(large <= small + 20 for small, large in zip(*lengths, strict=True)), lengths
    assert max(lengths[1]) < 3000, lengths


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("side", ["L", "R"])
@pytest.mark.parametrize("trans", ["N", "T", "C"])
@pytest.mark.parametrize("diag", ["N", "U"])
def test_triangular_systems_are_those_of_hlo(
    check: Any, kernels: Any, rng: np.random.Generator, uplo: str, side: str, trans: str, diag: str
) -> None:
    letters = {"side": side, "uplo": uplo, "trans_x": trans, "diag": diag}
    options = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in letters.items())
    dims = (2, 9, 4) if side == "L" else (2, 4, 9)
    a, b = matrices(rng, "c64", 2, 9, 9) / 9 + np.eye(9, dtype=np.complex64), matrices(rng, "c64", *dims)
    executable = check(call("trsm", "c64", {"a": a.shape, "b": dims}, f"$T{listed(*dims)}", options), a, b, ulps=64)
    assert kernels(executable) == ["triangular solve"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (lu("f32", (4, 4)).replace("s32[4]", "s32[3]"), "array of size 4"),
        (cholesky("f32", (4, 4), "L").replace("uplo", "up"), "'uplo'"),
        (cholesky("f32", (4, 4), "L").replace("76", "2147483648"), "uplo is 2147483648, expected a letter"),
        (cholesky("f32", (4, 4), "L").replace("76", "-1"), "uplo is -1, expected a letter"),
        (cholesky("f32", (4, 4), "L").replace("76", "7" * 5000), "'uplo'"),
        (lu("f32", (4, 4)).replace("lapack_s", "lapack_q"), "lapack_qgetrf_ffi"),
    ],
)
def test_calls_of_another_form_are_left_to_the_evaluator(
    compile_text: Any, kernels: Any, text: str, message: str
) -> None:
    executable = compile_text(text)
    assert kernels(executable) == ["evaluated"]
    with pytest.raises(ExecutionError, match=message):
        executable(np.eye(4, dtype=np.float32))


@pytest.mark.parametrize("dims", [(0, 3, 3), (2, 0, 0)])
def test_nothing_to_factor(check: Any, dims: tuple[int, ...]) -> None:
    check(lu("f32", dims), np.zeros(dims, np.float32))
    check(cholesky("f32", dims, "L"), np.zeros(dims, np.float32))
