"""Schur forms and eigenvectors of matrices that are not Hermitian: they give the matrix back, as the evaluator's do."""

from typing import Any

import numpy as np
import pytest
from halves import HALVES
from lapack_programs import LETTERS, adjoint, call, half_of_sizes, listed, matrices

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

SIZES = ((1, 1), (2, 2), (3, 3, 3), (2, 2, 5, 5), (17, 17), (40, 40), (70, 70))


def schur(dtype: str, dims: tuple[int, ...], mode: str = "V") -> str:
    line, info = f"$T{listed(*dims[:-1])}", f"s32{listed(*dims[:-2])}"
    values = line if DType(dtype).is_complex else f"{line}, {line}"
    results = f"($T{listed(*dims)}, $T{listed(*dims)}, {values}, {info}, {info})"
    return call("gees", dtype, {"x": dims}, results, f"mode = {ord(mode)} : ui8, sort = 78 : ui8")


def eig(dtype: str, dims: tuple[int, ...], left: str = "V", right: str = "V") -> str:
    line, wide = f"$T{listed(*dims[:-1])}", {"f32": "c64", "f64": "c128"}.get(dtype, dtype)
    values = line if DType(dtype).is_complex else f"{line}, {line}"
    results = f"({values}, {wide}{listed(*dims)}, {wide}{listed(*dims)}, s32{listed(*dims[:-2])})"
    options = f"compute_left = {ord(left)} : ui8, compute_right = {ord(right)} : ui8"
    return call("geev", dtype, {"x": dims}, results, options)


def require_spectrum(x: np.ndarray, values: np.ndarray) -> None:
    """Each value is one of the matrix: of a matrix that is near, by some units of its norm for each row."""
    size, eps = x.shape[-1], float(np.finfo(x.dtype).eps)
    wide = x.astype(np.complex128)
    for one, row in zip(wide.reshape(-1, size, size), values.reshape(-1, size), strict=True):
        for value in row:
            least = np.linalg.svd(one - value * np.eye(size), compute_uv=False)[-1]
            assert least <= 20 * size * eps * np.linalg.norm(one)
    np.testing.assert_allclose(
        values.sum(-1), np.trace(wide, axis1=-2, axis2=-1), rtol=0,
        atol=20 * size * eps * float(np.linalg.norm(wide, axis=(-2, -1)).max()),
    )  # fmt: skip


def require_schur_form(x: np.ndarray, found: tuple[np.ndarray, ...]) -> None:
    t, z, *values, selected, info = found
    size, allowed = x.shape[-1], 10 * max(x.shape[-1], 4) * float(np.finfo(x.dtype).eps)
    norms = np.linalg.norm(x.astype(np.complex128), axis=(-2, -1), keepdims=True)
    wide_t, wide_z = (part.astype(np.complex128) for part in (t, z))
    assert (np.abs(wide_z @ wide_t @ adjoint(wide_z) - x) <= allowed * norms).all()
    assert (np.abs(wide_z @ adjoint(wide_z) - np.eye(size)) <= allowed).all()
    below = np.diagonal(t, -1, -2, -1)
    assert not np.tril(t, -2).any()
    assert not selected.any()
    assert not info.any()
    if np.iscomplexobj(x):
        assert not below.any()
        np.testing.assert_array_equal(values[0], np.diagonal(t, 0, -2, -1))
        require_spectrum(x, values[0])
        return
    require_spectrum(x, values[0] + 1j * values[1])
    is_pair = below != 0
    assert not (is_pair[..., 1:] & is_pair[..., :-1]).any()
    diagonal, above = np.diagonal(t, 0, -2, -1), np.diagonal(t, 1, -2, -1)
    assert (diagonal[..., 1:] == diagonal[..., :-1])[is_pair].all()
    assert (np.sign(above) * np.sign(below) < 0)[is_pair].all()
    imaginary = values[1]
    assert (imaginary[..., :-1] > 0)[is_pair].all()
    assert (imaginary[..., 1:] == -imaginary[..., :-1])[is_pair].all()
    assert np.count_nonzero(imaginary) == 2 * np.count_nonzero(is_pair)


