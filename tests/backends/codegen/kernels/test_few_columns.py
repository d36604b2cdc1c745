"""Matrices of a few columns: vectors lie along their rows, and results are those of the evaluator to the bit.

Numbers are small integers, of which every sum and product is exact.
"""

from typing import Any

import numpy as np
import pytest
from kernel_programs import MANY_ROWS, few_columns, narrow_rows, rows_of_few, sample, small_integers

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions

ISAS = ("AVX512", "AVX2", "SSE2")
DTYPES = ("pred", "u8", "u16", "bf16", "f32", "s32", "f64", "c64", "c128")
ROWS = (8, 9, 16, 17, 33, 65, 100, 193)


def programs(dtype: str, columns: int) -> list[str]:
    """Those of rows of more columns than four reduce them only."""
    made = few_columns if columns <= 4 else narrow_rows
    return [text for rows in ROWS for text in made(dtype, rows, columns)]


COLUMNS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
EACH = [(dtype, columns) for dtype in DTYPES for columns in COLUMNS if columns <= 4 or not dtype.startswith("c")]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("dtype", "columns"), EACH)
def test_some_programs(check: Any, rng: np.random.Generator, dtype: str, columns: int, isa: str) -> None:
    for text in sample(programs(dtype, columns), isa, 8):
        check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("dtype", "columns"), EACH)
def test_all_programs(check: Any, rng: np.random.Generator, dtype: str, columns: int, isa: str) -> None:
    for text in programs(dtype, columns):
        check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", ["u8", "bf16", "f32", "c64"])
@pytest.mark.parametrize("columns", [2, 3])
def test_planes_of_large_pictures(
    check: Any, kernels: Any, rng: np.random.Generator, dtype: str, columns: int, isa: str
) -> None:
    """What does not fit into the second cache is read once, by a kernel that computes what it moves."""
    text = next(text for text in few_columns(dtype, 700_001, columns) if "add(p0, p0)" in text)
    executable = check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))
    assert kernels(executable) == ["loop"]


def gathers(text: str) -> int:
    """Lines that gather, or scatter, in the kernels' code."""
    lines = get_backend("cpu").compile_to("llvm", parse(text), CompileOptions()).text.splitlines()
    return sum("masked.gather" in line or "masked.scatter" in line for line in lines)


@pytest.mark.parametrize("dtype", ["u8", "bf16", "f32", "f64", "c64"])
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_nothing_is_gathered(dtype: str, columns: int) -> None:
    for text in few_columns(dtype, 100, columns):
        # A line whose last row is not whole, backwards, ends in what is missing in front.
        if "reverse" not in text:
            assert gathers(text) == 0, text
    assert gathers(rows_of_few(dtype, 128, columns)) == 0


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "pred"])
def test_rows_that_lie_anywhere(check: Any, rng: np.random.Generator, dtype: str, columns: int, isa: str) -> None:
    for rows in (9, 33, 193):
        text = rows_of_few(dtype, rows, columns)
        check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))


def test_sums_keep_the_order_of_lanes(compile_text: Any) -> None:
    """Those of four columns are the sums of two pairs, as in rows of any other length."""
    rows = np.array([[2.0**24, 1, -(2.0**24), 1]] * 20, np.float32)
    text = next(text for text in few_columns("f32", 20, 4) if "add(a, b)" in text)
    np.testing.assert_array_equal(compile_text(text)(rows, np.float32(0)), np.full(20, 2, np.float32))


@pytest.mark.parametrize("columns", range(5, 16))
def test_sums_of_more_columns_keep_it_too(compile_text: Any, rng: np.random.Generator, columns: int) -> None:
    """Upper halves are added to the lower ones, those of a power of two, whose last lanes change nothing."""
    rows = rng.standard_normal((MANY_ROWS, columns)).astype(np.float32)
    text = next(text for text in narrow_rows("f32", 0, columns) if "add(a, b)" in text)
    lanes = np.pad(rows, ((0, 0), (0, (1 << (columns - 1).bit_length()) - columns)), constant_values=-0.0)
    while lanes.shape[1] > 1:
        lower, upper = np.split(lanes, 2, axis=1)
        lanes = lower + upper
    np.testing.assert_array_equal(compile_text(text)(rows, np.float32(-0.0)), lanes[:, 0])


@pytest.mark.parametrize("more", [0, 9])
@pytest.mark.parametrize("columns", range(5, 16))
def test_rows_of_more_columns_are_loops_if_there_are_many(
    compile_text: Any, kernels: Any, columns: int, more: int
) -> None:
    for dtype in ("pred", "u8", "bf16", "f32"):
        for text in narrow_rows(dtype, more, columns):
            assert "row" not in kernels(compile_text(text)), text


