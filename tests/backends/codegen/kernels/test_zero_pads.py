"""Paddings with zeros, which move lines of bytes."""

from typing import Any

import numpy as np
import pytest


def padding(dtype: str, operand: str, result: str, amounts: str, value: str = "0") -> str:
    return (
        f"HloModule m\nENTRY e {{\n  x = {dtype}[{operand}] parameter(0)\n  z = {dtype}[] constant({value})\n"
        f"  ROOT r = {dtype}[{result}] pad(x, z), padding={amounts}\n}}"
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("operand", "result", "amounts"),
    [
        ("40", "43", "1_2"),
        ("3,17", "5,17", "1_1x0_0"),
        ("2,5,6,32", "2,7,8,32", "0_0x1_1x1_1x0_0"),
        ("2,32,5,21", "2,32,9,23", "0_0x0_0x1_3x2_0"),
        ("2,5,6,7,16", "2,7,8,9,16", "0_0x1_1x1_1x1_1x0_0"),
        ("1,3,1,130", "4,3,1,131", "2_1x0_0x0_0x0_1"),
        ("8,60,60,16", "8,62,62,16", "0_0x1_1x1_1x0_0"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.bool_])
def test_zeros_around_arrays(
    check: Any,
    kernels: Any,
    rng: np.random.Generator,
    dtype: Any,
    operand: str,
    result: str,
    amounts: str,
    threads: int,
) -> None:
    name, value = {np.float32: ("f32", "0"), np.int8: ("s8", "0"), np.bool_: ("pred", "false")}.get(
        dtype, ("c64", "(0,0)")
    )
    x = (rng.standard_normal([int(size) for size in operand.split(",")]) * 9).astype(dtype)
    executable = check(padding(name, operand, result, amounts, value), x, num_threads=threads)
    assert kernels(executable) == ["zero pad"]


@pytest.mark.parametrize(
    ("operand", "result", "amounts", "value"),
    [
        ("40", "43", "1_2", "-0.0"),
        ("40", "43", "1_2", "2"),
        ("40", "39", "1_-2", "0"),
        ("40", "81", "1_1_1", "0"),
        ("3", "6", "1_2", "0"),
        ("2,3,4,5,20", "4,5,6,7,22", "1_1x1_1x1_1x1_1x1_1", "0"),
    ],
)
def test_other_paddings(
    check: Any, kernels: Any, rng: np.random.Generator, operand: str, result: str, amounts: str, value: str
) -> None:
    x = rng.standard_normal([int(size) for size in operand.split(",")]).astype(np.float32)
    executable = check(padding("f32", operand, result, amounts, value), x)
    assert "zero pad" not in kernels(executable)


def test_what_is_computed_on_the_way(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    text = padding("f32", "3,40", "3,43", "0_0x1_2").replace("ROOT r", "n = f32[3,40] negate(x)\n  ROOT r")
    executable = check(text.replace("pad(x", "pad(n"), rng.standard_normal((3, 40)).astype(np.float32))
    assert kernels(executable) == ["loop"]
