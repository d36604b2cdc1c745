"""Loops that are unrolled so that their state moves between buffers instead of being copied."""

from collections.abc import Sequence

import pytest

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.passes.memory.copy_insertion import CopyInsertion
from xlalite.passes.memory.loop_double_buffering import LoopDoubleBuffering
from xlalite.passes.memory.scheduler import Scheduler

REVERSED = "r = f32[8] reverse(a), dimensions={0}"


def loop(count: int, step: str, state: Sequence[str], *, known: bool = True, size: int = 8) -> HloModule:
    """A scheduled loop over a counter and arrays a, b and c of eight elements, or more."""
    shape = "(s32[], f32[8], f32[8], f32[8])"
    config = f', backend_config={{"known_trip_count": {{"n": "{count}"}}}}' if known else ""
    parts = "\n".join(f"  {name} = f32[8] get-tuple-element(s), index={i}" for i, name in enumerate("abc", 1))
    text = f"""HloModule loop
cond {{ s = {shape} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({count})
  ROOT lt = pred[] compare(i, n), direction=LT }}
body {{ s = {shape} parameter(0)
  i = s32[] get-tuple-element(s), index=0
{parts}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  {step}
  ROOT t = {shape} tuple(j, {", ".join(state)}) }}
ENTRY e {{
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  z = f32[8] parameter(2)
  k = s32[] constant(0)
  init = {shape} tuple(k, x, y, z)
  ROOT r = {shape} while(init), condition=cond, body=body{config}
}}"""
    module = parse(text.replace("f32[8]", f"f32[{size}]"))
    Scheduler().run(module)
    return module


def copies_in_loop(module: HloModule) -> int:
    """Copies of arrays that each iteration makes."""
    CopyInsertion().run(module)
    body = next(i for i in module.instructions() if i.opcode == "while").called_computations[1]
    return sum(instruction.opcode == "copy" and instruction.shape.rank > 0 for instruction in body.instructions)


def records(module: HloModule) -> list[dict[str, object]]:
    return [dict(d.numbers) for d in module.decisions if d.decided_by == LoopDoubleBuffering.name]


@pytest.mark.parametrize("count", range(4, 9))
def test_a_state_that_is_read_while_it_is_written_alternates(transform, count: int) -> None:
    assert copies_in_loop(loop(count, REVERSED, ["r", "b", "c"])) == 1
    done = transform(LoopDoubleBuffering(), loop(count, REVERSED, ["r", "b", "c"]))
    assert records(done.module) == [{"times": 2, "bytes": 32}]
    outside = [i.opcode for i in done.module.entry_computation.instructions]
    assert outside.count("reverse") == count % 2, "what is left over runs before the loop"
    assert copies_in_loop(done.module) == 0


def test_arrays_that_are_exchanged(transform) -> None:
    done = transform(LoopDoubleBuffering(), loop(7, "m = f32[8] add(a, b)", ["b", "a", "c"]))
    assert records(done.module) == [{"times": 2, "bytes": 64}]
    assert copies_in_loop(done.module) == 0


def test_two_steps_back(transform) -> None:
    """A wave: the new array lies where the one before the last was."""
    step = f"{REVERSED}\n  d = f32[8] subtract(r, b)"
    done = transform(LoopDoubleBuffering(), loop(9, step, ["d", "a", "c"]))
    assert [record["times"] for record in records(done.module)] == [2]
    assert copies_in_loop(done.module) == 0


@pytest.mark.parametrize("count", [6, 7, 8])
def test_three_arrays_in_turn(transform, count: int) -> None:
    done = transform(LoopDoubleBuffering(), loop(count, "n = f32[8] negate(c)", ["n", "a", "b"]))
    assert [record["times"] for record in records(done.module)] == [3]
    assert copies_in_loop(done.module) == 0


@pytest.mark.parametrize("count", range(6))
def test_an_unknown_number_of_iterations(transform, count: int) -> None:
    """Before the second iteration the condition is asked; only a last one that is the first of two is a copy."""
    done = transform(LoopDoubleBuffering(), loop(count, REVERSED, ["r", "b", "c"], known=False, size=100))
    assert records(done.module) == [{"times": 2, "bytes": 400}]
    assert copies_in_loop(done.module) == 0
    branches = next(i for i in done.module.instructions() if i.opcode == "conditional").called_computations
    assert [sum(i.opcode == "copy" and i.shape.rank > 0 for i in one.instructions) for one in branches] == [0, 1]


@pytest.mark.parametrize(
    ("count", "step", "state", "known"),
    [
        (8, "n = f32[8] negate(a)", ("n", "b", "c"), True),
        (8, "u = f32[1] slice(b), slice={[0:1]}\n  n = f32[8] dynamic-update-slice(a, u, one)", ("n", "b", "c"), True),
        (8, REVERSED, ("r", "b", "c"), False),
        (3, REVERSED, ("r", "b", "c"), True),
        (
            8,
            f'{REVERSED}\n  q = f32[8] custom-call(r), custom_call_target="f", custom_call_has_side_effect=true',
            ("q", "b", "c"),
            True,
        ),
    ],
    ids=("elementwise", "update in place", "few bytes and an unknown count", "few iterations", "side effect"),
)
def test_other_loops_stay(transform, count: int, step: str, state: Sequence[str], known: bool) -> None:
    module = loop(count, step, state, known=known)
    assert not transform(LoopDoubleBuffering(), module, evaluated="custom-call" not in step).changed


def test_a_long_body_stays_for_the_sake_of_a_scalar() -> None:
    """Exchanged scalars are copied rather than thirty steps repeated."""
    steps = "\n  ".join(f"v{n} = f32[8] negate({f'v{n - 1}' if n else 'a'})" for n in range(30))
    module = loop(8, steps, ["v29", "b", "c"])
    assert not LoopDoubleBuffering().run(module)


def test_a_schedule_is_needed() -> None:
    with pytest.raises(PassError, match="is not scheduled"):
        LoopDoubleBuffering().run(parse("ENTRY e { ROOT x = f32[2] parameter(0) }"))
