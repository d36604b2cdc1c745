"""Which kernel is chosen, when it is split, and what happens to operations without one."""

import re
from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.planner import grain_of, plan_function
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.passes.fusion.kernel_shape import KernelKind

ADD = """add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
"""
PROGRAMS = {
    "loop": "x = f32[40,50] parameter(0)\n ROOT r = f32[40,50] negate(x)",
    "transpose": "x = f32[40,50] parameter(0)\n ROOT r = f32[50,40] transpose(x), dimensions={1,0}",
    "row": "x = f32[40,50] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[40] reduce(x, z), dimensions={1}, to_apply=add",
    "column": "x = f32[40,50] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[50] reduce(x, z), dimensions={0}, to_apply=add",
}


def planned(executable: Any) -> list[Any]:
    return [d for d in executable.decisions() if d.decided_by == "kernel planner"]


@pytest.mark.parametrize("kind", KernelKind)
def test_every_kind_has_a_function_that_plans_it(kind: KernelKind) -> None:
    assert plan_function(kind).__name__.startswith("plan_")


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_kind_is_that_of_the_shape(compile_text: Any, kind: str) -> None:
    (decision,) = planned(compile_text(f"HloModule m\n{ADD}ENTRY e {{ {PROGRAMS[kind]} }}"))
    assert (decision.verdict, decision.reason) == (kind, "the kind for its shape")


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("x = u8[4,50] parameter(0)\n ROOT r = u8[50,4] transpose(x), dimensions={1,0}",
         "not transpose: a side of the tile has only 4 elements"),
        ("x = f32[4,5,6] parameter(0)\n z = f32[] constant(0)\n"
         " ROOT r = f32[5] reduce(x, z), dimensions={0,2}, to_apply=add",
         "not column: the minor dimension is reduced"),
    ],
)  # fmt: skip
def test_the_nearest_kind_that_declined_is_told(compile_text: Any, program: str, reason: str) -> None:
    (decision,) = planned(compile_text(f"HloModule m\n{ADD}ENTRY e {{ {program} }}", optimize=False))
    assert (decision.verdict, decision.reason) == ("loop", reason)


@pytest.mark.parametrize(("rows", "threads", "is_split"), [(1, 2, False), (4096, 2, True), (4096, 1, False)])
def test_work_is_split_only_where_it_pays(compile_text: Any, rows: int, threads: int, is_split: bool) -> None:
    text = f"HloModule m\nENTRY e {{ x = f32[{rows},1024] parameter(0)\n ROOT r = f32[{rows},1024] negate(x) }}"
    executable = compile_text(text, num_threads=threads)
    assert (planned(executable)[-1].numbers["tasks"] > 1) == is_split
    assert ("xlalite_parallel_for" in executable.as_text("llvm-before-optimizations")) == is_split


@pytest.mark.parametrize(
    ("estimate_ns", "extent", "threads", "is_shared", "grain"),
    [
        (1e6, 8, 1, True, 0),
        (1e6, 1, 2, True, 0),
        (1e6, 8, 2, False, 1),
        (1e6, 8, 2, True, 4),
        (1e6, 9, 2, True, 5),
        (1e6, 8, 8, True, 1),
        (9e3, 1000, 2, False, -250),
        (9e3, 6, 2, False, -3),  # three a task, for of two one thread would have four
        (9e3, 6, 2, True, -3),
        (5e3, 8, 4, False, -4),
    ],
)
def test_tasks_are_as_many_for_each_thread(
    estimate_ns: float, extent: int, threads: int, is_shared: bool, grain: int
) -> None:
    assert grain_of(estimate_ns, extent, threads, is_shared=is_shared) == grain


def test_a_small_update_of_a_large_array_is_not_split(compile_text: Any) -> None:
    text = """HloModule m
ENTRY e { x = f32[1000,1000] parameter(0)
  u = f32[4,16] parameter(1)
  i = s32[] parameter(2)
  t = f32[1000,1000] negate(x)
  e = f32[4,16] exponential(u)
  ROOT r = f32[1000,1000] dynamic-update-slice(t, e, i, i) }"""
    update = planned(compile_text(text, num_threads=2))[-1]
    assert (update.verdict, update.numbers["tasks"]) == ("update in place", 1)


def negated(count: int) -> str:
    return f"HloModule m\nENTRY e {{\n x = f32[{count}] parameter(0)\n ROOT r = f32[{count}] negate(x)\n}}"


