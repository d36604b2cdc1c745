"""Code that takes the times of its kernels."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.cpu.emission.emitted_module import COUNTERS
from xlalite.hlo.errors import ExecutionError
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

LOOP = """
HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
body {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[64,64]) tuple(n, y)
}
condition {
  s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[64,64]) tuple(zero, x)
  w = (s32[], f32[64,64]) while(s), condition=condition, body=body
  y = f32[64,64] get-tuple-element(w), index=1
  z = f32[] constant(0)
  ROOT r = f32[64] reduce(y, z), dimensions={0}, to_apply=add
}
"""


@pytest.fixture
def argument() -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.1, 0.1, (64, 64)).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_calls_are_trips_and_kernels_take_no_longer_than_the_whole(
    threads: int, argument: np.ndarray, compile_text: Callable[..., Executable]
) -> None:
    plain = compile_text(LOOP, num_threads=threads)
    clocked = compile_text(LOOP, num_threads=threads, profile=True)
    for _ in range(3):
        np.testing.assert_array_equal(clocked(argument), plain(argument))
    profile = clocked.kernel_profile()
    dots = [kernel for kernel in profile.kernels if kernel.kind == "dot"]
    assert len(dots) > 1, "names are unique within a computation only"
    assert sum(dot.calls for dot in dots) == 3 * 7
    assert sum(dot.flops for dot in dots) == 3 * 7 * 2 * 64**3
    assert sum(dot.bytes_accessed for dot in dots) == 3 * 7 * 3 * 64 * 64 * 4
    assert {dot.dtype for dot in dots} == {"f32"}
    assert all(1 <= kernel.threads <= threads for kernel in profile.kernels)
    assert profile.total.calls == 3
    assert 0 < sum(kernel.time_ns for kernel in profile.kernels) <= profile.total.time_ns
    assert all(kernel.name in profile.report() for kernel in profile.kernels)


def test_calls_of_several_threads_add_up(argument: np.ndarray, compile_text: Callable[..., Executable]) -> None:
    clocked = compile_text(LOOP, num_threads=1, profile=True)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: clocked(argument), range(40)))
    assert clocked.kernel_profile().total.calls == 40


def test_executables_have_counters_of_their_own(argument: np.ndarray, compile_text: Callable[..., Executable]) -> None:
    one, other = (compile_text(LOOP, num_threads=1, profile=True) for _ in range(2))
    one(argument)
    loaded = get_backend("cpu").load_executable(one.serialize())
    loaded(argument)
    loaded(argument)
    counts = [executable.kernel_profile().total.calls for executable in (one, other, loaded)]
    assert counts == [1, 0, 2]


def test_nothing_is_there_when_off(compile_text: Callable[..., Executable]) -> None:
    options = CompileOptions(num_threads=2)
    assert COUNTERS not in get_backend("cpu").compile_to("llvm-before-optimizations", parse(LOOP), options).text
    with pytest.raises(ExecutionError, match="profile=True"):
        compile_text(LOOP).kernel_profile()


def test_programs_without_kernels(compile_text: Callable[..., Executable]) -> None:
    scalars = compile_text("ENTRY main {\n  x = f32[] parameter(0)\n  ROOT r = f32[] add(x, x)\n}", profile=True)
    assert scalars.kernel_profile().report()
    scalars(np.float32(2))
    assert scalars.kernel_profile().total.calls == 1


def test_small_steps_side_by_side_are_one_row(compile_text: Callable[..., Executable]) -> None:
    sizes = range(1000, 1100)
    lines = [f"x{n} = f32[{n}] parameter({n - 1000})  y{n} = f32[{n}] reverse(x{n}), dimensions={{0}}" for n in sizes]
    shapes, results = (", ".join(form.format(n) for n in sizes) for form in ("f32[{}]", "y{}"))
    text = "\n".join(["ENTRY e {", *lines, f"ROOT r = ({shapes}) tuple({results})", "}"])
    clocked = compile_text(text, num_threads=2, profile=True)
    arguments = [np.arange(n, dtype=np.float32) for n in sizes]
    for argument, result in zip(arguments, clocked(*arguments), strict=True):  # type: ignore[call-overload]  # it gives several
        np.testing.assert_array_equal(result, argument[::-1])
    (row,) = clocked.kernel_profile().kernels
    assert (row.kind, row.calls, row.bytes_accessed) == ("side by side", 1, 2 * 4 * sum(sizes))
    assert row.name.endswith(" and 99 more")
    assert row.threads == 2


def test_devices_add_to_the_same_counters(compile_text: Callable[..., Executable]) -> None:
    text = """HloModule m, replica_count=2
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY main { x = f32[300] parameter(0)  ROOT s = f32[300] all-reduce(x), to_apply=add }"""
    clocked, argument = compile_text(text, num_threads=2, profile=True), np.arange(300, dtype=np.float32)
    for found in clocked.run_on_devices([[argument], [argument]]):
        np.testing.assert_array_equal(found, 2 * argument)
    profile = clocked.kernel_profile()
    assert "all-reduce" in {kernel.kind for kernel in profile.kernels}
    assert {kernel.calls for kernel in (profile.total, *profile.kernels)} == {2}


@pytest.mark.parametrize(("lhs", "rhs", "dtype"), [("s8", "s8", "s8"), ("bf16", "s8", "bf16"), ("f32", "bf16", "f32")])
def test_products_have_the_type_of_their_operands(
    compile_text: Callable[..., Executable], lhs: str, rhs: str, dtype: str
) -> None:
    result = "s32" if lhs == "s8" else "f32"
    text = f"""HloModule m
    ENTRY e {{ x = {lhs}[64,64] parameter(0)
      y = {rhs}[64,64] parameter(1)
      d = {result}[64,64] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      ROOT n = {result}[64,64] negate(d) }}"""
    executable = compile_text(text, profile=True)
    executable(*(np.ones((64, 64), DType(name).numpy) for name in (lhs, rhs)))
    assert [kernel.dtype for kernel in executable.kernel_profile().kernels if kernel.kind == "dot"] == [dtype]
