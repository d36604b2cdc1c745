"""Memory that kernels ask for before they need it."""

from typing import Any

import pytest

from xlalite.backends.codegen.llvm import TargetInfo

TARGET = TargetInfo.host()
FAR = TARGET.cache_bytes[1] // 4 + 16
NEAR = TARGET.cache_bytes[0] // 4 + 16
"""Numbers of f32 that the second and the first cache do not hold."""

TAKES_LINES = TARGET.vector_bits // 8 >= TARGET.cache_line_bytes


def asked(executable: Any) -> tuple[int, int]:
    """How often what will be read, and what will be written, is asked for."""
    calls = [line for line in executable.as_text("llvm").splitlines() if "call void @llvm.prefetch" in line]
    writes = sum("i32 1, i32 3, i32 1)" in call for call in calls)
    return len(calls) - writes, writes


@pytest.mark.parametrize(("size", "is_asked"), [(16, False), (NEAR, TAKES_LINES), (FAR, TAKES_LINES)])
def test_elementwise_kernels(compile_text: Any, size: int, is_asked: bool) -> None:
    executable = compile_text(f"""HloModule m
ENTRY e {{ x = f32[{size}] parameter(0)
 y = f32[{size}] parameter(1)
 one = f32[1] parameter(2)
 few = f32[] reshape(one)
 b = f32[{size}] broadcast(few), dimensions={{}}
 s = f32[{size}] add(x, y)
 ROOT m = f32[{size}] multiply(s, b) }}""")
    assert asked(executable) == ((2, 1) if is_asked else (0, 0))


def test_of_what_is_read_here_and_there_only_the_result(compile_text: Any) -> None:
    executable = compile_text(f"""HloModule m
ENTRY e {{ x = f32[{NEAR},16] parameter(0)
 rows = s32[{NEAR}] parameter(1)
 g = f32[{NEAR},16] gather(x, rows), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}},
  index_vector_dim=1, slice_sizes={{1,16}}
 ROOT n = f32[{NEAR},16] negate(g) }}""")
    assert asked(executable) == ((0, 1) if TAKES_LINES else (0, 0))


@pytest.mark.parametrize(("rows", "result"), [(FAR, "sums"), (NEAR, "sums"), (4, "sums"), (FAR, "shares")])
def test_rows(compile_text: Any, rows: int, result: str) -> None:
    lines = [f"sums = f32[{rows}] reduce(x, z), dimensions={{1}}, to_apply=f"]
    lines += [f"b = f32[{rows},100] broadcast(sums), dimensions={{0}}", f"shares = f32[{rows},100] divide(x, b)"]
    last = next(number for number, line in enumerate(lines) if line.startswith(result))
    executable = compile_text(f"""HloModule m
f {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[{rows},100] parameter(0)
 z = f32[] constant(0)
 {" ".join(lines[:last])}
 ROOT {lines[last]} }}""")
    assert (asked(executable)[0] > 0) == (rows == FAR or (rows == NEAR and TAKES_LINES))


def test_concatenated_parts(compile_text: Any) -> None:
    executable = compile_text(f"""HloModule m
ENTRY e {{ x = f32[{NEAR}] parameter(0)
 y = f32[{NEAR}] parameter(1)
 z = f32[{NEAR}] negate(y)
 ROOT c = f32[{2 * NEAR}] concatenate(x, z), dimensions={{0}} }}""")
    reads, writes = asked(executable)
    assert (reads > 0) == (writes > 0) == TAKES_LINES


@pytest.mark.parametrize(("size", "is_near"), [(64, True), (FAR, False)])
def test_lines_of_transposed_results(compile_text: Any, size: int, is_near: bool) -> None:
    executable = compile_text(f"""HloModule m
ENTRY e {{ x = f32[64,{size}] parameter(0)
 ROOT t = f32[{size},64] transpose(x), dimensions={{1,0}} }}""")
    reads, writes = asked(executable)
    assert reads > 0
    assert writes == (reads if is_near else 0)