def test_results_that_no_cache_holds_are_stored_past_the_caches(compile_text: Any) -> None:
    """Read and written are 8 bytes an element."""
    last_cache = TargetInfo.host().cache_bytes[-1]
    stays, leaves = (compile_text(negated(last_cache // 8 + more)) for more in (0, 1))
    assert "streamed" not in planned(stays)[-1].numbers
    assert "nontemporal" not in stays.as_text("llvm")
    assert planned(leaves)[-1].numbers["streamed"] == 1
    assert "nontemporal" in leaves.as_text("llvm")


def test_what_lies_in_the_memory_of_an_operand_is_not_stored_past_the_caches(compile_text: Any) -> None:
    program = negated(TargetInfo.host().cache_bytes[-1] // 4)
    aliased = program.replace("HloModule m", "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }")
    executable = compile_text(aliased, donate_arguments=True)
    assert "streamed" not in planned(executable)[-1].numbers


def test_small_results_of_large_operands_are_not_stored_past_the_caches(compile_text: Any) -> None:
    columns = TargetInfo.host().cache_bytes[-1] // 64
    executable = compile_text(f"""HloModule m
        sum {{ a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }}
        ENTRY e {{
          x = f32[32,{columns}] parameter(0)
          z = f32[] constant(0)
          ROOT r = f32[32] reduce(x, z), dimensions={{1}}, to_apply=sum
        }}""")
    assert "streamed" not in planned(executable)[-1].numbers


def test_kernels_are_as_wide_as_their_arrays(compile_text: Any) -> None:
    """The wide integers that say where a slice lies are no reason for fewer lanes."""
    text = """HloModule m
ENTRY e {
  x = s8[5000] parameter(0)
  at = s64[] parameter(1)
  y = s8[4096] dynamic-slice(x, at), dynamic_slice_sizes={4096}
  ROOT r = s8[4096] add(y, y)
}"""
    assert f"add <{TargetInfo.host().lanes(8)} x i8>" in compile_text(text).as_text("llvm-before-optimizations")


def test_what_is_only_moved_stays_narrow(compile_text: Any) -> None:
    text = """HloModule m
ENTRY e { x = bf16[4096] parameter(0)
  ROOT r = bf16[3,4096] broadcast(x), dimensions={1} }"""
    assert f"load <{TargetInfo.host().lanes(16)} x i16>" in compile_text(text).as_text("llvm-before-optimizations")


def test_scalar_work_needs_no_kernel(compile_text: Any) -> None:
    text = """HloModule m
ENTRY e { x = f32[] parameter(0)
  y = f32[] exponential(x)
  ROOT r = f32[] add(y, x) }"""
    assert len(re.findall(r"^define", compile_text(text).as_text("llvm-before-optimizations"), re.MULTILINE)) == 1


def test_equal_kernels_are_emitted_once(compile_text: Any) -> None:
    text = """HloModule m
ENTRY e { x = f32[40,50] parameter(0)
  a = f32[50,40] transpose(x), dimensions={1,0}
  y = f32[40,50] parameter(1)
  b = f32[50,40] transpose(y), dimensions={1,0}
  ROOT r = (f32[50,40], f32[50,40]) tuple(a, b) }"""
    ir = compile_text(text).as_text("llvm-before-optimizations")
    assert len(re.findall(r'^define [^@]*@"?kernel', ir, re.MULTILINE)) == 1


SORT = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[8] parameter(0)
  n = f32[8] negate(x)
  s = f32[8] sort(n), dimensions={0}, to_apply=less
  ROOT r = f32[8] negate(s) }"""
FFT = """HloModule m
ENTRY e { x = c64[8] parameter(0)
  n = c64[8] negate(x)
  f = c64[8] fft(n), fft_type=FFT, fft_length={4}
  ROOT r = c64[8] negate(f) }"""


def test_what_all_kinds_decline_is_evaluated_and_recorded(check: Any, rng: np.random.Generator) -> None:
    x = (rng.standard_normal(8) + 1j * rng.standard_normal(8)).astype(np.complex64)
    executable = check(FFT, x)
    evaluated = [d for d in planned(executable) if d.verdict == "evaluated"]
    assert [d.reason for d in evaluated] == ["not fft: fft_length is not that of the operand"]


@pytest.mark.parametrize("root", ["x = f32[20] parameter(0)", "c = f32[20] constant({...})"])
def test_a_fusion_that_computes_nothing_copies(check: Any, rng: np.random.Generator, root: str) -> None:
    text = f"""HloModule m
      f {{ y = f32[20] parameter(1)\n {"p = f32[20] parameter(0)" if "constant" in root else ""}\n ROOT {root} }}
      ENTRY e {{ a = f32[20] parameter(0)\n b = f32[20] parameter(1)
        ROOT r = f32[20] fusion(a, b), kind=kLoop, calls=f }}"""
    check(text, *rng.standard_normal((2, 20)).astype(np.float32), optimize=False)


LOOPING = """HloModule m
on { s = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(s), index=0
  b = f32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(a, b), direction=LT }
up { s = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(s), index=0
  b = f32[] get-tuple-element(s), index=1
  one = f32[] constant(1)
  n = f32[] add(a, one)
  ROOT r = (f32[], f32[]) tuple(n, b) }
larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = (f32[], f32[]) tuple(a, b)
  l = (f32[], f32[]) while(s), condition=on, body=up
  ROOT r = f32[] get-tuple-element(l), index=0 }
ENTRY e { x = f32[4,5] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[4,4] reduce-window(x, z), window={size=1x2}, to_apply=larger }"""


def test_a_window_reduced_by_a_loop_is_native_code(check: Any, rng: np.random.Generator) -> None:
    executable = check(LOOPING, rng.integers(0, 9, (4, 5)).astype(np.float32))
    assert [d for d in planned(executable) if d.verdict == "evaluated"] == []


def test_what_every_kind_of_kernel_declines_is_evaluated(check: Any, rng: np.random.Generator) -> None:
    """A kernel of somebody else with results of two sizes, neither of which is a row of the other."""
    text = """HloModule m
f { x = f32[4,6] parameter(0)
  a = f32[4,6] negate(x)
  c = f32[3,1] slice(a), slice={[0:3],[0:1]}
  b = f32[3] reshape(c)
  ROOT t = (f32[4,6], f32[3]) tuple(a, b) }
ENTRY e { x = f32[4,6] parameter(0)
  ROOT r = (f32[4,6], f32[3]) fusion(x), kind=kLoop, calls=f }"""
    executable = check(text, rng.standard_normal((4, 6)).astype(np.float32), optimize=False)
    (evaluated,) = [d for d in planned(executable) if d.verdict == "evaluated"]
    assert "not loop: the results differ in size" in evaluated.reason
