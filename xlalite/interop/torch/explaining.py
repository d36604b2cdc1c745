"""What the compiler decides about a function of torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from xlalite.backends.base import Executable
from xlalite.hlo.types.decision import Decision
from xlalite.interop.torch.backend import backend, observe
from xlalite.interop.torch.graph_program import GraphProgram


def programs(function: Callable[..., Any], *arguments: Any, **named: Any) -> list[GraphProgram]:
    """The graphs that a call of a function compiles; backward graphs are there once somebody called `backward`."""
    found: list[GraphProgram] = []
    end = observe(found.append)
    try:
        torch._dynamo.reset()
        torch.compile(function, backend=backend)(*arguments, **named)
    finally:
        end()
    return found


def compiled(function: Callable[..., Any], *arguments: Any, **named: Any) -> Sequence[Executable]:
    """The executables of a function for arguments, to be looked at: `as_text`, `decisions`, `pass_records`."""
    return [segment.executable for program in programs(function, *arguments, **named) for segment in program.segments]


def explain(function: Callable[..., Any], *arguments: Any, **named: Any) -> Sequence[Decision]:
    """Which operations of a function are left to torch, and why; then every decision of the compiler.

    Args:
        function: A function or a module that torch.compile can trace.
        arguments: As the function is called.
        named: The same by name.
    """
    found = programs(function, *arguments, **named)
    eager = [decision for program in found for decision in program.decisions]
    inside = [d for program in found for segment in program.segments for d in segment.executable.decisions()]
    return [*eager, *inside]
