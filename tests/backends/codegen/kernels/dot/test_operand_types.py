"""Products read narrow operands as they lie where that is cheaper than converting them first, and mean the same."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.operand_types import DotOperandTypes
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType

PLAIN = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "avx512bw", "avx512vnni", "fma"))


def converted(types: tuple[str, str], wide: str, result: str = "", sizes: tuple[int, int, int] = (1, 512, 512)) -> str:
    m, k, n = sizes
    return f"""HloModule m
ENTRY e {{
  x = {types[0]}[{m},{k}] parameter(0)
  y = {types[1]}[{k},{n}] parameter(1)
  a = {wide}[{m},{k}] convert(x)
  b = {wide}[{k},{n}] convert(y)
  ROOT d = {result or wide}[{m},{n}] dot(a, b), {PLAIN} }}"""


def read(text: str) -> list[str]:
    """The types that the product reads after the pass."""
    module = parse(text)
    DotOperandTypes(WIDE).run(module)
    (dot,) = (one for one in module.instructions() if one.opcode == "dot")
    return [operand.shape.dtype.value for operand in dot.operands]


@pytest.mark.parametrize(
    ("types", "wide"),
    [(("s8", "u8"), "s32"), (("bf16", "s8"), "f32"), (("f32", "f16"), "f64"), (("pred", "f32"), "f32")],
)
def test_vectors_times_matrices_read_what_is_in_memory(types: tuple[str, str], wide: str) -> None:
    assert read(converted(types, wide)) == list(types)


def test_bytes_are_not_widened_for_large_products() -> None:
    assert read(converted(("s8", "s8"), "s32", sizes=(512, 512, 512))) == ["s8", "s8"]


def test_reshaped_operands_are_found() -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[1,512] parameter(0)
  y = bf16[512,16,32] parameter(1)
  b = f32[512,16,32] convert(y)
  c = f32[512,512] reshape(b)
  ROOT d = f32[1,512] dot(x, c), {PLAIN} }}"""
    assert read(text) == ["f32", "bf16"]


@pytest.mark.parametrize(
    ("types", "wide", "result"),
    [
        (("s32", "s32"), "f32", "f32"),  # rounded
        (("f32", "f32"), "s32", "s32"),  # cut
        (("f32", "f32"), "f64", "f32"),  # the sum would be kept in f32
        (("f32", "f32"), "c64", "c64"),  # not for the kernel
    ],
)
def test_other_conversions_stay(types: tuple[str, str], wide: str, result: str) -> None:
    assert read(converted(types, wide, result)) == [wide, wide]


def test_a_conversion_stays_where_it_has_other_users_or_a_left_operand_would_have_to_be_packed() -> None:
    used = converted(("f32", "bf16"), "f32").replace("ROOT d", "d")
    used = used.replace(" }", "\n  n = f32[512,512] negate(b)\n  ROOT t = (f32[1,512], f32[512,512]) tuple(d, n) }")
    assert read(used) == ["f32", "f32"]
    assert read(converted(("bf16", "f32"), "f32", sizes=(512, 512, 512))) == ["f32", "f32"]


@pytest.mark.parametrize("sizes", [(1, 70, 40), (5, 33, 17), (40, 70, 1), (33, 65, 48), (2, 300, 700)])
@pytest.mark.parametrize(
    ("types", "result"),
    [
        (("bf16", "f32"), "f32"),
        (("f32", "s8"), "f32"),
        (("u4", "f16"), "bf16"),
        (("f8e4m3fn", "s16"), "f32"),
        (("pred", "f32"), "f32"),
        (("f32", "s32"), "f64"),
        (("f64", "f32"), "f32"),
        (("pred", "s8"), "s32"),
        (("s8", "s32"), "s64"),
    ],
)
def test_operands_of_two_types(
    check: Any, kernels: Any, rng: np.random.Generator, types: tuple[str, str], result: str, sizes: tuple[int, int, int]
) -> None:
    m, k, n = sizes
    text = f"""HloModule m
ENTRY e {{
  x = {types[0]}[{m},{k}] parameter(0)
  y = {types[1]}[{k},{n}] parameter(1)
  ROOT d = {result}[{m},{n}] dot(x, y), {PLAIN} }}"""
    arguments = []
    for name, shape in zip(types, ((m, k), (k, n)), strict=True):
        dtype = DType(name)
        numbers = rng.integers(0, 2 if dtype is DType.PRED else 8, shape) if dtype.bits < 16 else rng.normal(size=shape)
        arguments.append((numbers * 9 if dtype.is_integral and dtype.bits > 8 else numbers).astype(dtype.numpy))
    assert kernels(check(text, *arguments, ulps=64)) == ["dot"]


@pytest.mark.parametrize(
    "algorithm", ["dot_bf16_bf16_f32", "dot_tf32_tf32_f32", "dot_bf16_bf16_f32_x3", "dot_f32_f32_f32"]
)
def test_algorithms_allow_less_and_get_all(check: Any, kernels: Any, rng: np.random.Generator, algorithm: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[33,65] parameter(0)
  y = f32[65,40] parameter(1)
  ROOT d = f32[33,40] dot(x, y), {PLAIN}, algorithm={algorithm} }}"""
    arguments = [rng.standard_normal(shape, np.float32) for shape in ((33, 65), (65, 40))]
    assert kernels(check(text, *arguments, ulps=64)) == ["dot"]
