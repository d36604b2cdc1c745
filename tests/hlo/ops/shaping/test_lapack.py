"""Custom calls of LAPACK against NumPy: what they promise of their results, batches, breakdowns and wrong options."""

import numpy as np
import pytest

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse

TYPES = {"s": ("f32", np.float32), "d": ("f64", np.float64), "c": ("c64", np.complex64), "z": ("c128", np.complex128)}


def call(
    target: str, operands: tuple[np.ndarray, ...], results: tuple[str, ...], options: str = "", full_target: str = ""
) -> tuple:
    """The results of `lapack_<target>_ffi`, or of the full target, `target` being its letter.

    `results` are shapes in which $T and $R are its type and its real type.
    """
    name, full_target = TYPES[target[0]][0], full_target or f"lapack_{target}_ffi"
    real = {"c64": "f32", "c128": "f64"}.get(name, name)
    lines = []
    for number, operand in enumerate(operands):
        dtype = "s32" if operand.dtype == np.int32 else name
        lines.append(f"  p{number} = {dtype}[{','.join(map(str, operand.shape))}] parameter({number})\n")
    shapes = ", ".join(results).replace("$T", name).replace("$R", real)
    names = ", ".join(f"p{number}" for number in range(len(operands)))
    text = (
        f"HloModule m\n\nENTRY main {{\n{''.join(lines)}  ROOT r = ({shapes}) custom-call({names}), "
        f'custom_call_target="{full_target}", api_version=API_VERSION_TYPED_FFI, '
        f"backend_config={{{options}}}\n}}\n"
    )
    return evaluate(parse(text), *operands)


def matrices(rng: np.random.Generator, letter: str, *sizes: int) -> np.ndarray:
    numbers = rng.standard_normal(sizes) + (1j * rng.standard_normal(sizes) if letter in "cz" else 0)
    return numbers.astype(TYPES[letter][1])


def adjoint(array: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(array, -1, -2))


def close(found: np.ndarray, expected: np.ndarray) -> None:
    tolerance = 1e-4 if found.dtype in (np.float32, np.complex64) else 1e-11
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_cholesky_keeps_the_other_triangle(rng, letter, uplo) -> None:
    a = matrices(rng, letter, 2, 4, 4)
    a = a @ adjoint(a) + np.eye(4, dtype=a.dtype)
    found, info = call(letter + "potrf", (a,), ("$T[2,4,4]", "s32[2]"), f"uplo = {ord(uplo)} : ui8")
    lower = np.tril(found) if uplo == "L" else adjoint(np.triu(found))
    close(lower @ adjoint(lower), a)
    other = np.triu if uplo == "L" else np.tril
    np.testing.assert_array_equal(other(found, 1 if uplo == "L" else -1), other(a, 1 if uplo == "L" else -1))
    assert not info.any()


def test_cholesky_says_which_minor_is_not_positive() -> None:
    a = np.stack([np.diag([1.0, 2, -1, 4]), np.eye(4), np.diag([np.nan, 1, 1, 1])])
    _, info = call("dpotrf", (a,), ("f64[3,4,4]", "s32[3]"), "uplo = 76 : ui8")
    np.testing.assert_array_equal(info, [3, 0, 1])


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("sizes", [(2, 5, 3), (1, 3, 5), (1, 70, 70)])
def test_lu_gives_back_the_matrix(rng, letter, sizes) -> None:
    a = matrices(rng, letter, *sizes)
    count, rows, columns = sizes
    k = min(rows, columns)
    packed, pivots, info = call(
        letter + "getrf", (a,), (f"$T[{count},{rows},{columns}]", f"s32[{count},{k}]", f"s32[{count}]")
    )
    lower = np.tril(packed, -1)[..., :k] + np.eye(rows, k)
    swapped = a.copy()
    for one, steps in zip(swapped, pivots - 1, strict=True):
        for step, chosen in enumerate(steps):
            one[[step, chosen]] = one[[chosen, step]]
    close((lower @ np.triu(packed)[..., :k, :]).astype(a.dtype), swapped)
    assert not info.any()
    assert (np.abs(lower) <= np.sqrt(2) + 1e-6).all()


def test_lu_of_a_singular_matrix_names_the_pivot() -> None:
    a = np.array([[1.0, 2, 3], [2, 4, 6], [1, 1, 1]])
    _, _, info = call("dgetrf", (a,), ("f64[3,3]", "s32[3]", "s32[]"))
    assert info == 3


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (3, 5), (4, 4)])
def test_reflections_make_q_and_r(rng, letter, rows, columns) -> None:
    a, k = matrices(rng, letter, 2, rows, columns), min(rows, columns)
    packed, taus = call(letter + "geqrf", (a,), (f"$T[2,{rows},{columns}]", f"$T[2,{k}]"))
    make_q = "orgqr" if letter in "sd" else "ungqr"
    (q,) = call(letter + make_q, (packed[..., :k], taus), (f"$T[2,{rows},{k}]",))
    close(q @ np.triu(packed)[..., :k, :], a)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(k), (2, k, k)))
    multiply = "ormqr" if letter in "sd" else "unmqr"
    options = "left = true, transpose = true"
    (r,) = call(letter + multiply, (packed[..., :k], taus, a), (f"$T[2,{rows},{columns}]",), options)
    close(r, np.triu(packed))


