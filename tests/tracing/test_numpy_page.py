"""docs/numpy.md: what of NumPy `xlalite.jit` records, written from the rules."""

import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xlalite.tracing.functions import REFUSED, rule_of
from xlalite.tracing.namespace import CREATING
from xlalite.tracing.scipy_functions import FUNCTIONS
from xlalite.tracing.scipy_ufuncs import SPECIAL
from xlalite.tracing.ufuncs import UFUNCS

PAGE = Path(__file__).parents[2] / "docs" / "numpy.md"
BEGIN = "## What is recorded\n"
OF_NUMPY = """NumPy computes these when the function is traced; what they make takes traced indices and elements."""
NO_ARRAYS = """These are about text, files, dates, types and NumPy's settings, or make arrays of what is no array."""
DIFFERS = {
    "`partition`, `argpartition`": "all elements are in order, which is one of the orders that NumPy allows",
    "`argsort`": "equal elements stay in their order, whatever `kind` says",
    "`linalg.solve`, `linalg.inv`, `linalg.tensorinv`, `linalg.tensorsolve`": "of a singular matrix infinite or NaN",
    "`linalg.cholesky`": "of a matrix that is not positive definite NaN",
    "`linalg.svd`, `linalg.eigh`, `linalg.qr`": "vectors may have other signs, or other phases",
    "`power`": "whole numbers to powers that are negative and not known wrap",
    "`take`, `take_along_axis`, `x[i]`": "computed indices that are out of range mean the nearest; NumPy refuses them",
    "`put`, `put_along_axis`, `ufunc.at`, `x[i] = v`": "computed indices that are out of range write nothing",
    "`max`, `min` of `x[mask]`": "where nothing is selected, the type's lowest and highest value",
    "`nonzero`, `flatnonzero`, `argwhere`, `unique`, functions of sets": "need `size=`",
    "`order=` of copies, strides": "arrays are row-major",
    "`repeat`": "`repeats` is a number, a list or a static argument",
    "`random`": "refused; `xl.default_rng` takes its place",
}
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
    of_scipy = ", ".join(f"`{name}`" for name in sorted({*SPECIAL, *FUNCTIONS}))
    lines += ["### `scipy.special`", "", textwrap.fill(of_scipy, 120, break_long_words=False), ""]
    rest = [
        (f"{space.removeprefix('numpy').removeprefix('.')}.{name}".removeprefix("."), name)
        for space, module in SPACES.items()
        for name, function in functions_of(module)
        if not is_recorded(function) and function not in REFUSED
    ]
    for title, sentence, names in (
        ("What is computed while tracing", OF_NUMPY, [full for full, name in rest if name in CREATING]),
        ("What takes no arrays", NO_ARRAYS, [full for full, name in rest if name not in CREATING]),
    ):
        listed = textwrap.fill(", ".join(f"`{name}`" for name in names), 120, break_long_words=False)
        lines += [f"## {title}", "", sentence, "", listed, ""]
    lines += ["## What differs", "", "| functions | how |", "|---|---|"]
    lines += [f"| {names} | {how} |" for names, how in DIFFERS.items()]
    lines += ["", "## What is refused", "", "| functions | why |", "|---|---|"]
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
    assert left == {"array2string", "array_repr", "array_str"}
