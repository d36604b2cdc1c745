"""`xlalite bench` and `xlalite cache`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


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
    return lambda action: run("cache", action)


def test_cache_lists_measures_and_clears(cache: Callable[..., str], tmp_path: Path) -> None:
    listed = cache("ls").splitlines()
    assert listed
    assert f"location  {tmp_path / 'cache'}\nentries   {len(listed)}\n" in cache("stats")
    assert cache("clear").startswith(f"removed {len(listed)} entries, ")
    assert cache("ls") == ""


def test_cache_wrong_use(xlalite: Callable[..., object]) -> None:
    assert "invalid choice: 'empty' (choose from " in xlalite("cache", "empty").err
    ran = xlalite("cache", "ls", "--platform=interpreter")
    assert ran.code == 2
    assert "platform interpreter keeps no compiled code" in ran.err
