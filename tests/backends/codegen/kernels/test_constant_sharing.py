"""Small kernels that differ in constants only share code in large modules, and compute the same."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType


def outputs(count: int, size: int, dtype: str = "f32", opcode: str = "multiply", step: str = "") -> str:
    """A tuple of results that differ in a constant."""
    shape = f"{dtype}[{size}]"
    lines = [f"p = {shape} parameter(0)"]
    for i in range(count):
        value = f"({i}{step}, -{i % 7})" if dtype == "c64" else f"{i % 100}{step}"
        lines += [f"c{i} = {dtype}[] constant({value})", f"b{i} = {shape} broadcast(c{i}), dimensions={{}}"]
        lines.append(f"o{i} = {shape} {opcode}(p, b{i})")
    results = f"({', '.join([shape] * count)})"
    lines.append(f"ROOT t = {results} tuple({', '.join(f'o{i}' for i in range(count))})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "}"


def sharing(executable: Any) -> int:
    return sum(decision.verdict == "shared" for decision in executable.decisions())


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s32", "u8", "c64"])
def test_values_of_constants_are_arguments(check: Any, rng: np.random.Generator, dtype: str) -> None:
    argument = (rng.standard_normal(37) * 5).clip(0 if dtype == "u8" else None).astype(DType.from_name(dtype).numpy)
    executable = check(outputs(96, 37, dtype, step="" if dtype in ("s32", "u8") else ".5"), argument)
    assert 20 <= sharing(executable) <= 96 - 64 - 8  # A product by 0 or 1 may need no kernel.


@pytest.mark.parametrize(("size", "opcode"), [(5000, "multiply"), (37, "power")])
def test_constants_stay_in_the_code_where_that_matters(
    check: Any, rng: np.random.Generator, size: int, opcode: str
) -> None:
    """Kernels of much work, and operations whose code depends on the value."""
    argument = rng.uniform(0.5, 1.5, size).astype(np.float32)
    assert sharing(check(outputs(80, size, opcode=opcode), argument, ulps=4)) == 0


def test_modules_of_few_kernels_share_none(check: Any, rng: np.random.Generator) -> None:
    assert sharing(check(outputs(40, 37), rng.standard_normal(37).astype(np.float32))) == 0
