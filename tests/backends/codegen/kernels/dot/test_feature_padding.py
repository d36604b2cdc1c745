"""Images of few features get whole words of them where that is cheaper, and nothing else changes."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.feature_padding import ConvolutionFeaturePadding
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType

AVX512 = ("avx512f", "avx512vl", "avx512bw", "fma")
VNNI, PAIRS = (*AVX512, "avx512vnni"), (*AVX512, "avx512bf16")


def convolution(types: str, features: int, result: str, size: int = 60, groups: int = 1) -> str:
    out, taps = size - 6, features // groups
    return f"""HloModule m
ENTRY e {{
  x = {types}[2,{size},{size},{features}] parameter(0)
  k = {types}[7,7,{taps},32] parameter(1)
  ROOT c = {result}[2,{out},{out},32] convolution(x, k), window={{size=7x7}}, dim_labels=b01f_01io->b01f, \
feature_group_count={groups} }}"""


def padded_features(text: str, features: tuple[str, ...]) -> int | None:
    """Those of the input after the pass; None if it changed nothing."""
    module = parse(text)
    target = TargetInfo.of("x86_64-unknown-linux-gnu", features=features)
    if not ConvolutionFeaturePadding(target).run(module):
        return None
    image, kernel = module.entry_computation.root.operands
    assert image.opcode == kernel.opcode == "pad"
    return image.shape.dims[-1]


@pytest.mark.parametrize(
    ("types", "features", "result", "machine", "padded"),
    [
        ("s8", 3, "s32", VNNI, 4),
        ("s8", 5, "s32", VNNI, 8),
        ("u8", 3, "s32", (*VNNI, "amx-tile", "amx-int8"), 4),
        ("s16", 3, "s32", VNNI, 4),
        ("bf16", 3, "bf16", PAIRS, 4),
        ("s8", 4, "s32", VNNI, None),
        ("f32", 3, "f32", PAIRS, None),
        ("bf16", 3, "f32", AVX512, None),
    ],
)
def test_features_fill_words(
    types: str, features: int, result: str, machine: tuple[str, ...], padded: int | None
) -> None:
    assert padded_features(convolution(types, features, result), machine) == padded


def test_groups_and_features_first_stay() -> None:
    assert padded_features(convolution("s8", 6, "s32", groups=2), VNNI) is None
    first = """HloModule m
ENTRY e {
  x = s8[2,3,60,60] parameter(0)
  k = s8[32,3,7,7] parameter(1)
  ROOT c = s32[2,32,54,54] convolution(x, k), window={size=7x7}, dim_labels=bf01_oi01->bf01 }"""
    assert padded_features(first, VNNI) is None


@pytest.mark.parametrize("window", ["size=7x7", "size=7x7 stride=2x2 pad=3_3x3_3", "size=7x7 rhs_dilate=2x1"])
@pytest.mark.parametrize(("types", "result"), [("s8", "s32"), ("u8", "s32"), ("bf16", "f32"), ("s16", "s32")])
def test_results_are_the_same(check: Any, rng: np.random.Generator, types: str, result: str, window: str) -> None:
    sizes = {"size=7x7": (24, 24), "size=7x7 rhs_dilate=2x1": (18, 24)}.get(window, (15, 15))
    text = convolution(types, 3, result, size=30).replace("[2,24,24,32]", f"[2,{sizes[0]},{sizes[1]},32]")
    text = text.replace("window={size=7x7}", f"window={{{window}}}")
    kind, shapes = DType(types), ((2, 30, 30, 3), (7, 7, 3, 32))
    if kind.is_integral:
        info = np.iinfo(kind.numpy)
        arguments = [rng.integers(info.min, info.max, shape, dtype=info.dtype, endpoint=True) for shape in shapes]
    else:
        arguments = [rng.standard_normal(shape).astype(kind.numpy) for shape in shapes]
    arguments[0][0, 3, 3, 1] = 0
    for threads in (1, 2):
        check(text, *arguments, ulps=64, num_threads=threads)


def test_infinite_features_meet_no_zeros_of_others(check: Any, rng: np.random.Generator) -> None:
    arguments = [rng.standard_normal(shape).astype(DType.BF16.numpy) for shape in ((2, 30, 30, 3), (7, 7, 3, 32))]
    arguments[0][0, 9, 9, 2], arguments[1][3, 3, 1, 5] = np.inf, np.nan
    check(convolution("bf16", 3, "f32", size=30), *arguments, ulps=64)
