"""Loops, sorting, Fourier transforms, scatter, random numbers and rare element types as jax lowers them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pytestmark = pytest.mark.oracle


def newton(x):
    return lax.while_loop(
        lambda state: (state[1] < 20) & (jnp.abs(state[0] ** 2 - x).max() > 1e-4),
        lambda state: (0.5 * (state[0] + x / state[0]), state[1] + 1),
        (x, 0),
    )


def collatz(n):
    def longer(state):
        n, steps = state
        return jnp.where(n == 1, n, jnp.where(n % 2 == 0, n // 2, 3 * n + 1)), steps + (n != 1)

    return lax.while_loop(lambda state: (state[0] != 1).any(), longer, (n, jnp.zeros_like(n)))


def reversed_scan(x):
    return lax.scan(lambda carry, row: (carry * 0.5 + row, carry.sum()), jnp.zeros(x.shape[1]), x, reverse=True)


def branches(x):
    low = lax.cond(x.sum() > 0, lambda a: a + 1, lambda a: a * 2, x)
    return lax.switch((x[0, 0] * 2).astype(jnp.int32), [lambda a: a, jnp.negative, lambda a: a * a], low)


def segments(x):
    ids = jnp.array([0, 2, 2, 1, 0, 5])
    return jax.ops.segment_sum(x, ids, 6), jax.ops.segment_max(x, ids, 6), jnp.bincount(ids, length=7)


def updates(x):
    i = jnp.array([3, 0, 3, 9])
    return (
        x.at[i].add(1.0),
        x.at[i].set(2.0, mode="drop"),
        x.at[i].mul(3.0),
        x.at[i].min(0.0),
        x.at[:, 1].max(0.5),
        x.at[i, 0].get(mode="fill", fill_value=-7.0),
        x.at[1:3, ::2].set(0.0),
    )


def slices(x, i):
    taken = lax.dynamic_slice(x, (i, i + 1), (2, 3))
    return lax.dynamic_update_slice(x, -taken, (i + 3, 0)), lax.dynamic_index_in_dim(x, i, 1), taken


def rearranged(x):
    return (
        jnp.roll(x, 2, 1),
        jnp.flip(x, 0),
        jnp.pad(x, ((1, 2), (0, 1)), mode="reflect"),
        x[::2, 1:].T.reshape(-1),
        jnp.repeat(x, 2, 0),
        jnp.tile(x, (1, 2)),
        jnp.kron(x[:2, :2], x[1:3, 1:3]),
        jnp.stack([x, -x], -1),
    )


def sorted_ways(x):
    return jnp.sort(x, axis=0), jnp.argsort(x, descending=True), lax.sort((x, -x, x * 2), num_keys=2), jnp.median(x)


def searched(x):
    row = jnp.sort(x.reshape(-1))
    return jnp.searchsorted(row, x), jnp.searchsorted(row, x, side="right", method="sort"), jnp.digitize(x, row[::3])


def found(x):
    kept = jnp.nonzero(x > 0, size=9, fill_value=-1)
    return kept, jnp.unique(jnp.round(x).astype(int), size=6), jnp.argmax(x, 1), jnp.argmin(x), jnp.histogram(x, 4)[0]


def running(x):
    return jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 0), lax.cumlogsumexp(x, 1, reverse=True)


def associative(x):
    return lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x + 1))


def transformed(x):
    return jnp.fft.fft(x + 1j * x[::-1]), jnp.fft.ifft2(x), jnp.fft.rfft(x), jnp.fft.irfft(x[:, :4] + 0j, 6)


def random_numbers(seed):
    key = jax.random.key(seed)
    keys = jax.random.split(key, 6)
    return (
        jax.random.uniform(keys[0], (7,)),
        jax.random.normal(keys[1], (2, 3)),
        jax.random.permutation(keys[2], 10),
        jax.random.randint(keys[3], (5,), -4, 9),
        jax.random.bernoulli(keys[4], 0.3, (8,)),
        jax.random.categorical(keys[5], jnp.arange(4.0), shape=(6,)),
        jax.random.bits(keys[0], (3,), jnp.uint8),
    )


def rejection_sampled(seed):
    key = jax.random.key(seed)
    return jax.random.gamma(key, 2.5, (4,)), jax.random.truncated_normal(key, -1, 1, (5,)), jax.random.poisson(key, 3.0)


def generated_bits(state):
    return [lax.rng_bit_generator(state, (5,), algorithm=a) for a in lax.RandomAlgorithm.__members__.values() if a]


def special_functions(x):
    return (
        jax.scipy.special.erfinv(jnp.tanh(x)),
        jax.scipy.special.gammaln(jnp.abs(x) + 0.1),
        jnp.arctan2(x, x[::-1]),
        jax.scipy.special.digamma(jnp.abs(x) + 0.5),
        jax.scipy.special.betainc(1.5, 2.0, jax.nn.sigmoid(x)),
        jax.scipy.special.i0e(x),
        jnp.sinc(x),
        jnp.logaddexp(x, 0.5),
        jnp.hypot(x, 2.0),
        jnp.cbrt(x),
        jnp.log1p(x * x),
    )


def rounded(x):
    return (
        jnp.floor(x),
        jnp.ceil(x),
        jnp.round(x),
        jnp.trunc(x),
        jnp.sign(x),
        jnp.mod(x, 0.7),
        jnp.fmod(x, 0.7),
        jnp.floor_divide(x, 0.3),
        jnp.nextafter(x, 1.0),
        jnp.frexp(x),
        jnp.nan_to_num(x / (x - x)),
        jnp.signbit(x),
    )


def integers(a, b):
    return (
        a + b,
        a * b,
        a // jnp.where(b == 0, 1, b),
        a % jnp.where(b == 0, 1, b),
        a & b,
        a ^ ~b,
        a << (b & 7),
        a >> 1,
        lax.population_count(a),
        lax.clz(a),
        jnp.gcd(a, b),
        a.astype(jnp.int8),
        a.astype(jnp.uint8),
        a > b,
        jnp.abs(a),
        lax.shift_right_logical(a, b & 7),
        a.sum(),
        a.prod(),
        (a > 0).all(),
        lax.integer_pow(a, 3),
    )


def complex_numbers(x):
    z = x + 1j * x[::-1]
    return z * z, z / (1 + z * z.conj()), jnp.exp(z), jnp.log(z), jnp.sqrt(z), jnp.abs(z), jnp.angle(z), z @ z.T, z == z


def predicates(x):
    p = x > 0
    return (
        p ^ (x < 1),
        jnp.where(p, x, 0),
        p.any(0),
        p.all(),
        p.sum(),
        p.astype(jnp.bfloat16),
        jnp.select([p, ~p], [x, 1]),
    )


def small_floats(x):
    y = x.astype(jnp.float8_e4m3fn), x.astype(jnp.float8_e5m2), x.astype(jnp.float16)
    return [a.astype(jnp.float32) for a in y], lax.reduce_precision(x, 5, 4), lax.bitcast_convert_type(y[2], jnp.int16)


def windows(x):
    return (
        lax.reduce_window(x, jnp.inf, lax.min, (2, 3), (1, 2), "SAME"),
        jax.grad(lambda a: (lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum())(x),
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), ((1, 0), (0, 2)), window_dilation=(2, 1)),
    )


def reductions(x):
    return (
        x.sum(0),
        x.prod(1),
        x.max(),
        x.min(1),
        x.mean(),
        x.std(0),
        jnp.linalg.norm(x),
        jax.nn.logsumexp(x, 1),
        jnp.ptp(x),
    )


def contractions(x):
    y = jnp.stack([x, x + 1])
    return (
        jnp.einsum("bij,bkj->bik", y, y),
        jnp.tensordot(y, y, ((0, 2), (0, 2))),
        jnp.einsum("bij->ji", y),
        jnp.outer(x, x[0]),
    )


def interpolated(x):
    points = jnp.linspace(-1, 1, 6)
    return (
        jnp.interp(x, points, points**2),
        jnp.convolve(x[0], jnp.array([1.0, 2, 1])),
        jnp.diff(x, 2),
        jnp.trapezoid(x),
    )


def barriers(x):
    return lax.optimization_barrier((x, x + 1)), jax.named_call(lambda a: a * 2, name="twice")(x)


def resized(x):
    return jax.image.resize(x, (8, 3), "bilinear"), jax.image.resize(x, (3, 9), "nearest")


def map_and_grad_of_while(x):
    return lax.map(lambda row: jnp.sin(row).sum(), x), jax.jvp(lambda a: newton(a)[0], (jnp.abs(x) + 1,), (x,))


FLOATS = np.random.default_rng(7).standard_normal((6, 6)).astype(np.float32)
INTS = np.random.default_rng(7).integers(-100, 100, (2, 12)).astype(np.int32)
OPERATIONS: dict[str, tuple[Callable[..., object], tuple[np.ndarray, ...], float]] = {
    "newton": (newton, (np.abs(FLOATS) + 1,), 1e-5),
    "collatz": (collatz, (np.arange(1, 20, dtype=np.int32),), 0),
    "fori_loop": (lambda x: lax.fori_loop(0, 5, lambda i, s: s @ x * 0.3 + i, x), (FLOATS,), 1e-5),
    "reversed_scan": (reversed_scan, (FLOATS,), 1e-5),
    "branches": (branches, (FLOATS,), 1e-6),
    "segments": (segments, (FLOATS,), 1e-5),
    "updates": (updates, (FLOATS,), 1e-6),
    "gradient_of_gather": (jax.grad(lambda x: (x[jnp.array([1, 1, 4])] ** 3).sum()), (FLOATS,), 1e-5),
    "slices": (slices, (FLOATS, np.int32(2)), 0),
    "rearranged": (rearranged, (FLOATS,), 1e-6),
    "sorted_ways": (sorted_ways, (FLOATS,), 1e-6),
    "searched": (searched, (FLOATS,), 0),
    "found": (found, (FLOATS,), 0),
    "top_k": (lambda x: (lax.top_k(x, 3), lax.approx_max_k(x, 2)), (FLOATS,), 0),
    "running": (running, (FLOATS,), 1e-5),
    "associative": (associative, (FLOATS,), 1e-5),
    "transformed": (transformed, (FLOATS,), 1e-5),
    "random_numbers": (random_numbers, (np.int32(42),), 1e-5),
    "rejection_sampled": (rejection_sampled, (np.int32(42),), 1e-4),
    "generated_bits": (generated_bits, (np.arange(4, dtype=np.uint32),), 0),
    "special_functions": (special_functions, (FLOATS,), 1e-5),
    "rounded": (rounded, (FLOATS,), 1e-5),
    "integers": (integers, (INTS[0], INTS[1]), 0),
    "complex_numbers": (complex_numbers, (FLOATS,), 1e-5),
    "predicates": (predicates, (FLOATS,), 0),
    "small_floats": (small_floats, (FLOATS,), 0),
    "windows": (windows, (FLOATS,), 1e-5),
    "reductions": (reductions, (FLOATS,), 1e-5),
    "contractions": (contractions, (FLOATS,), 1e-5),
    "interpolated": (interpolated, (FLOATS,), 1e-5),
    "barriers": (barriers, (FLOATS,), 0),
    "resized": (resized, (FLOATS,), 1e-5),
    "map_and_grad_of_while": (map_and_grad_of_while, (FLOATS,), 1e-5),
    "empty": (lambda x: (x[:0].sum(0), jnp.concatenate([x[:0], x]), x[:, :0] @ x[:0]), (FLOATS,), 0),
    "scalars": (lambda x: (x * 2, x > 1, jnp.zeros(()), jnp.iinfo(jnp.int32).max), (np.float32(1.5),), 0),
}


LONG = {"rejection_sampled", "special_functions", "searched", "found"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in OPERATIONS]
)
def test_operation_gives_what_jax_computes(name, jax_program):
    function, arguments, tolerance = OPERATIONS[name]
    program = jax_program(function, arguments, tolerance)
    for text in (program.lowered, program.optimized):
        program.check_text(text)
        program.check_evaluator(text)
    program.check_cpu()
