"""Reductions in two steps: how many partial results there are, and that the sum is the same."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo import evaluate, parse
from xlalite.passes.preparation.reduction_splitter import ReductionSplitter


def text(shape: str, dimensions: str, result: str) -> str:
    return f"""HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{shape}] parameter(0)
  z = f32[] constant(1)
  ROOT r = f32[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=add
}}"""


@pytest.mark.parametrize(
    ("shape", "dimensions", "result", "partial"),
    [
        ("100000,2", "0,1", "", (50,)),  # few elements of the outer dimension, not each of its two
        ("100000,2,3", "0,1,2", "", (250,)),
        ("100003,2", "0,1", "", (100003,)),  # no equal pieces
        ("100,4096", "0,1", "", (100,)),
        ("200000", "0", "", (50,)),
        ("2,100000", "0,1", "", (25,)),
        ("3,100000,2", "1,2", "3", (3, 50)),
    ],
)
def test_partial_results_are_of_many_elements(
    shape: str, dimensions: str, result: str, partial: tuple[int, ...]
) -> None:
    module = parse(text(shape, dimensions, result))
    given = np.random.default_rng(0).integers(-8, 9, tuple(map(int, shape.split(",")))).astype(np.float32)
    expected = evaluate(module, given)
    assert ReductionSplitter().run(module)
    reductions = [one for one in module.entry_computation.instructions if one.opcode == "reduce"]
    assert reductions[0].shape.dims == partial
    np.testing.assert_array_equal(evaluate(module, given), expected)
    executable = get_backend("cpu").compile(parse(text(shape, dimensions, result)), CompileOptions(use_cache=False))
    np.testing.assert_array_equal(executable(given), expected)


def test_reductions_of_one_array_share_its_pieces() -> None:
    once = "ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add"
    twice = "a = f32[] reduce(x, z), dimensions={0}, to_apply=add\n  y = f32[] constant(2)\n"
    twice += "  b = f32[] reduce(x, y), dimensions={0}, to_apply=add\n  ROOT r = (f32[], f32[]) tuple(a, b)"
    module = parse(text("200000", "0", "").replace(once, twice))
    assert ReductionSplitter().run(module)
    opcodes = [one.opcode for one in module.entry_computation.instructions]
    assert (opcodes.count("reduce"), opcodes.count("reshape")) == (4, 1)
