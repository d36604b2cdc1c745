"""Outputs that take the memory of inputs which other outputs still read."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse

SWAP = """HloModule swap, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias) }
ENTRY main {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT pair = (f32[2], f32[2]) tuple(b, a)
}
"""
ROTATION = """HloModule rotation,
  input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias), {2}: (2, {}, must-alias) }
ENTRY main {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  c = f32[2] parameter(2)
  ROOT all = (f32[2], f32[2], f32[2]) tuple(b, c, a)
}
"""
OLD_VALUE = """HloModule old_value, input_output_alias={ {2}: (0, {}, must-alias) }
ENTRY main {
  a = f32[2] parameter(0)
  sum = f32[2] add(a, a)
  ROOT all = (f32[2], f32[2], f32[2]) tuple(a, a, sum)
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SWAP, [[3, 4], [1, 2]]),
        (ROTATION, [[3, 4], [5, 6], [1, 2]]),
        (OLD_VALUE, [[1, 2], [1, 2], [2, 4]]),
    ],
    ids=["swap", "rotation", "old_value"],
)
def test_donated_memory_is_read_before_it_is_overwritten(text: str, expected: list[list[float]]) -> None:
    module = parse(text)
    executable = get_backend("cpu").compile(module, CompileOptions(donate_arguments=True, use_cache=False))
    count = len(module.entry_computation.parameters)
    given = [np.array(pair, np.float32) for pair in ([1, 2], [3, 4], [5, 6])[:count]]
    results = executable(*given)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, wanted)
    donated = {alias.output_index[0]: alias.parameter_number for alias in module.config.input_output_alias}
    assert all(results[output] is given[parameter] for output, parameter in donated.items())
