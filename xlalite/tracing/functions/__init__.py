"""What the functions of NumPy, beside ufuncs, record: a file of rules for each family."""

from collections.abc import Callable
from typing import Any

from xlalite.tracing.functions.registry import REFUSED, RULES

__all__ = ["REFUSED", "rule_of"]


def rule_of(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The rule of a function of NumPy, if there is one; the families are imported when it is first asked for."""
    import xlalite.tracing.functions.families  # noqa: F401  # importing it registers the rules

    return RULES.get(function)
