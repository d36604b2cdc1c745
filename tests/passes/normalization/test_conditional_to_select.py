"""Conditionals in functions that are applied to elements."""

import numpy as np
import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.normalization.conditional_to_select import ConditionalToSelect

TWICE = """twice { v = f32[] parameter(0)
  ROOT r = f32[] add(v, v) }
"""
SQUARE = """square { v = f32[] parameter(0)
  ROOT r = f32[] multiply(v, v) }
"""
OPPOSITE = """opposite { v = f32[] parameter(0)
  ROOT r = f32[] negate(v) }
"""
MAP = """ENTRY e { x = f32[5] parameter(0)
  ROOT r = f32[5] map(x), dimensions={0}, to_apply=f }
"""
X = np.array([-2, -1, 0, 1, 3], np.float32)


def opcodes(module: HloModule) -> list[str]:
    return [instruction.opcode for instruction in module.instructions()]


def replaced(text: str) -> HloModule:
    """The module after the pass, which gives what it gave before."""
    module = parse("HloModule m\n" + text)
    expected = evaluate(module, X)
    assert ConditionalToSelect().run(module)
    verify(module)
    assert "conditional" not in opcodes(module)
    np.testing.assert_array_equal(evaluate(module, X), expected)
    return module


def test_a_predicate_selects() -> None:
    replaced(
        TWICE
        + SQUARE
        + """f { a = f32[] parameter(0)
  z = f32[] constant(0)
  p = pred[] compare(a, z), direction=GT
  ROOT r = f32[] conditional(p, a, a), true_computation=twice, false_computation=square }
"""
        + MAP
    )


def test_an_index_out_of_range_selects_the_last() -> None:
    replaced(
        TWICE
        + SQUARE
        + OPPOSITE
        + """f { a = f32[] parameter(0)
  i = s32[] convert(a)
  ROOT r = f32[] conditional(i, a, a, a), branch_computations={twice, square, opposite} }
"""
        + MAP
    )


def test_tuples_and_conditionals_inside_branches() -> None:
    replaced(
        TWICE
        + SQUARE
        + """inner { t = (f32[], pred[]) parameter(0)
  a = f32[] get-tuple-element(t), index=0
  p = pred[] get-tuple-element(t), index=1
  c = f32[] conditional(p, a, a), true_computation=twice, false_computation=square
  ROOT r = (f32[], f32[]) tuple(c, a) }
outer { t = (f32[], pred[]) parameter(0)
  a = f32[] get-tuple-element(t), index=0
  n = f32[] negate(a)
  ROOT r = (f32[], f32[]) tuple(a, n) }
f { a = f32[] parameter(0)
  one = f32[] constant(1)
  p = pred[] compare(a, one), direction=GE
  q = pred[] compare(a, one), direction=NE
  t = (f32[], pred[]) tuple(a, p)
  c = (f32[], f32[]) conditional(q, t, t), true_computation=inner, false_computation=outer
  x = f32[] get-tuple-element(c), index=0
  y = f32[] get-tuple-element(c), index=1
  ROOT r = f32[] subtract(x, y) }
"""
        + MAP
    )


KEPT = {
    "a branch that might not end": """on { v = f32[] parameter(0)
  z = f32[] constant(0)
  ROOT r = pred[] compare(v, z), direction=GT }
less { v = f32[] parameter(0)
  o = f32[] constant(1)
  ROOT r = f32[] subtract(v, o) }
branch { v = f32[] parameter(0)
  ROOT r = f32[] while(v), condition=on, body=less }
""",
    "a branch with an effect": """branch { v = f32[] parameter(0)
  ROOT r = f32[] custom-call(v), custom_call_target="noise", custom_call_has_side_effect=true }
""",
}


@pytest.mark.parametrize("name", KEPT)
def test_branches_that_must_not_always_run_stay(name: str) -> None:
    module = parse(
        "HloModule m\n"
        + SQUARE
        + KEPT[name]
        + """f { a = f32[] parameter(0)
  z = f32[] constant(0)
  p = pred[] compare(a, z), direction=GT
  ROOT r = f32[] conditional(p, a, a), true_computation=branch, false_computation=square }
"""
        + MAP
    )
    assert not ConditionalToSelect().run(module)
    assert [(d.verdict, d.reason) for d in module.decisions] == [
        ("not replaced", "a branch has effects, or might not end")
    ]


def test_conditionals_of_the_program_stay() -> None:
    module = parse(
        "HloModule m\n"
        + TWICE
        + SQUARE
        + """ENTRY e { p = pred[] parameter(0)
  a = f32[] parameter(1)
  ROOT r = f32[] conditional(p, a, a), true_computation=twice, false_computation=square }"""
    )
    assert not ConditionalToSelect().run(module)
