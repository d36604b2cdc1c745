"""Reshapes that functions lead back, and those between rows and channels."""

from typing import Any

import pytest

import xlalite as xl
from xlalite.hlo.text import parse
from xlalite.passes.simplify.reshape_mover import ReshapeMover


def there_and_back(middle: str, result: str = "f32[2,3,32]") -> str:
    return f"""HloModule m
ENTRY e {{
  x = f32[2,3,32] parameter(0)
  w = f32[6] parameter(1)
  a = f32[2,3,32] tanh(x)
  r = f32[6,4,8] reshape(a)
  b = f32[6,4,8] broadcast(w), dimensions={{0}}
  two = f32[] constant(2)
  twos = f32[6,4,8] broadcast(two), dimensions={{}}
  p = f32[6,4,8] multiply(r, b)
  {middle}
  back = {result} reshape(q)
  ROOT t = ({result}, f32[6,4,8]) tuple(back, p) }}"""


@pytest.mark.parametrize(
    ("middle", "result", "is_gone"),
    [
        ("q = f32[6,4,8] add(r, b)", "f32[2,3,32]", True),
        ("o = f32[6,4,8] negate(b)\n  q = f32[6,4,8] maximum(o, twos)", "f32[2,3,32]", False),
        (
            "s = f32[6,4,8] reshape(a)\n  o = f32[6,4,8] add(s, b)\n  q = f32[6,4,8] multiply(o, twos)",
            "f32[2,3,32]",
            True,
        ),
        ("s = f32[6,4,8] reshape(a)\n  q = f32[6,4,8] add(s, b)", "f32[3,2,32]", False),
    ],
)
def test_reshapes_there_and_back(transform: Any, middle: str, result: str, is_gone: bool) -> None:
    found = transform(ReshapeMover(), there_and_back(middle, result)).module.entry_computation
    assert (found.root.operand(0).opcode != "reshape") == is_gone


def normalised(channel: int, operation: str) -> str:
    rows = f"f32[2,3,{2 * channel}]"
    channels = f"f32[2,6,{channel}]"
    return f"""HloModule m
add {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }}
ENTRY e {{
  x = {rows} parameter(0)
  w = f32[6] parameter(1)
  zero = f32[] constant(0)
  total = f32[2,3] reduce(x, zero), dimensions={{2}}, to_apply=add
  root = f32[2,3] tanh(total)
  spread = {rows} broadcast(root), dimensions={{0,1}}
  p = {rows} {operation}
  r = {channels} reshape(p)
  b = {channels} broadcast(w), dimensions={{1}}
  m = {channels} multiply(r, b)
  ROOT s = {channels} add(m, b) }}"""


@pytest.mark.parametrize(
    ("channel", "operation", "moves"),
    [
        (32, "multiply(x, spread)", True),
        (48, "multiply(x, spread)", True),
        (49, "multiply(x, spread)", False),
        (32, "multiply(x, x)", False),
    ],
)
def test_channels_of_normalised_groups(transform: Any, channel: int, operation: str, moves: bool) -> None:
    found = transform(ReshapeMover(), normalised(channel, operation)).module.entry_computation
    assert (found.root.opcode == "reshape") == moves


def test_a_normalisation_of_groups_is_one_kernel() -> None:
    executable = xl.compile(parse(normalised(32, "multiply(x, spread)")))
    assert [d.verdict for d in executable.decisions() if d.decided_by == "kernel planner"] == ["row"]


@pytest.mark.parametrize("scalar", ["reshape(p)", "transpose(q), dimensions={}", "broadcast(q), dimensions={}"])
def test_a_scalar_that_chooses_between_arrays_says_nothing_of_sizes(transform: Any, scalar: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  p = pred[1] parameter(0)
  q = pred[] parameter(1)
  c = pred[] {scalar}
  one = f32[] constant(1)
  two = f32[] constant(2)
  ones = f32[2,3] broadcast(one), dimensions={{}}
  twos = f32[2,3] broadcast(two), dimensions={{}}
  ROOT s = f32[2,3] select(c, ones, twos) }}"""
    assert transform(ReshapeMover(), text).module.entry_computation.root.opcode in ("select", "broadcast")