def test_fixed_columns_stay_before_longer_ones(rng) -> None:
    a = np.diag([1.0, 5.0, 3.0])
    packed, order, _ = call("dgeqp3", (a, np.array([0, 0, 1], np.int32)), ("f64[3,3]", "s32[3]", "f64[3]"))
    np.testing.assert_array_equal(order, [3, 2, 1])
    np.testing.assert_array_equal(np.abs(np.diagonal(packed)), [3, 5, 1])


@pytest.mark.parametrize("letter", TYPES)
def test_schur_form_is_triangular_and_similar(rng, letter) -> None:
    a = matrices(rng, letter, 2, 7, 7)
    values = ("$R[2,7]", "$R[2,7]") if letter in "sd" else ("$T[2,7]",)
    shapes = ("$T[2,7,7]", "$T[2,7,7]", *values, "s32[2]", "s32[2]")
    t, z, *found, selected, info = call(letter + "gees", (a,), shapes, "mode = 86 : ui8, sort = 78 : ui8")
    close(z @ t @ adjoint(z), a)
    close(z @ adjoint(z), np.broadcast_to(np.eye(7), a.shape))
    assert not np.tril(t, -2).any()
    w = found[0] + 1j * found[1] if letter in "sd" else found[0]
    expected = np.linalg.eigvals(a.astype(np.complex128))
    close(np.abs(w[:, :, None] - expected[:, None]).min(axis=2).astype(a.real.dtype), np.zeros((2, 7)))
    for one, imaginary in zip(t, found[1] if letter in "sd" else (), strict=False):
        for row in np.flatnonzero(np.diagonal(one, -1)):
            assert one[row, row] == one[row + 1, row + 1]
            assert imaginary[row] == -imaginary[row + 1] > 0
    assert not selected.any()
    assert not info.any()


@pytest.mark.parametrize("matrix", [np.eye(4), np.diag([1.0, 1, 1], 1), np.zeros((4, 4)), np.eye(4)[[1, 0, 3, 2]]])
def test_schur_form_of_repeated_eigenvalues(matrix) -> None:
    shapes = ("f64[4,4]", "f64[4,4]", "f64[4]", "f64[4]", "s32[]", "s32[]")
    t, z, *_ = call("dgees", (matrix,), shapes, "mode = 86 : ui8, sort = 78 : ui8")
    close(z @ t @ z.T, matrix)
    close(z @ z.T, np.eye(4))


def test_sorted_schur_form_is_refused() -> None:
    shapes = ("f64[1,1]", "f64[1,1]", "f64[1]", "f64[1]", "s32[]", "s32[]")
    with pytest.raises(EvaluationError, match="sorting eigenvalues"):
        call("dgees", (np.ones((1, 1)),), shapes, "mode = 86 : ui8, sort = 83 : ui8")


@pytest.mark.parametrize("letter", ["d", "z"])
def test_left_eigenvectors_of_a_defective_matrix(letter) -> None:
    a = np.array([[2.0, 1], [0, 2]]).astype(TYPES[letter][1])
    values = ("$R[2]", "$R[2]") if letter == "d" else ("$T[2]",)
    complex_type = "c128[2,2]"
    *_, left, right, info = call(
        letter + "geev", (a,), (*values, complex_type, complex_type, "s32[]"),
        "compute_left = 86 : ui8, compute_right = 86 : ui8",
    )  # fmt: skip
    close(adjoint(left) @ a, 2 * adjoint(left))
    np.testing.assert_allclose(a @ right, 2 * right, atol=1e-7)
    assert info == 0


def test_matrix_that_is_not_finite_does_not_spoil_its_neighbours(rng) -> None:
    a = matrices(rng, "d", 3, 3, 3)
    a[1, 0, 0] = np.inf
    shapes = ("f64[3,3,3]", "f64[3,3]", "f64[3,3,3]", "f64[3,3,3]", "s32[3]")
    _, s, *_, info = call("dgesdd", (a,), shapes, "mode = 65 : ui8")
    close(s[[0, 2]], np.linalg.svd(a[[0, 2]], compute_uv=False))
    assert np.isnan(s[1]).all()
    assert info[1]
    assert not info[[0, 2]].any()


@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (3, 5), (1, 4)])
def test_singular_values_without_vectors(rng, routine, letter, rows, columns) -> None:
    """Callers declare the vectors that they do not get in either of two sizes."""
    a, k = matrices(rng, letter, 2, rows, columns), min(rows, columns)
    for left, right in ((rows, columns), (k, k)):
        vectors = (f"$T[2,{rows},{left}]", f"$T[2,{right},{columns}]")
        shapes = (f"$T[2,{rows},{columns}]", f"$R[2,{k}]", *vectors, "s32[2]")
        _, s, u, v, _ = call(letter + routine, (a,), shapes, "mode = 78 : ui8")
        close(s, np.linalg.svd(a, compute_uv=False))
        assert not u.any()
        assert not v.any()


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues_come_from_one_triangle(rng, uplo) -> None:
    a = matrices(rng, "z", 4, 4)
    triangle = np.tril(a, -1) if uplo == "L" else adjoint(np.triu(a, 1))
    full = triangle + adjoint(triangle) + np.diag(np.diagonal(a).real)
    options = f"mode = 86 : ui8, uplo = {ord(uplo)} : ui8"
    v, w, _ = call("zheevd", (a,), ("c128[4,4]", "f64[4]", "s32[]"), options)
    close((v * w) @ adjoint(v), full)