def require_eigenvectors(x: np.ndarray, found: tuple[np.ndarray, ...]) -> None:
    *values, left, right, info = found
    allowed = 10 * max(x.shape[-1], 4) * float(np.finfo(x.dtype).eps)
    w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
    require_spectrum(x, w)
    assert not info.any()
    wide = x.astype(np.complex128)
    norms = np.linalg.norm(wide, axis=(-2, -1))[..., None]
    for matrix, vectors, own in ((wide, right, w), (adjoint(wide), left, np.conj(w))):
        v = vectors.astype(np.complex128)
        assert (np.linalg.norm(matrix @ v - v * own[..., None, :], axis=-2) <= allowed * norms).all()
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), np.ones(w.shape), rtol=0, atol=allowed)
        largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)[..., 0, :]
        near = np.sort(np.abs(v), axis=-2)[..., -2:, :]
        is_clear = (near[..., -1, :] - near[..., 0, :] > 1e-3) | (v.shape[-1] == 1)
        assert (largest.imag == 0)[is_clear].all()
        if np.iscomplexobj(x):
            continue
        assert (v.imag == 0)[np.broadcast_to((w.imag == 0)[..., None, :], v.shape)].all()
        pairs = w.imag > 0
        np.testing.assert_array_equal(np.conj(w[pairs]), w[w.imag < 0])
        np.testing.assert_array_equal(np.conj(np.swapaxes(v, -1, -2)[pairs]), np.swapaxes(v, -1, -2)[w.imag < 0])


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("dtype", LETTERS)
def test_eigenvectors(compile_text: Any, kernels: Any, rng: np.random.Generator, dtype: str, half: int) -> None:
    for dims in half_of_sizes(SIZES, dtype, half):
        x = matrices(rng, dtype, *dims)
        executable = compile_text(eig(dtype, dims))
        assert kernels(executable) == ["eig"]
        require_eigenvectors(x, executable(x))
        if dims[-1] < 20:
            require_eigenvectors(x, evaluate(parse(eig(dtype, dims)), x))


