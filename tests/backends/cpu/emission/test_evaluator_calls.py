"""What still asks the evaluator: custom calls, and what the host must answer."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.surroundings.host_transfers import HostTransfers, host_transfers
from xlalite.hlo.text import parse


def reasons(text: str) -> list[str]:
    found = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=2))
    return [decision.reason for decision in found.decisions if decision.leaves_native_code]


def test_no_record_asks_the_evaluator(op_case: Any) -> None:
    for dtype in {op_case.dtypes[0], op_case.dtypes[-1]}:
        assert not reasons(op_case.text(dtype))


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ('r = f32[4] custom-call(x), custom_call_target="f"', "it is a custom call of f"),
        ("r = f32[4] all-to-all(x), replica_groups={{0,2}}", "all-to-all (%r) needs replica 2, there are 2"),
    ],
)
def test_the_record_says_who_is_asked(root: str, reason: str) -> None:
    text = f"HloModule m, replica_count=2\nENTRY e {{ x = f32[4] parameter(0)\n ROOT {root} }}"
    assert reasons(text) == [reason]


def test_the_host_keeps_what_the_program_overwrites() -> None:
    text = """HloModule m
on { s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  t = token[] after-all()
  o = token[] outfeed(x, t), outfeed_shape=f32[3]{0}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[3] add(x, x), control-predecessors={o}
  ROOT r = (s32[], f32[3]) tuple(j, y) }
ENTRY e { x = f32[3] parameter(0)
  z = s32[] constant(0)
  n = f32[3] negate(x)
  t = (s32[], f32[3]) tuple(z, n)
  w = (s32[], f32[3]) while(t), condition=on, body=body
  ROOT r = f32[3] get-tuple-element(w), index=1 }"""
    x = np.arange(3, dtype=np.float32)
    executable = get_backend("cpu").compile(parse(text), CompileOptions())
    with host_transfers(HostTransfers()) as host:
        np.testing.assert_array_equal(executable(x), -8 * x)
    np.testing.assert_array_equal(host.outfeed, [-x, -2 * x, -4 * x])
