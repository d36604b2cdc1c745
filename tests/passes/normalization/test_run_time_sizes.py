"""Instructions with run-time sizes move into calls of the evaluator; everything else stays what it is."""

import numpy as np

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.normalization.run_time_sizes import RunTimeSizes

TEXT = """HloModule m
add {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q) }}
ENTRY e {{
  a = f32[3] parameter(0)
  two = s32[] constant(2)
  z = f32[] constant(0)
  b = f32[3] negate(a)
  x = f32[<=3] set-dimension-size(b, two), dimensions={{0}}
  s = f32[] reduce(x, z), dimensions={{0}}, to_apply=add
  e = f32[] exponential(s)
  {body}
}}
"""


def calls(result) -> list[str]:
    """The modules that calls hold."""
    instructions = result.module.entry_computation.instructions
    return [i.backend_config for i in instructions if i.opcode == "custom-call"]


def test_a_group_becomes_one_call(transform) -> None:
    result = transform(RunTimeSizes(), TEXT.format(body="ROOT r = (f32[], f32[3]) tuple(e, b)"))
    (call,) = calls(result)
    inside = [i.opcode for i in parse(call).entry_computation.instructions]
    assert sorted(inside) == ["constant", "constant", "parameter", "reduce", "set-dimension-size", "tuple"]
    assert {"negate", "exponential"} <= set(result.opcodes)
    assert [d.reason for d in result.module.decisions] == ["sizes known at run time"]


def test_what_lies_between_goes_along(transform) -> None:
    body = "c = f32[3] broadcast(e), dimensions={}\n  ROOT y = f32[] reduce(w, z), dimensions={0}, to_apply=add"
    body = body.replace("ROOT", "w = f32[<=3] multiply(x, c)\n  ROOT")
    result = transform(RunTimeSizes(), TEXT.format(body=body))
    (call,) = calls(result)
    assert "exponential" in call
    assert "exponential" not in result.opcodes
    assert "negate" in result.opcodes


def test_groups_that_only_follow_each_other_stay_apart(transform) -> None:
    body = (
        "c = f32[3] broadcast(e), dimensions={}\n  y = f32[<=3] set-dimension-size(c, two), dimensions={0}\n"
        "  ROOT t = f32[] reduce(y, z), dimensions={0}, to_apply=add"
    )
    result = transform(RunTimeSizes(), TEXT.format(body=body))
    assert len(calls(result)) == 2
    assert {"negate", "exponential", "broadcast"} <= set(result.opcodes)


def test_what_nobody_reads_goes(transform) -> None:
    result = transform(RunTimeSizes(), TEXT.format(body="ROOT r = f32[3] copy(b)"))
    assert len(calls(result)) == 1  # the sum, which dead code elimination takes
    text = TEXT.format(body="ROOT r = f32[3] copy(b)").replace("  s = ", "  //").replace("  e = ", "  //")
    assert not calls(transform(RunTimeSizes(), text))


def test_loop_bodies_have_calls_of_their_own(transform) -> None:
    text = """HloModule m
    more { i = s32[] parameter(0)
      five = s32[] constant(5)
      ROOT r = pred[] compare(i, five), direction=LT }
    body { i = s32[] parameter(0)
      two = s32[] constant(2)
      c = s32[3] broadcast(i), dimensions={}
      x = s32[<=3] set-dimension-size(c, two), dimensions={0}
      k = s32[] get-dimension-size(x), dimensions={0}
      ROOT r = s32[] add(i, k) }
    ENTRY e { i = s32[] parameter(0)
      ROOT w = s32[] while(i), condition=more, body=body }"""
    result = transform(RunTimeSizes(), text)
    assert "while" in result.opcodes
    (body,) = [c for c in result.module.computations() if c.name == "body"]
    assert [i.opcode for i in body.instructions if i.opcode in ("custom-call", "add")] == ["add", "custom-call"]


def test_an_entry_takes_and_gives_the_largest_sizes() -> None:
    module = parse("HloModule m\nENTRY e {\n  x = f32[<=4] parameter(0)\n  ROOT r = f32[<=4] add(x, x)\n}\n")
    assert RunTimeSizes().run(module)
    verify(module)
    assert str(module.entry_computation.program_shape) == "(f32[4], s32[]) -> (f32[4], s32[])"
    found, size = evaluate(module, np.array([1, 2, 3, 4], np.float32), np.int32(3))
    np.testing.assert_array_equal(found, [2, 4, 6, 0])
    assert size == 3


def test_modules_of_known_sizes_stay_as_they_are(transform) -> None:
    assert not transform(RunTimeSizes(), "HloModule m\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n").changed
