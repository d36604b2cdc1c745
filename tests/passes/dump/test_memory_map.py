"""The picture of the arena says what buffer assignment says, and what a call really needs."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.backends.cpu.native.call.call_records import CallRecord
from xlalite.passes.dump.memory_map import (
    ArenaValue,
    alive_bytes,
    arena_size,
    arena_values,
    memory_map,
    rematerializations,
    used_bytes,
)

_ALIGNMENT = 64


def _mlp(x: Any) -> Any:
    for _ in range(3):
        x = np.tanh(x @ x.T @ x) / 8
    return x


def _attention(x: Any) -> Any:
    scores = x @ x.T
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)).T @ (x + scores)


def _loop(x: Any) -> Any:
    return xl.fori_loop(0, 3, lambda i, y: np.cumsum(y, axis=0) @ x, x)


@pytest.mark.parametrize("model", [_mlp, _attention, _loop])
def test_the_peak_is_what_a_call_needs(model: Any) -> None:
    executable = xl.jit(model).executable(np.ones((48, 48), np.float32))
    report = executable.memory_analysis().report
    assert arena_size(report) == executable.memory_analysis().temp_size_bytes > 0
    values = arena_values(report)
    peak = max(top for _, top in used_bytes(values))
    assert arena_size(report) - 64 < peak <= arena_size(report)
    assert max(size for _, size in alive_bytes(values)) <= peak
    drawn = memory_map(report)
    assert drawn.count("<rect") == len(values) > 1
    assert all(f"{value.name} {value.shape}".replace(">", "&gt;") in drawn for value in values)


def _touched(executable: Any, argument: np.ndarray) -> np.ndarray:
    """Which bytes of its arena a call writes: a byte that is as it was, whatever that was, is not written."""
    record = CallRecord.from_address(executable.call.record_address)
    touched = np.zeros(record.arena_bytes, bool)
    for fill in (0x00, 0xFF):
        memory = np.full(record.arena_bytes + _ALIGNMENT, fill, np.uint8)
        arena = memory[-memory.ctypes.data % _ALIGNMENT :][: record.arena_bytes]
        kept, record.arena = record.arena, arena.ctypes.data
        try:
            executable.function(argument)
        finally:
            record.arena = kept
        touched |= arena != fill
    return touched


@pytest.mark.parametrize("model", [_mlp, _attention, _loop])
def test_the_peak_is_what_a_call_was_seen_to_write(model: Any) -> None:
    argument = np.random.default_rng(5).uniform(-1, 1, (48, 48)).astype(np.float32)
    executable = xl.jit(model).executable(argument)
    values = arena_values(executable.memory_analysis().report)
    touched = _touched(executable, argument)
    peak = max(top for _, top in used_bytes(values))
    assert not touched[peak:].any()
    arrays = [value for value in values if value.size > 8]  # scalars stay in registers
    assert all(touched[value.offset : value.offset + value.size].all() for value in arrays)
    assert touched.sum() == max(value.offset + value.size for value in arrays)


def test_values_that_live_together_lie_apart() -> None:
    values = arena_values(xl.jit(_mlp).executable(np.ones((48, 48), np.float32)).memory_analysis().report)
    for one in values:
        for other in values:
            if one is not other and one.first <= other.last and other.first <= one.last and one.name != other.name:
                is_apart = one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
                assert is_apart or one.last == other.first or other.last == one.first


def test_bytes_in_use_are_those_of_each_step() -> None:
    chance = random.Random(3)
    values = []
    for number in range(300):
        first = chance.randrange(200)
        last = first + chance.randrange(40)
        values.append(ArenaValue(f"%{number}", "", 64 * chance.randrange(100), chance.randrange(1, 500), first, last))
    for step, top in used_bytes(values):
        assert top == max(v.offset + v.size for v in values if v.first <= step <= v.last)


def test_in_place_results_are_alive_once() -> None:
    values = [
        ArenaValue("%a", "", 0, 100, 1, 3),
        ArenaValue("%b", "", 0, 100, 3, 5),
        ArenaValue("%c", "", 128, 8, 4, 4),
    ]
    assert dict(alive_bytes(values)) == {1: 100, 4: 108, 5: 100, 6: 0}


def test_what_waits_at_the_peak_could_be_computed_again() -> None:
    kept = ArenaValue("%kept", "f32[25]", 0, 100, 1, 9)
    values = [kept, ArenaValue("%a", "", 128, 60, 4, 5), ArenaValue("%b", "", 256, 40, 5, 6)]
    ((value, peak),) = ((one.value, one.peak_bytes) for one in rematerializations(values))
    assert (value, peak) == (kept, 100)
    report = "allocation 0: size 384, arena:\n" + "".join(
        f"  value: {v.name} (size={v.size}, offset={v.offset}): {v.shape}, live {v.first} to {v.last}\n" for v in values
    )
    drawn = memory_map(report)
    assert "<li>%kept f32[25]: 100 bytes at once</li>" in drawn
    assert "200 bytes are alive at once, at step 5. Values reach up to byte 296, 96 of them in gaps" in drawn
    assert rematerializations(values[1:]) == []


def test_nothing_is_drawn_without_an_arena() -> None:
    assert memory_map("BufferAssignment: module m\n") == ""


def test_the_page_of_a_program_has_pictures(tmp_path: Path) -> None:
    file, page = tmp_path / "f.hlo", tmp_path / "f.html"
    text = """HloModule m
ENTRY e { x = f32[64,64] parameter(0)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="a}b"}
  ROOT z = f32[64,64] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    file.write_text(text, encoding="utf-8")
    from xlalite.cli.main import main

    assert main(["opt", str(file), "--stage=html", "-o", str(page)]) == 0
    shown = page.read_text(encoding="utf-8")
    pictures = re.findall(r'<details class="picture" data-of="([^"]*)">', shown)
    assert len(pictures) == 2
    assert all(f'<pre data-file="{name}" ' in shown for name in pictures)
    assert "<summary>Memory map " in shown
    assert "metadata=" in shown
