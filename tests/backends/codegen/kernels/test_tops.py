"""The first elements of rows in order, with their positions; of equal ones the first come first."""

from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType


def top(dtype: str, dims: tuple[int, ...], k: int, *, largest: bool) -> str:
    operand = f"{dtype}[{','.join(map(str, dims))}]"
    values, positions = (f"{t}[{','.join(map(str, (*dims[:-1], k)))}]" for t in (dtype, "s32"))
    return f"""HloModule m
ENTRY e {{
  x = {operand} parameter(0)
  ROOT t = ({values}, {positions}) topk(x), k={k}, largest={str(largest).lower()} }}"""


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("length", "k"), [(5, 0), (5, 2), (16, 15), (33, 1), (100, 7), (3000, 50), (900, 600)])
def test_rows_of_any_length(
    check: Any, kernels: Any, rng: np.random.Generator, length: int, k: int, largest: bool
) -> None:
    for dims in ((length,), (3, length), (2, 2, length)):
        rising = np.arange(np.prod(dims)).reshape(dims)
        for values in (rng.standard_normal(dims), rng.integers(0, 9, dims), rising, -rising):
            executable = check(top("f32", dims, k, largest=largest), values.astype(np.float32), num_threads=2)
            assert kernels(executable) == ["top"]


@pytest.mark.parametrize("length", [1, 16, 900])
def test_whole_rows_are_sorted(check: Any, kernels: Any, rng: np.random.Generator, length: int) -> None:
    for largest in (True, False):
        executable = check(
            top("f32", (3, length), length, largest=largest), rng.integers(0, 9, (3, length)).astype(np.float32)
        )
        assert "top" not in kernels(executable)


@pytest.mark.parametrize("dtype", [t for t in DType if t.is_array and not t.is_complex], ids=lambda t: t.value)
def test_every_type(check: Any, rng: np.random.Generator, dtype: DType) -> None:
    if dtype is DType.PRED:
        return
    values = rng.integers(-3 if dtype.is_signed else 0, 4, (2, 90)).astype(dtype.numpy)
    if dtype.is_floating and dtype is not DType.F8E8M0FNU:
        with np.errstate(all="ignore"):
            special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]).astype(dtype.numpy)
        values = np.where(rng.random((2, 90)) < 0.3, rng.choice(special, (2, 90)), values).astype(dtype.numpy)
    for largest in (True, False):
        check(top(dtype.value, (2, 90), 11, largest=largest), values)


def test_what_computes_the_elements_may_be_anything(check: Any, rng: np.random.Generator) -> None:
    text = top("f32", (4, 200), 9, largest=True).replace("topk(x)", "topk(y)")
    text = text.replace("  ROOT", "  y = f32[4,200] negate(x)\n  ROOT")
    check(text, rng.standard_normal((4, 200)).astype(np.float32))
