"""Compiled code draws from one counter a process, and two never get the same numbers."""

import threading
from typing import Any

import numpy as np
import pytest

from xlalite.passes.core.debug_options import DebugOptions


def draw(delta: int) -> str:
    return f"HloModule m\nENTRY e {{ ROOT r = u64[2] rng-get-and-update-state(), delta={delta} }}"


def counter(found: Any) -> int:
    return int(found[0]) + (int(found[1]) << 64)


@pytest.mark.parametrize("isa", ["SSE2", "AVX512"])
@pytest.mark.parametrize("delta", [5, -3, 2**62])
def test_the_counter_moves_on_by_delta(isa: str, delta: int, compile_text: Any) -> None:
    executable = compile_text(draw(delta), debug=DebugOptions(cpu_max_isa=isa))
    first, second, third = (counter(executable()) for _ in range(3))
    assert (second - first) % 2**128 == (third - second) % 2**128 == delta % 2**128


def test_programs_share_the_counter(compile_text: Any) -> None:
    one, other = compile_text(draw(7)), compile_text(draw(11))
    first, second, third = counter(one()), counter(other()), counter(one())
    assert (second - first, third - second) == (7, 11)


def test_two_in_one_program_are_two(compile_text: Any) -> None:
    text = """HloModule m
ENTRY e { a = u64[2] rng-get-and-update-state(), delta=2
  b = u64[2] rng-get-and-update-state(), delta=2
  ROOT r = (u64[2], u64[2]) tuple(a, b) }"""
    first, second = map(counter, compile_text(text)())
    assert abs(first - second) == 2


def test_threads_at_the_same_time_get_different_numbers(compile_text: Any) -> None:
    """A call large enough to let go of the interpreter's lock."""
    text = """HloModule m
ENTRY e { s = u64[2] rng-get-and-update-state(), delta=1
  x = u64[20000] parameter(0)
  e = u64[1] slice(s), slice={[0:1]}
  n = u64[] reshape(e)
  b = u64[20000] broadcast(n), dimensions={}
  ROOT r = u64[20000] add(x, b) }"""
    executable, x = compile_text(text, num_threads=1), np.zeros(20000, np.uint64)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(int(executable(x)[0]) for _ in range(50))) for _ in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200


def test_random_numbers_are_compiled(compile_text: Any, kernels: Any) -> None:
    text = """HloModule m
ENTRY e { a = f32[] constant(2)
  b = f32[] constant(4)
  ROOT r = f32[100,101] rng(a, b), distribution=rng_uniform }"""
    executable = compile_text(text, num_threads=2)
    assert "evaluated" not in kernels(executable)
    first, second = executable(), executable()
    assert not np.array_equal(first, second)
    assert first.min() >= 2
    assert first.max() < 4
    assert abs(first.mean() - 3) < 0.05
