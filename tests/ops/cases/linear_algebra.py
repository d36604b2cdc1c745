"""Factorisations, systems of equations, determinants, Fourier transforms."""

import numpy as np
import scipy.signal
from ops.cases.case import gradient, value

from xlalite.ops.functions import array as a, linalg as la, math as m, products, signal as s
from xlalite.ops.helpers.node import node

F = np.float32
RANDOM = np.random.default_rng(0)
A = RANDOM.standard_normal((2, 4, 4))
POSITIVE = A @ A.transpose(0, 2, 1) + 2 * np.eye(4)
TALL = RANDOM.standard_normal((2, 5, 3))
WIDE = TALL.transpose(0, 2, 1).copy()
RHS = RANDOM.standard_normal((2, 4, 3))
Z = A + 1j * RANDOM.standard_normal((2, 4, 4))
ODD = RANDOM.standard_normal((2, 3, 4, 5))
ODD_Z = ODD + 1j * RANDOM.standard_normal((2, 3, 4, 5))
EMPTY = np.zeros((2, 0, 0))


def tridiagonal(diagonals: np.ndarray) -> np.ndarray:
    above, main, below = (diagonals[..., i, :] for i in range(3))
    whole = np.zeros((*main.shape, main.shape[-1]), main.dtype)
    for i in range(main.shape[-1]):
        whole[..., i, i] = main[..., i]
        if i:
            whole[..., i - 1, i], whole[..., i, i - 1] = above[..., i - 1], below[..., i]
    return whole


THREE = RANDOM.standard_normal((2, 3, 5))
SIDES = RANDOM.standard_normal((2, 5, 3))


def restored(x: np.ndarray) -> np.ndarray:
    return x


