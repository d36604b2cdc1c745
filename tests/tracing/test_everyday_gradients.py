"""Gradients of the everyday functions, beside differences of what NumPy gives and beside those of jax."""

import contextlib
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tracing.everyday import finance_and_statistics, learning, numerics, signals_and_images, simulation  # noqa: F401
from tracing.everyday.case import RECIPES, Recipe

import xlalite as xl
from xlalite.framework.structure import flatten
from xlalite.hlo.errors import TracingError

UNBOUNDED = {"adaptive_step", "fixed_point", "golden_section", "newton_until_it_stays"}
"""Loops whose number of steps follows from values keep no intermediate results."""

SHARP = {"adam_step", "bellman_ford", "bisection", "floyd_warshall", "logistic_map", "pairwise_distances"}
"""At kinks, at roots of zero, where steps jump and where small differences grow, differences are no derivatives."""


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
    compiled, given = xl.jit(recipe.function, **(recipe.options or {})), recipe.arguments()
    start = [np.asarray(given[i], np.float64) for i in at]
    return start, xl.grad(lambda values: total(compiled, given, values, at))(start)


@pytest.mark.parametrize("name", [name for name in PLACES if name not in UNBOUNDED | SHARP])
def test_gradients_are_those_of_differences(name: str) -> None:
    start, found = gradients(name)
    random = np.random.default_rng(5)
    way = [random.normal(size=each.shape) for each in start]

    def moved(step: float) -> float:
        values = [each + step * along for each, along in zip(start, way, strict=True)]
        return float(total(RECIPES[name].function, RECIPES[name].arguments(), values, PLACES[name]))

    own = sum(float(np.sum(each * along)) for each, along in zip(found, way, strict=True))
    np.testing.assert_allclose(own, (moved(1e-6) - moved(-1e-6)) / 2e-6, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(UNBOUNDED))
def test_loops_without_a_limit_say_so(name: str) -> None:
    with pytest.raises(TracingError, match="needs a limit on the iterations"):
        gradients(name)


def of_jax(name: str) -> list[np.ndarray] | None:
    """What jax gives; None if it does not take the text."""
    jax = pytest.importorskip("jax")
    own = RECIPES[name].function
    assert isinstance(own, types.FunctionType)
    names = {key: jax.numpy if value is np else value for key, value in own.__globals__.items()}
    function = types.FunctionType(own.__code__, names, own.__name__, own.__defaults__, own.__closure__)
    given, at = RECIPES[name].arguments(), PLACES[name]
    # What jax does not take it says in many ways.
    with contextlib.suppress(Exception), jax.enable_x64(True):
        start = [jax.numpy.asarray(given[i], np.float64) for i in at]
        return [np.asarray(each) for each in jax.grad(lambda values: total(function, given, values, at))(start)]
    return None


OF_JAX = [
    "adam_step",
    "area_of_a_polygon",
    "area_under_curve",
    "asian_option_by_monte_carlo",
    "attention",
    "autocorrelation",
    "backpropagation",
    "batch_norm",
    "bilinear_zoom",
    "binomial_option",
    "bisection",
]
"""Some of those that assign to no array; jax takes long."""


@pytest.mark.parametrize("name", OF_JAX)
def test_gradients_are_those_of_jax(name: str) -> None:
    expected = of_jax(name)
    assert expected is not None
    for one, other in zip(gradients(name)[1], expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
