"""Readers of an array run before what overwrites it, wherever dependencies allow."""

import random

import pytest

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.text import parse
from xlalite.passes.memory.scheduler import schedule


def scheduled(lines: list[str]) -> dict[str, int]:
    """The position of each instruction of an entry, by name."""
    module = parse(
        "\n".join(["HloModule m", "ENTRY e {", "x = f32[8] parameter(0)", "i = s32[] constant(1)", *lines, "}"])
    )
    return {instruction.name: number for number, instruction in enumerate(schedule(module.entry_computation))}


def test_a_reader_behind_in_post_order_runs_first() -> None:
    at = scheduled([
        "n = f32[8] negate(x)",
        "k = f32[1] constant({3})",
        "u = f32[8] dynamic-update-slice(n, k, i)",
        "r = f32[8] exponential(n)",
        "ROOT t = (f32[8], f32[8]) tuple(u, r)",
    ])  # fmt: skip
    assert at["r"] < at["u"]


RECEIVE = "(f32[8], u32[], token[]) recv(t), channel_id=1"


def test_what_sends_runs_before_what_waits() -> None:
    at = scheduled([
        "t = token[] after-all()",
        f"r = {RECEIVE}",
        "d = (f32[8], token[]) recv-done(r), channel_id=1",
        "v = f32[8] get-tuple-element(d), index=0",
        "w = f32[8] negate(v)",
        "s2 = (f32[8], u32[], token[]) send(w, t), channel_id=2",
        "n = f32[8] negate(x)",
        "s1 = (f32[8], u32[], token[]) send(n, t), channel_id=1",
        "e1 = token[] send-done(s1), channel_id=1",
        "e2 = token[] send-done(s2), channel_id=2",
        "f = (f32[8], token[]) infeed(t)",
        "ROOT a = token[] after-all(e1, e2)",
    ])  # fmt: skip
    assert at["s1"] < at["d"] < at["s2"] < at["f"]


def test_what_is_called_sends_and_waits_too() -> None:
    module = parse("""HloModule m
sending { x = f32[8] parameter(0)
 t = token[] after-all()
 s = (f32[8], u32[], token[]) send(x, t), channel_id=1
 ROOT e = token[] send-done(s), channel_id=1 }
waiting { t = token[] parameter(0)
 r = (f32[8], u32[], token[]) recv(t), channel_id=1
 ROOT d = (f32[8], token[]) recv-done(r), channel_id=1 }
ENTRY e { t = token[] after-all()
 w = (f32[8], token[]) call(t), to_apply=waiting
 x = f32[8] parameter(0)
 s = token[] call(x), to_apply=sending
 ROOT r = (token[], (f32[8], token[])) tuple(s, w) }""")
    at = {instruction.name: number for number, instruction in enumerate(schedule(module.entry_computation))}
    assert at["s"] < at["w"]


def test_a_reader_that_needs_the_update_runs_later() -> None:
    at = scheduled([
        "n = f32[8] negate(x)",
        "k = f32[1] constant({3})",
        "u = f32[8] dynamic-update-slice(n, k, i)",
        "r = f32[8] add(n, u)",
        "s = f32[8] exponential(n)",
        "ROOT t = (f32[8], f32[8]) tuple(r, s)",
    ])  # fmt: skip
    assert at["s"] < at["u"] < at["r"]


@pytest.mark.parametrize("seed", range(20))
def test_demands_close_no_cycle(seed: int) -> None:
    """Two updates of one array, or updates that read what the other overwrites, cannot both have their way."""
    chance = random.Random(seed)
    values = ["x", "n"]
    lines = ["n = f32[8] negate(x)"]
    for number in range(40):
        target, piece = chance.choice(values), chance.choice(values)
        lines += [f"w{number} = f32[2] slice({piece}), slice={{[2:4]}}"]
        lines += [f"v{number} = f32[8] dynamic-update-slice({target}, w{number}, i)"]
        values = [*values[-6:], f"v{number}"]
    text = ["HloModule m", "ENTRY e {", "x = f32[8] parameter(0)", "i = s32[] constant(1)", *lines]
    text += [f"ROOT t = ({', '.join(['f32[8]'] * 40)}) tuple({', '.join(f'v{k}' for k in range(40))})", "}"]
    computation = parse("\n".join(text)).entry_computation
    order = schedule(computation)
    at = {instruction: number for number, instruction in enumerate(order)}
    assert len(order) == len(computation.instructions)
    assert all(at[operand] < at[user] for user in order for operand in user.operands)
    assert {(reader, update) for reader, update in wishes(order) if at[reader] < at[update]} >= alone(order)


def wishes(order: list[HloInstruction]) -> list[tuple[HloInstruction, HloInstruction]]:
    """Each reader of an array with each instruction that overwrites it."""
    changing = [instruction for instruction in order if instruction.opcode == "dynamic-update-slice"]
    return [(reader, one) for one in changing for reader in one.operand(0).users if reader is not one]


def alone(order: list[HloInstruction]) -> set[tuple[HloInstruction, HloInstruction]]:
    """Those that dependencies and the wishes of all others together leave free."""
    every = wishes(order)
    found = set()
    for reader, update in every:
        others = [wish for wish in every if wish != (reader, update)]
        after = {one: [*one.users, *(then for first, then in others if first is one)] for one in order}
        if reader not in reachable([update], after.__getitem__):
            found.add((reader, update))
    return found
