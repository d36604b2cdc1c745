"""Differences that rounding explains, and those that it does not."""

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import parse
from xlalite.hlo.tools.referee import Referee, distances
from xlalite.hlo.tools.widening import widen, widen_value
from xlalite.hlo.types.literal import Value
from xlalite.hlo.verification.verifier import verify


def entry(body: str) -> str:
    return "HloModule t\n\nadd { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b) }\n\n" + (
        f"ENTRY e {{\n{body}\n}}"
    )


def f32(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def explained(text: str, arguments: list[Value], found: np.ndarray) -> list[bool]:
    """Whether the referee takes the distance of an array from the interpreter's result for rounding."""
    module = parse(text)
    expected = evaluate(module, *arguments)
    assert isinstance(expected, np.ndarray)
    opinion = Referee(module, arguments).judge(0, found, expected, np.ones(found.shape, np.bool_))
    return list(map(bool, np.ravel(opinion.rounding)))


CANCELLATION = entry("""  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  m = f32[2] multiply(x, x)
  ROOT d = f32[2] subtract(m, y)""")


def test_what_cancellation_leaves_is_rounding() -> None:
    x = f32(1.1, 3.0)
    # A fused multiply-add leaves what the product was rounded by; 3 * 3 is exact, so nothing excuses the second.
    found = f32(np.float64(x[0]) ** 2 - np.float64(x[0] * x[0]), 1e-6)
    assert found[0] != 0
    assert explained(CANCELLATION, [x, x * x], found) == [True, False]


def test_a_wrong_number_is_none() -> None:
    x = f32(1.1, 3.0)
    assert explained(CANCELLATION, [x, f32(0, 0)], f32(1.2100005, 9.0)) == [True, True]
    assert explained(CANCELLATION, [x, f32(0, 0)], f32(1.211, 9.0001)) == [False, False]


def test_far_on_either_side_is_a_mismatch() -> None:
    """An evaluation that loses accuracy is not excused by another that does not."""
    module = parse(CANCELLATION)
    arguments = [f32(1.1, 3.0), f32(0, 0)]
    right, wrong = f32(1.21, 9.0), f32(1.3, 9.0)
    referee = Referee(module, arguments)
    for found, expected in ((right, wrong), (wrong, right)):
        opinion = referee.judge(0, found, expected, np.array([True, False]))
        assert not opinion.rounding.any()


DECISION = entry("""  x = f32[3] parameter(0)
  three = f32[] constant(3)
  threes = f32[3] broadcast(three), dimensions={}
  third = f32[3] divide(x, threes)
  sum = f32[3] multiply(third, threes)
  ROOT r = s32[3] convert(sum)""")


def test_a_conversion_is_decided_by_rounding_only_near_an_integer() -> None:
    x = f32(7.0, 7.5, 6.0)
    assert explained(DECISION, [x], np.array([6, 7, 6], np.int32)) == [True, True, True]
    assert explained(DECISION, [x], np.array([5, 6, 5], np.int32)) == [False, False, False]


def test_order_of_a_sum_matters_but_not_of_small_integers() -> None:
    text = entry("""  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add""")
    big = f32(1.1e8, 1.3, -1.1e8, 0.7)
    assert explained(text, [big], np.asarray(np.float32(8.0))) == [True]
    assert explained(text, [f32(1, 2, 3, -6)], np.asarray(np.float32(1e-6))) == [False]


def test_range_is_that_of_the_own_type() -> None:
    """What overflows in f32 is infinite, though f64 could hold it."""
    text = entry("""  x = f32[2] parameter(0)
  m = f32[2] multiply(x, x)
  ROOT q = f32[2] divide(m, x)""")
    assert explained(text, [f32(1e30, 2.0)], f32(np.inf, 2.0)) == [True, True]
    assert explained(text, [f32(1e30, 2.0)], f32(1e30, 2.0)) == [False, True]


LAST_IN_TOTAL_ORDER = """HloModule t

last {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  behind = pred[] compare(a, b), direction=GT, type=TOTALORDER
  ROOT c = f32[] select(behind, a, b)
}

ENTRY e {
  x = f32[9] parameter(0)
  p = f32[9] power(x, x)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=last
}"""

SORTED_IN_TOTAL_ORDER = """HloModule t

before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER
}

ENTRY e {
  x = f32[3] parameter(0)
  p = f32[3] power(x, x)
  ROOT r = f32[3] sort(p), dimensions={0}, to_apply=before
}"""


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_operation_promises_the_sign_of_nan(sign: float) -> None:
    """Which decides a total order; what only chooses among values keeps it through all steps of a reduction."""
    nan = np.copysign(np.float32(np.nan), np.float32(sign))
    found = np.array(nan if sign > 0 else 1.0, np.float32)
    assert explained(LAST_IN_TOTAL_ORDER, [f32(-1.5, *[1.0] * 8)], found) == [True]
    found = f32(1, 4, nan) if sign > 0 else f32(nan, 1, 4)
    assert explained(SORTED_IN_TOTAL_ORDER, [f32(2, -1.5, 1)], found) == [True] * 3


def test_an_order_of_numbers_is_none_of_rounding() -> None:
    assert explained(LAST_IN_TOTAL_ORDER, [f32(*[1.0] * 9)], np.array(np.nan, np.float32)) == [False]
    assert explained(SORTED_IN_TOTAL_ORDER, [f32(2, 3, 1)], f32(4, 1, 27)) == [False, False, True]


def test_a_loop_that_rounding_would_not_let_end_is_stopped() -> None:
    text = """HloModule t

condition { s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  last = f32[] get-tuple-element(s), index=1
  ROOT p = pred[] compare(x, last), direction=NE }

body { s = (f32[], f32[]) parameter(0)
  x = f32[] get-tuple-element(s), index=0
  two = f32[] constant(2)
  half = f32[] constant(0.5)
  q = f32[] divide(two, x)
  t = f32[] add(x, q)
  m = f32[] multiply(t, half)
  ROOT r = (f32[], f32[]) tuple(m, x) }

ENTRY e {
  x = f32[] parameter(0)
  z = f32[] constant(0)
  s = (f32[], f32[]) tuple(x, z)
  w = (f32[], f32[]) while(s), condition=condition, body=body
  ROOT r = f32[] get-tuple-element(w), index=0
}"""
    assert explained(text, [np.float32(3.0).reshape(())], np.asarray(np.float32(1.4142137))) == [True]


def test_random_numbers_have_no_f64_value() -> None:
    module = parse(
        entry("""  a = f32[] constant(0)
  b = f32[] constant(1)
  ROOT r = f32[3] rng(a, b), distribution=rng_uniform""")
    )
    with pytest.raises(EvaluationError, match="may differ from run to run"):
        Referee(module, [])


def test_every_operation_is_near_its_f64_value(op_case, op_dtype, rng) -> None:
    """And widening gives a valid module that computes the same integers."""
    module = parse(op_case.text(op_dtype))
    opcodes = {instruction.op for instruction in module.instructions()}
    if not op_case.is_local or any(op.has(Trait.SIDE_EFFECT) or op.has(Trait.NON_DETERMINISTIC) for op in opcodes):
        with pytest.raises(EvaluationError):
            Referee(module, op_case.arguments(module, op_dtype, rng))
        return
    verify(widen(module).module)
    arguments = op_case.arguments(module, op_dtype, rng)
    referee = Referee(module, arguments)
    for number, value in enumerate(leaves(evaluate(module, *arguments))):
        opinion = referee.judge(number, value, value, np.ones(value.shape, np.bool_))
        assert opinion.rounding.all(), f"{op_case.opcode}: {value[~opinion.rounding]}"


def test_distances_know_nan_and_infinity() -> None:
    one, other = np.array([1, np.nan, np.nan, np.inf, np.inf, 2.0]), np.array([1, np.nan, 1, np.inf, 1, 2.5])
    assert distances(one, other).tolist() == [0, 0, np.inf, 0, np.inf, 0.5]
    big = np.array([2**63 - 1, 2**53], np.int64)
    assert distances(big, np.array([2**63 - 2, 2**53 + 1], np.int64)).tolist() == [1, 1]


def test_widening_keeps_integers() -> None:
    assert widen_value(np.arange(3, dtype=np.int8)).dtype == np.int8
    assert set(OPS) >= {"bitcast-convert", "custom-call"}
