"""The evaluator agrees with XLA's CPU compiler on the operations that move, combine and control."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType

pytestmark = pytest.mark.oracle


@dataclass(frozen=True)
class Case:
    """An HLO module, the types of its arguments, and the options of the case."""

    name: str
    text: str
    arguments: tuple[tuple[DType, tuple[int, ...]], ...]
    options: dict[str, float]


def _cases() -> Iterator[Case]:
    library, *records = (Path(__file__).parent / "xla_cases.txt").read_text(encoding="utf-8").split("\n== ")
    functions = {match[1]: match[0] for match in re.finditer(r"^(\w+) \{\n.*?^\}\n", library, re.DOTALL | re.MULTILINE)}
    for record in records:
        header, shapes, body = record.split("\n", 2)
        name, *options = header.split()
        called = "".join(text for function, text in functions.items() if re.search(rf"[={{ ]{function}\b[^(]", body))
        parameters = "".join(f"  p{i} = {shape} parameter({i})\n" for i, shape in enumerate(shapes.split()))
        yield Case(
            name,
            f"HloModule {name}\n{called}ENTRY entry {{\n{parameters}{body}}}\n",
            tuple(_type(shape) for shape in shapes.split()),
            {key: float(value) for key, value in (option.split("=") for option in options)},
        )


def _type(shape: str) -> tuple[DType, tuple[int, ...]]:
    dtype, sizes = shape.rstrip("]").split("[")
    return DType.from_name(dtype), tuple(int(size) for size in sizes.split(",") if size)


def _draw(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...], options: dict[str, float]) -> np.ndarray:
    low, high = int(options.get("low", -4)), int(options.get("high", 5))
    if dtype.is_integral:
        return np.asarray(rng.integers(low, high, dims)).astype(dtype.numpy)
    if not dims:
        return np.asarray(low).astype(dtype.numpy)
    values = rng.standard_normal(dims)
    return (values + 1j * rng.standard_normal(dims) if dtype.is_complex else values).astype(dtype.numpy)


@pytest.mark.parametrize("case", list(_cases()), ids=lambda case: case.name)
def test_evaluator_agrees_with_xla(case: Case, agree: Callable[..., None], rng: np.random.Generator) -> None:
    arguments = [_draw(rng, dtype, dims, case.options) for dtype, dims in case.arguments]
    agree(case.text, *arguments, rtol=case.options.get("rtol", 0.0), atol=case.options.get("atol", 0.0))
