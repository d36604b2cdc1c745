"""Gradients of the everyday functions, beside differences of what NumPy gives and beside those of jax."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tracing.everyday import finance_and_statistics, learning, numerics, signals_and_images, simulation  # noqa: F401
from tracing.everyday.case import RECIPES, Recipe

import xlalite as xl
from xlalite.framework.structure import flatten

SHARP = {"bisection", "golden_section", "logistic_map", "pairwise_distances"}
"""Where steps jump, where small differences grow, and at roots of zero, differences are no derivatives."""

NOT_FOR_JAX = {"bisection", "value_at_risk"}
"""Decisions of Python, and masks."""

EAGER = {"adaptive_step", "fixed_point", "golden_section", "lorenz", "newton_until_it_stays"}
"""jax has no gradients of loops that values end, and takes half a minute for `lorenz` as one program."""


def arguments(name: str) -> tuple[Any, ...]:
    """Where a derivative is asked for: neither at roots of zero nor where two ways have the same length."""
    given, random = RECIPES[name].arguments(), np.random.default_rng(3)
    if name == "adam_step":
        return *given[:2], random.random(given[2].shape)
    if name in ("bellman_ford", "floyd_warshall"):
        return (given[0] + random.random(given[0].shape),)
    return given


def is_smooth(value: Any) -> bool:
    return (value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype).kind == "f"


def places(recipe: Recipe) -> tuple[int, ...]:
    """The arguments that are numbers with fractions; none if nothing such is computed."""
    if recipe.refusal:
        return ()
    with np.errstate(all="ignore"):
        results = flatten(recipe.function(*recipe.arguments()))[0]
    static = np.atleast_1d((recipe.options or {}).get("static_argnums", ()))
    found = tuple(i for i, each in enumerate(recipe.arguments()) if i not in static and is_smooth(each))
    return found if any(map(is_smooth, results)) else ()


PLACES = {name: found for name, recipe in sorted(RECIPES.items()) if (found := places(recipe))}


def total(function: Callable[..., Any], given: Sequence[Any], values: Sequence[Any], at: Sequence[int]) -> Any:
    """A sum of the results for other values of some arguments, each element with its own weight."""
    arguments = list(given)
    for i, value in zip(at, values, strict=True):
        arguments[i] = value
    found = 0.0
    for leaf in filter(is_smooth, flatten(function(*arguments))[0]):
        weights = np.cos(1 + np.arange(float(np.prod(np.shape(leaf))))).reshape(np.shape(leaf))
        found = found + (leaf * weights).sum()
    return found


def gradients(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Where, and which."""
    recipe, at = RECIPES[name], PLACES[name]
    compiled, given = xl.jit(recipe.function, **(recipe.options or {})), arguments(name)
    start = [np.asarray(given[i], np.float64) for i in at]
    return start, xl.grad(lambda values: total(compiled, given, values, at))(start)


@pytest.mark.parametrize("name", [name for name in PLACES if name not in SHARP])
def test_gradients_are_those_of_differences(name: str) -> None:
    start, found = gradients(name)
    random = np.random.default_rng(5)
    way = [random.normal(size=each.shape) for each in start]

    def moved(step: float) -> float:
        values = [each + step * along for each, along in zip(start, way, strict=True)]
        return float(total(RECIPES[name].function, arguments(name), values, PLACES[name]))

    own = sum(float(np.sum(each * along)) for each, along in zip(found, way, strict=True))
    np.testing.assert_allclose(own, (moved(1e-6) - moved(-1e-6)) / 2e-6, rtol=2e-4, atol=1e-5)


def of_jax(name: str) -> list[np.ndarray]:
    jax = pytest.importorskip("jax")
    from tracing.everyday.text_for_jax import text_for_jax

    function, at = text_for_jax(RECIPES[name].function), PLACES[name]
    with jax.enable_x64(True):
        given = [jax.numpy.asarray(each) if isinstance(each, np.ndarray) else each for each in arguments(name)]
        gradient = jax.grad(lambda values: total(function, given, values, at))
        found = (gradient if name in EAGER else jax.jit(gradient))([jax.numpy.asarray(given[i], float) for i in at])
        return [np.asarray(each) for each in found]


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in PLACES if name not in NOT_FOR_JAX])
def test_gradients_are_those_of_jax(name: str) -> None:
    for other, one in zip(of_jax(name), gradients(name)[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_a_bisection_is_a_mixture_of_its_limits() -> None:
    (low, high), found = gradients("bisection")
    share = (RECIPES["bisection"].function(low, high) - low) / (high - low)
    np.testing.assert_allclose(found, np.cos(1) * np.array([1 - share, share]))
