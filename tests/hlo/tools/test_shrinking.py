"""Cases get smaller as long as they fail."""

import numpy as np

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.tools.shrinking import Case, shrink

PROGRAM = parse("""HloModule program

inner { a = f64[4,6] parameter(0)
  t = f64[4,6] tanh(a)
  c = f64[4,6] ceil(t)
  ROOT n = f64[4,6] negate(c) }

ENTRY main {
  x = f64[4,6] parameter(0)
  y = f64[6,4] parameter(1)
  d = f64[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f64[4,6] sine(x), metadata={op_name="s"}
  i = f64[4,6] call(s), to_apply=inner
  p = f64[4,6] add(i, x)
  ROOT r = (f64[4,4], f64[4,6], f64[4,6]) tuple(d, p, s)
}""")
ARGUMENTS = (np.linspace(-1, 1, 24).reshape(4, 6), np.ones((6, 4)))


def opcodes(case: Case) -> list[str]:
    return [instruction.opcode for instruction in case.module.instructions()]


def test_nothing_but_the_culprit_remains() -> None:
    smallest = shrink(Case(PROGRAM, ARGUMENTS), lambda case: "ceil" in opcodes(case))
    assert opcodes(smallest) == ["constant", "ceil"]
    assert smallest.module.entry_computation.root.shape.element_count == 1
    assert not smallest.arguments


def test_values_that_matter_are_kept() -> None:
    def rounds_up(case: Case) -> bool:
        value = evaluate(case.module, *case.arguments)
        return isinstance(value, np.ndarray) and "ceil" in opcodes(case) and bool((value == -1).any())

    smallest = shrink(Case(PROGRAM, ARGUMENTS), rounds_up)
    assert rounds_up(smallest)
    assert len(opcodes(smallest)) <= 4


def test_text_can_be_read_again() -> None:
    smallest = shrink(Case(PROGRAM, ARGUMENTS), lambda case: "dot" in opcodes(case) and len(case.arguments) == 2)
    text = smallest.text()
    assert opcodes(Case(parse(text), ())) == opcodes(smallest)
    assert text.count("// ") == 2


def test_arguments_may_have_fewer_elements_than_their_bound() -> None:
    text = (
        "HloModule m\nENTRY e {\n x = f32[<=4] parameter(0)\n y = f32[<=4] negate(x)\n ROOT t = (f32[<=4]) tuple(y)\n}"
    )
    smallest = shrink(Case(parse(text), (np.ones(3, np.float32),)), lambda case: "negate" in opcodes(case))
    assert "// x = f32[<=4] {" in smallest.text()


def test_the_case_given_stays_as_it_is() -> None:
    before = str(PROGRAM)
    shrink(Case(PROGRAM, ARGUMENTS), lambda case: "tanh" in opcodes(case))
    assert str(PROGRAM) == before


def test_no_more_trials_than_allowed() -> None:
    trials = []
    case = Case(PROGRAM, ARGUMENTS)
    shrink(case, lambda one: bool(trials.append(one)) or "ceil" in opcodes(one), most_trials=5)
    assert len(trials) == 5


def test_what_does_not_fail_in_a_smaller_way_is_returned() -> None:
    case = Case(PROGRAM, ARGUMENTS)
    assert shrink(case, lambda one: False) is case


def test_values_that_the_evaluator_need_not_compute_can_be_cut_off() -> None:
    """Arrays without elements, and elements of tuples at hand."""
    module = parse("""HloModule t
ENTRY e {
  x = f32[3,0] parameter(0)
  y = f32[3] parameter(1)
  a = f32[3,0] sine(x)
  b = f32[3,0] cosine(a)
  t = (f32[3,0], f32[3]) tuple(b, y)
  g = f32[3,0] get-tuple-element(t), index=0
  h = f32[3] get-tuple-element(t), index=1
  n = f32[3] negate(h)
  ROOT r = (f32[3,0], f32[3]) tuple(g, n)
}""")
    case = Case(module, (np.zeros((3, 0), np.float32), np.ones(3, np.float32)))
    assert opcodes(shrink(case, lambda one: "negate" in opcodes(one))) == ["constant", "negate"]
