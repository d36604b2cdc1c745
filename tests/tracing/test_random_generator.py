"""Random numbers in functions that are traced, and Python functions that programs call."""

import numpy as np
import pytest

import xlalite as xl

DRAWS = {
    "random": (lambda rng, n: rng.random(n), 0.5, 1 / 12),
    "uniform": (lambda rng, n: rng.uniform(-1, 3, n), 1.0, 16 / 12),
    "normal": (lambda rng, n: rng.normal(2, 3, n), 2.0, 9.0),
    "standard_normal": (lambda rng, n: rng.standard_normal(n), 0.0, 1.0),
    "exponential": (lambda rng, n: rng.exponential(2.0, n), 2.0, 4.0),
    "integers": (lambda rng, n: rng.integers(-3, 4, n), 0.0, 4.0),
    "choice": (lambda rng, n: rng.choice(np.array([1.0, 3.0]), n), 2.0, 1.0),
}


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_numbers_follow_from_the_seed_and_have_their_distribution(name):
    draw, mean, variance = DRAWS[name]
    function = xl.jit(lambda seed: draw(xl.default_rng(seed), 40_000))
    found = function(7)
    np.testing.assert_array_equal(found, function(7))
    assert np.any(found != function(8))
    assert found.mean() == pytest.approx(mean, abs=0.06 * np.sqrt(variance))
    assert found.var() == pytest.approx(variance, rel=0.06)


def test_calls_and_steps_of_loops_draw_different_numbers():
    @xl.jit
    def drawn(seed):
        rng = xl.default_rng(seed)
        return np.stack([rng.random(), rng.random()]), xl.map(lambda i: rng.at(i).random(), np.arange(5))

    twice, steps = drawn(1)
    assert len({*twice, *steps}) == 7
    many = xl.vmap(lambda seed: xl.default_rng(seed).random(3))(np.arange(4))
    assert len({*many.ravel()}) == 12


def test_orders():
    order = xl.jit(lambda seed: xl.default_rng(seed).permutation(50))(3)
    assert sorted(order) == list(range(50))
    assert list(order) != list(range(50))
    chosen = xl.jit(lambda x: xl.default_rng(0).choice(x, (2, 3), replace=False))(np.arange(10.0))
    assert chosen.shape == (2, 3)
    assert len({*chosen.ravel()}) == 6
    assert np.all(xl.jit(lambda s: xl.default_rng(s).integers(5, size=1000))(1) < 5)


def test_programs_call_python():
    def halves(x, n):
        assert type(x) is np.ndarray
        return {"half": x / n, "count": np.int64(x.size)}

    like = {"half": np.zeros(4), "count": np.int64(0)}
    found = xl.jit(lambda x: xl.pure_callback(halves, like, x + 1, 2.0))(np.arange(4.0))
    np.testing.assert_array_equal(found["half"], (np.arange(4.0) + 1) / 2)
    assert found["count"] == 4
    each = xl.vmap(lambda x: xl.pure_callback(lambda y: np.sort(y)[::-1], x, x) * 2)(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(each, [[4, 2, 0], [10, 8, 6]])
    with pytest.raises(LookupError, match="has no gradient; custom_gradient gives it one"):
        xl.grad(lambda x: xl.pure_callback(np.sum, np.float64(0), x))(np.ones(3))
