"""The picture of the arena says what buffer assignment says, and what a call really needs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlalite as xl
from xlalite.passes.dump.memory_map import arena_size, arena_values, memory_map, used_bytes


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
    drawn = memory_map(report)
    assert drawn.count("<rect") == len(values) > 1
    assert all(f"{value.name} {value.shape}".replace(">", "&gt;") in drawn for value in values)


def test_values_that_live_together_lie_apart() -> None:
    values = arena_values(xl.jit(_mlp).executable(np.ones((48, 48), np.float32)).memory_analysis().report)
    for one in values:
        for other in values:
            if one is not other and one.first <= other.last and other.first <= one.last and one.name != other.name:
                is_apart = one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
                assert is_apart or one.last == other.first or other.last == one.first


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
    assert 'class="memory"' in shown
    assert not re.search(r'class="(add|del)">[^<]*metadata=', shown)
