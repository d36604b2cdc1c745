"""What still asks the evaluator: custom calls, and what other devices or the host must answer."""

from typing import Any

import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType


def reasons(text: str) -> list[str]:
    found = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions(num_threads=2))
    return [decision.reason for decision in found.decisions if "opcode" in decision.numbers]


ELSEWHERE = ("infeed", "outfeed", "send", "send-done", "recv", "recv-done", "ragged-all-to-all")
OTHERS = ("ragged-dot", "scaled-dot", "set-dimension-size", "dynamic-reshape", "custom-call")


def test_no_record_asks_the_evaluator(op_case: Any, op_dtype: DType) -> None:
    found = reasons(op_case.text(op_dtype))
    if op_case.opcode in ELSEWHERE:
        assert set(found) == {"it asks other devices, or the host"}
    elif op_case.opcode not in OTHERS:
        assert not found


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ('r = f32[4] custom-call(x), custom_call_target="f"', "it is a custom call of f"),
        ("r = f32[8] all-gather(x), replica_groups={{0,1}}, dimensions={0}", "it asks other devices, or the host"),
    ],
)
def test_the_record_says_who_is_asked(root: str, reason: str) -> None:
    text = f"HloModule m, replica_count=2\nENTRY e {{ x = f32[4] parameter(0)\n ROOT {root} }}"
    assert reasons(text) == [reason]
