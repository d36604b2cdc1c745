"""Run-time sizes become padded arrays with sizes; the evaluator is asked only for what it would refuse."""

from xlalite.hlo.text import parse
from xlalite.passes.normalization.dynamic_padder import DynamicPadder
from xlalite.passes.normalization.run_time_sizes import RunTimeSizes

TEXT = """HloModule m
add {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q) }}
last {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] negate(q) }}
ENTRY e {{
  a = f32[3] parameter(0)
  n = s32[] {size}
  z = f32[] constant(0)
  x = f32[<=3] set-dimension-size(a, n), dimensions={{0}}
  y = f32[<=3] add(x, x)
  ROOT s = f32[] reduce(y, z), dimensions={{0}}, to_apply={function}
}}
"""


def outlined(size: str = "constant(2)", function: str = "add"):
    module = parse(TEXT.format(size=size, function=function))
    RunTimeSizes().run(module)
    return module


def test_a_sum_reads_zeros_where_nothing_counts(transform) -> None:
    result = transform(DynamicPadder(), outlined())
    assert {"set-dimension-size", "reduce", "iota", "select", "conditional"} - set(result.opcodes) == {
        "set-dimension-size"
    }


def test_the_evaluator_refuses_sizes_that_do_not_fit(transform) -> None:
    result = transform(DynamicPadder(), outlined("parameter(1)"), evaluated=False)
    (call,) = [one for one in result.module.instructions() if one.opcode == "custom-call"]
    assert call.attrs.custom_call_target == "xlalite.refuse"
    assert call.parent is not result.module.entry_computation


def test_what_has_no_padded_form_stays_with_a_record(transform) -> None:
    result = transform(DynamicPadder(), outlined(function="last"))
    assert not result.changed
    assert "no padded form of reduce" in {decision.reason for decision in result.module.decisions}


def test_other_calls_stay(transform) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] custom-call(x), custom_call_target="f"
}
"""
    assert not transform(DynamicPadder(), text, evaluated=False).changed
