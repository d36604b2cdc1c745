"""Lines of convolutions in groups with features first are summed together, or each of the input is read once."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.convolution.plan import walk_of
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.text import parse

WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "avx512bw", "fma"))


def text_of(sides: tuple[int, ...], side: int, stride: int = 1, holes: int = 1, outputs: int = 1) -> str:
    """Three features of an image, each by kernels with sides of their own, padded to its size."""
    rank, pad = len(sides), side // 2
    spread = [(size - 1) * holes + 1 for size in sides]
    results = [(size + 2 * pad - side) // stride + 1 for size in spread]
    image, result = (",".join(map(str, dims)) for dims in (sides, results))
    kernel, space = ",".join([str(side)] * rank), "".join(map(str, range(rank)))
    fields = {"size": side, "stride": stride, "pad": f"{pad}_{pad}", "lhs_dilate": holes}
    window = " ".join(f"{name}={'x'.join([str(value)] * rank)}" for name, value in fields.items())
    return f"""HloModule m
ENTRY e {{
  x = f32[2,3,{image}] parameter(0)
  k = f32[{3 * outputs},1,{kernel}] parameter(1)
  ROOT c = f32[2,{3 * outputs},{result}] convolution(x, k), window={{{window}}},
    dim_labels=bf{space}_oi{space}->bf{space}, feature_group_count=3 }}"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (text_of((7, 7), 7), 7),
        (text_of((14, 14), 3), 14),
        (text_of((30, 40), 3), 15),
        (text_of((200, 14), 3), 50),
        (text_of((14, 14), 1), 7),
        (text_of((28, 28), 3, 2), 1),
        (text_of((14, 14), 3, outputs=2), 4),
        (text_of((5, 6, 14), 3), 6),
        (text_of((14, 200), 3), 1),
        (text_of((14, 14), 3, holes=2), 1),
        (text_of((14,), 3), 1),
        (text_of((14, 14), 13), 1),
    ],
)
def test_lines_are_summed_together(text: str, lines: int) -> None:
    plan = walk_of(parse(text).entry_computation.root, WIDE)
    assert plan.lines == lines
    assert (plan.across >= 0) == (lines > 1)


@pytest.mark.parametrize(
    ("text", "vectors"),
    [
        (text_of((56, 56), 7), 1),
        (text_of((56, 56), 5), 2),
        (text_of((56, 56), 3), 4),
        (text_of((112, 112), 3), 0),
        (text_of((112, 112), 5), 2),
        (text_of((14, 14), 8), 0),
        (text_of((56, 56), 3, 2), 0),
        (text_of((56, 56), 3, outputs=2), 0),
        (text_of((5, 6, 14), 3), 0),
    ],
)
def test_each_line_of_the_input_is_read_once(text: str, vectors: int) -> None:
    assert walk_of(parse(text).entry_computation.root, WIDE).in_order == vectors


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("sides", [(1, 1), (9, 1), (7, 7), (13, 33), (70, 67), (5, 200), (4, 3, 20), (4, 7, 1)])
def test_lines_together_are_right_at_all_borders(
    check: Any, kernels: Any, rng: np.random.Generator, sides: tuple[int, ...], side: int, stride: int
) -> None:
    module = parse(text_of(sides, side, stride))
    x, k = (rng.integers(-3, 4, one.shape.dims).astype(np.float32) for one in module.entry_computation.parameters)
    assert kernels(check(module, x, k)) == ["convolution"]
    k.reshape(-1)[0] = np.inf
    check(module, x, k)
