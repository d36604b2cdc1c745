"""HLO programs of which each is a kernel or few, for tests that run many of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

NUMBERS = ("f32", "f64", "bf16", "f16", "s8", "u16", "s32", "s64")
USUAL_SIZES = (65, 3, 17)
MANY_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, *(k * 16 + left for k in (1, 2, 3, 4, 6, 8, 12) for left in (-1, 0, 1)))
"""0, 1, 2 and 3 vectors of any width, with an element more and less."""


def program(result: str, *parameters: str, lines: Sequence[str] = (), functions: str = "") -> str:
    """A module with parameters p0, p1 ... of given shapes; the result is `shape operation`."""
    inputs = [f"p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters)]
    body = "\n".join(f"  {line}" for line in (*inputs, *lines, f"ROOT r = {result}"))
    return f"HloModule m\n{functions}ENTRY e {{\n{body}\n}}\n"


def combiner(name: str, operation: str, dtype: str) -> str:
    return (
        f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n"
        f"  ROOT c = {dtype}[] {operation}(a, b)\n}}\n"
    )


def greatest(dtype: str) -> str:
    """The combiner of an argmax; of equal numbers it takes the first, so that order does not matter."""
    return f"""greatest {{
  a = {dtype}[] parameter(0)
  i = s32[] parameter(1)
  b = {dtype}[] parameter(2)
  j = s32[] parameter(3)
  above = pred[] compare(a, b), direction=GT
  same = pred[] compare(a, b), direction=EQ
  first = pred[] compare(i, j), direction=LE
  chosen = pred[] and(same, first)
  g = pred[] or(above, chosen)
  m = {dtype}[] select(g, a, b)
  k = s32[] select(g, i, j)
  ROOT t = ({dtype}[], s32[]) tuple(m, k)
}}
"""


def sample(found: list[Any], isa: str, count: int) -> list[Any]:
    """About `count` of them, evenly spread, a third for narrower vectors and others for each width."""
    step = max(1, len(found) // max(1, count if isa == "AVX512" else count // 3))
    return found[{"SSE2": 1, "AVX2": 2}.get(isa, 0) % step :: step]


def small_integers(rng: np.random.Generator, text: str) -> list[np.ndarray]:
    """Arguments of a program, of which every sum and product of a few is exact."""
    found = []
    for parameter in parse(text).entry_computation.parameters:
        dtype, dims = parameter.shape.dtype, parameter.shape.dims
        numbers = rng.integers(0, 2 if dtype is DType.PRED else 4, dims)
        found.append((numbers + 1j * rng.integers(0, 4, dims) if dtype.is_complex else numbers).astype(dtype.numpy))
    return found


def rows_of_few(dtype: str, rows: int, columns: int) -> str:
    """What multiplies rows of a few elements that lie anywhere in a table."""
    cut = f"offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, slice_sizes={{1,{columns}}}"
    result, table = f"{dtype}[{rows},{columns}]", f"{dtype}[5,{columns}]"
    lines = [f"x = {result} gather(p0, p1), {cut}, index_vector_dim=1"]
    return program(f"{result} multiply(x, p2)", table, f"s32[{rows},1]", result, lines=lines)


def few_columns(dtype: str, rows: int, columns: int) -> Iterator[str]:
    """What moves, adds and multiplies matrices of a few columns, or takes every second to fourth element of a line."""
    wide, tall, column = f"{dtype}[{columns},{rows}]", f"{dtype}[{rows},{columns}]", f"{dtype}[{rows},1]"
    yield program(f"{tall} transpose(p0), dimensions={{1,0}}", wide)
    yield program(f"{wide} transpose(p0), dimensions={{1,0}}", tall)
    if dtype != "pred":
        twice = f"x = {dtype}[2,{rows},{columns}] add(p0, p0)"
        planes = f"{dtype}[2,{columns},{rows}] transpose(x), dimensions={{0,2,1}}"
        yield program(planes, f"{dtype}[2,{rows},{columns}]", lines=[twice])
    pieces = ", ".join(f"p{number}" for number in range(columns))
    yield program(f"{tall} concatenate({pieces}), dimensions={{1}}", *(column,) * columns)
    yield program(f"{tall} reverse(p0), dimensions={{0}}", tall)
    yield program(f"{dtype}[3,{rows},{columns}] reverse(p0), dimensions={{0,2}}", f"{dtype}[3,{rows},{columns}]")
    yield program(f"{dtype}[{rows + 3},{columns}] pad(p0, p1), padding=1_2x0_0", tall, f"{dtype}[]")
    for place in range(columns):
        yield program(f"{column} slice(p0), slice={{[0:{rows}], [{place}:{place + 1}]}}", tall)
        # The first line ends with a whole row, the other one with the last element that is read.
        for size in (rows * columns, max(rows - 1, 0) * columns + place + 1):
            count = max(0, -(-(size - place) // columns))
            every = f"{dtype}[{count}] slice(p0), slice={{[{min(place, size)}:{size}:{columns}]}}"
            yield program(every, f"{dtype}[{size}]")
            yield program(f"{dtype}[{count}] reverse(x), dimensions={{0}}", f"{dtype}[{size}]", lines=[f"x = {every}"])
    if dtype == "pred":
        return
    across = f"x = {tall} broadcast(p1), dimensions={{1}}"
    yield program(f"{tall} multiply(p0, x)", tall, f"{dtype}[{columns}]", lines=[across])
    more, cut = f"{dtype}[{rows + 3},{columns}]", f"dynamic_slice_sizes={{{rows},{columns}}}"
    window = f"y = {tall} dynamic-slice(p0, p2, p2), {cut}"
    yield program(f"{tall} multiply(y, x)", more, f"{dtype}[{columns}]", "s32[]", lines=[across, window])
    pair = f"{dtype}[2,{rows},{columns}]"
    cut = f"offset_dims={{1,2}}, collapsed_slice_dims={{}}, start_index_map={{0}}, slice_sizes={{{rows},{columns}}}"
    windows = f"y = {pair} gather(p0, p2), {cut}, index_vector_dim=1"
    across = f"x = {pair} broadcast(p1), dimensions={{2}}"
    yield program(f"{pair} multiply(y, x)", more, f"{dtype}[{columns}]", "s32[2,1]", lines=[across, windows])
    for operation in ("add", "multiply"):
        total = f"{dtype}[{rows}] reduce(p0, p1), dimensions={{1}}, to_apply=f"
        functions = combiner("f", operation, dtype)
        yield program(total, tall, f"{dtype}[]", functions=functions)
        lines = [f"s = {total}", f"x = {tall} broadcast(s), dimensions={{0}}"]
        yield program(f"{tall} subtract(p0, x)", tall, f"{dtype}[]", lines=lines, functions=functions)
    for others in (1, 2, 3, 4):
        terms = "lhs_contracting_dims={1}, rhs_contracting_dims="
        yield program(f"{dtype}[{rows},{others}] dot(p0, p1), {terms}{{0}}", tall, f"{dtype}[{columns},{others}]")
        yield program(f"{dtype}[{others},{rows}] dot(p1, p0), {terms}{{1}}", tall, f"{dtype}[{others},{columns}]")


def small_matrices(dtype: str, count: int, rows: int, columns: int) -> Iterator[str]:
    """What spreads, turns and multiplies many matrices of a few rows and columns."""
    matrix, turned = f"{dtype}[{count},{rows},{columns}]", f"{dtype}[{count},{columns},{rows}]"
    line, column, combine = (
        f"{dtype}[{count},{columns}]",
        f"{dtype}[{count},{rows}]",
        "xor" if dtype == "pred" else "add",
    )
    beside, below = f"x = {matrix} broadcast(p1), dimensions={{0,2}}", f"y = {matrix} broadcast(p2), dimensions={{0,1}}"
    flipped = [f"w = {matrix} {combine}(x, y)", f"z = {matrix} reverse(p0), dimensions={{1,2}}"]
    yield program(f"{matrix} {combine}(w, z)", matrix, line, column, lines=[beside, below, *flipped])
    across = f"y = {matrix} transpose(p2), dimensions={{0,2,1}}"
    yield program(f"{matrix} {combine}(x, y)", f"{dtype}[]", line, turned, lines=[beside, across])
    more = f"{dtype}[{count},{rows + 1},{columns + 1}]"
    cut = f"y = {matrix} slice(p0), slice={{[0:{count}], [1:{rows + 1}], [0:{columns}]}}"
    yield program(f"{matrix} {combine}(x, y)", more, line, lines=[beside, cut])
    if count % 2 == 0:
        halves = [f"h = {dtype}[{count}] reshape(p0)", f"y = {matrix} broadcast(h), dimensions={{0}}"]
        yield program(f"{matrix} {combine}(x, y)", f"{dtype}[2,{count // 2}]", line, lines=[beside, *halves])
    if rows % 2 == 0:
        halves = [f"h = {column} reshape(p0)", f"y = {matrix} broadcast(h), dimensions={{0,1}}"]
        yield program(f"{matrix} {combine}(x, y)", f"{dtype}[{count},2,{rows // 2}]", line, lines=[beside, *halves])
    if dtype == "pred":
        return
    for dimension in () if dtype.startswith("c") else (0, 1, 2):
        places = f"y = {matrix} iota(), iota_dimension={dimension}"
        yield program(f"{matrix} subtract(x, y)", f"{dtype}[]", line, lines=[beside, places])
    square = f"{dtype}[{count},{rows},{rows}]"
    for left, right in ((matrix, turned), (matrix, matrix), (turned, turned), (turned, matrix)):
        terms = f"lhs_contracting_dims={{{2 - (left == turned)}}}, rhs_contracting_dims={{{1 + (right == matrix)}}}"
        batch = f"lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, {terms}"
        yield program(f"{square} dot(p0, p1), {batch}", left, right)
        yield program(f"{square} dot(p0, y), {batch}", left, right, lines=[f"y = {right} add(p1, p1)"])


def summed_lines(dtype: str, lines: int, columns: int) -> Iterator[str]:
    """Sums and extremes of lines of a few columns, alone and with what is made of their elements and results."""
    block, sums, line = f"{dtype}[2,{lines},{columns}]", f"{dtype}[2,{columns}]", f"{dtype}[2,{lines}]"
    names = ("and", "xor") if dtype == "pred" else ("add",) if dtype.startswith("c") else ("add", "maximum")
    for name in names:
        functions = combiner("f", name, dtype)
        taken = "dimensions={1}, to_apply=f"
        yield program(f"{sums} reduce(p0, p1), {taken}", block, f"{dtype}[]", functions=functions)
        whole = f"{dtype}[{columns}] reduce(p0, p1), dimensions={{0,1}}, to_apply=f"
        yield program(whole, block, f"{dtype}[]", functions=functions)
        spread = [
            f"y = {block} broadcast(p2), dimensions={{0,1}}",
            f"z = {block} broadcast(p3), dimensions={{0,2}}",
            f"w = {block} {'xor' if dtype == 'pred' else 'subtract'}(y, z)",
        ]
        inputs = (block, f"{dtype}[]", line, sums)
        yield program(f"{sums} reduce(w, p1), {taken}", *inputs, functions=functions, lines=spread)
        after = [f"s = {sums} reduce(w, p1), {taken}", f"t = {sums} reduce(p0, p1), {taken}"]
        last = f"{sums} {'or' if dtype == 'pred' else 'multiply'}(s, p3)"
        yield program(last, *inputs, functions=functions, lines=[*spread, after[0]])
        yield program(f"({sums}, {sums}) tuple(s, t)", *inputs, functions=functions, lines=[*spread, *after])


MANY_ROWS = 8192
"""With so many, each of `narrow_rows` is worth a loop with vectors along the rows."""


def narrow_rows(dtype: str, more: int, columns: int) -> Iterator[str]:
    """What is made of `MANY_ROWS` and more: sums, extremes and their places, and each element with its row's sum."""
    rows = MANY_ROWS + more
    matrix, line = f"{dtype}[{rows},{columns}]", f"{dtype}[{rows}]"
    for operation in ("and", "or") if dtype == "pred" else ("add", "maximum"):
        total = f"{line} reduce(p0, p1), dimensions={{1}}, to_apply=f"
        functions = combiner("f", operation, dtype)
        yield program(total, matrix, f"{dtype}[]", functions=functions)
        lines = [f"s = {total}", f"x = {matrix} broadcast(s), dimensions={{0}}"]
        yield program(
            f"{matrix} {'xor' if dtype == 'pred' else 'add'}(p0, x)",
            matrix,
            f"{dtype}[]",
            lines=lines,
            functions=functions,
        )
    places = [f"i = s32[{rows},{columns}] iota(), iota_dimension=1"]
    found = f"({line}, s32[{rows}]) reduce(p0, i, p1, p2), dimensions={{1}}, to_apply=greatest"
    yield program(found, matrix, f"{dtype}[]", "s32[]", lines=places, functions=greatest(dtype))
    if columns % 3 == 0:
        total = f"{line} reduce(p0, p1), dimensions={{1,2}}, to_apply=f"
        operand = f"{dtype}[{rows},{columns // 3},3]"
        yield program(total, operand, f"{dtype}[]", functions=functions)
    for place in (0, columns // 2, columns - 1):
        yield program(f"{dtype}[{rows},1] slice(p0), slice={{[0:{rows}], [{place}:{place + 1}]}}", matrix)
