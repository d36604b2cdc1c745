"""Which rule records each function of NumPy; a rule takes the parameters of the function that it supports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Rule = TypeVar("Rule", bound=Callable[..., Any])

RULES: dict[Callable[..., Any], Callable[..., Any]] = {}

REFUSED: dict[Callable[..., Any], str] = {}
"""Functions whose results cannot be known before the program runs, and why."""


def records(*functions: Callable[..., Any]) -> Callable[[Rule], Rule]:
    """Makes a rule that of functions of NumPy."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(functions, rule))
        return rule

    return register


def refuse(reason: str, *functions: Callable[..., Any]) -> None:
    """Lets functions be refused with a reason."""
    REFUSED.update(dict.fromkeys(functions, reason))
