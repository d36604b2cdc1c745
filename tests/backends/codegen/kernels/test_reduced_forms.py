"""LAPACK's Hessenberg and tridiagonal forms and QR with column exchanges: as the evaluator, and beside scipy."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg.lapack
from lapack_programs import LETTERS, call, listed, matrices

from xlalite.hlo.types.dtype import DType

SIZES = ((1, 1), (3, 2, 2), (2, 2, 5, 5), (9, 9), (33, 33), (70, 70))


def hessenberg(dtype: str, dims: tuple[int, ...], low: int, high: int) -> str:
    results = f"($T{listed(*dims)}, $T{listed(*dims[:-2], dims[-1] - 1)}, s32{listed(*dims[:-2])})"
    return call("gehrd", dtype, {"x": dims}, results, f"low = {low} : i32, high = {high} : i32")


def tridiagonal(dtype: str, dims: tuple[int, ...], uplo: str) -> str:
    batch, n, real = dims[:-2], dims[-1], DType(dtype).component.value
    lines = f"{real}{listed(*batch, n)}, {real}{listed(*batch, n - 1)}, $T{listed(*batch, n - 1)}, s32{listed(*batch)}"
    routine = "hetrd" if DType(dtype).is_complex else "sytrd"
    return call(routine, dtype, {"x": dims}, f"($T{listed(*dims)}, {lines})", f"uplo = {ord(uplo)} : ui8")


def pivoted(dtype: str, dims: tuple[int, ...]) -> str:
    batch, (rows, columns) = dims[:-2], dims[-2:]
    order, taus = listed(*batch, columns), listed(*batch, min(rows, columns))
    text = call("geqp3", dtype, {"x": dims, "p": (*batch, columns)}, f"($T{listed(*dims)}, s32{order}, $T{taus})")
    return text.replace(f"p = {dtype}{order}", f"p = s32{order}")


@pytest.mark.parametrize("dtype", LETTERS)
def test_hessenberg_forms(check: Any, kernels: Any, rng: np.random.Generator, dtype: str) -> None:
    for dims in SIZES:
        n = dims[-1]
        for low, high in {(1, n), (min(2, n), max(n - 1, min(2, n))), (n, n)}:
            x = matrices(rng, dtype, *dims)
            executable = check(hessenberg(dtype, dims, low, high), x, ulps=50 * n)
            assert kernels(executable) == ["hessenberg"]


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", LETTERS)
def test_tridiagonal_forms(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, uplo: str) -> None:
    for dims in SIZES:
        executable = check(tridiagonal(dtype, dims, uplo), matrices(rng, dtype, *dims), ulps=50 * dims[-1])
        assert kernels(executable) == ["tridiagonal"]


@pytest.mark.parametrize("dtype", LETTERS)
def test_the_longest_column_comes_next(check: Any, kernels: Any, rng: np.random.Generator, dtype: str) -> None:
    for dims in (*SIZES, (5, 3), (2, 3, 5), (70, 20), (20, 70), (1, 7), (7, 1)):
        x, columns = matrices(rng, dtype, *dims), dims[-1]
        for named in (np.zeros((*dims[:-2], columns)), rng.random((*dims[:-2], columns)) < 0.2):
            order = named.astype(np.int32)
            executable = check(pivoted(dtype, dims), x, order, ulps=100 * max(dims[-2:]))
            assert kernels(executable) == ["pivoted qr"]
            if not named.any():
                diagonal = np.abs(np.diagonal(executable(x, order)[0], axis1=-2, axis2=-1))
                assert (np.diff(diagonal, axis=-1) <= 1e-5 * diagonal[..., :1]).all()


@pytest.mark.parametrize("dtype", LETTERS)
def test_forms_are_those_of_scipy(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    size, letter = 12, LETTERS[dtype]
    x, routine = matrices(rng, dtype, size, size), getattr
    close = dict(rtol=0, atol=200 * float(np.finfo(x.dtype).eps))
    packed, taus, _ = compile_text(hessenberg(dtype, x.shape, 2, size))(x)
    for found, expected in zip(
        (packed, taus), routine(scipy.linalg.lapack, f"{letter}gehrd")(x, 1, size - 1), strict=False
    ):
        np.testing.assert_allclose(found, expected, **close)
    order = (np.arange(size) % 5 == 1).astype(np.int32)
    packed, order, _ = compile_text(pivoted(dtype, x.shape))(x, order)
    np.testing.assert_allclose(np.abs(np.triu(packed)), np.abs(np.linalg.qr(x[:, order - 1])[1]), **close)
    assert order[:2].tolist() == [2, 7]
    for lower in (0, 1):
        named = routine(scipy.linalg.lapack, f"{letter}{'he' if letter in 'cz' else 'sy'}trd")
        expected = named(np.tril(x) if lower else np.triu(x), lower=lower)
        found = compile_text(tridiagonal(dtype, x.shape, "UL"[lower]))(x)
        keep = np.tril if lower else np.triu
        for one, other in zip(found, expected, strict=False):
            np.testing.assert_allclose(
                keep(one) if one.ndim == 2 else one, keep(other) if one.ndim == 2 else other, **close
            )


@pytest.mark.parametrize("dtype", ["f32", "c128"])
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_very_small_and_large_numbers(check: Any, rng: np.random.Generator, dtype: str, scale: float) -> None:
    x = (matrices(rng, dtype, 20, 20) * scale).astype(DType(dtype).numpy)
    check(hessenberg(dtype, x.shape, 1, 20), x, ulps=2000)
    check(tridiagonal(dtype, x.shape, "U"), x, ulps=2000)
    check(pivoted(dtype, x.shape), x, np.zeros(20, np.int32), ulps=2000)


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_matrix(compile_text: Any, rng: np.random.Generator, strange: float) -> None:
    x, order = matrices(rng, "f64", 3, 9, 9), np.zeros((3, 9), np.int32)
    spoilt = x.copy()
    spoilt[1, 4, 2] = strange
    for text, *others in ((hessenberg("f64", x.shape, 1, 9),), (tridiagonal("f64", x.shape, "L"),),
                          (pivoted("f64", x.shape), order)):  # fmt: skip
        executable = compile_text(text)
        clean, found = executable(x, *others), executable(spoilt, *others)
        assert np.isnan(found[0][1]).any()
        for one, other in zip(clean, found, strict=True):
            np.testing.assert_array_equal(one[[0, 2]], other[[0, 2]])


@pytest.mark.parametrize("dims", [(0, 3, 3), (2, 0, 0)])
def test_nothing_to_reduce(check: Any, dims: tuple[int, ...]) -> None:
    if dims[-1]:
        check(hessenberg("f32", dims, 1, dims[-1]), np.zeros(dims, np.float32))
        check(tridiagonal("f32", dims, "L"), np.zeros(dims, np.float32))
    check(pivoted("f32", dims), np.zeros(dims, np.float32), np.zeros(dims[:-1], np.int32))


@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 7, 20, 20)
    order = np.zeros((7, 20), np.int32)
    forms = ((hessenberg(dtype, x.shape, 1, 20), (x,)), (tridiagonal(dtype, x.shape, "L"), (x,)),
             (pivoted(dtype, x.shape), (x, order)))  # fmt: skip
    for text, operands in forms:
        one, two, five = (compile_text(text, num_threads=threads)(*operands) for threads in (1, 2, 5))
        for parts in zip(one, two, five, strict=True):
            np.testing.assert_array_equal(parts[0], parts[1])
            np.testing.assert_array_equal(parts[0], parts[2])
