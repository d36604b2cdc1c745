"""`xlalite bench` and `xlalite cache`."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.backends.cpu.native.cache_directory import CacheDirectory
from xlalite.backends.cpu.native.object_cache import ObjectCache
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode


def test_bench_prints_times_and_rates(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("bench", softmax, "--min_time=0", "--num_threads=1")
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()[1:]] == ["compile", "run", "rates", "memory"]


def test_bench_as_json_on_tuples(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    path = hlo_file("  p = (f32[4], s32[]) parameter(0)\n  ROOT g = f32[4] get-tuple-element(p), index=0")
    for platform in ("cpu", "interpreter"):
        measured = json.loads(xlalite("bench", path, "--json", "--min_time=0", f"--platform={platform}").out)
        assert measured["module"] == "module"
        assert 0 < measured["best_us"] <= measured["median_us"]


def test_bench_phases_add_up(softmax: Path, xlalite: Callable[..., object]) -> None:
    shown = xlalite("bench", softmax, "--phases", "--num_threads=1").out.splitlines()
    times = {line[:20].strip(): float(line[20:31]) for line in shown[1:]}
    steps = ["copy", "fingerprint", "verification", "passes", "buffer assignment", "LLVM IR", "machine code"]
    assert [*times] == [*steps, "linking", "call", "total"]
    total = times.pop("total")
    assert abs(total - sum(times.values())) < 0.01
    (line,) = xlalite("bench", softmax, "--phases", "--json", "--platform=interpreter").out.splitlines()
    assert [*json.loads(line)["phases"]] == ["verification", "copy"]


def test_bench_of_kernels_has_a_row_for_each(softmax: Path, xlalite: Callable[..., object]) -> None:
    shown = xlalite("bench", softmax, "--kernels", "--num_threads=1", "--min_time=0.01").out.splitlines()
    assert shown[1].split()[:3] == ["kernel", "kind", "calls"]
    (line,) = xlalite("bench", softmax, "--kernels", "--json", "--min_time=0.01").out.splitlines()
    rows = json.loads(line)["kernels"]
    assert rows
    assert {"name", "kind", "calls", "time_ns", "flops", "bytes_accessed", "dtype", "threads"} == set(rows[0])


def test_bench_wrong_use(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("bench", softmax, "--min_time=forever")
    assert ran.code == 2
    assert "expected a number of seconds, found 'forever'" in ran.err


@pytest.fixture
def cache(tmp_path: Path, softmax: Path) -> Callable[..., str]:
    """`cache(action)`: runs `xlalite cache` in a process of its own on a cache that holds one module."""
    environment = {**os.environ, "XLALITE_CACHE_DIR": str(tmp_path / "cache")}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "xlalite", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    run("run", str(softmax), "--reference_platform=")
    return lambda *words: run("cache", *words)


def test_cache_lists_measures_and_clears(cache: Callable[..., str], tmp_path: Path) -> None:
    header, *listed = cache("ls").splitlines()
    assert header.split() == ["module", "kernels", "compiled", "in", "size", "last", "use"]
    (module,) = (line for line in listed if line.startswith("softmax "))
    assert re.fullmatch(r"softmax +1 +\d+ ms +\d+\.\d KiB +just now", module)
    assert {len(line) for line in (header, *listed)} == {80}
    entries = json.loads(cache("ls", "--json"))
    assert [entry["name"] for entry in entries] == [line.rpartition("  ")[0].split("  ")[0] for line in listed]
    assert all(len(entry["key"]) == 40 and entry["compile_ms"] > 0 for entry in entries)
    assert f"location  {tmp_path / 'cache'}\nentries   {len(listed)}\n" in cache("stats")
    assert cache("clear").startswith(f"removed {len(listed)} entries, ")
    assert cache("ls") == ""


def test_cache_travels_in_a_file(cache: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "shipped"
    count = len(cache("ls").splitlines()) - 1
    assert re.fullmatch(rf"exported {count} entries, \d+\.\d KiB, to {file}\n", cache("export", str(file)))
    listed = {entry["key"] for entry in json.loads(cache("ls", "--json"))}
    cache("clear")
    assert cache("import", str(file)) == f"imported {count} entries from {file}\n"
    assert {entry["key"] for entry in json.loads(cache("ls", "--json"))} == listed


def test_cache_wrong_use(xlalite: Callable[..., object]) -> None:
    assert "invalid choice: 'empty' (choose from " in xlalite("cache", "empty").err
    ran = xlalite("cache", "ls", "--platform=interpreter")
    assert ran.code == 2
    assert "platform interpreter keeps no compiled code" in ran.err
    assert "cache clear has no --json" in xlalite("cache", "clear", "--json").err
    assert "cache export takes a file" in xlalite("cache", "export").err
    assert "cache ls takes no file" in xlalite("cache", "ls", "x").err


def test_cache_shows_names_of_any_kind_in_one_line(
    tmp_path: Path, xlalite: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = CacheDirectory(tmp_path, 1 << 20)
    for number, name in enumerate(("x" * 300, "a\nb", "")):
        directory.store(f"{number:02}", ObjectCode(b"", (), summary=CodeSummary(name, number, 1234.5)))
        os.utime(tmp_path / f"{number:02}.xlo2", (0, time.time() - 3700 * 10**number))
    monkeypatch.setattr("xlalite.backends.cpu.backend.default_cache", lambda: ObjectCache(directory))
    listed = [line.split() for line in xlalite("cache", "ls").out.splitlines()[1:]]
    assert [(words[:-5], words[-3:]) for words in listed] == [
        (["?"], ["4", "d", "ago"]),
        ([r"'a\nb'", "1", "1234", "ms"], ["10", "h", "ago"]),
        (["x" * 31 + "...", "0", "1234", "ms"], ["1", "h", "ago"]),
    ]
