"""docs/numpy.md: what of NumPy `xlalite.jit` records, written from the rules."""

import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xlalite.tracing.functions import REFUSED, rule_of
from xlalite.tracing.scipy_ufuncs import SPECIAL
from xlalite.tracing.ufuncs import UFUNCS

PAGE = Path(__file__).parents[2] / "docs" / "numpy.md"
BEGIN = "## What is recorded\n"
SPACES = {"numpy": np, "numpy.linalg": np.linalg, "numpy.fft": np.fft}


def functions_of(space: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in sorted({*space.__all__}):
        found = getattr(space, name)
        if callable(found) and not isinstance(found, type | types.ModuleType):
            yield name, found


def is_recorded(function: Any) -> bool:
    return function in UFUNCS if isinstance(function, np.ufunc) else rule_of(function) is not None


def test_the_page_lists_what_is_recorded(expect_file: Callable[[Path, str], None]) -> None:
    lines = [BEGIN, "Written by `python -m pytest tests/tracing/test_numpy_page.py --bless` from the rules.", ""]
    for space, module in SPACES.items():
        names = [f"`{name}`" for name, function in functions_of(module) if is_recorded(function)]
        lines += [f"### `{space}`", "", textwrap.fill(", ".join(names), 120, break_long_words=False), ""]
    of_scipy = ", ".join(f"`{name}`" for name in SPECIAL)
    lines += ["### `scipy.special`", "", textwrap.fill(of_scipy, 120, break_long_words=False), ""]
    lines += ["## What is refused", "", "| functions | why |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for space, module in SPACES.items():
        for name, function in functions_of(module):
            if function in REFUSED:
                prefix = space.removeprefix("numpy").removeprefix(".")
                reasons.setdefault(REFUSED[function], []).append(f"`{prefix + '.' if prefix else ''}{name}`")
    lines += [f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items()]
    tour = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    expect_file(PAGE, tour + "\n".join(lines) + "\n")


def test_every_function_of_arrays_is_recorded_or_refused() -> None:
    """NumPy's other functions take no arrays, or read files, or are about text, dates and its own settings."""
    dispatched = [
        (name, function)
        for module in SPACES.values()
        for name, function in functions_of(module)
        if hasattr(function, "_implementation") and not name.startswith(("busday", "datetime", "is_busday", "save"))
    ]
    left = {name for name, function in dispatched if not is_recorded(function) and function not in REFUSED}
    assert left == {"array2string", "array_repr", "array_str", "packbits", "unpackbits"}
