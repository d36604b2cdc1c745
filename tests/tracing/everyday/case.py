"""What a function of the list is, and the list that the files of recipes fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Recipe:
    """One function.

    Attributes:
        name: Its name.
        function: It itself.
        make: Its arguments, from a generator of random numbers and a size.
        size: The size that tests take.
        large: The size that benchmarks take; 0: it is not among them.
        options: What `xlalite.jit` is told.
        refusal: For what cannot be compiled, a part of the sentence that says so.
        tolerance: Largest difference from NumPy, relative to the largest element.
    """

    name: str
    function: Callable[..., Any]
    make: Callable[[np.random.Generator, int], tuple[Any, ...]]
    size: int = 16
    large: int = 0
    options: dict[str, Any] | None = None
    refusal: str = ""
    tolerance: float = 1e-9

    def arguments(self, size: int | None = None) -> tuple[Any, ...]:
        """Arguments, the same every time."""
        return self.make(np.random.default_rng(11), self.size if size is None else size)


RECIPES: dict[str, Recipe] = {}


def recipe(
    make: Callable[[np.random.Generator, int], tuple[Any, ...]],
    size: int = 16,
    large: int = 0,
    refusal: str = "",
    tolerance: float = 1e-9,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a function to the list."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        assert name not in RECIPES, name
        RECIPES[name] = Recipe(name, function, make, size, large, options or None, refusal, tolerance)
        return function

    return add
