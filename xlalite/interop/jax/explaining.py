"""What the compiler decides about a function of jax, on whatever platform jax runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.backends.base import Executable
from xlalite.client.compilation import compile
from xlalite.hlo.text import parse
from xlalite.hlo.types.decision import Decision


def compiled(function: Callable[..., Any], *arguments: Any, **named: Any) -> Executable:
    """The executable of a function for arguments, to be looked at: `as_text`, `decisions`, `pass_records`.

    Args:
        function: A function that jax can trace, or that `jax.jit` made.
        arguments: As the function is called; only shapes and types count.
        named: The same by name.
    """
    import jax

    jitted = function if hasattr(function, "lower") else jax.jit(function)
    module = parse(jitted.lower(*arguments, **named).as_text(debug_info=True))
    return compile(module)


def explain(function: Callable[..., Any], *arguments: Any, **named: Any) -> Sequence[Decision]:
    """Every decision of the compiler about a function for arguments, each with its reason.

    Args:
        function: A function that jax can trace, or that `jax.jit` made.
        arguments: As the function is called; only shapes and types count.
        named: The same by name.
    """
    return compiled(function, *arguments, **named).decisions()
