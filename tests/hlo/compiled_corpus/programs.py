"""The functions of the corpus: small jax programs, each of a kind that XLA's CPU compiler treats in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Program:
    """A function and how to call it.

    Attributes:
        function: What jax compiles.
        make_arguments: The arguments out of a generator.
        x64: Whether jax's wide types are on.
    """

    function: Callable[..., Any]
    make_arguments: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    x64: bool = False


PROGRAMS: dict[str, Program] = {}


def program(*shapes: tuple[int, ...], dtype: Any = np.float32, x64: bool = False, low: int = -9, high: int = 9) -> Any:
    """Registers a function of arrays of random numbers, one for each shape."""

    def make(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return tuple(_numbers(rng, shape, np.dtype(dtype), low, high) for shape in shapes)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function, make, x64)
        return function

    return register


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], low: int, high: int) -> np.ndarray:
    if dtype.kind in "iub":
        return rng.integers(low, high, shape).astype(dtype)
    numbers = rng.standard_normal(shape)
    if dtype.kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape)
    # Few digits, so that the files are short.
    return np.asarray(np.round(numbers, 2)).astype(dtype)


# Models.


def layer_norm(x, scale, offset):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset


def block(x, scale, offset, qkv, out, up, down):
    """A block of a GPT: causal attention with two heads, then a multi-layer perceptron."""
    q, k, v = jnp.split((layer_norm(x, scale, offset) @ qkv).reshape(*x.shape[:2], 2, -1), 3, -1)
    scores = jnp.einsum("bthe,bshe->bhts", q, k) / np.float32(np.sqrt(q.shape[-1]))
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    x = x + jnp.einsum("bhts,bshe->bthe", jax.nn.softmax(scores), v).reshape(x.shape) @ out
    return x + jax.nn.gelu(layer_norm(x, scale, offset) @ up) @ down


_BLOCK = ((2, 3, 4), (4,), (4,), (4, 12), (4, 4), (4, 8), (8, 4))


@program(*_BLOCK)
def gpt_block(*arguments):
    return block(*arguments)


@program(*_BLOCK)
def gpt_block_gradient(*arguments):
    return jax.grad(lambda *a: (block(*a) ** 2).mean(), (0, 1, 2, 3, 4, 5, 6))(*arguments)


def cell(carry, row, w, u, b):
    h, c = carry
    i, f, g, o = jnp.split(row @ w + h @ u + b, 4, axis=-1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return (jax.nn.sigmoid(o) * jnp.tanh(c), c)


def lstm(x, w, u, b):
    def step(carry, row):
        carry = cell(carry, row, w, u, b)
        return carry, carry[0]

    zeros = jnp.zeros((x.shape[1], u.shape[0]), x.dtype)
    return lax.scan(step, (zeros, zeros), x)


_LSTM = ((4, 2, 3), (3, 8), (2, 8), (8,))


@program(*_LSTM)
def lstm_scan(*arguments):
    return lstm(*arguments)


@program(*_LSTM)
def lstm_gradient(*arguments):
    return jax.grad(lambda *a: (lstm(*a)[1] ** 2).sum(), (0, 1, 2, 3))(*arguments)


@program((5, 4), (4, 6), (6,), (6, 3), (5, 3))
def perceptron_training_step(x, w1, b1, w2, y):
    def loss(w1, b1, w2):
        return -(jax.nn.log_softmax(jax.nn.relu(x @ w1 + b1) @ w2) * y).sum(-1).mean()

    gradients = jax.grad(loss, (0, 1, 2))(w1, b1, w2)
    return [w - 0.1 * g for w, g in zip((w1, b1, w2), gradients, strict=True)]


def convolve(x, k, **options):
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), **options)


@program((2, 5, 5, 3), (3, 3, 3, 4))
def convolution(x, k):
    return jax.nn.relu(convolve(x, k))


@program((2, 5, 5, 2), (3, 3, 2, 3))
def convolution_gradient(x, k):
    return jax.grad(lambda x, k: (convolve(x, k) ** 2).sum(), (0, 1))(x, k)


@program((1, 5, 6, 4), (3, 3, 1, 4), (3, 3, 2, 4))
def grouped_convolutions(x, depthwise, grouped):
    return (
        convolve(x, depthwise, feature_group_count=4),
        convolve(x, grouped, feature_group_count=2, rhs_dilation=(2, 1)),
        lax.conv_transpose(x, grouped.reshape(3, 3, 4, 2), (2, 2), "SAME"),
    )


@program((1, 2, 7), (3, 2, 3))
def convolution_in_one_dimension(x, k):
    return lax.conv_general_dilated(x, k, (2,), [(1, 2)], lhs_dilation=(2,))


@program((3, 4, 2), (2,), (2,))
def batch_norm_gradient(x, scale, offset):
    def normalize(x, scale, offset):
        mean, variance = x.mean((0, 1)), x.var((0, 1))
        return ((x - mean) * lax.rsqrt(variance + 1e-3) * scale + offset) ** 3

    return normalize(x, scale, offset), jax.grad(lambda *a: normalize(*a).sum(), (0, 1, 2))(x, scale, offset)


@program((1, 6, 6, 2))
def pooling_and_its_gradient(x):
    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    average = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    return pool(x), average, jax.grad(lambda x: (pool(x) ** 2).sum())(x)


# Control flow.


@program((4,))
def newton_iteration(x):
    x = jnp.abs(x) + 0.5
    return lax.while_loop(
        lambda state: (state[1] < 20) & (jnp.abs(state[0] ** 2 - x).max() > 1e-4),
        lambda state: (0.5 * (state[0] + x / state[0]), state[1] + 1),
        (x, 0),
    )


@program((6,), dtype=np.int32, low=1, high=30)
def collatz(n):
    def longer(state):
        n, steps = state
        return jnp.where(n == 1, n, jnp.where(n % 2 == 0, n // 2, 3 * n + 1)), steps + (n != 1)

    return lax.while_loop(lambda state: (state[0] != 1).any(), longer, (n, jnp.zeros_like(n)))


@program((3, 4))
def branches(x):
    low = lax.cond(x.sum() > 0, lambda a: a + 1, lambda a: jnp.sort(a) * 2, x)
    return lax.switch((x[0, 0] * 2).astype(jnp.int32), [lambda a: a, jnp.negative, lambda a: a * a], low)


@program((5, 3))
def nested_loops(x):
    def row(number, state):
        return lax.fori_loop(0, number, lambda column, inner: inner.at[number, column % 3].multiply(0.5), state)

    return lax.fori_loop(0, 5, row, x)


@program((4, 3))
def stacked_scans(x):
    forward = lax.scan(lambda carry, row: (carry * 0.9 + row, jnp.tanh(carry)), jnp.zeros(3), x)
    return forward, lax.scan(lambda carry, row: (carry + row, carry.sum()), jnp.zeros(3), x, reverse=True)


@jax.custom_jvp
def softplus(x):
    return jnp.log1p(jnp.exp(x))


softplus.defjvps(lambda tangent, answer, x: tangent * jax.nn.sigmoid(x))


@program((6,))
def custom_derivative(x):
    return softplus(x), jax.vmap(jax.grad(softplus))(x), jax.jvp(softplus, (x,), (jnp.ones_like(x),))


# Moving and finding.


@program((4, 6))
def sorts(x):
    return jnp.sort(x, 0), jnp.argsort(x, descending=True), lax.sort((x, -x), num_keys=2), jnp.median(x)


@program((3, 8))
def largest_elements(x):
    return lax.top_k(x, 3), lax.top_k((x * 10).astype(jnp.int32), 2), jnp.argmax(x, 1), jnp.argmin(x)


@program((5, 3))
def scatters(x):
    i = jnp.array([3, 0, 3, 9])
    return (
        x.at[i].add(1.0),
        x.at[i].set(2.0, mode="drop"),
        x.at[i].mul(3.0),
        x.at[i, 1].min(0.0),
        x.at[1:3, ::2].set(0.0),
        jax.ops.segment_sum(x, jnp.array([0, 2, 2, 1, 5]), 6),
    )


@program((5, 3))
def gathers(x):
    i = jnp.array([3, -1, 0])
    taken = x[i], x[i, :2], x.at[i + 2, 0].get(mode="fill", fill_value=-7.0), jnp.take_along_axis(x, x.argsort(0), 0)
    return taken, jax.grad(lambda x: (x[i] ** 2).sum())(x)


@program((6, 7))
def dynamic_slices(x):
    i = (x[0, 0] * 3).astype(jnp.int32)
    taken = lax.dynamic_slice(x, (i, i + 1), (2, 3))
    return lax.dynamic_update_slice(x, -taken, (i + 3, 0)), lax.dynamic_index_in_dim(x, i, 1), taken


@program((3, 4))
def rearrangements(x):
    return (
        jnp.roll(x, 2, 1),
        jnp.flip(x, 0),
        jnp.pad(x, ((1, 2), (0, 1)), mode="reflect"),
        x[::2, 1:].T.reshape(-1),
        jnp.kron(x[:2, :2], x[1:3, 1:3]),
        jnp.stack([x, -x], -1),
        jnp.concatenate([x, x * 2, x[:, :1]], 1),
    )


@program((2, 3, 4), (2, 4, 5), (3, 3))
def einsums(a, b, c):
    return (
        jnp.einsum("bij,bjk->bik", a, b),
        jnp.einsum("bij,bij->b", a, a),
        jnp.einsum("ii->i", c),
        jnp.einsum("bij,kj,jl->bkl", a, a[0], b[0]),
    )


@program((4, 3))
def running_totals(x):
    scanned = lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1))
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0), lax.cumlogsumexp(x, 1, reverse=True), scanned


@program((4, 3))
def statistics(x):
    return x.mean(0), x.var(0), x.std(1), jnp.ptp(x), jsp.special.logsumexp(x, 1), jnp.any(x > 1, 0), jnp.corrcoef(x)


# Numbers.


@program((4, 6))
def fourier(x):
    return jnp.fft.fft(x + 1j * x[::-1]), jnp.fft.ifft2(x), jnp.fft.rfft(x), jnp.fft.irfft(x[:, :4] + 0j, 6)


@program((), dtype=np.int32, low=0)
def random_numbers(seed):
    keys = jax.random.split(jax.random.key(seed), 2)
    return jax.random.normal(keys[0], (2, 3)), jax.random.randint(keys[1], (5,), -4, 9)


@program((), dtype=np.int32, low=0)
def rejection_sampling(seed):
    return jax.random.poisson(jax.random.key(seed), 3.0, (3,))


@program((4,), dtype=np.uint32, low=0)
def generated_bits(state):
    return [lax.rng_bit_generator(state, (5,), algorithm=a) for a in lax.RandomAlgorithm.__members__.values()]


@program((3, 4), dtype=jnp.bfloat16)
def narrow_floats(x):
    return x @ x.T, jnp.tanh(x), x.sum(0), x.astype(jnp.float8_e4m3fn).astype(jnp.float16), jax.nn.softmax(x, 0)


@program((6,))
def special_functions(x):
    return (
        jsp.special.erfinv(jnp.tanh(x)),
        jsp.special.gammaln(jnp.abs(x) + 0.1),
        jnp.arctan2(x, x[::-1]),
        jsp.special.digamma(jnp.abs(x) + 0.5),
        jsp.special.i0e(x),
        jnp.logaddexp(x, 0.5),
        jnp.cbrt(x),
        jnp.sinh(x),
        jnp.expm1(x),
    )


@program((5,), x64=True, dtype=np.float64)
def double_precision(x):
    return jnp.exp(x), jnp.log1p(x * x), jnp.sin(x * 100), lax.erf(x), jnp.power(jnp.abs(x), x), x.astype(jnp.int64)


@program((6,))
def rounding(x):
    return (
        jnp.floor(x),
        jnp.round(x),
        jnp.sign(x),
        jnp.mod(x, 0.7),
        jnp.floor_divide(x, 0.3),
        jnp.nextafter(x, 1.0),
        jnp.frexp(x),
        jnp.nan_to_num(x / (x - x)),
        lax.reduce_precision(x, 5, 4),
    )


@program((5,), (5,), dtype=np.int32, low=-1000, high=1000)
def integer_arithmetic(a, b):
    return (
        a * b,
        a // jnp.where(b == 0, 1, b),
        a % jnp.where(b == 0, 1, b),
        a ^ ~b,
        a << (b & 7),
        lax.population_count(a),
        lax.clz(a),
        jnp.gcd(a, b),
        a.astype(jnp.int8),
        lax.shift_right_logical(a, b & 7),
        a.prod(),
    )


@program((3, 3))
def complex_numbers(x):
    z = x + 1j * x[::-1]
    return z * z, z / (1 + z * z.conj()), jnp.exp(z), jnp.log(z), jnp.sqrt(z), jnp.abs(z), z @ z.T, jnp.tan(z)


@program((3, 8), (8, 4), dtype=np.int8, low=-128, high=128)
def quantized_product(a, b):
    wide = lax.dot(a, b, preferred_element_type=jnp.int32)
    return wide, jnp.clip(jnp.round(wide * 0.01), -128, 127).astype(jnp.int8)


@program((4, 8), (8, 3))
def products_by_shape(a, b):
    return a @ b, a[0] @ b, a @ b[:, 0], jnp.outer(a[0], b[:, 1]), a.T @ a, jnp.vdot(a, a), (a @ b + 1.0).max(0)


@program((70,), (60,))
def large_product(a, b):
    """Large enough for threads."""
    inner = jnp.arange(90, dtype=jnp.float32)
    return (jnp.sin(a[:, None] + inner) @ jnp.cos(inner[:, None] * b)).sum(0)


@program((90,), (70,))
def parallel_loop(a, b):
    """Large enough for threads."""
    return (jnp.tanh(a[:, None]) * b + jnp.exp(-a[:, None] * a[:70])).sum(1)


# Linear algebra.


@program((4, 4))
def cholesky_and_solve(x):
    matrix = x @ x.T + 4 * jnp.eye(4)
    return jnp.linalg.cholesky(matrix), jnp.linalg.solve(matrix, x), jnp.linalg.slogdet(x), jnp.linalg.inv(matrix)


@program((2, 4, 3))
def orthogonal_factors(x):
    q, r = jnp.linalg.qr(x)
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return q @ r, r, s, (u * s[:, None]) @ v, jnp.linalg.matrix_rank(x[0]), jnp.linalg.pinv(x[0])


@program((4, 4))
def eigenvalues(x):
    values, vectors = jnp.linalg.eigh(x + x.T)
    return values, (vectors * values) @ vectors.T, jsp.linalg.lu(x), jsp.linalg.solve_triangular(x + 4 * jnp.eye(4), x)
