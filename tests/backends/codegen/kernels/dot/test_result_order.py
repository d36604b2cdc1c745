"""In gradients of kernels of images with pixels last, features come last where that is cheaper."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.result_order import ConvolutionResultOrder
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse

WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "avx512bw", "fma"))
FORWARD = """HloModule m
ENTRY e {
  x = f32[2,32,58,58] parameter(0)
  k = f32[32,32,3,3] parameter(1)
  ROOT y = f32[2,32,56,56] convolution(x, k), window={size=3x3}, dim_labels=bf01_oi01->bf01 }"""


def gradient(inputs: int, outputs: int, size: int, labels: str = "fb01_io01->fb01", kind: str = "f32") -> str:
    """That of a kernel of 3x3 by two images."""
    result = {"f": outputs, "b": inputs, "0": 3, "1": 3}
    return f"""HloModule m
ENTRY e {{
  x = {kind}[2,{inputs},{size + 2},{size + 2}] parameter(0)
  g = {kind}[2,{outputs},{size},{size}] parameter(1)
  ROOT k = {kind}[{",".join(str(result[one]) for one in labels.split("->")[1])}] convolution(x, g),
    window={{size={size}x{size}}}, dim_labels={labels} }}"""


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        (gradient(32, 32, 56), True),
        (gradient(64, 64, 28), True),
        (gradient(64, 64, 28, "fb01_io01->bf01"), True),
        (gradient(64, 64, 28, "fb01_io01->01bf"), False),
        (gradient(256, 256, 28), False),
        (gradient(3, 8, 56), False),
        (gradient(3, 32, 56), True),
        (FORWARD, False),
    ],
)
def test_features_come_last_where_the_product_is_cheaper(text: str, moves: bool) -> None:
    module = parse(text)
    shape = module.entry_computation.root.shape
    assert ConvolutionResultOrder(WIDE).run(module) == moves
    (product,) = (one for one in module.instructions() if one.opcode == "convolution")
    order = "b01f" if "[2,3," in text else "01bf"
    assert product.attrs.dim_labels.output.endswith(order) == (moves or "->01bf" in text)
    assert (module.entry_computation.root.opcode == "transpose") == moves
    assert module.entry_computation.root.shape == shape


@pytest.mark.parametrize("labels", ["fb01_io01->fb01", "fb01_io01->bf01", "fb01_io01->f10b"])
@pytest.mark.parametrize("kind", ["f32", "f64", "s32", "bf16"])
def test_results_are_the_same(check: Any, rng: np.random.Generator, kind: str, labels: str) -> None:
    module = parse(gradient(32, 24, 30, labels, kind))
    arrays = [rng.integers(-2, 3, one.shape.dims) for one in module.entry_computation.parameters]
    types = [one.shape.dtype.numpy for one in module.entry_computation.parameters]
    check(module, *(array.astype(dtype) for array, dtype in zip(arrays, types, strict=True)))