@pytest.mark.parametrize("dtype", LETTERS)
def test_eigenvectors_of_special_matrices(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = special_matrices(rng, 12).astype(DType(dtype).numpy)
    require_eigenvectors(x, compile_text(eig(dtype, x.shape))(x))


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64"])
def test_eigenvalues_of_triangles_are_their_diagonals(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 4, 9, 9)
    order = rng.permutation(9)
    x[0], x[1], x[2] = np.tril(x[0]), np.triu(x[1]), np.triu(x[2])[order][:, order]
    x[3] = np.diag(np.ones(8), -1)
    for text in (eig(dtype, x.shape), schur(dtype, x.shape)):
        *results, _ = compile_text(text)(x)
        values = results[2 if "gees" in text else 0]
        np.testing.assert_array_equal(np.sort(values), np.sort(np.diagonal(x, 0, 1, 2)))


@pytest.mark.parametrize("dtype", ["f32", "f64", "c128"])
def test_badly_scaled_matrices_are_balanced(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x, scales = matrices(rng, dtype, 9, 9), 2.0 ** (4 * np.arange(-4, 5))
    given = (x * scales[:, None] / scales).astype(x.dtype)
    *values, _, right, info = compile_text(eig(dtype, x.shape))(given)
    w = values[0] if len(values) == 1 else values[0] + 1j * values[1]
    require_spectrum(x, w)
    assert not info.any()
    back = right / scales[:, None]
    back = back / np.linalg.norm(back, axis=0)
    assert (np.abs(x @ back - back * w) <= 1000 * float(np.finfo(x.dtype).eps)).all()


@pytest.mark.parametrize("dtype", LETTERS)
def test_eigenvectors_of_graded_matrices(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    """Whatever grows: columns, rows or both; a plain balance loses all digits of what is small."""
    size, sizes = 24, 10.0 ** -np.linspace(0, 10, 24)
    x = matrices(rng, dtype, 6, size, size)
    x[0], x[1], x[2] = x[0] * sizes, x[1] * sizes[::-1], x[2] * sizes[::-1, None]
    x[3], x[4] = x[3] * rng.permutation(sizes), x[4] * np.sqrt(np.outer(sizes[::-1], sizes[::-1]))
    found = compile_text(eig(dtype, x.shape))(x)
    require_eigenvectors(x, found)
    w = found[0] if len(found) == 4 else found[0] + 1j * found[1]
    for one, values in zip(x, w, strict=True):
        sign, logarithm = np.linalg.slogdet(one.astype(np.complex128))
        assert abs(np.prod(values / np.abs(values)) - sign) <= 1e5 * np.finfo(x.dtype).eps
        assert abs(np.log(np.abs(values)).sum() - logarithm) <= 1e5 * np.finfo(x.dtype).eps


@pytest.mark.parametrize("dtype", ["f64", "c64"])
def test_only_the_vectors_that_are_asked_for(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 2, 33, 33)
    both = compile_text(eig(dtype, x.shape))(x)
    for left, right in ("VN", "NV", "NN"):
        found = compile_text(eig(dtype, x.shape, left, right))(x)
        for letter, one, other in zip((left, right), found[-3:-1], both[-3:-1], strict=True):
            np.testing.assert_array_equal(one, other if letter == "V" else np.zeros_like(other))
        for one, other in zip(found[:-3], both[:-3], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("dtype", LETTERS)
def test_schur_forms(compile_text: Any, kernels: Any, rng: np.random.Generator, dtype: str, half: int) -> None:
    for dims in half_of_sizes(SIZES, dtype, half):
        x = matrices(rng, dtype, *dims)
        executable = compile_text(schur(dtype, dims))
        assert kernels(executable) == ["schur"]
        require_schur_form(x, executable(x))
        if dims[-1] < 20:
            require_schur_form(x, evaluate(parse(schur(dtype, dims)), x))


def test_blocks_are_turned_as_lapack_turns_them(compile_text: Any, rng: np.random.Generator) -> None:
    """By a rotation: of at most an eighth of a turn for a pair, else with the sign of what is below the diagonal."""
    x = matrices(rng, "f64", 40, 2, 2)
    _, z, _, imaginary, *_ = compile_text(schur("f64", x.shape))(x)
    np.testing.assert_allclose(np.linalg.det(z), np.ones(40))
    is_pair = imaginary[:, 0] != 0
    assert 0 < is_pair.sum() < 40
    assert (z[is_pair, 0, 0] >= np.sqrt(0.5) - 1e-12).all()
    np.testing.assert_array_equal(np.sign(z[~is_pair, 1, 0]), np.sign(x[~is_pair, 1, 0]))


def special_matrices(rng: np.random.Generator, size: int) -> np.ndarray:
    """Defective, triangular, orthogonal, graded, badly scaled, with equal eigenvalues, real ones only."""
    q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    jordan = np.eye(size) + np.diag(np.ones(size - 1), 1)
    turns = np.kron(np.eye(size // 2), [[0.0, 1], [-1, 0]])
    powers = 10.0 ** (np.arange(size) % 7 - 3)
    kinds = [
        np.eye(size), np.zeros((size, size)), np.ones((size, size)), jordan, jordan.T, q @ jordan @ q.T,
        np.diag(np.ones(size - 1), -1), np.roll(np.eye(size), 1, axis=1), q, turns, q @ turns @ q.T,
        np.triu(rng.standard_normal((size, size))), np.tril(rng.standard_normal((size, size))),
        rng.standard_normal((size, size)) * powers[:, None] / powers, q + q.T,
        rng.standard_normal((size, size)) * 2.0 ** -np.arange(size), np.diag(10.0 ** -np.arange(size)),
        np.vander(np.linspace(-1, 1, size)), np.diag(np.ones(size - 1), -1) + 1e-9 * q,
    ]  # fmt: skip
    return np.stack(kinds)


@pytest.mark.parametrize("dtype", LETTERS)
def test_schur_forms_of_special_matrices(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = special_matrices(rng, 12).astype(DType(dtype).numpy)
    require_schur_form(x, compile_text(schur(dtype, x.shape))(x))


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64"])
def test_very_small_and_large_numbers(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 2, 20, 20)
    limits = np.finfo(x.dtype)
    scales = np.array([float(limits.tiny) * 2**20, float(limits.max) / 2**10], x.real.dtype)
    t, z, *values, selected, info = compile_text(schur(dtype, x.shape))(x * scales[:, None, None])
    parts = t / scales[:, None, None], z, *(part / scales[:, None] for part in values)
    require_schur_form(x, (*parts, selected, info))
    *values, left, right, info = compile_text(eig(dtype, x.shape))(x * scales[:, None, None])
    require_eigenvectors(x, (*(part / scales[:, None] for part in values), left, right, info))


@pytest.mark.parametrize("dtype", ["f32", "c128"])
@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_matrix(
    compile_text: Any, rng: np.random.Generator, dtype: str, strange: float
) -> None:
    for size in (1, 9):
        x = matrices(rng, dtype, 3, size, size)
        x[1, size // 2, size // 3] = strange
        for text, require in ((schur(dtype, x.shape), require_schur_form), (eig(dtype, x.shape), require_eigenvectors)):
            found, expected = compile_text(text)(x), evaluate(parse(text), x)
            np.testing.assert_array_equal(found[-1], expected[-1])
            for one, other in zip(found[:-2], expected[:-2], strict=True):
                assert np.isnan(one[1]).all()
                assert np.isnan(other[1]).all()
            require(x[[0, 2]], tuple(part[[0, 2]] for part in found))


@pytest.mark.parametrize("dtype", ["f64", "c64"])
def test_schur_form_without_vectors(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 2, 33, 33)
    alone, both = (compile_text(schur(dtype, x.shape, mode))(x) for mode in "NV")
    for number, (one, other) in enumerate(zip(alone, both, strict=True)):
        np.testing.assert_array_equal(one, np.zeros_like(other) if number == 1 else other)


@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    x = matrices(rng, dtype, 7, 20, 20)
    for text in (schur(dtype, x.shape), eig(dtype, x.shape)):
        one, two, five = (compile_text(text, num_threads=threads)(x) for threads in (1, 2, 5))
        for parts in zip(one, two, five, strict=True):
            np.testing.assert_array_equal(parts[0], parts[1])
            np.testing.assert_array_equal(parts[0], parts[2])