def test_tridiagonal_systems_swap_rows(rng) -> None:
    below, diagonal, above = np.array([0.0, 5, 1, 2]), np.array([0.0, 1, 4, 1]), np.array([2.0, 1, 3, 0])
    matrix, rhs = np.diag(diagonal) + np.diag(below[1:], -1) + np.diag(above[:-1], 1), matrices(rng, "d", 4, 2)
    shapes = ("f64[4]", "f64[4]", "f64[4]", "f64[4,2]", "s32[]")
    *_, solution, info = call("dgtsv", (below, diagonal, above, rhs), shapes)
    close(matrix @ solution, rhs)
    assert info == 0
    assert call("dgtsv", (below * 0, diagonal, above, rhs), shapes)[-1] == 1


@pytest.mark.parametrize("letter", TYPES)
def test_singular_tridiagonal_systems_have_finite_solutions_if_perturbed(rng, letter) -> None:
    def solve(below: object, diagonal: object, above: object, rhs: np.ndarray) -> np.ndarray:
        diagonals = [np.asarray(each, TYPES[letter][1]) for each in (below, diagonal, above)]
        batch = rhs.shape[:-2] + rhs.shape[-2:-1]
        shape = f"$T[{','.join(map(str, rhs.shape))}]"
        operands = (*(np.broadcast_to(each, batch) for each in diagonals), rhs)
        return call(letter, operands, (shape,), full_target="tridiagonal_solve_perturbed_ffi")[0]

    limits, rhs = np.finfo(TYPES[letter][1]), matrices(rng, letter, 2, 4, 3)
    below, diagonal, above = [0.0, 5, 1, 2], [0.0, 1, 4, 1], [2.0, 1, 3, 0]
    matrix = np.diag(diagonal) + np.diag(below[1:], -1) + np.diag(above[:-1], 1)
    close(matrix.astype(rhs.dtype) @ solve(below, diagonal, above, rhs), rhs)
    ones = np.ones((1, 3, 1), rhs.dtype)
    np.testing.assert_allclose(solve([0] * 3, [0] * 3, [0] * 3, ones), ones / limits.tiny)
    np.testing.assert_allclose(solve([0, 0], [1, 0], [0, 0], ones[:, :2]), [[[1], [1 / limits.eps]]])
    np.testing.assert_allclose(solve([0, 0], [1, -1e-9], [0, 0], ones[:, :2]), [[[1], [-1e9]]], rtol=1e-6)
    assert solve([], [], [], np.zeros((2, 0, 3), rhs.dtype)).shape == (2, 0, 3)


@pytest.mark.parametrize("sizes", [(0, 3, 3), (2, 0, 0)])
def test_empty_batches_and_matrices(sizes) -> None:
    a, (count, n, _) = np.zeros(sizes), sizes
    shape, vector, info = f"f64[{count},{n},{n}]", f"f64[{count},{n}]", f"s32[{count}]"
    uplo = "uplo = 76 : ui8, mode = 86 : ui8"
    assert call("dpotrf", (a,), (shape, info), uplo)[0].shape == sizes
    assert call("dgetrf", (a,), (shape, f"s32[{count},{n}]", info))[0].shape == sizes
    assert call("dgeqrf", (a,), (shape, vector))[0].shape == sizes
    assert call("dsyevd", (a,), (shape, vector, info), uplo)[0].shape == sizes
    assert call("dgesdd", (a,), (shape, vector, shape, shape, info), "mode = 65 : ui8")[2].shape == sizes
    assert call("dgeev", (a,), (vector, vector, f"c128[{count},{n},{n}]", f"c128[{count},{n},{n}]", info),
                "compute_left = 86 : ui8, compute_right = 86 : ui8")[2].shape == sizes  # fmt: skip
    shapes = (shape, shape, vector, vector, info, info)
    assert call("dgees", (a,), shapes, "mode = 86 : ui8, sort = 78 : ui8")[0].shape == sizes


def test_missing_options_are_named() -> None:
    with pytest.raises(EvaluationError, match="'uplo'"):
        call("dpotrf", (np.eye(2),), ("f64[2,2]", "s32[]"), "side = 76 : ui8")
    with pytest.raises(EvaluationError, match="gives 2 results, declared are 1"):
        call("dpotrf", (np.eye(2),), ("f64[2,2]",), "uplo = 76 : ui8")
    with pytest.raises(EvaluationError, match="found 2 operands, expected 1"):
        call("dpotrf", (np.eye(2), np.eye(2)), ("f64[2,2]", "s32[]"), "uplo = 76 : ui8")
