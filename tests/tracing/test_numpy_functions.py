"""Everyday expressions give under `xlalite.jit` what NumPy gives: values, shapes, element types."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.hlo.errors import TracingError

_RANDOM = np.random.default_rng(0)
_S = _RANDOM.normal(size=(4, 4))
_X, _Y = _RANDOM.normal(size=(2, 7))
# Vectors x, y, n and m (whole), u (bytes), b (truth values), z (complex), k (with NaN); matrices A, B, K (with NaN),
# M (truth values), S (square), P (positive definite); C of three dimensions.
ARRAYS: dict[str, np.ndarray] = {
    "x": _X,
    "y": _Y,
    "n": _RANDOM.integers(0, 10, 7),
    "m": _RANDOM.integers(1, 10, 7),
    "u": _RANDOM.integers(0, 200, 7).astype(np.uint8),
    "b": np.array([True, False, True, True, False, False, True]),
    "z": _X + 1j * _Y,
    "k": np.where(np.arange(7) == 2, np.nan, _X),
    "A": _RANDOM.normal(size=(4, 5)),
    "B": _RANDOM.normal(size=(5, 3)),
    "M": _RANDOM.normal(size=(4, 5)) > 0,
    "S": _S,
    "P": _S @ _S.T + np.eye(4),
    "C": _RANDOM.normal(size=(2, 3, 4)),
}
ARRAYS["K"] = np.where(np.arange(20).reshape(4, 5) == 7, np.nan, ARRAYS["A"])

# The arguments of a function of them, and what it returns; before that statements that change them.
EXPRESSIONS = """
# ufuncs and their methods
x | np.maximum.accumulate(x)
x | np.add.accumulate(x)
A | np.multiply.reduce(A, axis=1)
A | np.maximum.reduce(A)
n | np.bitwise_or.reduce(n)
n | np.bitwise_xor.accumulate(n)
x | np.logaddexp.reduce(x)
x | np.subtract.reduce(x)
x | np.subtract.accumulate(x)
A M | np.add.reduce(A, axis=1, where=M, initial=5)
A M | np.multiply.reduce(A, where=M[0], initial=2)
A M | np.maximum.reduce(A, axis=1, where=M, initial=0.1)
A M | np.subtract.reduce(A, axis=1, where=M, initial=0.5)
A | np.divide.reduce(A, axis=0, initial=2)
A | np.subtract.reduce(A[:0], axis=0, initial=2)
u | np.bitwise_and.reduce(u[:0])
u | np.arctan2.reduce(u)
n | np.divide.accumulate(n[:3] + 1)
b | np.power.reduce(b)
b | np.subtract.reduce(b.astype(int))
n | (n // (n % 2), n % (n % 2), np.fmod(-n, n % 2), divmod(7, n % 2))
n | np.lcm(n.astype(np.int8) + np.int8(-128), np.int8(3))
x | np.log10(np.array([1e-310, 1e-300]) + 0 * x[0])
x | np.spacing(np.array([-128, -3, 3, 0], np.float16) + np.float16(0) * x[:4].astype(np.float16))
x y | np.add.outer(x, y)
x y | np.hypot(x, y)
x y | np.copysign(x, y)
x | np.signbit(x)
x y | np.nextafter(x, y)
x | np.spacing(x)
x | np.cbrt(x)
x | np.exp2(x)
P | np.log2(np.abs(P))
P | np.log10(np.abs(P))
x y | np.logaddexp(x, y)
x y | np.logaddexp2(x, y)
x | np.deg2rad(x)
x | np.rad2deg(x)
x | np.heaviside(x, 0.5)
x | np.trunc(x)
x | np.modf(x * 3)
x | np.frexp(x)
x n | np.ldexp(x, n)
x y | np.fmax(x, y)
k y | np.fmin(k, y)
x | np.arcsinh(x)
x | np.arccosh(np.abs(x) + 1)
x | np.arctanh(x / 10)
n m | np.gcd(n, m)
n m | np.lcm(n, m)
n m | np.left_shift(n, m)
u | np.bitwise_count(u)
n m | np.divmod(n, m)
x y | np.float_power(x * x, y)
n | np.reciprocal(n + 1)
x y | np.vecdot(x, y)
k | np.isnan(k)
n | np.isnan(n)
z | np.isfinite(z)
z | np.abs(z)
z | np.angle(z)
z | np.sqrt(z)
n | np.sqrt(n)
x | np.round(x, 2)
n | np.round(n, -1)
x | np.clip(x, -0.5, 0.5)
x | np.clip(x, None, 0.5)
x | np.fix(x * 3)
k | np.nan_to_num(k)
x | np.unwrap(x * 5)
x | np.sinc(x)
x | np.i0(x)
x y | np.isclose(x, y)
x y | np.allclose(x, x)
x y | np.array_equal(x, y)
x | np.round(x.sum(), 2)
x y | np.true_divide(x, y)
# reductions
x | np.sum(x)
x | np.std(x.astype(np.float32), correction=0.5)
A | np.sum(A, axis=0)
A | np.sum(A, axis=(0, 1), keepdims=True)
u | np.sum(u)
b | np.sum(b)
x b | np.sum(x, where=b)
x | np.prod(x)
A | np.mean(A, axis=1)
n | np.mean(n)
A | np.var(A, axis=0, ddof=1)
A | np.std(A)
x | np.max(x)
A | np.min(A, axis=1)
A | np.ptp(A, axis=0)
A | np.argmax(A, axis=1)
A | np.argmin(A)
A | np.argmax(A, axis=1, keepdims=True)
M | np.all(M, axis=0)
M | np.any(M)
M | np.count_nonzero(M, axis=1)
x | np.cumsum(x)
A | np.cumprod(A, axis=1)
A | np.cumulative_sum(A, axis=0, include_initial=True)
K | np.nansum(K, axis=0)
K | np.nanmean(K, axis=1)
K | np.nanvar(K)
K | np.nanstd(K, axis=0, ddof=1)
K | np.nanmax(K, axis=0)
K | np.nanmin(K)
K | np.nanargmax(K, axis=1)
K | np.nancumsum(K)
K | np.nanprod(K)
# order
x | np.sort(x)
A | np.sort(A, axis=0)
A | np.argsort(A, axis=1)
A | np.median(A, axis=0)
A | np.median(A)
k | np.median(k)
x | np.quantile(x, [0.1, 0.5, 0.9])
A | np.percentile(A, 30, axis=1)
A | np.percentile(A, [20, 40], axis=0, keepdims=True)
K | np.nanmedian(K, axis=0)
K | np.nanpercentile(K, 30, axis=0)
x | np.partition(x, 3)[3]
x y | np.searchsorted(np.sort(x), y)
x | np.digitize(x, [-1, 0, 1])
n | np.digitize(n, [7, 4, 4, 2]) + np.digitize(n, [7, 4, 2], right=True)
n m | [np.digitize(n, b, right) for b in (np.sort(m), np.sort(m)[::-1], m[:1], m[:0]) for right in (0, 1)]
x y | np.lexsort((x, y))
z | np.sort(z)
n m | np.isin(n, m)
# shapes
A | A.reshape(5, 4)
A | A.reshape(-1, order="F")
A | A.T
C | np.transpose(C, (2, 0, 1))
C | np.moveaxis(C, 0, -1)
C | np.rollaxis(C, 2)
C | np.swapaxes(C, 0, 1)
x | np.expand_dims(x, (0, 2))
x | np.squeeze(x[None])
x | np.atleast_2d(x)
x | np.atleast_3d(x)
x A | np.broadcast_to(x[:5], A.shape)
A | np.broadcast_arrays(A, A[0])
A | np.flip(A, 0)
A | np.fliplr(A)
A | np.rot90(A)
A | np.rot90(A, 3)
A | np.roll(A, 2, axis=1)
A | np.roll(A, (1, 2), axis=(0, 1))
x | np.roll(x, -3)
x | np.tile(x, (2, 3))
A | np.repeat(A, 2, axis=0)
x | np.repeat(x, [1, 0, 2, 1, 1, 1, 3])
x | np.resize(x, (3, 5))
A | np.pad(A, ((1, 2), (0, 1)))
x | np.pad(x, 2, mode="edge")
x | np.pad(x, 3, mode="reflect")
x | np.pad(x, 2, mode="wrap")
A n | [np.pad(each, (1, 2), mode) for each in (A, n) for mode in ("maximum", "minimum", "mean", "median")]
C n | [np.pad(each, 2, "mean", stat_length=(1, 2)) for each in (C, n)]
A n | [np.pad(each, (3, 1), "linear_ramp", end_values=(5, -2)) for each in (A, n)]
A x | np.pad(A, 1, "reflect", reflect_type="odd"), np.pad(x, (7, 2), "symmetric", reflect_type="odd")
x | np.pad(x, 1, constant_values=x[0])
# lists of traced numbers, and what asks nobody
x y | np.maximum.reduce([x, y, x + y]), np.add([x[0], 1.0], 2), np.sqrt([abs(x[0]), 4.0]), np.multiply.outer([x[0]], y)
x y | np.linalg.norm([x[0], y[0]]), np.clip([x[0], y[0]], 0, [1, x[1]]), np.outer([x[0], 2.0], [1.0, y[0]])
x y | np.cov([x, y]), np.where([True, False], [x[0], 1.0], [y[0], 2.0]), np.dot([x[0], x[1]], [2.0, 3.0])
A | [each * (i - j) for (i, j), each in np.ndenumerate(A)][:7]
x | np.fromiter((each * 2 for each in x), np.float32), np.fromiter((each for each in x), float, 3)
x n | np.vectorize(lambda a, b: np.where(a > 0, a, b))(x, n), np.vectorize(lambda a: (a, -a), [float, int])(x)
x | np.add.reduceat(x, [0, 4, 1, 3, 3]), np.subtract.reduceat(x, [2, 5])
C n | np.maximum.reduceat(C, [0, 2], axis=1), np.add.reduceat(n.astype(np.int8), []), np.add.reduceat(C, [1], -1)
C | [u.reduceat(C.ravel(), np.arange(1, 24, 1)[:18]) for u in (np.add, np.hypot, np.minimum)]
C | [u.reduceat(C.ravel(), np.r_[1:12, 15:23]) for u in (np.add, np.subtract, np.multiply)]
b M | [np.packbits(b), np.packbits(b, bitorder="little"), np.packbits(M, axis=0), np.packbits(M, 1), np.packbits(M[:0])]
u | [np.unpackbits(u), np.unpackbits(u, bitorder="little"), np.unpackbits(u[:, None], 1), np.unpackbits(u, count=9)]
u | [np.unpackbits(u, count=60), np.unpackbits(u, count=-50), np.unpackbits(u[:0])]
# joining and splitting
x y | np.concatenate([x, y])
x y | np.stack([x, y], axis=1)
x y | np.hstack([x, y])
x y | np.vstack([x, y])
x y | np.dstack([x, y])
x y | np.column_stack([x, y])
A | np.block([[A, A], [A, A]])
x | np.split(x, [2, 5])
A | np.array_split(A, 3)
A | np.hsplit(A, [2])
A | np.unstack(A)
x y | np.append(x, y)
x | np.insert(x, 2, 5.0)
x | np.insert(x, [1, 3], [7.0, 8.0])
A | np.insert(A, 1, 9.0, axis=1)
x | np.delete(x, [1, 3])
A | np.delete(A, 1, axis=0)
# neighbours
x | np.diff(x)
A | np.diff(A, 2, axis=0)
x | np.diff(x, prepend=0)
x | np.ediff1d(x)
x | np.gradient(x)
A | np.gradient(A)
A | np.gradient(A, 0.5, axis=1, edge_order=2)
x | np.trapezoid(x, dx=0.1)
x y | np.trapezoid(x, np.sort(y))
x y | np.convolve(x, y)
x y | np.convolve(x, y[:3], "same")
x y | np.convolve(x, y[:4], "same")
x y | np.convolve(x, y[:3], "valid")
x y | np.correlate(x, y[:3])
x y | np.correlate(x[:3], y, "full")
n m | np.convolve(n, m)
z x | np.convolve(z, x)
# selection
A | A[A[:, 0] > 0].mean(axis=0)
A | A[A[:, 0] > 0].sum(axis=1).mean()
A | np.std(A[A[:, 0] > 0], 0)
A | A[A > 0].max()
x y | np.c_[x, y, np.ones(len(x))]
x | np.asanyarray(x) + np.asfortranarray(x)
A x | A[np.triu_indices(3, 1)] + np.tril_indices(3)[0][np.argmin(x[:3])]
x A | (np.r_[x, 1.0, x], np.r_[0:3, x], np.c_[A, A])
x | np.hanning(5)[np.argmin(x[:4])]
x | np.fft.rfftfreq(6, 0.5)[np.argmax(x[:3])]
x | x[:, None, ...]
x y b | np.where(b, x, y)
x | np.select([x < 0, x > 1], [x * 2, x * 3], -1)
x | np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t * 2])
n x y | np.choose(n % 2, [x, y])
x | np.take(x, [0, -1, 3])
A | np.take(A, [1, 2], axis=1)
x n | np.take(x, n, mode="wrap")
x n | np.take(x, n, mode="clip")
A | np.take_along_axis(A, np.argsort(A, axis=1), axis=1)
A | np.diagonal(A, 1)
C | np.diagonal(C, 0, 0, 2)
A | np.trace(A)
A | np.diag(A)
x | np.diag(x, 1)
x | np.diagflat(x)
A | np.tril(A)
A | np.triu(A, 1)
x | np.vander(x, 3)
x y | np.meshgrid(x, y)
x y | np.meshgrid(x, y, indexing="ij", sparse=True)
A | np.apply_along_axis(lambda r: r.sum() * r, 1, A)
A | np.zeros_like(A)
A | np.full_like(A, 3, dtype=np.int32)
x | np.linspace(x[0], x[1], 5)
x | np.geomspace(x[0] ** 2 + 1, 100.0, 4)
x | x[2]
x | x[-1]
A | A[1:3, ::-2]
A | A[..., 1]
A | A[None, :, 1]
A | A[[0, 2]]
A | A[[0, 2], [1, 3]]
A | A[:, [0, 2]]
A | A[[0, 2], 1:3]
C | C[:, [0, 2], 1]
C | C[0, :, [1, 2]]
C | C[[0, 1], :, [1, 2]]
A n | A[n % 4]
A n m | A[n % 4, m % 5]
A | A[np.array([True, False, True, False])]
C n | C[:, n % 3]
A n | A[n[:3, None] % 4, n[None, :3] % 5]
x b | x[b].sum()
x b | x[b].mean()
x b | np.max(x[b])
x b | np.std(x[b] * 2)
A M | A[M].min()
# assignment
A | i = np.argmax(A, axis=1, keepdims=True); np.put_along_axis(A, i, 99, axis=1); A
x | np.put(x, [0, 2], [7, 8]); x
x b | np.putmask(x, b, 0.0); x
x y b | np.copyto(x, y, where=b); x
S | np.fill_diagonal(S, 3.0); S
x b | x[b] = 0; x
x b | x[b] *= 2; x
x y b | x[b] = y[b]; x
x b | x[~b] += 1.5; x
x | x[x > 0] = -1; x
x | x[1:3] = [5, 6]; x
A | A[1] = 7; A
A | A[:, 1] *= 2; A
A | A[[0, 2], [1, 3]] = 9; A
A | A[[0, 2], [1, 3]] += np.array([1.0, 2.0]); A
A x | A[1:3, ::2] = x[:3]; A
A n | A[n % 4] = 0; A
x n | np.add.at(x, n % 7, 1.0); x
x n | np.maximum.at(x, n % 7, 1.0); x
x n | np.subtract.at(x, n % 7, 1.0); x
x y n | np.multiply.at(x, n % 7, y); np.divide.at(x, [0, 0], 3); x
z n | np.maximum.at(z, n % 7, z[::-1]); np.minimum.at(z, [1, 1, -1], 0.5j); z
b n | np.logical_xor.at(b, n % 7, True); np.add.at(b, [0], b[1]); b
n | np.bitwise_or.at(n, n % 7, 16); np.add.at(n, [0, 0], 1.7); n
A n | np.negative.at(A, (slice(None), n % 3)); np.power.at(A, [0, 0], 2); A
x n | x[n % 7] += 0.5; x
x | y = x[2:5]; y[0] = 100; (x, y)
x | y = x.reshape(7, 1); y[3] = 100; x
A | B = A.T; B[0] = 1; A[1] = 2; (A, B)
A | B = A[1]; B += 1; A *= 2; (A, B)
x | s = x[0]; s += 1; (x, s)
x | y = x.copy(); y[0] = 5; (x, y)
x | y = x; y += 1; x
x | y = np.empty_like(x); y[0] = x[0]; y[1:] = x[1:] - x[:-1]; y
x y | x[:] = y; x
x | np.negative(x, out=x); x
x y b | np.add(x, y, out=x, where=b); x
x | x.sort(); x
x | x.fill(3); x
z | z.real = 1; z
z | z.imag[2:] = 0; z
A | A.flat[3] = 1.0; A
A | q, r = np.linalg.qr(A); q @ r
# products
x y | np.dot(x, y)
A B | np.dot(A, B)
A B | A @ B
C A | np.dot(A.T, C.reshape(4, 6))
x y | np.vdot(x, y)
x y | np.inner(x, y)
x y | np.outer(x, y)
C A | np.tensordot(C, A, axes=([2], [0]))
A B | np.einsum("ij,jk->ik", A, B)
A | np.einsum("ij->ji", A)
S | np.einsum("ii", S)
S | np.einsum("ii->i", S)
x y A | np.einsum("i,j->ij", x, y)
C | np.einsum("...i,...i->...", C, C)
A B x | np.einsum("ij,jk,i->k", A, B, x[:4])
A | np.kron(A, np.eye(2))
x y | np.cross(x[:3], y[:3])
# linear algebra
S | np.linalg.inv(S)
S x | np.linalg.solve(S, x[:4])
S A | np.linalg.solve(S, A)
S | np.linalg.det(S)
S | np.linalg.slogdet(S)
P | np.linalg.cholesky(P)
P | np.linalg.eigh(P)[0]
P | np.linalg.eigvalsh(P)
A | np.linalg.svd(A, compute_uv=False)
A | np.abs(np.linalg.svd(A, full_matrices=False)[0])
A | np.abs(np.linalg.qr(A)[1])
A x | np.linalg.lstsq(A.T, x[:5], rcond=None)
A | np.linalg.pinv(A)
x | np.linalg.norm(x)
A | np.linalg.norm(A)
A | np.linalg.norm(A, axis=1)
A | np.linalg.norm(A, 2)
A | np.linalg.norm(A, "nuc")
A | np.linalg.norm(A, np.inf)
x | np.linalg.norm(x, 3)
S | np.linalg.matrix_power(S, 3)
S | np.linalg.matrix_power(S, -2)
A | np.linalg.matrix_rank(A)
S | np.linalg.cond(S)
A B S | np.linalg.multi_dot([S, A, B])
# Fourier transforms
x | np.fft.fft(x)
z | np.fft.fft(z, n=10)
z | np.fft.ifft(z)
x | np.fft.rfft(x)
z | np.fft.irfft(z[:4], 7)
A | np.fft.fft2(A)
A | np.fft.ifft2(A)
C | np.fft.fftn(C)
C | np.fft.rfftn(C)
C | np.fft.irfftn(np.fft.rfftn(C), C.shape, (0, 1, 2))
A | np.fft.fft(A, axis=0, norm="ortho")
z | np.fft.hfft(z[:4])
x | np.fft.ihfft(x)
A | np.fft.fftshift(A)
A | np.fft.ifftshift(A, axes=1)
# new arrays, of which a part is assigned
x | y = np.zeros(7); y[0] = x[1]; y
x | y = np.zeros((7, 7)); np.fill_diagonal(y, x); y
x | y = np.empty(7); y[:] = x; y[2] += 1; y
x | y = np.zeros(3); y[1] = 5; y + x[:3]
x | y = np.arange(7.0); z = y[2:5]; y[3] = x[0]; z[0] = 9.0; (y, z)
x | y = np.eye(3); y[0] *= 2; y @ x[:3]
x | s = 0.0; i = np.arange(3); sum((x[j] for j in i))
x | k = int(np.array(3)); x[:k]
x | np.array([x[0], x[1] * 2, 3.0])
x | np.asarray([[x[0], 1], [2, x[1]]])
x | np.array(x)
x | w = np.linspace(0, 1, 7); w * x
x | w = np.ones(3); w += 1; w
x | y = np.zeros(7); np.add.at(y, [0, 1, 1], x[:3]); y
x | y = np.zeros(7, dtype=int); y[0] = 1; np.where(y, x, 0)
# statistics and polynomials
x y | np.average(x, weights=y * y)
A | np.average(A, axis=0, weights=[1, 2, 3, 4])
A | np.cov(A)
A | np.corrcoef(A)
x y | np.cov(x, y)
n | np.bincount(n, minlength=12)
n x | np.bincount(n, weights=x, minlength=10)
x | np.histogram(x, bins=4)
x | np.histogram(x, bins=[-1, 0, 1], density=True)
x y | np.histogram2d(x, y, bins=3)
x y | np.interp(x, np.sort(y), y)
x | np.interp(x, [-1.0, 0, 1], [1.0, 2, 3], left=0)
x y | np.polyval(x, y)
x y | np.polyfit(x, y, 2)
x y | np.polyadd(x, y[:3])
x y | np.polymul(x, y)
x | np.polyder(x)
x | np.polyint(x)
A | np.compress([True, False, True, True], A, axis=0)
A | (np.extract(np.eye(4, 5) > 0, A), A.compress([False, True], axis=1))
x b | np.place(x, b, [1, 2, 3]); np.putmask(x, x > 0, np.array([7.0, 8.0])); x
A | [np.linspace(each, 2, 4) for each in (A.astype(np.float32), A)]
n | np.geomspace(n + np.int8(1), 300, 5)
x | [np.logspace(each, 1, 4) for each in (x.astype(np.float32), x)]
x n | (np.vander(n), np.vander(x.astype(np.float32), 3))
x | np.histogram(x.astype(np.float32), 4)
x | np.histogram(x, [-1, 0, 0.5, 2])
x | np.histogram(x.astype(np.float32), 3, (0, 1))
x n | [np.quantile(each, 0.4, method=how) for each in (x, n) for how in ("lower", "nearest", "linear")]
x | (np.percentile(x.astype(np.float32), [10, 50]), np.percentile(x.astype(np.float32), 50))
A | (np.nanstd(A.astype(np.float32), axis=1), np.nanvar(A.astype(np.complex64)))
M | (M @ M.T, np.dot(M, M[0]), np.vdot(M, M), np.einsum("ij,ij->i", M, M), np.vecdot(M, M), np.inner(M, M))
u | (np.vdot(u, u), np.vecmat(u, u[:, None]), np.r_[u, 1])
b | (np.isclose(b, b), np.allclose(b, ~b), b.conj(), np.correlate(b, b, "full"))
z | [np.linalg.eigvalsh(np.outer(z, z.conj())), np.linalg.eigh(np.outer(z, z.conj()))[0]]
# methods and operators
A | A.strides
A | A.to_device("cpu")
A | A.__array_namespace__().sum(A)
n m | n >> 2
x | x.round()
A | [r.sum() for r in A]
x | x.mean()
x | x.astype(np.float32)
x | x.astype(int)
z | z.conj()
z | z.real + z.imag
A | A.mT
x | x.nbytes
A | A.cumsum(axis=1)
A | A.clip(0, 1)
A | A.take([0, 1])
A | A.diagonal()
A | A.ravel()
A | A.flatten()
x | -x
x | +x
x | abs(x)
x | x ** 2
n | n ** 2
n | n // 3
n | n % 3
n | ~n
b x | ~b & (x > 0)
x | divmod(x, 0.7)
x | round(x.sum(), 2)
x | x.any()
b | b.all()
A | len(A)
A | sum(A)
A | min(A.shape)
"""


def _cases() -> Iterator[Any]:
    for line in EXPRESSIONS.strip().splitlines():
        if not line.startswith("#"):
            names, _, body = line.partition(" | ")
            yield pytest.param(names.split(), body, id=body)


def _function(names: list[str], body: str) -> Any:
    *changes, result = body.split("; ")
    lines = [f"def function({', '.join(names)}):", *changes, f"return {result}"]
    scope: dict[str, Any] = {"np": np}
    exec("\n    ".join(lines), scope)
    return scope["function"]


@pytest.mark.parametrize(("names", "body"), list(_cases()))
def test_expressions_are_those_of_numpy(names: list[str], body: str) -> None:
    function = _function(names, body)
    with np.errstate(divide="ignore", over="ignore"):
        expected = function(*[ARRAYS[name].copy() for name in names])
    given = [ARRAYS[name].copy() for name in names]
    found = xl.jit(function)(*given)
    for name, array in zip(names, given, strict=True):
        np.testing.assert_array_equal(array, ARRAYS[name], err_msg="an argument has changed")
    _assert_same(found, expected)


def _assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other)
        return
    one, other = np.asarray(found), np.asarray(expected)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    np.testing.assert_allclose(one, other, rtol=1e-11 if other.dtype.itemsize >= 8 else 1e-5, atol=1e-13)


def test_the_median_of_nothing_is_no_number() -> None:
    found = xl.jit(lambda x: (np.nanmedian(x[:0]), np.nanmedian(x[:, :0], axis=1, keepdims=True)))(ARRAYS["A"])
    _assert_same(found, (np.float64(np.nan), np.full((4, 1), np.nan)))


def test_attributes_of_memory_are_refused_by_name() -> None:
    with pytest.raises(AttributeError, match=r"has no \.flags: it has no memory while the function is traced"):
        xl.jit(lambda x: x.flags)(ARRAYS["x"])
    assert xl.jit(lambda x: 2 * hasattr(x, "ctypes"))(ARRAYS["x"]) == 0


def test_what_a_mask_chooses_needs_a_known_mask() -> None:
    with pytest.raises(TracingError, match=r"numpy.compress .* how many elements are chosen is not known"):
        xl.jit(lambda x: x.compress(x > 0))(ARRAYS["x"])
