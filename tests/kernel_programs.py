"""HLO programs of which each is a kernel or few, for tests that run many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NUMBERS = ("f32", "f64", "bf16", "f16", "s8", "u16", "s32", "s64")
USUAL_SIZES = (65, 3, 17)
MANY_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, *(k * 16 + left for k in (1, 2, 3, 4, 6, 8, 12) for left in (-1, 0, 1)))
"""0, 1, 2 and 3 vectors of any width, with an element more and less."""


def program(result: str, *parameters: str, lines: Sequence[str] = (), functions: str = "") -> str:
    """A module with parameters p0, p1 ... of given shapes; the result is `shape operation`."""
    inputs = [f"p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters)]
    body = "\n".join(f"  {line}" for line in (*inputs, *lines, f"ROOT r = {result}"))
    return f"HloModule m\n{functions}ENTRY e {{\n{body}\n}}\n"


def combiner(name: str, operation: str, dtype: str) -> str:
    return (
        f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n"
        f"  ROOT c = {dtype}[] {operation}(a, b)\n}}\n"
    )


def sample(found: list[Any], isa: str, count: int) -> list[Any]:
    """About `count` of them, evenly spread, a third for narrower vectors and others for each width."""
    step = max(1, len(found) // max(1, count if isa == "AVX512" else count // 3))
    return found[{"SSE2": 1, "AVX2": 2}.get(isa, 0) % step :: step]
