"""Loops of convolutions in groups: one function serves images of all sizes."""

import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, SHARED_MODULE
from xlalite.hlo import parse

pytestmark = pytest.mark.skipif(
    not TargetInfo.host().has("avx512bw"), reason="shorter vectors hold fewer groups, and take lines apart at borders"
)


def grouped(batch: int, size: int, groups: int, dtype: str = "f32") -> str:
    features = 8 * groups
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{batch},{size},{size},{features}] parameter(0)
  k = {dtype}[3,3,8,{features}] parameter(1)
  ROOT r = {dtype}[{batch},{size},{size},{features}] convolution(x, k), window={{size=3x3 pad=1_1x1_1}},
    dim_labels=b01f_01io->b01f, feature_group_count={groups}
}}"""


def kernel_gradient(batch: int, size: int, groups: int, dtype: str = "f32") -> str:
    features = 8 * groups
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{batch},{size},{size},{features}] parameter(0)
  g = {dtype}[{batch},{size},{size},{features}] parameter(1)
  ROOT r = {dtype}[3,3,8,{features}] convolution(x, g), window={{size={size}x{size} pad=1_1x1_1}},
    dim_labels=f01b_i01o->01bf, batch_group_count={groups}
}}"""


def long_windows(features: int, height: int, width: int = 60, dtype: str = "f32") -> str:
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[2,{features},{height},{width}] parameter(0)
  k = {dtype}[{features},1,7,7] parameter(1)
  ROOT r = {dtype}[2,{features},{height},{width}] convolution(x, k), window={{size=7x7 pad=3_3x3_3}},
    dim_labels=bf01_oi01->bf01, feature_group_count={features}
}}"""


def shared_modules(text: str) -> set[str]:
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=2)).text
    return {module for module in ir.split(NEXT_MODULE) if module.startswith(SHARED_MODULE)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (grouped(4, 28, 32), grouped(2, 56, 16)),
        (kernel_gradient(2, 28, 32), kernel_gradient(3, 56, 48)),
        (long_windows(96, 56), long_windows(128, 63)),
    ],
)
def test_images_of_other_sizes_have_the_same_function(first: str, second: str) -> None:
    shared = shared_modules(first)
    assert len(shared) == 1
    assert shared_modules(second) == shared


def test_other_types_and_what_follows_have_functions_of_their_own() -> None:
    shared = shared_modules(grouped(2, 28, 32))
    assert not shared & shared_modules(grouped(2, 28, 32, "f64"))
    followed = grouped(2, 28, 32).replace("ROOT r", "c").replace("\n}", "\n  ROOT r = f32[2,28,28,256] tanh(c)\n}")
    assert not shared_modules(followed)


def test_sums_are_rounded_in_a_loop() -> None:
    (module,) = shared_modules(kernel_gradient(2, 28, 32, "bf16"))
    assert module.count(" = fcmp uno ") == 1
