"""Derivatives of functions of arrays, beside differences and beside what is known in closed form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlalite as xl

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=5)
A = RANDOM.normal(size=(5, 5))


def by_differences(function: Callable[..., Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    result = np.zeros(x.shape)
    for position in np.ndindex(*x.shape):
        moved = np.zeros(x.shape)
        moved[position] = step
        result[position] = (function(x + moved) - function(x - moved)) / (2 * step)
    return result


def shifted(x: Any) -> Any:
    y = np.zeros(5)
    y[1:] = x[:-1] ** 2
    y[0] = x[4]
    y *= x
    y[x > 0] += 1.5 * x[x > 0]
    return y.sum()


def exchanged(x: Any) -> Any:
    places = np.argsort(x)[np.array([0, 0, 1, 1])]
    y = x * 2
    y[places] = x[places] * np.arange(4.0)
    largest = np.argmax(x)
    y[[1, largest, largest]] = y[[largest, 1, largest]]
    return np.sum(y * np.arange(5.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(np.sin(x) ** 2 * x),
        lambda x: np.sum(np.sort(x) * np.arange(5.0)),
        lambda x: np.sum(x[np.array([0, 0, 2])] ** 2),
        lambda x: np.sum(np.cumsum(x) ** 2) + np.prod(x),
        lambda x: np.max(x) + np.median(x) + np.linalg.norm(x),
        lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2),
        lambda x: np.sum(np.interp(x, [-2.0, 0.0, 2.0], [1.0, 3.0, 2.0])),
        lambda x: np.sum(np.hypot(x, 2.0) + np.logaddexp(x, 1.0) + np.cbrt(x + 9)),
        lambda x: np.sum(np.where(x > 0, x**3, np.exp(x))),
        lambda x: np.var(np.pad(x, 2, mode="reflect")) + np.sum(np.diff(x) ** 2),
        lambda x: np.sum(np.convolve(x, np.array([1.0, 2.0, -1.0])) ** 2),
        lambda x: np.sum(np.einsum("i,j->ij", x, x) * A),
        shifted,
        exchanged,
    ],
)
def test_gradients_by_vectors_are_those_of_differences(function):
    np.testing.assert_allclose(xl.grad(function)(X), by_differences(function, X), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: np.sum(np.linalg.solve(a, X)),
        lambda a: np.sum(np.linalg.inv(a) ** 2),
        lambda a: np.linalg.slogdet(a)[1],
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False)),
        lambda a: np.sum(np.linalg.cholesky(a @ a.T + np.eye(5))),
        lambda a: np.sum(np.linalg.eigvalsh(a + a.T) ** 2),
        lambda a: np.sum(np.tril(a) @ np.triu(a)) + np.trace(a @ a),
    ],
)
def test_gradients_by_matrices_are_those_of_differences(function):
    np.testing.assert_allclose(xl.grad(function)(A), by_differences(function, A), rtol=1e-5, atol=1e-5)


def test_the_value_comes_along_and_a_second_result_too():
    value, gradient = xl.value_and_grad(lambda x: np.sum(x**2))(X)
    np.testing.assert_allclose(value, np.sum(X**2))
    np.testing.assert_allclose(gradient, 2 * X)
    gradient, twice = xl.grad(lambda x: (np.sum(x**2), 2 * x), has_aux=True)(X)
    np.testing.assert_allclose(gradient, twice)


def test_arguments_may_be_several_and_nested():
    by_x, by_y = xl.grad(lambda x, y: np.sum(x * y), argnums=(0, 1))(X, 3 * X)
    np.testing.assert_allclose((by_x, by_y), (3 * X, X))
    found = xl.grad(lambda p: np.sum(p["w"] @ p["b"][0]))({"w": A, "b": [X]})
    np.testing.assert_allclose(found["w"], np.broadcast_to(X, (5, 5)))
    np.testing.assert_allclose(found["b"][0], A.sum(0))


def test_what_an_argument_does_not_reach_has_the_gradient_zero():
    np.testing.assert_array_equal(xl.grad(lambda x, y: np.sum(x), argnums=1)(X, A), np.zeros((5, 5)))


def test_gradients_have_gradients():
    third = xl.grad(lambda x: np.sum(xl.grad(lambda y: np.sum(y**4))(x) ** 2))
    np.testing.assert_allclose(third(X), 96 * X**5)


def test_jacobians_and_hessians():
    tanh = np.tanh(A @ X)
    np.testing.assert_allclose(xl.jacobian(lambda x: np.tanh(A @ x))(X), (1 - tanh**2)[:, None] * A)
    np.testing.assert_allclose(xl.hessian(lambda x: x @ (A @ x))(X), A + A.T)
    np.testing.assert_allclose(xl.jacobian(lambda x, a: a @ x, 1)(X, A)[2, 2], X)


def test_directions_forward_and_backward():
    value, pushed = xl.jvp(lambda x, a: a @ np.sin(x), (X, A), (np.ones(5), np.eye(5)))
    np.testing.assert_allclose(value, A @ np.sin(X))
    np.testing.assert_allclose(pushed, A @ np.cos(X) + np.sin(X))

    @xl.jit
    def pulled(x, seed):
        _, pullback = xl.vjp(lambda y: {"sin": np.sin(y), "cos": np.cos(y)}, x)
        return pullback({"sin": seed, "cos": 2 * seed})

    np.testing.assert_allclose(pulled(X, A[0])[0], A[0] * np.cos(X) - 2 * A[0] * np.sin(X))


def test_gradients_by_complex_numbers_point_uphill():
    z = X + 2j
    np.testing.assert_allclose(xl.grad(lambda w: np.sum(np.abs(w) ** 2))(z), 2 * z)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (lambda x: x * 2, (X,), "the gradient is that of one number with fractions"),
        (lambda x: np.sum(x), (np.arange(3),), "argument 0 is int64, which has no derivative"),
        (lambda: 0.0, (), "there is no argument 0 among 0"),
    ],
)
def test_what_has_no_gradient_is_refused(function, arguments, message):
    with pytest.raises(xl.XlaliteError, match=message):
        xl.grad(function)(*arguments)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sum(np.maximum.accumulate(x) * np.arange(5.0)) + np.sum(np.minimum.accumulate(x) ** 2),
        lambda x: np.sum(x**3 + (x + 9) ** 0.5 + x**7),
        lambda x: np.sum(np.lib.stride_tricks.sliding_window_view(x, 3).max(-1) ** 2),
    ],
)
def test_gradients_of_running_extremes_powers_and_windows(function):
    np.testing.assert_allclose(xl.grad(function)(X), by_differences(function, X), rtol=1e-6, atol=1e-7)


def test_arrays_that_a_compiled_function_is_given_take_traced_indices() -> None:
    taken = xl.jit(lambda table, x: np.sum(table[np.argsort(x)] * x))
    table = np.arange(5.0)
    np.testing.assert_allclose(xl.grad(lambda x: taken(table, x))(X), table[np.argsort(X)])


LOOPS = {
    "scan": lambda w: np.sum(xl.scan(lambda carry, a: (np.tanh(carry * a) + a, carry * 2), w[0], w)[1]),
    "fori_loop": lambda w: np.sum(xl.fori_loop(0, 3, lambda i, s: np.sin(s) * w[0] + i, w)),
    "map": lambda w: np.sum(xl.map(lambda a: a**3 * w[1], w)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_of_loops_have_gradients(name):
    def plain(w):
        return xl.jit(xl.grad(LOOPS[name]))(w)

    found = xl.hessian(LOOPS[name])(X)
    expected = [(plain(X + 1e-6 * e) - plain(X - 1e-6 * e)) / 2e-6 for e in np.eye(len(X))]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_a_third_derivative_of_a_loop():
    def power(x):
        return xl.fori_loop(0, 4, lambda i, s: s * x, x)

    np.testing.assert_allclose(xl.grad(xl.grad(xl.grad(power)))(1.5), 60 * 1.5**2)


def test_pullbacks_outside_of_traced_functions():
    value, pullback = xl.vjp(lambda x, y: np.sin(x) * y, X, 2 * X)
    np.testing.assert_allclose(value, np.sin(X) * 2 * X)
    for cotangent in (np.ones_like(X), X):
        for one, other in zip(pullback(cotangent), (np.cos(X) * 2 * X, np.sin(X)), strict=True):
            np.testing.assert_allclose(one, other * cotangent)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_gradients_of_loops_whose_limit_an_argument_gives(count: int) -> None:
    def grown(x: Any, n: Any) -> Any:
        numbers = np.arange(3.0)
        return xl.fori_loop(0, n, lambda i, y: (np.sin(y[0]) + y[1], y[1] * 1.01, y[2] + i), (x, numbers, 0))[0].sum()

    x = np.array([0.3, -1.0, 2.0])
    expected = xl.grad(lambda x: grown(x, count))(x)
    np.testing.assert_allclose(xl.grad(grown)(x, count), expected, rtol=1e-12)


def test_gradients_of_loops_that_values_end() -> None:
    @xl.jit(control_flow=True)
    def root(a: Any) -> Any:
        x, rounds = a, 0
        while np.abs(x * x - a) > 1e-12 * a:
            y = x
            while y > 1.5 * a:
                y = y * 0.5
            x = 0.5 * (y + a / y)
            rounds += 1
        return x

    np.testing.assert_allclose(xl.grad(root)(2.0), 0.5 / np.sqrt(2))
    np.testing.assert_allclose(xl.grad(xl.grad(root))(2.0), -0.25 * 2**-1.5)
    many = np.array([2, 3, 5], np.float32)
    np.testing.assert_allclose(xl.vmap(xl.grad(root))(many.astype(float)), 0.5 / np.sqrt(many))
    found = xl.jacobian(lambda x: xl.while_loop(lambda y: (y**2).sum() < 100, lambda y: y * y + x, x))(many[:2] / 2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.diag([13, 31]))


def test_gradients_where_elements_are_zero_or_left_out() -> None:
    x = np.array([0.0, -1.0, 4.0])
    np.testing.assert_allclose(xl.grad(lambda x: (np.vander(x, 4) * [4, 3, 2, 1]).sum())(x), 12 * x**2 + 6 * x + 2)

    def roots(x: Any) -> Any:
        return np.sqrt(x, out=np.zeros_like(x), where=x > 0).sum() + np.arccosh(x, out=x.copy(), where=x > 1).sum()

    np.testing.assert_allclose(xl.grad(roots)(x), [1, 1, 0.25 + 1 / np.sqrt(15)])


@pytest.mark.parametrize(("function", "base"), [(np.log2, 2), (np.log10, 10)])
def test_logarithms_have_a_derivative_at_powers_of_their_base_too(function, base):
    x = np.array([1.0, 2.0, 3.0, 0.3, 1000.0, 1e-300, 1e300, 2.0**0.5])
    wanted = 1 / (x * np.log(base))
    np.testing.assert_allclose(xl.grad(lambda x: function(x).sum())(x), wanted, rtol=1e-14)
    np.testing.assert_allclose(xl.jvp(function, (x,), (np.full(8, 2.0),))[1], 2 * wanted, rtol=1e-14)
    second = xl.grad(lambda x: xl.grad(lambda x: function(x).sum())(x).sum())(x[:5])
    np.testing.assert_allclose(second, -wanted[:5] / x[:5], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_logarithm_to_the_base_2_is_right_everywhere(dtype):
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    powers = np.ldexp(np.ones(1, dtype), np.arange(info.minexp - info.nmant, info.maxexp)).astype(dtype)
    ends = [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        -1,
        -info.smallest_subnormal,
        info.max,
        info.tiny,
        3 * info.smallest_subnormal,
    ]
    near_1 = 1 + rng.normal(size=999) * 1e-2
    many = np.exp(rng.uniform(np.log(float(info.tiny)), np.log(float(info.max)), 999))
    x = np.concatenate([np.array(ends, dtype), near_1.astype(dtype), many.astype(dtype)])
    with np.errstate(all="ignore"):
        wanted = np.log2(x.astype(np.longdouble)).astype(dtype)
    np.testing.assert_allclose(xl.jit(np.log2)(x), wanted, rtol=2 * float(info.eps))
    np.testing.assert_array_equal(xl.jit(np.log2)(powers), np.arange(info.minexp - info.nmant, info.maxexp))


@pytest.mark.parametrize("ufunc", [np.fmod, np.hypot, np.logaddexp, np.logaddexp2])
def test_derivatives_of_two_operands_are_those_of_differences(ufunc):
    """Where the operands are equal, too: the functions are smooth there, but for fmod, which is left out."""
    x = np.array([0.3, 2.0, 100.0, -0.5, -3.0, 1.7, 1003.0])
    y = np.array([0.7, 2.0, 0.3, 2.0, -3.0, -0.6, 1.0]) + (0.25 if ufunc is np.fmod else 0)
    for place, found in enumerate(xl.grad(lambda x, y: ufunc(x, y).sum(), argnums=(0, 1))(x, y)):
        steps = [np.float64(place == i) * 1e-6 for i in range(2)]
        wanted = (ufunc(x + steps[0], y + steps[1]) - ufunc(x - steps[0], y - steps[1])) / 2e-6
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_the_mantissa_has_the_derivative_of_a_quotient():
    x = np.array([0.5, 1.0, 3.0, -100.0, 1e-310, 1.7e308, 0.0, np.inf])
    mantissa, exponent = xl.jit(np.frexp)(x)
    np.testing.assert_array_equal(mantissa, np.frexp(x)[0])
    np.testing.assert_array_equal(exponent, np.frexp(x)[1])
    found = xl.grad(lambda x: np.frexp(x)[0].sum())(x)
    np.testing.assert_array_equal(found[:4], np.ldexp(1.0, -exponent[:4]))
