"""Small steps that need nothing of one another are shared out among threads."""

import re
from typing import Any

import numpy as np
import pytest


def independent(count: int) -> tuple[str, list[np.ndarray]]:
    """Kernels of two kinds, which nothing joins."""
    sizes = range(1000, 1000 + count)
    lines = [f"x{n} = f32[{n}] parameter({n - 1000})" for n in sizes]
    lines += [
        f"y{n} = f32[{n}] tanh(x{n})" if n % 3 else f"y{n} = f32[{n}] reverse(x{n}), dimensions={{0}}" for n in sizes
    ]
    shapes, results = (", ".join(form.format(n) for n in sizes) for form in ("f32[{}]", "y{}"))
    lines += [f"ROOT r = ({shapes}) tuple({results})"]
    arguments = [np.linspace(-3, 3, n, dtype=np.float32) for n in sizes]
    return "\n".join(["HloModule m", "ENTRY e {", *lines, "}"]), arguments


def regions(executable: Any) -> list[Any]:
    return [d for d in executable.decisions() if d.decided_by == "parallel region"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_small_independent_steps_are_one_job(check: Any, threads: int) -> None:
    program, arguments = independent(100)
    executable = check(program, *arguments, ulps=4, num_threads=threads)
    found = regions(executable)
    assert [d.numbers["steps"] for d in found] == ([] if threads == 1 else [100])
    one = check(program, *arguments, ulps=4, num_threads=1)
    for mine, other in zip(executable(*arguments), one(*arguments), strict=True):
        assert mine.tobytes() == other.tobytes()


def test_llvm_need_not_optimise_loops_around_calls(compile_text: Any) -> None:
    program, _ = independent(100)
    ir = compile_text(program, num_threads=2).as_text("llvm-before-optimizations")
    marks = re.findall(r"^attributes (#\d+) = .* optnone", ir, re.MULTILINE)
    (header,) = re.findall(r"^define .*@region.*", ir, re.MULTILINE)
    assert {*marks} & {*header.split()}


def test_few_small_steps_are_called_one_after_the_other(check: Any) -> None:
    program, arguments = independent(4)
    assert not regions(check(program, *arguments, ulps=4, num_threads=2))


@pytest.fixture
def everything_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the smallest steps are worth sharing."""
    monkeypatch.setattr("xlalite.backends.codegen.kernels.planner.MIN_TASK_NS", 1e-3)


@pytest.mark.usefixtures("everything_is_split")
def test_a_step_does_not_run_beside_what_it_needs(check: Any) -> None:
    program = """HloModule m
        ENTRY e {
          x = f32[20] parameter(0)
          y = f32[30] parameter(1)
          a = f32[20] reverse(x), dimensions={0}
          b = f32[30] reverse(y), dimensions={0}
          c = f32[50] concatenate(a, b), dimensions={0}
          d = f32[50] sine(c)
          ROOT r = (f32[20], f32[30], f32[50], f32[50]) tuple(a, b, c, d)
        }"""
    arguments = np.arange(20, dtype=np.float32), np.arange(30, dtype=np.float32)
    executable = check(program, *arguments, ulps=4, num_threads=2, optimize=False, use_cache=False)
    (found,) = regions(executable)
    assert found.subject == ("a", "b")


@pytest.mark.usefixtures("everything_is_split")
def test_a_step_does_not_overwrite_beside_who_reads(compile_text: Any) -> None:
    program = """HloModule m, input_output_alias={ {0}: (0, {}, must-alias) }
        ENTRY e {
          x = f32[20] parameter(0)
          y = f32[30] parameter(1)
          b = f32[30] reverse(y), dimensions={0}
          a = f32[20] reverse(x), dimensions={0}
          c = f32[20] negate(x)
          ROOT r = (f32[20], f32[20], f32[30]) tuple(c, a, b)
        }"""
    options = {"num_threads": 2, "optimize": False, "use_cache": False, "donate_arguments": True}
    executable = compile_text(program, **options)
    x, y = np.arange(20, dtype=np.float32), np.arange(30, dtype=np.float32)
    c, a, b = executable(x.copy(), y)
    np.testing.assert_array_equal(c, -x)
    np.testing.assert_array_equal(a, x[::-1])
    np.testing.assert_array_equal(b, y[::-1])
    assert regions(executable)
    assert not any({"a", "c"} <= set(d.subject) for d in regions(executable))
