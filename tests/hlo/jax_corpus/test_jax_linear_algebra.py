"""Linear algebra as jax lowers it on CPUs: custom calls of LAPACK."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
linalg = jax.lax.linalg
pytestmark = pytest.mark.oracle


def positive(a):
    return a @ a.mT.conj() + 3 * jnp.eye(a.shape[-1], dtype=a.dtype)


def symmetric(a):
    return a + a.mT.conj()


def svd(a, full):
    u, s, v = jnp.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    return s, (u[..., :k] * s[..., None, :].astype(a.dtype)) @ v[..., :k, :], u @ u.mT.conj(), v @ v.mT.conj()


def eigh(a):
    w, v = jnp.linalg.eigh(symmetric(a))
    return w, (v * w[..., None, :].astype(a.dtype)) @ v.mT.conj()


def eig(a):
    w, left, right = linalg.eig(a, compute_left_eigenvectors=True)
    return (
        jnp.sort(w),
        (a @ right - right * w[..., None, :]).round(2),
        (left.mT.conj() @ a - w[..., None] * left.mT.conj()).round(2),
        jnp.linalg.norm(left, axis=-2),
        jnp.linalg.norm(right, axis=-2),
    )


def schur(a):
    t, z = linalg.schur(a)
    lower = jnp.tril(t, -2 if jnp.isrealobj(a) else -1)
    return z @ t @ z.mT.conj(), z @ z.mT.conj(), lower


def lu(a):
    packed, pivots, permutation = linalg.lu(a)
    return packed, pivots, permutation, linalg.lu_pivots_to_permutation(pivots, 6)


def qr(a):
    return jnp.linalg.qr(a), jnp.linalg.qr(a, mode="complete"), jnp.linalg.qr(a.mT, mode="r")


def pivoted_qr(a):
    return jax.scipy.linalg.qr(a, pivoting=True), jax.scipy.linalg.qr(a, pivoting=True, mode="economic")


def triangular(a, b):
    return (
        linalg.triangular_solve(a, b, left_side=True, lower=True),
        linalg.triangular_solve(a, b.mT, left_side=False, transpose_a=True, conjugate_a=True, unit_diagonal=True),
        linalg.triangular_solve(a, b.mT, left_side=False),
    )


def tridiagonal_solve(a, b):
    return linalg.tridiagonal_solve(
        a[..., 0, :].at[..., 0].set(0), a[..., 1, :] * 0.1, a[..., 2, :].at[..., -1].set(0), b
    )


def tridiagonal(a):
    return linalg.tridiagonal(symmetric(a)), linalg.tridiagonal(symmetric(a), lower=False)


def reflected(a, b):
    packed, taus = linalg.householder_product, jnp.linalg.qr(a, mode="raw")
    h, tau = taus
    return (
        packed(h.mT, tau),
        linalg.ormqr(h.mT, tau, b, left=True, transpose=True),
        linalg.ormqr(h.mT, tau, b.mT, left=False),
    )


def broken(a):
    singular = jnp.zeros_like(a)
    return jnp.linalg.cholesky(a - 5 * jnp.eye(6)), jnp.linalg.inv(singular), jnp.linalg.svd(singular / 0)[1]


PROGRAMS: dict[str, tuple[Callable[..., object], int, str]] = {
    "cholesky": (lambda a: (jnp.linalg.cholesky(positive(a)), jnp.linalg.cholesky(positive(a), upper=True)), 1, "fdFD"),
    "lu": (lu, 1, "fdFD"),
    "determinants": (lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)), 1, "fD"),
    "solve": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a)), 2, "fD"),
    "qr": (qr, 1, "fdFD"),
    "svd": (lambda a: (svd(a, True), svd(a[:, :4], False), jnp.linalg.svd(a[..., :3], compute_uv=False)), 1, "fdFD"),
    "eigh": (lambda a: (eigh(a), jnp.linalg.eigvalsh(symmetric(a))), 1, "fdFD"),
    "eig": (eig, 1, "fdFD"),
    "schur": (schur, 1, "fdFD"),
    "triangular": (triangular, 2, "fD"),
    "tridiagonal_solve": (tridiagonal_solve, 2, "fD"),
    "tridiagonal": (tridiagonal, 1, "dF"),
    "hessenberg": (linalg.hessenberg, 1, "fD"),
    "reflected": (reflected, 2, "dF"),
    "pseudo_inverse": (lambda a: (jnp.linalg.pinv(a[:, :4]), jnp.linalg.matrix_rank(a)), 1, "d"),
    "broken": (broken, 1, "f"),
}
SINGLE: dict[str, Callable[..., object]] = {
    "pivoted_qr": pivoted_qr,
    "least_squares": lambda a: jnp.linalg.lstsq(a[:, :4], a[:, 4:])[0],
    "exponential": jax.scipy.linalg.expm,
    "square_root": lambda a: jax.scipy.linalg.sqrtm(positive(a)).real,
    "polar": lambda a: jax.scipy.linalg.polar(a[:, :4]),
    "gradient_of_cholesky": jax.grad(lambda a: jnp.linalg.cholesky(positive(a)).sum()),
    "gradient_of_solve": jax.grad(lambda a: jnp.linalg.solve(positive(a), a[0]).sum()),
    "gradient_of_eigh": jax.grad(lambda a: (eigh(positive(a))[1] ** 2).sum()),
}


def matrices(rng: np.random.Generator, sizes: tuple[int, ...], letter: str) -> np.ndarray:
    numbers = rng.standard_normal(sizes)
    if letter in "FD":
        numbers = numbers + 1j * rng.standard_normal(sizes)
    return numbers.astype(letter)


def check(program) -> None:
    for text in (program.lowered, program.optimized):
        program.check_text(text)
        program.check_evaluator(text)
    program.check_cpu()


# One element type of each by default, the others in the slow run.
FIRST_TYPES = [(name, types[0]) for name, (_, _, types) in PROGRAMS.items()]
OTHER_TYPES = [
    pytest.param(name, letter, marks=pytest.mark.slow)
    for name, (_, _, types) in PROGRAMS.items()
    for letter in types[1:]
]


@pytest.mark.parametrize(("name", "letter"), [*FIRST_TYPES, *OTHER_TYPES])
def test_linear_algebra_gives_what_jax_computes(name, letter, rng, jax_program):
    function, count, _ = PROGRAMS[name]
    sizes = ((3, 6, 6), (3, 6, 2))[:count]
    arguments = tuple(matrices(rng, size, letter) for size in sizes)
    check(jax_program(function, arguments, 5e-4 if letter in "fF" else 1e-9, x64=True))


LONG = {"exponential", "square_root", "polar", "gradient_of_eigh"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in SINGLE]
)
def test_function_of_one_matrix_gives_what_jax_computes(name, rng, jax_program):
    check(jax_program(SINGLE[name], (matrices(rng, (6, 6), "d"),), 1e-9, x64=True))
