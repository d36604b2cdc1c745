import pytest

from xlalite.passes.analysis.trip_count import TripCountAnnotator, trip_count
from xlalite.passes.simplify.loop_invariant_code_motion import LoopInvariantCodeMotion
from xlalite.passes.simplify.while_simplifier import WhileSimplifier

LOOP = """HloModule m

condition {
  s = (s32[], f32[4], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=3
  ROOT r = pred[] compare(i, n), direction=DIRECTION
}

body {
  s = (s32[], f32[4], f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2
  n = s32[] get-tuple-element(s), index=3
  step = s32[] constant(STEP)
  next = s32[] add(i, step)
  heavy = f32[4] tanh(y)
  heavier = f32[4] exponential(heavy)
  sum = f32[4] add(x, heavier)
  ROOT r = (s32[], f32[4], f32[4], s32[]) tuple(next, sum, y, n)
}

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  start = s32[] constant(START)
  limit = s32[] constant(LIMIT)
  s = (s32[], f32[4], f32[4], s32[]) tuple(start, x, y, limit)
  w = (s32[], f32[4], f32[4], s32[]) while(s), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}
"""


def loop(start: int = 0, limit: int = 5, step: int = 1, direction: str = "LT") -> str:
    text = LOOP.replace("START", str(start)).replace("LIMIT", str(limit))
    return text.replace("STEP", str(step)).replace("DIRECTION", direction)


@pytest.mark.parametrize(
    ("start", "limit", "step", "direction", "count"),
    [
        (0, 5, 1, "LT", 5),
        (0, 5, 2, "LT", 3),
        (0, 5, 1, "LE", 6),
        (5, 0, -1, "GT", 5),
        (5, 0, -2, "GE", 3),
        (0, 6, 3, "NE", 2),
        (0, 5, 3, "NE", None),
        (7, 5, 1, "LT", 0),
        (5, 5, 1, "EQ", 1),
        (0, 5, -1, "LT", None),
        (0, 5, 0, "LT", None),
        (0, 2147483647, 2, "LT", None),
    ],
)
def test_trip_count(start: int, limit: int, step: int, direction: str, count: int | None, transform) -> None:
    text = loop(start, limit, step, direction)
    result = transform(TripCountAnnotator(), text, evaluated=count is not None)
    (found,) = [i for i in result.module.entry_computation.instructions if i.opcode == "while"]
    assert trip_count(found) == count
    assert found.backend_config == ("" if count is None else f'{{"known_trip_count": {{"n": "{count}"}}}}')


def test_loop_that_never_runs_is_its_operand(transform) -> None:
    result = transform(WhileSimplifier(), loop(7, 5))
    assert "while" not in result.opcodes
    assert len(result.module.computations()) == 1


def test_loop_that_runs_once_is_its_body(transform) -> None:
    assert "while" not in transform(WhileSimplifier(), loop(4, 5)).opcodes


def test_loop_that_runs_twice_stays_a_loop(transform) -> None:
    assert "while" in transform(WhileSimplifier(), loop(3, 5), idempotent=False).opcodes


def test_constant_and_unneeded_elements_leave_the_state(transform) -> None:
    result = transform(WhileSimplifier(), loop(), idempotent=False)
    (found,) = [i for i in result.module.entry_computation.instructions if i.opcode == "while"]
    assert found.shape.text() == "(s32[], f32[4], f32[4])"
    assert trip_count(found) == 5


def test_state_stays_when_the_whole_tuple_is_used(transform) -> None:
    text = loop().replace("  ROOT r = f32[4] get-tuple-element(w), index=1\n", "").replace("  w = (", "  ROOT w = (")
    result = transform(WhileSimplifier(), text)
    assert result.module.entry_computation.root.shape.text() == "(s32[], f32[4], f32[4], s32[])"


def test_state_that_is_no_tuple_is_left_alone(transform) -> None:
    text = """HloModule m

condition {
  i = s32[] parameter(0)
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT r = s32[] add(i, one)
}

ENTRY e {
  zero = s32[] constant(0)
  ROOT r = s32[] while(zero), condition=condition, body=body
}
"""
    assert not transform(WhileSimplifier(), text).changed
    assert not transform(LoopInvariantCodeMotion(), text).changed


def test_invariant_work_moves_in_front_of_the_loop(transform) -> None:
    result = transform(LoopInvariantCodeMotion(), loop())
    assert "tanh" in result.opcodes
    assert "exponential" in result.opcodes
    (found,) = [i for i in result.module.entry_computation.instructions if i.opcode == "while"]
    assert found.shape.text() == "(s32[], f32[4], f32[4], s32[], f32[4])"
    assert [d.reason for d in result.module.decisions] == ["invariant"]


def test_work_on_changing_elements_stays_in_the_loop(transform) -> None:
    assert not transform(LoopInvariantCodeMotion(), loop().replace("tanh(y)", "tanh(x)")).changed


def test_work_that_would_inflate_the_state_stays_in_the_loop(transform) -> None:
    assert not transform(LoopInvariantCodeMotion(max_inflation=0.5), loop()).changed
