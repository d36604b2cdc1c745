"""The list of everyday functions: what is compiled gives what NumPy gives, what is not says why in one sentence."""

from typing import Any

import numpy as np
import pytest
from tracing.everyday import finance_and_statistics, learning, numerics, signals_and_images, simulation  # noqa: F401
from tracing.everyday.case import RECIPES, Recipe

import xlalite as xl
from xlalite.framework.structure import flatten
from xlalite.hlo.errors import TracingError


def compare(recipe: Recipe, found: Any, expected: Any) -> None:
    leaves, others = flatten(found)[0], flatten(expected)[0]
    assert len(leaves) == len(others)
    for one, other in zip(leaves, others, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        finite = np.abs(np.asarray(other, complex))
        scale = float(np.max(finite[np.isfinite(finite)], initial=1))
        np.testing.assert_allclose(one, other, rtol=recipe.tolerance, atol=recipe.tolerance * scale)


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_everyday_functions_give_what_numpy_gives(name):
    recipe = RECIPES[name]
    compiled = xl.jit(recipe.function, **(recipe.options or {}))
    if recipe.refusal:
        with pytest.raises(TracingError, match=recipe.refusal):
            compiled(*recipe.arguments())
        return
    given = recipe.arguments()
    compare(recipe, compiled(*given), recipe.function(*recipe.arguments()))
    for one, other in zip(given, recipe.arguments(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_list_is_long_and_nearly_all_of_it_is_right():
    right = [each for each in RECIPES.values() if not each.refusal]
    assert len(RECIPES) >= 150
    assert len(right) >= len(RECIPES) - 10
