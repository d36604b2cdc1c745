"""Which functions of the PJRT table are Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[[Any], None]] = {}


def function(name: str, *others: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Says which functions of the table a Python function is: it fills in the structure of the arguments."""

    def register(implementation: Callable[[Any], None]) -> Callable[[Any], None]:
        FUNCTIONS.update(dict.fromkeys((name, *others), implementation))
        return implementation

    return register
