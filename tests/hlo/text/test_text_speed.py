"""A hundred thousand instructions are read and written in seconds."""

from __future__ import annotations

import time

import pytest

from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

INSTRUCTIONS = 100_000


def large_text() -> str:
    where = 'metadata={{op_name="jit(f)/jit(main)/mul{0}" source_file="model/transformer.py" source_line={1}}}'
    lines = ["  %n.0 = f32[128,256]{1,0} parameter(0)"]
    for i in range(INSTRUCTIONS // 3):
        place = where.format(i, i % 1000 + 1)
        lines.append(f"  %c.{i} = f32[] constant({i % 7}.5), {place}")
        lines.append(f"  %b.{i} = f32[128,256]{{1,0}} broadcast(f32[] %c.{i}), dimensions={{}}, {place}")
        lines.append(f"  %n.{i + 1} = f32[128,256]{{1,0}} multiply(%n.{i}, f32[128,256]{{1,0}} %b.{i}), {place}")
    body = "\n".join(lines)
    return f"HloModule large\n\nENTRY %main (n.0: f32[128,256]) -> f32[128,256] {{\n{body}\n}}\n"


@pytest.mark.slow
def test_ten_megabytes_are_read_in_ten_seconds_and_written_in_five() -> None:
    text = large_text()
    assert len(text) > 10_000_000
    times = {}
    start = time.perf_counter()
    module = parse(text)
    times["parse"] = time.perf_counter() - start
    start = time.perf_counter()
    written = str(module)
    times["print"] = time.perf_counter() - start
    start = time.perf_counter()
    verify(module)
    times["verify"] = time.perf_counter() - start
    start = time.perf_counter()
    fingerprint(module)
    times["fingerprint"] = time.perf_counter() - start
    print({name: round(seconds, 2) for name, seconds in times.items()})
    assert len(written) > 10_000_000
    assert times["parse"] < 10
    assert times["print"] < 5
    assert times["verify"] < 10
    assert times["fingerprint"] < 10
