"""Random choices and distributions: their frequencies, bounds and seeds, alone and compiled."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import xlalite as tf
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.hlo.errors import ShapeError

F = np.float32
SEED = np.int32([3, 5])


def fits(values: np.ndarray, distribution: Any) -> bool:
    return bool(scipy.stats.kstest(np.ravel(values), distribution.cdf).pvalue > 1e-3)


@pytest.mark.parametrize("stateless", [False, True])
def test_classes_come_as_often_as_their_probabilities_say(stateless: bool, run: Any) -> None:
    probabilities = np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        logits = F(np.log(probabilities))
    without, within = tf.multinomial(logits, 4000, seed=1), tf.random.stateless_multinomial(logits, 4000, SEED)
    drawn = within if stateless else without
    found = run(drawn)
    assert found.shape == (2, 4000)
    assert found.dtype == np.int64
    frequencies = np.stack([np.bincount(row, minlength=3) / 4000 for row in found])
    np.testing.assert_allclose(frequencies, probabilities, atol=0.04)
    assert not frequencies[1, 1]


def test_stateless_numbers_follow_from_the_seed(run: Any) -> None:
    seed = tf.placeholder(tf.int32, [2])
    drawn = [
        tf.random.stateless_uniform([3000], seed),
        tf.random.stateless_normal([3000], seed),
        tf.random.stateless_truncated_normal([3000], seed),
        tf.random.stateless_uniform([3000], seed, -2, 5, tf.int32),
    ]
    first, again, other = run(drawn, {seed: SEED}), run.compiled(drawn, {seed: SEED}), run(drawn, {seed: SEED + 1})
    for one, two, three in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert (one != three).mean() > 0.5
    assert fits(first[0], scipy.stats.uniform)
    assert fits(first[1], scipy.stats.norm)
    assert fits(first[2], scipy.stats.truncnorm(-2, 2))
    assert set(first[3]) == set(range(-2, 5))


def test_gamma_numbers_grow_with_their_parameter_while_their_probability_stays(run: Any) -> None:
    alpha = tf.constant([0.5, 4.0, 30.0], tf.float64)
    drawn = tf.random_gamma([2, 5], alpha, dtype=tf.float64, seed=1)
    weights = np.arange(30.0).reshape(2, 5, 3) + 1
    numbers, gradient = run([drawn, tf.gradients(drawn * weights, alpha)[0]])
    a = run(alpha)
    place = scipy.special.gammainc(a, numbers)
    slopes = (scipy.special.gammaincinv(a + 1e-5, place) - scipy.special.gammaincinv(a - 1e-5, place)) / 2e-5
    np.testing.assert_allclose(gradient, (slopes * weights).sum((0, 1)), rtol=1e-6)


def test_gamma_and_poisson_numbers(run: Any) -> None:
    gamma = run(tf.random_gamma([2000], F([0.5, 4.0]), beta=2.0, seed=1))
    assert gamma.shape == (2000, 2)
    assert fits(gamma[:, 0], scipy.stats.gamma(0.5, scale=0.5))
    assert fits(gamma[:, 1], scipy.stats.gamma(4.0, scale=0.5))
    poisson = run(tf.random_poisson(F([1.5]), [5000], seed=1))
    assert abs(poisson.mean() - 1.5) < 0.1
    assert abs(poisson.var() - 1.5) < 0.15


@pytest.mark.parametrize("limits", [(-1.0, 0.5), (3.0, 4.0), (-9.0, -8.0), (-np.inf, 0.0)])
def test_truncated_normal_numbers_between_bounds(limits: tuple[float, float], run: Any) -> None:
    low, high = limits
    drawn = tf.parameterized_truncated_normal([2, 3000], [1.0, -1.0], 2.0, low, high, tf.float64, seed=1)
    values = run(drawn)
    for row, mean in zip(values, (1.0, -1.0), strict=True):
        assert low <= row.min()
        assert row.max() <= high
        assert fits(row, scipy.stats.truncnorm((low - mean) / 2, (high - mean) / 2, mean, 2))


def test_crops_lie_inside(run: Any) -> None:
    x = np.arange(20).reshape(4, 5)
    for _ in range(5):
        found = run(tf.random_crop(x, [2, 5]))
        row = found[0, 0] // 5
        np.testing.assert_array_equal(found, x[row : row + 2])
    assert tf.random_crop(x, [2, 3]).shape.as_list() == [2, 3]


def test_what_has_no_distribution_is_refused(run: Any) -> None:
    with pytest.raises(ShapeError, match="needs maxval"):
        tf.random.stateless_uniform([2], SEED, dtype=tf.int32)
    with pytest.raises(ShapeError, match=r"expected \(2,\)"):
        tf.random.stateless_uniform([2], [1, 2, 3])
    with pytest.raises(InvalidArgumentError, match="alpha must not be negative"):
        run(tf.random_gamma([1], -1.0))