def stacked_columns(batch: int, rows: int, columns: int) -> str:
    """Columns of a batch of matrices, each times the next one, side by side again."""
    numbers = range(columns)
    column = f"f32[{batch},1,{rows}]"
    pieces = [
        (
            f"  c{at} = {column} slice(t), slice={{[0:{batch}], [{at}:{at + 1}], [0:{rows}]}}",
            f"  m{at} = {column} multiply(c{at}, c{(at + 1) % columns})",
            f"  r{at} = f32[{batch},{rows},1] reshape(m{at})",
        )
        for at in numbers
    ]
    return f"""HloModule m
ENTRY e {{
  x = f32[{batch},{rows},{columns}] parameter(0)
  t = f32[{batch},{columns},{rows}] transpose(x), dimensions={{0,2,1}}
{chr(10).join(line for step in zip(*pieces, strict=True) for line in step)}
  ROOT s = f32[{batch},{rows},{columns}] concatenate({", ".join(f"r{at}" for at in numbers)}), dimensions={{2}}
}}"""


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("batch", [1, 3])
def test_columns_that_are_stacked_again(
    check: Any, kernels: Any, compile_text: Any, rng: np.random.Generator, batch: int, columns: int, isa: str
) -> None:
    for rows in (8, 33, 64, 100):
        text = stacked_columns(batch, rows, columns)
        check(text, *small_integers(rng, text), debug=DebugOptions(cpu_max_isa=isa))
        assert "transpose" not in kernels(compile_text(text))


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_columns_that_are_stacked_again_are_not_gathered(columns: int) -> None:
    assert gathers(stacked_columns(3, 64, columns)) == 0


def test_sums_of_a_column_are_those_of_a_row(compile_text: Any, kernels: Any) -> None:
    """The column alone would be one of a matrix whose columns are summed side by side."""
    text = """HloModule m
f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[1000,3] parameter(0)
  s = f32[1000,1] slice(x), slice={[0:1000], [1:2]}
  q = f32[1000] reshape(s)
  v = f32[1000] abs(q)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(v, z), dimensions={0}, to_apply=f
}"""
    run = compile_text(text)
    assert "column" not in kernels(run)
    rows = np.arange(3000, dtype=np.float32).reshape(1000, 3) % 7 - 3
    np.testing.assert_array_equal(run(rows), np.abs(rows[:, 1]).sum())


@pytest.mark.parametrize(
    ("dims", "kind"),
    [
        ((100, 4), "loop"),
        ((100, 10), "row"),
        ((4000, 15), "loop"),
        ((4000, 16), "row"),
        ((2000, 17), "row"),
        ((7, 3), "row"),
        ((7, 15), "row"),
        ((2, 100, 3), "loop"),
    ],
)
def test_rows_of_few_elements_are_loops(compile_text: Any, kernels: Any, dims: tuple[int, ...], kind: str) -> None:
    shape, result = (",".join(map(str, each)) for each in (dims, dims[:-1]))
    text = f"""HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{shape}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[{result}] reduce(x, z), dimensions={{{len(dims) - 1}}}, to_apply=f
}}"""
    assert kernels(compile_text(text)) == [kind]


@pytest.mark.parametrize(("rows", "kind"), [(100, "row"), (2000, "row"), (8000, "loop")])
def test_much_is_computed_of_rows_of_up_to_sixteen_elements_if_there_are_many(
    compile_text: Any, kernels: Any, rng: np.random.Generator, rows: int, kind: str
) -> None:
    text = f"""HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{rows},10] parameter(0)
  z = f32[] constant(0)
  y = f32[{rows},10] exponential(x)
  s = f32[{rows}] reduce(y, z), dimensions={{1}}, to_apply=f
  w = f32[{rows},10] broadcast(s), dimensions={{0}}
  ROOT r = f32[{rows},10] divide(y, w)
}}"""
    x = rng.random((rows, 10), np.float32)
    executable = compile_text(text)
    assert kernels(executable) == [kind]
    np.testing.assert_allclose(executable(x), np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-6)


def test_what_is_done_once_for_a_row_is_little_code(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """35 instructions would be too many for three elements each."""
    once = "\n".join(f"  v{number + 1} = f32[100] multiply(v{number}, v{number})" for number in range(35))
    text = f"""HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}}
ENTRY e {{
  x = f32[100,3] parameter(0)
  least = f32[] constant(-inf)
  v0 = f32[100] reduce(x, least), dimensions={{1}}, to_apply=f
{once}
  y = f32[100,3] broadcast(v35), dimensions={{0}}
  ROOT r = f32[100,3] add(x, y)
}}"""
    assert "row" not in kernels(check(text, rng.random((100, 3), np.float32)))


@pytest.mark.parametrize(
    ("columns", "wide", "has_gather"), [(3, 4, False), (3, 20, False), (1, 10, False), (1, 20, True)]
)
def test_columns_of_wide_matrices_are_read_line_by_line(
    check: Any, rng: np.random.Generator, columns: int, wide: int, has_gather: bool
) -> None:
    """A few columns of many are lines of a loop; one alone is gathered out of lines of more than sixteen."""
    text = f"""HloModule m
ENTRY e {{
  x = f32[100,{wide}] parameter(0)
  s = f32[100,{columns}] slice(x), slice={{[0:100], [1:{1 + columns}]}}
  ROOT r = f32[100,{columns}] negate(s)
}}"""
    check(text, *small_integers(rng, text))
    assert (gathers(text) > 0) is has_gather
