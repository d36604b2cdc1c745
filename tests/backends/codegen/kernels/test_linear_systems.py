"""Cholesky factors and triangular systems agree with the evaluator, for every form, size and type."""

import itertools
from typing import Any

import numpy as np
import pytest
from halves import HALVES, half_of

from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

ULPS = {"f32": 64, "f64": 64, "c64": 64, "c128": 64, "bf16": 1, "f16": 1}
SIZES = (0, 1, 2, 3, 5, 16, 31, 33, 49)
"""Up to three vectors and one more of f32, with whole blocks of rows and without."""
FORMS = list(itertools.product(("true", "false"), ("true", "false"), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")))


def random_numbers(rng: np.random.Generator, dtype: str, dims: tuple[int, ...]) -> np.ndarray:
    numbers = rng.standard_normal(dims)
    return numbers + 1j * rng.standard_normal(dims) if DType(dtype).is_complex else numbers


def positive(rng: np.random.Generator, dtype: str, count: int, size: int) -> np.ndarray:
    """Positive definite matrices, in whose upper triangle stands something else: it must not be read."""
    x = random_numbers(rng, dtype, (count, size, size))
    product = x @ np.conj(np.swapaxes(x, -1, -2)) + size * np.eye(size)
    return product.astype(DType(dtype).numpy)


def cholesky(dtype: str, dims: tuple[int, ...], lower: bool) -> str:
    shape = f"{dtype}[{','.join(map(str, dims))}]"
    return f"""HloModule m
ENTRY e {{
  x = {shape} parameter(0)
  ROOT r = {shape} cholesky(x), lower={str(lower).lower()} }}"""


def solve(dtype: str, matrix: tuple[int, ...], rhs: tuple[int, ...], attributes: str) -> str:
    a, b = (f"{dtype}[{','.join(map(str, dims))}]" for dims in (matrix, rhs))
    return f"""HloModule m
ENTRY e {{
  a = {a} parameter(0)
  b = {b} parameter(1)
  ROOT r = {b} triangular-solve(a, b), {attributes} }}"""


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("half", HALVES)
def test_factors(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, lower: bool, half: int) -> None:
    for size in half_of(SIZES, list(ULPS).index(dtype) + lower, half):
        matrices = positive(rng, dtype, 2, size)
        rows, columns = np.triu_indices(size, 1) if lower else np.tril_indices(size, -1)
        matrices[:, rows, columns] = 1e3
        executable = check(cholesky(dtype, (2, size, size), lower), matrices, ulps=ULPS[dtype])
        assert kernels(executable) == ["cholesky"] or not size


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64", "c128", "bf16"])
def test_what_is_not_positive_definite_gives_nan_and_no_other_matrix_does(
    check: Any, rng: np.random.Generator, dtype: str, lower: bool
) -> None:
    for at, pivot in itertools.product((0, 3, 20), (-1, 0, np.nan)):
        matrices = positive(rng, dtype, 3, 21)
        matrices[1, at, at] = pivot
        if pivot == 0:
            matrices[1, at, :] = matrices[1, :, at] = 0
        check(cholesky(dtype, (3, 21, 21), lower), matrices, ulps=ULPS[dtype])


def test_exact_roots_stay_exact(check: Any) -> None:
    check(cholesky("f32", (6, 6), True), (9 * np.eye(6)).astype(np.float32))


@pytest.mark.parametrize(("left", "unit", "transpose"), FORMS)
@pytest.mark.parametrize("dtype", ["f32", "c128"])
def test_systems_of_all_forms(
    check: Any, kernels: Any, rng: np.random.Generator, dtype: str, left: str, unit: str, transpose: str
) -> None:
    """The other triangle, and a diagonal that counts as ones, must not be read."""
    for lower, (size, columns) in itertools.product((True, False), ((6, 1), (17, 33), (67, 3))):
        a = (random_numbers(rng, dtype, (2, size, size)) / size + np.eye(size)).astype(DType(dtype).numpy)
        rows, others = np.triu_indices(size, 1) if lower else np.tril_indices(size, -1)
        a[:, rows, others] = np.nan
        if unit == "true":
            a[:, range(size), range(size)] = np.nan
        dims = (2, size, columns) if left == "true" else (2, columns, size)
        b = random_numbers(rng, dtype, dims).astype(DType(dtype).numpy)
        attributes = f"left_side={left}, lower={str(lower).lower()}, unit_diagonal={unit}, transpose_a={transpose}"
        executable = check(solve(dtype, a.shape, dims, attributes), np.nan_to_num(a), b, ulps=64)
        assert kernels(executable) == ["triangular solve"]
        np.testing.assert_array_equal(executable(a, b), executable(np.nan_to_num(a), b))


@pytest.mark.parametrize("dtype", ULPS)
@pytest.mark.parametrize("half", HALVES)
def test_systems_of_many_sizes(check: Any, rng: np.random.Generator, dtype: str, half: int) -> None:
    sizes = (*itertools.product((0, 1, 4, 19), (0, 1, 2, 15, 47)), (32, 1), (100, 2), (131, 4))
    for size, columns in half_of(sizes, list(ULPS).index(dtype), half):
        a = (random_numbers(rng, dtype, (1, 2, size, size)) / max(size, 1) + np.eye(size)).astype(DType(dtype).numpy)
        b = random_numbers(rng, dtype, (1, 2, size, columns)).astype(DType(dtype).numpy)
        check(solve(dtype, a.shape, b.shape, "left_side=true, lower=true"), a, b, ulps=ULPS[dtype])


def test_a_system_with_itself(check: Any, rng: np.random.Generator) -> None:
    text = solve("f32", (5, 5), (5, 5), "left_side=true, lower=false").replace("(a, b)", "(a, a)")
    a = (rng.standard_normal((5, 5)) / 5 + np.eye(5)).astype(np.float32)
    check(text, a, a, ulps=16)


def test_zero_divisors_give_what_division_gives(check: Any) -> None:
    a = np.array([[0.0, 0.0], [1.0, 2.0]], np.float32)
    check(solve("f32", (2, 2), (2, 1), "left_side=true, lower=true"), a, np.array([[1.0], [0.0]], np.float32))


@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_threads_do_not_change_a_bit(compile_text: Any, rng: np.random.Generator, dtype: str) -> None:
    matrices = positive(rng, dtype, 9, 70)
    b = random_numbers(rng, dtype, (9, 70, 90)).astype(DType(dtype).numpy)
    for text, arguments in (
        (cholesky(dtype, matrices.shape, True), (matrices,)),
        (solve(dtype, matrices.shape, b.shape, "left_side=true, lower=true"), (matrices, b)),
    ):
        one, two, five = (compile_text(text, num_threads=threads)(*arguments) for threads in (1, 2, 5))
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, five)


def test_code_does_not_grow_with_the_matrix(compile_text: Any) -> None:
    sizes = []
    for size in (50, 400):
        dims = (size, size)
        found = compile_text(cholesky("f64", dims, True)), compile_text(solve("f64", dims, dims, "left_side=true"))
        sizes.append([len(executable.as_text("llvm-before-optimizations").splitlines()) for executable in found])
    assert all(large <= small + 20 for small, large in zip(*sizes, strict=True)), sizes
    assert max(sizes[1]) < 1500


def tridiagonal(dtype: str, batch: tuple[int, ...], size: int, columns: int) -> str:
    """A call of gtsv."""
    letter = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}[dtype]
    line, rhs = (f"{dtype}[{','.join(map(str, (*batch, *dims)))}]" for dims in ((size,), (size, columns)))
    info = f"s32[{','.join(map(str, batch))}]"
    return f"""HloModule m
ENTRY e {{
  a = {line} parameter(0)
  b = {line} parameter(1)
  c = {line} parameter(2)
  d = {rhs} parameter(3)
  ROOT r = ({line}, {line}, {line}, {rhs}, {info}) custom-call(a, b, c, d),
    custom_call_target="lapack_{letter}gtsv_ffi", api_version=API_VERSION_TYPED_FFI
}}"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize(
    ("batch", "size", "columns"), [((), 1, 1), ((2,), 2, 3), ((3, 2), 3, 1), ((7,), 20, 33), ((), 300, 5)]
)
def test_tridiagonal_systems(
    check: Any, kernels: Any, rng: np.random.Generator, dtype: str, batch: tuple[int, ...], size: int, columns: int
) -> None:
    def numbers(*dims: int) -> np.ndarray:
        found = rng.standard_normal(dims) + (1j * rng.standard_normal(dims) if dtype.startswith("c") else 0)
        return found.astype(DType(dtype).numpy)

    diagonals = [numbers(*batch, size) for _ in range(3)]
    diagonals[1] += (rng.integers(0, 2, (*batch, size)) * 4).astype(np.float32)  # Some rows change places.
    rhs = numbers(*batch, size, columns)
    text = tridiagonal(dtype, batch, size, columns)
    for threads in (1, 2, 5):
        executable = check(text, *diagonals, rhs, num_threads=threads, ulps=1 << 12)
        assert kernels(executable) == ["tridiagonal solve"]
    below, diagonal, above = (each.astype(np.complex128)[..., None, :] for each in diagonals)
    unit = np.eye(size)
    matrix = (
        diagonal * unit
        + np.roll(below * unit, -1, -1) * np.eye(size, k=-1)
        + np.roll(above * unit, 1, -1) * np.eye(size, k=1)
    )
    found = executable(*diagonals, rhs)[3].astype(np.complex128)
    scale = np.abs(matrix) @ np.abs(found) + np.abs(rhs)
    assert (np.abs(matrix @ found - rhs) <= 30 * float(np.finfo(rhs.dtype).eps) * scale).all()


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128"])
def test_tridiagonal_systems_in_vectors_of_every_width(check: Any, rng: np.random.Generator, dtype: str) -> None:
    arguments = [random_numbers(rng, dtype, (7, *dims)).astype(DType(dtype).numpy) for dims in [(20,)] * 3 + [(20, 33)]]
    text = tridiagonal(dtype, (7,), 20, 33)
    for isa in ("AVX2", "SSE2"):
        debug = DebugOptions(cpu_max_isa=isa)
        one, *others = (
            check(text, *arguments, num_threads=n, ulps=1 << 12, debug=debug)(*arguments) for n in (1, 2, 5)
        )
        for other in others:
            for expected, found in zip(one, other, strict=True):
                np.testing.assert_array_equal(found, expected)


def test_tridiagonal_systems_without_an_answer(check: Any) -> None:
    """The number of the first pivot that is zero, numbers that are not finite, rows that change places each time."""
    text = tridiagonal("f64", (5,), 4, 2)
    below = np.array([[0, 0, 0, 0], [0, 1, 2, 3], [0, 9, 9, 9], [0, np.nan, 1, 1], [0, 1, 1, 1.0]])
    diagonal = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 2, 1, 2], [1, 1, 1, 1], [1, np.inf, 1, 1.0]])
    check(text, below, diagonal, np.ones((5, 4)), np.ones((5, 4, 2)), ulps=4)