VALUES = [
    value("Cholesky", la.cholesky, POSITIVE, expected=np.linalg.cholesky, tolerance=1e-12),
    value("MatrixTriangularSolve", la.triangular_solve, A, RHS, expected=lambda x, y: np.linalg.solve(np.tril(x), y)),
    value(
        "MatrixTriangularSolve adjoint of complex numbers",
        lambda x, y: la.triangular_solve(x, y, lower=False, adjoint=True),
        Z,
        RHS + 0j,
        expected=lambda x, y: np.linalg.solve(np.conj(np.triu(x).transpose(0, 2, 1)), y),
    ),
    value("MatrixSolve", la.solve, A, RHS, expected=np.linalg.solve, tolerance=1e-10),
    value("MatrixSolve of one matrix", la.solve, A[0], RHS, expected=np.linalg.solve, tolerance=1e-10),
    value(
        "MatrixSolve adjoint",
        lambda x, y: la.solve(x, y, adjoint=True),
        Z,
        RHS + 0j,
        expected=lambda x, y: np.linalg.solve(np.conj(x.transpose(0, 2, 1)), y),
        tolerance=1e-10,
    ),
    value("MatrixInverse", la.inv, A, expected=np.linalg.inv, tolerance=1e-10),
    value("MatrixInverse of nothing", la.inv, EMPTY, expected=np.linalg.inv),
    value("MatrixDeterminant", la.det, A, expected=np.linalg.det, tolerance=1e-12),
    value("MatrixDeterminant of complex numbers", la.det, Z, expected=np.linalg.det, tolerance=1e-12),
    value("MatrixDeterminant of nothing", la.det, EMPTY, expected=np.linalg.det),
    value("LogMatrixDeterminant", lambda x: la.slogdet(x)[1], A, expected=lambda x: np.linalg.slogdet(x)[1]),
    value("LogMatrixDeterminant sign", lambda x: la.slogdet(x)[0], A, expected=lambda x: np.linalg.slogdet(x)[0]),
    value("Mul logdet", la.logdet, POSITIVE, expected=lambda x: np.linalg.slogdet(x)[1]),
    *(
        value(
            f"Qr of {x.shape} {full}",
            lambda x, full=full: m.matmul(*la.qr(x, full)),
            x,
            expected=restored,
            tolerance=1e-10,
        )
        for x in (A, TALL, WIDE, Z)
        for full in (False, True)
    ),
    value(
        "Qr orthonormal",
        lambda x: m.matmul(la.qr(x, True)[0], la.qr(x, True)[0], transpose_a=True),
        TALL,
        expected=lambda x: np.broadcast_to(np.eye(5), (2, 5, 5)),
        tolerance=1e-10,
    ),
    *(
        value(
            f"Svd of {x.shape} {full}",
            lambda x, full=full: la.svd(x, full)[0],
            x,
            expected=lambda x: np.linalg.svd(x, compute_uv=False),
            tolerance=1e-10,
        )
        for x in (A, TALL, WIDE, Z)
        for full in (False, True)
    ),
    value(
        "Svd restored",
        lambda x: m.matmul((usv := la.svd(x))[1] * a.expand_dims(usv[0], -2), usv[2], adjoint_b=True),
        WIDE,
        expected=restored,
        tolerance=1e-10,
    ),
    value("SelfAdjointEigV2", la.eigvalsh, POSITIVE, expected=np.linalg.eigvalsh, tolerance=1e-10),
    value(
        "SelfAdjointEigV2 restored",
        lambda x: m.matmul((ev := la.eigh(x))[1] * a.expand_dims(ev[0], -2), ev[1], adjoint_b=True),
        POSITIVE,
        expected=restored,
        tolerance=1e-10,
    ),
    value(
        "Cholesky lstsq",
        lambda x, y: la.lstsq(a.reshape(x, [2, 5, 3]), y, 0.1),
        TALL,
        TALL[:, :, :2] ** 2,
        expected=lambda x, y: np.linalg.solve(x.transpose(0, 2, 1) @ x + 0.1 * np.eye(3), x.transpose(0, 2, 1) @ y),
        tolerance=1e-9,
    ),
    value(
        "Max norm 2 of matrices",
        lambda x: products.norm(x, 2, [-2, -1]),
        TALL,
        expected=lambda x: np.linalg.norm(x, 2, (-2, -1)),
    ),
    *(
        value(
            f"TridiagonalSolve {pivoting}",
            lambda d, y, pivoting=pivoting: la.tridiagonal_solve(d, y, partial_pivoting=pivoting),
            THREE,
            SIDES,
            expected=lambda d, y: np.linalg.solve(tridiagonal(d), y),
            tolerance=1e-10,
        )
        for pivoting in (True, False)
    ),
    value(
        "TridiagonalSolve with zeros on the diagonal",
        la.tridiagonal_solve,
        np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 4.0, 5.0]]),
        np.array([1.0, 2.0, 3.0]),
        expected=lambda d, y: np.linalg.solve(tridiagonal(d), y),
        tolerance=1e-12,
    ),
    value(
        "TridiagonalSolve of a sequence",
        lambda d, y: la.tridiagonal_solve([d[:, 0, :-1], d[:, 1], d[:, 2, 1:]], y, "sequence", True),
        THREE + 0j,
        SIDES.transpose(0, 2, 1) + 1j,
        expected=lambda d, y: np.linalg.solve(tridiagonal(d), y.transpose(0, 2, 1)),
        tolerance=1e-10,
    ),
    value(
        "TridiagonalSolve of matrices",
        lambda x, y: la.tridiagonal_solve(x, y, "matrix"),
        tridiagonal(THREE),
        SIDES,
        expected=np.linalg.solve,
        tolerance=1e-10,
    ),
    value("Conj adjoint", la.adjoint, Z, expected=lambda x: np.conj(x.transpose(0, 2, 1))),
    *(
        value(
            name,
            lambda x, name=name: node(name, [x]),
            ODD_Z,
            expected=lambda x, f=f, r=r: f(x, axes=tuple(range(-r, 0))),
            tolerance=1e-12,
        )
        for r in (1, 2, 3)
        for name, f in ((f"FFT{r}D".replace("1D", ""), np.fft.fftn), (f"IFFT{r}D".replace("1D", ""), np.fft.ifftn))
    ),
    *(
        value(
            f"RFFT{r}D".replace("1D", ""),
            lambda x, r=r: (s.rfft, s.rfft2d, s.rfft3d)[r - 1](x),
            ODD,
            expected=lambda x, r=r: np.fft.rfftn(x, axes=tuple(range(-r, 0))),
            tolerance=1e-12,
        )
        for r in (1, 2, 3)
    ),
    *(
        value(
            f"IRFFT{r}D".replace("1D", ""),
            lambda x, r=r: (s.irfft, s.irfft2d, s.irfft3d)[r - 1](x),
            ODD_Z,
            expected=lambda x, r=r: np.fft.irfftn(x, axes=tuple(range(-r, 0))),
            tolerance=1e-12,
        )
        for r in (1, 2, 3)
    ),
    value("RFFT padded", lambda x: s.rfft(x, [7]), ODD, expected=lambda x: np.fft.rfft(x, 7), tolerance=1e-12),
    value("RFFT cut", lambda x: s.rfft2d(x, [2, 4]), ODD, expected=lambda x: np.fft.rfft2(x, (2, 4)), tolerance=1e-12),
    value("IRFFT odd", lambda x: s.irfft(x, [7]), ODD_Z, expected=lambda x: np.fft.irfft(x, 7), tolerance=1e-12),
    value(
        "RFFT stft",
        lambda x: s.stft(x, 8, 3),
        ODD.reshape(4, 30),
        expected=lambda x: np.fft.rfft(
            np.lib.stride_tricks.sliding_window_view(x, 8, -1)[:, ::3] * scipy.signal.get_window("hann", 8)
        ),
        tolerance=1e-6,
    ),
    value(
        "GatherV2 frame padded",
        lambda x: s.frame(x, 4, 3, True, 9),
        ODD[0, 0],
        expected=lambda x: np.stack([x[:, :4], np.pad(x[:, 3:], [(0, 0), (0, 2)], constant_values=9)], 1),
    ),
    value("Cos hamming_window", lambda x: x * s.hamming_window(5, False), F([1] * 5), expected=lambda x: np.hamming(5)),
]  # fmt: skip

