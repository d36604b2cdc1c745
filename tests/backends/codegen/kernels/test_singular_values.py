"""Singular values and vectors: they give the matrix back, are in order, and spoil no neighbour."""

from typing import Any

import numpy as np
import pytest
from halves import HALVES, half_of

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

LETTERS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
SIZES = ((1, 1), (2, 2), (5, 3), (3, 5), (1, 7), (7, 1), (33, 17), (20, 70))


def svd(dtype: str, dims: tuple[int, ...], mode: str = "S", routine: str = "gesdd") -> str:
    *batch, rows, columns = dims
    k = min(rows, columns)
    left, right = (rows, columns) if mode == "A" else (k, k)
    shapes = [(*batch, rows, columns), (*batch, k), (*batch, rows, left), (*batch, right, columns), tuple(batch)]
    types = (dtype, DType(dtype).component.value, dtype, dtype, "s32")
    matrix, values, u, v, info = (
        f"{name}[{','.join(map(str, each))}]" for name, each in zip(types, shapes, strict=True)
    )
    return f"""HloModule m
ENTRY e {{
  x = {matrix} parameter(0)
  ROOT r = ({matrix}, {values}, {u}, {v}, {info}) custom-call(x),
    custom_call_target="lapack_{LETTERS[dtype]}{routine}_ffi", api_version=API_VERSION_TYPED_FFI,
    backend_config={{mode = {ord(mode)} : ui8}}
}}"""


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def matrices(rng: np.random.Generator, dtype: str, *dims: int) -> np.ndarray:
    x = rng.standard_normal(dims) + (1j * rng.standard_normal(dims) if DType(dtype).is_complex else 0)
    return x.astype(DType(dtype).numpy)


def require_decomposition(x: np.ndarray, values: np.ndarray, u: np.ndarray, v: np.ndarray) -> None:
    """Of finite matrices: errors are those of the type, times the size, relative to the largest value."""
    wide: Any = np.complex128 if np.iscomplexobj(x) else np.float64
    k, allowed = values.shape[-1], 4 * max(*x.shape[-2:], 4) * float(np.finfo(x.dtype).eps)
    exact, left, right, w = x.astype(wide), u.astype(wide), v.astype(wide), values.astype(np.float64)
    for one in (adjoint(left) @ left, right @ adjoint(right)):
        np.testing.assert_allclose(one, np.broadcast_to(np.eye(one.shape[-1]), one.shape), rtol=0, atol=allowed)
    expected = np.linalg.svd(exact, compute_uv=False)
    assert (np.abs(w - expected) <= allowed * expected[..., :1]).all()
    product = (left[..., :k] * w[..., None, :]) @ right[..., :k, :]
    assert (np.abs(product - exact) <= allowed * expected[..., :1, None]).all()
    assert (np.diff(values, axis=-1) <= 0).all()
    assert (values >= 0).all()


@pytest.mark.parametrize("mode", ["S", "A"])
@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("half", HALVES)
def test_values_and_vectors(
    compile_text: Any, kernels: Any, rng: np.random.Generator, dtype: str, mode: str, half: int
) -> None:
    for number, (rows, columns) in half_of([*enumerate(SIZES)], list(LETTERS).index(dtype) + (mode == "A"), half):
        x = matrices(rng, dtype, *((2,), (), (2, 2))[number % 3], rows, columns)
        executable = compile_text(svd(dtype, x.shape, mode, "gesvd" if number % 2 else "gesdd"))
        assert kernels(executable) == ["svd"]
        copy, values, u, v, info = executable(x)
        require_decomposition(x, values, u, v)
        np.testing.assert_array_equal(copy, x)
        assert not info.any()
        expected = evaluate(parse(svd(dtype, x.shape, mode)), x)
        assert [part.shape for part in expected] == [copy.shape, values.shape, u.shape, v.shape, info.shape]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("rows", "columns"), [(12, 12), (17, 12), (12, 17)])
def test_dependent_repeated_and_graded_columns(
    compile_text: Any, rng: np.random.Generator, dtype: str, rows: int, columns: int
) -> None:
    unit, k = np.eye(rows, columns), min(rows, columns)
    one, other = (np.linalg.qr(rng.standard_normal((n, n)))[0][:, :k] for n in (rows, columns))
    chain = unit + np.eye(rows, columns, 1)
    kinds = [
        unit, 0 * unit, unit + 1, -unit, np.outer(np.arange(rows), np.arange(columns)), np.eye(rows, columns, 1),
        np.eye(rows, columns, -1), chain, chain * (np.arange(columns) != 5), chain * (np.arange(columns) % 3 > 0),
        (one * np.repeat([3.0, 0, 1], k // 3)) @ other.T, (one * 10.0 ** -np.arange(k)) @ other.T,
        unit * 10.0 ** -np.arange(columns), rng.integers(0, 2, (rows, columns)), unit[::-1, ::-1],
    ]  # fmt: skip
    x = np.stack([np.asarray(kind) for kind in kinds]).astype(DType(dtype).numpy)
    for mode in "SA":
        _, values, u, v, info = compile_text(svd(dtype, x.shape, mode))(x)
        require_decomposition(x, values, u, v)
        assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c64", "f64"])
def test_very_small_and_large_numbers(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 2, 20, 12)
    limits = np.finfo(x.dtype)
    scales = np.array([float(limits.tiny) * 2**20, float(limits.max) / 2**10], x.real.dtype)
    _, values, u, v, info = compile_text(svd(dtype, x.shape))(x * scales[:, None, None])
    require_decomposition(x, values / scales[:, None], u, v)
    assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_matrix(
    compile_text: Any, rng: np.random.Generator, dtype: str, strange: float
) -> None:
    x = matrices(rng, dtype, 3, 9, 11)
    x[1, 4, 2] = strange
    found, expected = compile_text(svd(dtype, x.shape))(x), evaluate(parse(svd(dtype, x.shape)), x)
    np.testing.assert_array_equal(found[4], expected[4])
    for part in found[1:4]:
        assert np.isnan(part[1]).all()
    require_decomposition(x[[0, 2]], *(part[[0, 2]] for part in found[1:4]))


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_values_alone(compile_text: Any, kernels: Any, rng: np.random.Generator, dtype: str) -> None:
    """Callers declare the vectors that they do not get in either of two sizes."""
    x = matrices(rng, dtype, 2, 33, 20)
    with_vectors = compile_text(svd(dtype, x.shape))(x)
    for text in (svd(dtype, x.shape, "N"), svd(dtype, x.shape, "A").replace("mode = 65", "mode = 78")):
        executable = compile_text(text)
        assert kernels(executable) == ["svd"]
        _, values, u, v, info = executable(x)
        np.testing.assert_array_equal(values, with_vectors[1])
        assert not u.any()
        assert not v.any()
        assert not info.any()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 7, 20, 15)
    one, two, five = (compile_text(svd(dtype, x.shape), num_threads=threads)(x) for threads in (1, 2, 5))
    for parts in zip(one, two, five, strict=True):
        np.testing.assert_array_equal(parts[0], parts[1])
        np.testing.assert_array_equal(parts[0], parts[2])
