"""Eigenvalues and vectors of Hermitian matrices: they give the matrix back, are in order, and spoil no neighbour."""

from typing import Any

import numpy as np
import pytest
from halves import HALVES, half_of

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

SIZES = ((1, 1), (3, 2, 2), (2, 2, 5, 5), (17, 17), (70, 70))
ROUTINES = {"f32": "ssyevd", "f64": "dsyevd", "c64": "cheevd", "c128": "zheevd"}


def eigh(dtype: str, dims: tuple[int, ...], uplo: str = "L", mode: str = "V") -> str:
    matrix, values, info = (f"[{','.join(map(str, each))}]" for each in (dims, dims[:-1], dims[:-2]))
    return f"""HloModule m
ENTRY e {{
  x = {dtype}{matrix} parameter(0)
  ROOT r = ({dtype}{matrix}, {DType(dtype).component.value}{values}, s32{info}) custom-call(x),
    custom_call_target="lapack_{ROUTINES[dtype]}_ffi", api_version=API_VERSION_TYPED_FFI,
    backend_config={{mode = {ord(mode)} : ui8, uplo = {ord(uplo)} : ui8}}
}}"""


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def hermitian(rng: np.random.Generator, dtype: str, *dims: int) -> np.ndarray:
    x = rng.standard_normal(dims) + (1j * rng.standard_normal(dims) if DType(dtype).is_complex else 0)
    return (x + adjoint(x)).astype(DType(dtype).numpy)


def require_decomposition(x: np.ndarray, vectors: np.ndarray, values: np.ndarray) -> None:
    """Of finite matrices: errors are those of the type, times the size, relative to the largest eigenvalue."""
    wide: Any = np.complex128 if np.iscomplexobj(x) else np.float64
    size, allowed = x.shape[-1], 4 * max(x.shape[-1], 4) * float(np.finfo(x.dtype).eps)
    exact, v, w = x.astype(wide), vectors.astype(wide), values.astype(np.float64)
    largest = np.abs(np.linalg.eigvalsh(exact)).max(axis=-1, initial=0, keepdims=True)
    np.testing.assert_allclose(adjoint(v) @ v, np.broadcast_to(np.eye(size), x.shape), rtol=0, atol=allowed)
    assert (np.abs(w - np.linalg.eigvalsh(exact)) <= allowed * largest).all()
    assert (np.abs((v * w[..., None, :]) @ adjoint(v) - exact) <= allowed * largest[..., None]).all()
    assert (np.diff(values, axis=-1) >= 0).all()


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", ROUTINES)
@pytest.mark.parametrize("half", HALVES)
def test_one_triangle_decides(
    compile_text: Any, kernels: Any, rng: np.random.Generator, dtype: str, uplo: str, half: int
) -> None:
    for dims in half_of(SIZES, list(ROUTINES).index(dtype) + (uplo == "U"), half):
        x = hermitian(rng, dtype, *dims)
        rows, columns = np.triu_indices(dims[-1], 1) if uplo == "L" else np.tril_indices(dims[-1], -1)
        given = x.copy()
        given[..., rows, columns] = np.nan
        if DType(dtype).is_complex:
            given[..., range(dims[-1]), range(dims[-1])] += 1j
        executable = compile_text(eigh(dtype, dims, uplo))
        assert kernels(executable) == ["eigh"]
        vectors, values, info = executable(given)
        require_decomposition(x, vectors, values)
        assert not info.any()
        expected = evaluate(parse(eigh(dtype, dims, uplo)), given)
        require_decomposition(x, expected[0], expected[1])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_repeated_and_graded_eigenvalues(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    size = 24
    q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    kinds = [
        np.eye(size), np.zeros((size, size)), np.ones((size, size)), np.eye(size)[::-1],
        np.diag(np.arange(size)[::-1]), np.diag([1.0] * (size - 1), 1) + np.diag([1.0] * (size - 1), -1),
        np.diag(10.0 ** -np.arange(size)), (q * np.repeat([1, 2, -3], 8)) @ q.T,
        (q * 2.0 ** -np.arange(size)) @ q.T, np.kron(np.eye(size // 2), [[0, 1], [1, 0]]),
    ]  # fmt: skip
    x = np.stack([(one + one.T) / 2 for one in kinds]).astype(DType(dtype).numpy)
    vectors, values, info = compile_text(eigh(dtype, x.shape))(x)
    require_decomposition(x, vectors, values)
    assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c64", "f64"])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_matrices_of_low_rank(compile_text: Any, rng: np.random.Generator, dtype: str, is_reversed: bool) -> None:
    factors = [hermitian(rng, dtype, 100, 100)[:, :rank] * 3 for rank in (1, 2, 3, 8, 20, 99)]
    x = np.stack([factor @ adjoint(factor) for factor in factors])
    x = np.ascontiguousarray(x[:, ::-1, ::-1]) if is_reversed else x
    vectors, values, info = compile_text(eigh(dtype, x.shape))(x)
    assert not info.any()
    require_decomposition(x, vectors, values)


@pytest.mark.parametrize("dtype", ["f32", "c64", "f64"])
def test_very_small_and_large_numbers(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = hermitian(rng, dtype, 2, 20, 20)
    limits = np.finfo(x.dtype)
    scales = np.array([float(limits.tiny) * 2**20, float(limits.max) / 2**10], x.real.dtype)
    vectors, values, info = compile_text(eigh(dtype, x.shape))(x * scales[:, None, None])
    require_decomposition(x, vectors, values / scales[:, None])
    assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_matrix(
    compile_text: Any, rng: np.random.Generator, dtype: str, strange: float
) -> None:
    x = hermitian(rng, dtype, 3, 9, 9)
    x[1, 4, 2] = strange
    text = eigh(dtype, x.shape)
    found, expected = compile_text(text)(x), evaluate(parse(text), x)
    np.testing.assert_array_equal(found[2], expected[2])
    assert np.isnan(found[0][1]).all()
    assert np.isnan(found[1][1]).all()
    require_decomposition(x[[0, 2]], found[0][[0, 2]], found[1][[0, 2]])


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_values_alone(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = hermitian(rng, dtype, 2, 33, 33)
    vectors, values, info = compile_text(eigh(dtype, x.shape, mode="N"))(x)
    with_vectors = compile_text(eigh(dtype, x.shape))(x)
    np.testing.assert_array_equal(values, with_vectors[1])
    assert not vectors.any()
    assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = hermitian(rng, dtype, 7, 20, 20)
    one, two, five = (compile_text(eigh(dtype, x.shape), num_threads=threads)(x) for threads in (1, 2, 5))
    for parts in zip(one, two, five, strict=True):
        np.testing.assert_array_equal(parts[0], parts[1])
        np.testing.assert_array_equal(parts[0], parts[2])
