"""Single operations and small compositions as jax lowers them: read in three spellings, evaluated to jax's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(4, 6)).astype(np.float32)
VECTOR = RNG.normal(size=7).astype(np.float32)
POSITIVE = np.array([0.1, 0.5, 0.99, 1.0, 1.5, 2.0, 7.5], np.float32)
UNIT = np.array([-0.999, -0.5, -0.0, 0.1, 0.5, 0.9, 0.99999], np.float32)
SPECIAL = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -1.5], np.float32)
WHOLE = np.array([5, -3, 0, 2**31 - 1, -(2**31), 7, -8], np.int32)
UNSIGNED = np.array([5, 3, 0, 2**32 - 1, 2**31, 7, 8], np.uint32)
COMPLEX = (RNG.normal(size=5) + 1j * RNG.normal(size=5)).astype(np.complex64)
IMAGES = RNG.normal(size=(2, 8, 8, 3)).astype(np.float32)
KERNEL = RNG.normal(size=(3, 3, 3, 4)).astype(np.float32)
INDEX = np.array([1, -1, 3, 0, 9], np.int32)


def constants() -> Any:
    return (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array([True, False, True]),
        np.array([[1 + 2j, 3 - 1j]], np.complex64),
        np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4e38], np.float32),
        jnp.array([1.5, np.inf, np.nan, -2.0], jnp.bfloat16),
        np.array([-128, 127], np.int8),
        np.array([0, 255], np.uint8),
        np.zeros((0, 3), np.float32),
        np.full((2, 3), -7, np.int16),
        np.array(True),
    )


def large_constants(x: Any) -> Any:
    numbers = np.random.default_rng(1).normal(size=(20, 30)).astype(np.float32)
    flags = np.random.default_rng(2).integers(0, 2, 300).astype(bool)
    waves = np.exp(1j * np.arange(200)).astype(np.complex64)
    return numbers + x, flags, waves, jnp.asarray(numbers, jnp.bfloat16), np.arange(500, dtype=np.int32)


def unary_floats(x: Any) -> Any:
    return [
        f(x)
        for f in (
            *(jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sin, jnp.cos, jnp.tan, jnp.tanh, jnp.sqrt, lax.rsqrt),
            *(jnp.cbrt, jnp.floor, jnp.ceil, jnp.round, lax.round, jnp.abs, jnp.sign, lax.neg, lax.logistic),
            *(jnp.isfinite, jnp.isnan, jnp.isinf, jnp.signbit, jnp.square, jnp.reciprocal),
        )
    ]


def hyperbolic(x: Any) -> Any:
    return [f(x) for f in (jnp.sinh, jnp.cosh, jnp.arcsinh, jnp.arctanh, jnp.arcsin, jnp.arccos, jnp.arctan)]


def binary_floats(x: Any, y: Any) -> Any:
    return x + y, x - y, x * y, x / y, jnp.maximum(x, y), jnp.minimum(x, y), x**y, jnp.arctan2(x, y), lax.rem(x, y)


def comparisons(x: Any, y: Any) -> Any:
    return x < y, x <= y, x > y, x >= y, x == y, x != y, jnp.where(x < y, x, y), jnp.logical_not(x > 0)


def integers(x: Any) -> Any:
    shift = jnp.array([0, 1, 31, 32, 3, 4, 5], x.dtype)
    return (
        *(x + x, x * 3, x - 1, x & 7, x | 8, x ^ x, ~x, lax.population_count(x), lax.clz(x)),
        *(lax.shift_left(x, shift), lax.shift_right_logical(x, shift), lax.shift_right_arithmetic(x, shift)),
        *(lax.div(x, shift + 1), lax.rem(x, shift + 1), jnp.abs(x), x // 3, x % 5),
    )


def conversions(x: Any) -> Any:
    kinds = (jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int8, jnp.uint8, jnp.int32, jnp.bool_)
    return (*(x.astype(kind) for kind in kinds), lax.bitcast_convert_type(x, jnp.int16), lax.reduce_precision(x, 5, 4))


def complex_numbers(z: Any) -> Any:
    return z * z, z / (z + 1), jnp.abs(z), jnp.conj(z), z.real, z.imag, jnp.exp(z), lax.complex(z.real, z.real), z == z


def complex_order(z: Any) -> Any:
    level = lax.complex(jnp.sign(z.real), z.imag)
    return lax.clamp(z[0], z, z[1]), lax.clamp(level[::-1], level, level + 1), lax.clamp(z, z * jnp.nan, z)


def shapes(x: Any) -> Any:
    return (
        *(x.T, x.reshape(3, 8), x[::-1], x[1:3, ::2], jnp.pad(x, ((1, 2), (0, 1))), jnp.concatenate([x, x], 1)),
        *(lax.pad(x, 0.5, ((1, -1, 2), (-1, 0, 0))), jnp.stack([x, x]), x[:, None] * x[None], jnp.arange(6) + x),
        *(jnp.broadcast_to(x[:, :1], (4, 6)), jnp.tile(x, (2, 1)), jnp.roll(x, 2, 1), jnp.flip(x), jnp.eye(3)),
    )


def dynamic(x: Any, i: Any) -> Any:
    return (
        lax.dynamic_slice(x, (i, 1), (2, 3)),
        lax.dynamic_update_slice(x, x[:1, :2], (i, i)),
        lax.dynamic_index_in_dim(x, i, 1),
    )


def gathers(x: Any, i: Any) -> Any:
    return x[i], x[:, i % 6], jnp.take(x, i, axis=0, mode="clip"), jnp.take_along_axis(x, i[:4, None] % 6, 1)


def scatters(x: Any, i: Any) -> Any:
    values = jnp.arange(5.0)[:, None] * jnp.ones(6)
    return (
        *(x.at[i].set(values), x.at[i].add(values), x.at[i].max(values), x.at[i].mul(2.0, mode="drop")),
        *(jax.ops.segment_sum(values, i % 3, 3), jnp.bincount(i % 4, length=4), jnp.zeros(4).at[i[0]].set(1.0)),
    )


def reductions(x: Any) -> Any:
    return (
        *(
            x.sum(),
            x.sum(0),
            x.prod(1),
            x.max(1),
            x.min(),
            x.mean((0, 1)),
            x.var(0),
            x.std(1),
            (x > 0).all(),
            (x > 1).any(),
        ),
        *(jnp.argmax(x, 1), jnp.argmin(x, 0), jax.nn.logsumexp(x, 1), jnp.linalg.norm(x), jnp.median(x, 1)),
    )


def cumulative(x: Any) -> Any:
    return (
        *(
            jnp.cumsum(x, 1),
            jnp.cumprod(x, 0),
            lax.cummax(x, 1),
            lax.cummin(x, 0, reverse=True),
            lax.cumlogsumexp(x, 1),
        ),
        lax.associative_scan(jnp.add, x),
    )


def sorting(x: Any) -> Any:
    order = jnp.argsort(x, 1)
    return jnp.sort(x, 0), order, lax.top_k(x, 3), lax.sort((x, order), num_keys=1), jnp.unique(x, size=5), jnp.sort(-x)


def nearest(x: Any) -> Any:
    return (
        lax.approx_max_k(x, 2),
        lax.approx_min_k(x, 2, reduction_dimension=0),
        jax.grad(lambda x: lax.approx_max_k(x, 2)[0].sum())(x),
    )


def windows(x: Any) -> Any:
    pool = (1, 2, 2, 1)
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, pool, pool, "VALID"),
        lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 1, 1), "SAME", window_dilation=(1, 2, 1, 1)),
        jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, pool, pool, "SAME").sum())(x),
    )


def convolutions(x: Any, k: Any) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return (
        lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=layout),
        lax.conv_general_dilated(x, k, (1, 1), ((2, 1), (0, 3)), (2, 1), (1, 2), dimension_numbers=layout),
        lax.conv_general_dilated(x, k[:, :, :1].repeat(3, 3)[..., :6], (1, 1), "SAME", (1, 1), (1, 1), layout, 3),
        lax.conv_transpose(x, k, (2, 2), "SAME"),
    )


def dots(x: Any, y: Any) -> Any:
    half = x.astype(jnp.bfloat16)
    return (
        *(x @ x.T, jnp.einsum("ij,kj->ik", x, x), jnp.dot(x[0], x[1]), jnp.outer(x[0], x[1]), jnp.tensordot(x, x, 2)),
        lax.dot_general(half, half, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32),
        lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,))), precision="highest"),
        (y[:4] @ y[:4]),
    )


def transforms(x: Any) -> Any:
    spectrum = jnp.fft.rfft(x)
    return spectrum, jnp.fft.irfft(spectrum, 6), jnp.fft.fft2(x), jnp.fft.ifft(x + 1j * x)


def special(x: Any) -> Any:
    s = jax.scipy.special
    return (
        *(s.erf(x), s.erfc(x), s.gammaln(x), s.digamma(x), s.polygamma(1, x), s.zeta(x + 1.5, x), s.i1e(x), s.i0e(x)),
        *(s.i1(x), s.betaln(x, x), s.gammainc(x, x + 1), s.xlogy(x, x), s.ndtri(x / 8), s.expit(x), s.logit(x / 8)),
    )


def inverse_erf(x: Any) -> Any:
    return lax.erf_inv(x), lax.erf_inv(x.astype(jnp.float16)), jnp.nextafter(x, -x), jnp.nextafter(x, jnp.inf)


def loops(x: Any) -> Any:
    bound = x.sum()  # used inside of the loop from outside
    return (
        lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i + bound, x),
        lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * 0.9 + x), (0, x)),
        lax.scan(lambda c, y: (c + y, c * y), x[0], x),
        lax.map(lambda row: row.sum() + bound, x),
    )


def branches(i: Any, x: Any) -> Any:
    y = x * 2
    return (
        lax.cond(x[0] > 0, lambda: y + 1, lambda: x - y),
        lax.switch(i, [lambda v: v, lambda v: v * y, lambda v: jnp.zeros_like(v)], x),
        lax.cond(i > 0, lambda: (x, i), lambda: (y, i + 1)),
    )


def custom_gradient(x: Any) -> Any:
    @jax.custom_jvp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), tangents[0] * 2))
    return jax.grad(lambda x: f(x).sum())(x), jax.jacobian(jnp.cumsum)(x), jax.hessian(lambda x: (x**3).sum())(x)


def barriers(x: Any) -> Any:
    a, b = lax.optimization_barrier((x, x + 1))
    return a * b, jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)))(x), lax.stop_gradient(x)


def random_bits(key: Any) -> Any:
    keys = jax.random.split(key, 3)
    return (
        *(keys, jax.random.bits(key, (5,)), jax.random.uniform(keys[0], (4, 3)), jax.random.normal(keys[1], (7,))),
        *(
            jax.random.randint(keys[2], (6,), -5, 100),
            jax.random.permutation(key, 8),
            jax.random.bernoulli(key, 0.3, (9,)),
        ),
        *(
            jax.random.exponential(key, (3,)),
            jax.random.gumbel(key, (3,)),
            jax.random.categorical(key, jnp.ones((2, 5))),
        ),
    )


def triangular(x: Any) -> Any:
    square = x @ x.T + 4 * jnp.eye(4)
    return lax.linalg.triangular_solve(square, x, left_side=True, lower=True), jnp.tril(square), jnp.trace(square)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
    "constants": (constants, (), 0),
    "large_constants": (large_constants, (np.float32(1),), 1e-7),
    "unary_floats": (unary_floats, (VECTOR,), 1e-6),
    "unary_special_values": (unary_floats, (SPECIAL,), 1e-6),
    "hyperbolic": (hyperbolic, (UNIT,), 1e-6),
    "binary_floats": (binary_floats, (VECTOR, VECTOR[::-1].copy()), 1e-6),
    "comparisons": (comparisons, (SPECIAL, VECTOR), 0),
    "integers": (integers, (WHOLE,), 0),
    "unsigned_integers": (integers, (UNSIGNED,), 0),
    "conversions": (conversions, (MATRIX.astype(np.float16),), 0),
    "complex_numbers": (complex_numbers, (COMPLEX,), 1e-6),
    "complex_order": (complex_order, (COMPLEX,), 0),
    "shapes": (shapes, (MATRIX,), 0),
    "dynamic": (dynamic, (MATRIX, np.int32(2)), 0),
    "gathers": (gathers, (MATRIX, INDEX), 0),
    "scatters": (scatters, (MATRIX, INDEX), 1e-6),
    "reductions": (reductions, (MATRIX,), 1e-6),
    "cumulative": (cumulative, (MATRIX,), 2e-6),
    "sorting": (sorting, (MATRIX,), 0),
    "nearest": (nearest, (MATRIX,), 0),
    "windows": (windows, (IMAGES,), 1e-6),
    "convolutions": (convolutions, (IMAGES, KERNEL), 1e-5),
    "dots": (dots, (MATRIX, np.arange(28, dtype=np.int32).reshape(7, 4)), 1e-6),
    "transforms": (transforms, (MATRIX,), 1e-6),
    "special": (special, (POSITIVE,), 4e-6),
    "inverse_erf": (inverse_erf, (UNIT,), 1e-3),
    "loops": (loops, (MATRIX,), 1e-6),
    "branches": (branches, (np.int32(1), VECTOR), 0),
    "custom_gradient": (custom_gradient, (VECTOR,), 1e-6),
    "barriers": (barriers, (VECTOR,), 1e-6),
    "random": (random_bits, (np.array([7, 11], np.uint32),), 2e-6),
    "triangular": (triangular, (MATRIX,), 1e-5),
}


@pytest.mark.parametrize("name", CASES)
def test_operations_evaluate_to_the_values_of_jax(name: str, stablehlo_program: Callable[..., Any]) -> None:
    function, arguments, tolerance = CASES[name]
    with np.errstate(all="ignore"):
        stablehlo_program(function, arguments, tolerance).check()
