"""Features of convolutions come last where only so words of them are multiplied at once, and nothing else changes."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.feature_order import ConvolutionFeatureOrder
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType

AVX512 = ("avx512f", "avx512vl", "avx512bw", "fma")
VNNI, PAIRS = (*AVX512, "avx512vnni"), (*AVX512, "avx512bf16")


def convolution(types: str, features: int, result: str, more: str = "", side: int = 3, size: int = 30) -> str:
    out, window = size - side + 1, f"window={{size={side}x{side}}}"
    return f"""HloModule m
ENTRY e {{
  x = {types}[2,{features},{size},{size}] parameter(0)
  k = {types}[32,{features},{side},{side}] parameter(1)
  ROOT c = {result}[2,32,{out},{out}] convolution(x, k), {window}, dim_labels=bf01_oi01->bf01{more} }}"""


@pytest.mark.parametrize(
    ("text", "machine", "moves"),
    [
        (convolution("s8", 16, "s32"), VNNI, True),
        (convolution("s8", 3, "s32", side=7), (*VNNI, "amx-tile", "amx-int8"), True),
        (convolution("bf16", 16, "bf16"), (*PAIRS, "amx-tile", "amx-bf16"), True),
        (convolution("s8", 16, "s32", side=1), VNNI, False),
        (convolution("f32", 16, "f32"), PAIRS, False),
        (convolution("bf16", 16, "f32"), AVX512, False),
        (convolution("s8", 1, "s32", ", feature_group_count=16").replace("x = s8[2,1,", "x = s8[2,16,"), VNNI, False),
    ],
)
def test_features_come_last_where_words_are_made_of_them(text: str, machine: tuple[str, ...], moves: bool) -> None:
    module = parse(text)
    changed = ConvolutionFeatureOrder(TargetInfo.of("x86_64-unknown-linux-gnu", features=machine)).run(module)
    assert changed == moves
    (product,) = (one for one in module.instructions() if one.opcode == "convolution")
    assert str(product.attrs.dim_labels) == ("b01f_01io->b01f" if moves else "bf01_oi01->bf01")
    assert (module.entry_computation.root.opcode == "transpose") == moves


@pytest.mark.parametrize("labels", ["bf01_oi01->bf01", "f01b_i01o->01bf", "bf01_io01->01bf"])
@pytest.mark.parametrize("window", ["size=3x5", "size=3x5 stride=2x1 pad=1_0x2_3 rhs_reversal=1x0"])
@pytest.mark.parametrize(("types", "result"), [("s8", "s32"), ("bf16", "f32")])
def test_results_are_the_same(
    check: Any, rng: np.random.Generator, types: str, result: str, window: str, labels: str
) -> None:
    sizes = {"b": 3, "f": 20, "0": 25, "1": 32, "i": 20, "o": 40}
    outs = {"b": 3, "f": 40, "0": 23, "1": 28} if window == "size=3x5" else {"b": 3, "f": 40, "0": 12, "1": 33}
    (lhs, rest), kernel_sizes = labels.split("_"), {**sizes, "0": 3, "1": 5}
    kernel, out = rest.split("->")
    shapes = [sizes[one] for one in lhs], [kernel_sizes[one] for one in kernel]
    texts = [",".join(map(str, dims)) for dims in (*shapes, [outs[one] for one in out])]
    text = f"""HloModule m
ENTRY e {{
  x = {types}[{texts[0]}] parameter(0)
  k = {types}[{texts[1]}] parameter(1)
  ROOT c = {result}[{texts[2]}] convolution(x, k), window={{{window}}}, dim_labels={labels} }}"""
    if types == "s8":
        arguments = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
    else:
        arguments = [rng.standard_normal(shape).astype(DType.BF16.numpy) for shape in shapes]
    for threads in (1, 3):
        check(text, *arguments, ulps=64, num_threads=threads)
