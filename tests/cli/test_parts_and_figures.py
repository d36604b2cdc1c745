"""`xlalite stats`, `extract`, `diff --normalize`, `bench --baseline`."""

import json
from collections.abc import Callable
from pathlib import Path


def test_stats_has_figures_and_where_they_come_from(softmax: Path, xlalite: Callable[..., object]) -> None:
    out = xlalite("stats", softmax, "--top=2").out
    assert "softmax: 16 instructions in 3 computations" in out
    assert "one call: 248 flops, 64 transcendentals, 3.1 KiB read and written\n" in out
    assert "most arithmetic:\n               64  d = f32[4,16] subtract\n               64  e = " in out
    found = json.loads(xlalite("stats", softmax, "--json").out)
    assert found["opcodes"]["parameter"] == 5
    assert found["cost"]["transcendentals"] == 64
    assert found["top"]["bytes"][0][0] == "d"


def test_extract_makes_a_module_that_runs(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    out = tmp_path / "part.hlo"
    assert xlalite("extract", softmax, "e", "--depth=1", "-o", out).code == 0
    text = out.read_text()
    assert "%x" in text
    assert "%mb = f32[4,16]{1,0} parameter" in text
    assert xlalite("run", out).code == 0
    assert "%d = f32[4,16]{1,0} parameter(0)" in xlalite("extract", softmax, "e", "--boundary=d").out
    assert "no instruction 'ee'" in xlalite("extract", softmax, "ee").err
    assert "expected a number of edges" in xlalite("extract", softmax, "e", "--depth=-1").err


def test_programs_that_were_spelt_differently_are_the_same_when_normalized(
    hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    one = hlo_file("  a = f32[8] parameter(0)\n  ROOT b = f32[8] negate(a)", "one.hlo")
    body = "a = f32[8] parameter(0)\nc = f32[8] negate(a)\nd = f32[2,4] reshape(c)\nROOT b = f32[8] reshape(d)"
    other = hlo_file(body, "other.hlo")
    assert xlalite("diff", one, other).code == 1
    assert xlalite("diff", one, other, "--normalize").code == 0


def test_bench_compares_with_what_was_measured_before(
    softmax: Path, tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    before = tmp_path / "before.json"
    measured = json.loads(xlalite("bench", softmax, "--json", "--min_time=0").out)
    before.write_text(json.dumps({**measured, "best_us": 1e9, "compile_ms": 1e-6}))
    out = xlalite("bench", softmax, "--min_time=0", f"--baseline={before}").out
    line = next(line for line in out.splitlines() if line.startswith("  before   "))
    best, _, compilation = line.split(", ")
    assert best.endswith("times as quick")
    assert compilation.endswith("times as slow")
    before.write_text(json.dumps({**measured, "module": "another"}))
    assert "has no module softmax" in xlalite("bench", softmax, "--min_time=0", f"--baseline={before}").out
    before.write_text("[1]")
    assert "does not hold what bench --json prints" in xlalite("bench", softmax, f"--baseline={before}").err