SQUARE = np.array([[2.0, 0.3, -0.5], [0.4, 1.5, 0.2], [-0.1, 0.6, 1.2]])
UPPER = np.triu(SQUARE)
Y = np.array([[0.5, -1.0], [1.5, 0.3], [-0.7, 0.9]])
WEIGHTS = np.arange(1.0, 10.0).reshape(3, 3)
THIN = np.array([[1.0, 0.2], [0.3, 1.4], [-0.6, 0.5]])


def symmetric(x: object) -> object:
    return m.matmul(x, x, transpose_b=True) + np.eye(3)


GRADIENTS = [
    gradient("Cholesky", lambda x: la.cholesky(symmetric(x)) * WEIGHTS, SQUARE),
    gradient("MatrixTriangularSolve", lambda x, y: la.triangular_solve(x, y), SQUARE, Y),
    gradient("MatrixTriangularSolve adjoint", lambda x, y: la.triangular_solve(x, y, False, True), UPPER, Y),
    gradient("MatrixSolve", la.solve, SQUARE, Y),
    gradient("MatrixSolve adjoint", lambda x, y: la.solve(x, y, True), SQUARE, np.stack([Y, 2 * Y])),
    gradient("MatrixInverse", lambda x: la.inv(x) * WEIGHTS, SQUARE),
    gradient("MatrixDeterminant", la.det, np.stack([SQUARE, SQUARE + UPPER])),
    gradient("LogMatrixDeterminant", lambda x: la.slogdet(x)[1], SQUARE),
    gradient("TridiagonalSolve", la.tridiagonal_solve, THREE + np.array([[0], [3], [0]]), SIDES),
    gradient("Qr", lambda x: la.qr(x)[0] * WEIGHTS[:, :2], THIN),
    gradient("Qr r", lambda x: la.qr(x)[1] * WEIGHTS[:2, :2], THIN),
    gradient("SelfAdjointEigV2", lambda x: la.eigh(symmetric(x))[0] * [1.0, 2.0, 3.0], SQUARE),
    gradient("SelfAdjointEigV2 vectors", lambda x: la.eigh(symmetric(x))[1] ** 2 * WEIGHTS, SQUARE),
    gradient("SelfAdjointEigV2 values alone", lambda x: la.eigvalsh(symmetric(x)) * [1.0, 2.0, 3.0], SQUARE),
    gradient("Svd", lambda x: la.svd(x, compute_uv=False) * [1.0, 2.0], THIN),
    gradient("Svd vectors", lambda x: la.svd(x)[1] ** 2 * WEIGHTS[:, :2], THIN),
    gradient("Svd right vectors", lambda x: la.svd(x)[2] ** 2 * WEIGHTS[:, :2], THIN.T.copy()),
    *(
        gradient(
            f"{name}{d}",
            lambda x, y, op=f"{name}{d}": node("Imag", [node(op, [node("Complex", [x, y])]) * (2.0 - 1.0j)]),
            ODD[0],
            ODD[1],
        )
        for name in ("FFT", "IFFT")
        for d in ("", "2D", "3D")
    ),
    *(
        gradient(f"RFFT{d}", lambda x, f=f: node("Imag", [f(x) * (2.0 - 1.0j)]), ODD[0])
        for d, f in (("", s.rfft), ("2D", s.rfft2d), ("3D", s.rfft3d))
    ),
    *(
        gradient(f"IRFFT{d}", lambda x, y, f=f: f(node("Complex", [x, y])) ** 2, ODD[0], ODD[1])
        for d, f in (("", s.irfft), ("2D", s.irfft2d), ("3D", s.irfft3d))
    ),
    gradient("RFFT padded", lambda x: node("Imag", [s.rfft(x, [7]) * (2.0 - 1.0j)]), ODD[0]),
    gradient("RFFT cut", lambda x: node("Real", [s.rfft(x, [4]) * (2.0 - 1.0j)]), ODD[0]),
    gradient("IRFFT odd", lambda x, y: s.irfft(node("Complex", [x, y]), [7]) ** 2, ODD[0], ODD[1]),
]  # fmt: skip
