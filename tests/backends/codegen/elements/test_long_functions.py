"""Functions that are applied to elements may be as long as they like."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

LENGTH = 1500

USES = {
    "reduce": "f32[16] reduce(x, z), dimensions={1}, to_apply=f",
    "reduce-window": "f32[16,3] reduce-window(x, z), window={size=1x2 stride=1x2}, to_apply=f",
    "scatter": "f32[16,6] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={1}, "
    "scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=f",
    "sort": "f32[16,6] sort(x), dimensions={0}, to_apply=less",
}


@pytest.mark.parametrize("use", USES)
def test_a_function_of_many_instructions(check: Callable[..., Any], use: str) -> None:
    steps = [f"  v{n + 1} = f32[] {('maximum', 'minimum')[n % 2]}(v{n}, {'lh'[n % 2]})" for n in range(LENGTH)]
    given = ("v0 = f32[] parameter(0)", "b = f32[] parameter(1)", "l = f32[] constant(-9)", "h = f32[] constant(9)")
    chain = "\n".join([*(f"  {each}" for each in given), *steps])
    text = f"""HloModule m
f {{
{chain}
  ROOT r = f32[] maximum(v{LENGTH}, b)
}}
less {{
{chain}
  ROOT r = pred[] compare(v{LENGTH}, b), direction=LT
}}
ENTRY e {{
  x = f32[16,6] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[16,3] parameter(2)
  z = f32[] constant(0)
  ROOT y = {USES[use]}
}}"""
    x, u = np.linspace(3, -3, 96, dtype=np.float32).reshape(16, 6), np.ones((16, 3), np.float32)
    check(text, x, np.array([[0], [2], [5]], np.int32), u)
