"""The table of rules, by the name of the operation's overload, as in `aten.add.Tensor`."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from xlalite.hlo.errors import LoweringError

Rule = Callable[..., Any]
R = TypeVar("R", bound=Rule)

FAMILIES = (
    *("attention", "complex_numbers", "convolution", "elementwise", "indexing", "normalization", "ordering"),
    *("pooling", "products", "reductions", "resizing", "shapes"),
)
"""The files of rules beside this one."""

_RULES: dict[str, Rule] = {}


class Declined(LoweringError):
    """A rule does not cover these arguments: the operation stays with torch; the text says why."""


def rule(*names: str) -> Callable[[R], R]:
    """Says which overloads a function lowers.

    The function takes an `Operation` and the arguments as ATen declares them: tensors as handles, everything else as
    plain Python values. It gives a handle, or a tuple of them (None for a result that is not there).

    Raises:
        LoweringError: An overload has a rule already.
    """

    def register(function: R) -> R:
        for name in names:
            if name in _RULES:
                raise LoweringError(f"torch: {name} has two rules")
            _RULES[name] = function
        return function

    return register


def find_rule(name: str) -> Rule | None:
    """The rule of an overload."""
    _load_families()
    return _RULES.get(name)


@functools.cache
def _load_families() -> None:
    for family in FAMILIES:
        importlib.import_module(f"xlalite.interop.torch.rules.{family}")
