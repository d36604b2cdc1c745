"""Kernels of every kind touch their arrays only: operations, reductions, moves, products and fusions of mixed widths.

Sizes leave 0, 1, 2 ... elements beyond full vectors; 65 leaves one, whatever the width.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernel_programs import (
    MANY_SIZES,
    NUMBERS,
    USUAL_SIZES,
    combiner,
    few_columns,
    greatest,
    narrow_rows,
    program,
    rows_of_few,
    sample,
    small_matrices,
    summed_lines,
)
from nested_arrays import leaves

from xlalite.hlo.types.dtype import DType

EACH_KIND = ("pred", "s4", "u8", "bf16", "s32", "f64", "c64", "c128", "f8e5m2")


def reductions(sizes: Sequence[int]) -> Iterator[str]:
    for n in sizes:
        for t in NUMBERS:
            shapes = [(f"{t}[3,{n}]", f"{t}[3]", 1), (f"{t}[{n},3]", f"{t}[{n}]", 1), (f"{t}[3,{n}]", f"{t}[{n}]", 0)]
            for operation in ("add", "maximum"):
                for operand, result, dimension in shapes:
                    call = f"{result} reduce(p0, p1), dimensions={{{dimension}}}, to_apply=f"
                    yield program(call, operand, f"{t}[]", functions=combiner("f", operation, t))
            for operand, result, dimension in shapes:
                indices = operand.replace(t, "s32")
                call = (
                    f"({result}, {result.replace(t, 's32')}) reduce(p0, i, p1, p2), dimensions={{{dimension}}}, "
                    "to_apply=greatest"
                )
                lines = [f"i = {indices} iota(), iota_dimension={dimension}"]
                yield program(call, operand, f"{t}[]", "s32[]", lines=lines, functions=greatest(t))


def moves(sizes: Sequence[int]) -> Iterator[str]:
    for n in sizes:
        for t in EACH_KIND:
            line = f"{t}[{n}]"
            yield program(f"{t}[5,{n}] transpose(p0), dimensions={{1,0}}", f"{t}[{n},5]")
            yield program(f"{t}[{n + 2}] concatenate(p0, p1), dimensions={{0}}", line, f"{t}[2]")
            yield program(f"{t}[3,{n + 1}] concatenate(p0, p1), dimensions={{1}}", f"{t}[3,{n}]", f"{t}[3,1]")
            yield program(f"{t}[{n + 3}] pad(p0, p1), padding=1_2", line, f"{t}[]")
            nothing = f"z = {t}[] constant({ {'pred': 'false', 'c64': '(0,0)', 'c128': '(0,0)'}.get(t, 0) })"
            for result, operand, padding in (
                (f"{n + 3}", f"{n}", "1_2"),
                (f"4,{n + 71}", f"3,{n}", "0_1x70_1"),
                (f"2,5,{n},17", f"1,3,{n},16", "1_0x1_1x0_0x0_1"),
            ):
                yield program(f"{t}[{result}] pad(p0, z), padding={padding}", f"{t}[{operand}]", lines=[nothing])
            yield program(f"{line} slice(p0), slice={{[1:{n + 1}]}}", f"{t}[{n + 1}]")
            yield program(f"{line} slice(p0), slice={{[0:{3 * n}:3]}}", f"{t}[{3 * n}]")
            yield program(f"{line} reverse(p0), dimensions={{0}}", line)
            yield program(f"{t}[3,{n}] broadcast(p0), dimensions={{1}}", line)
            yield program(f"{t}[{n},3] broadcast(p0), dimensions={{0}}", line)
            yield program(f"{line} select(p0, p1, p2)", f"pred[{n}]", line, line)
            yield program(f"{line} dynamic-slice(p0, p1), dynamic_slice_sizes={{{n}}}", f"{t}[{n + 2}]", "s32[]")
            rows = "start_index_map={0}, index_vector_dim=1, offset_dims="
            window = f"collapsed_slice_dims={{0}}, slice_sizes={{1,{n}}}"
            yield program(f"{t}[3,{n}] gather(p0, p1), {rows}{{1}}, {window}", f"{t}[5,{n}]", "s32[3,1]")
            yield program(f"{t}[{n},3] gather(p0, p1), {rows}{{1}}, slice_sizes={{3}}", f"{t}[5]", f"s32[{n},1]")
            if t not in ("pred", "f8e5m2"):
                places = "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f, inserted_window_dims={"
                shapes, add = (f"{t}[5,{n}]", "s32[3,1]", f"{t}[3,{n}]"), combiner("f", "add", t)
                call = f"scatter(p0, p1, p2), {places}0}}, update_window_dims={{1}}"
                yield program(f"{shapes[0]} {call}", *shapes, functions=add)
                shapes = (f"{t}[1]", f"s32[{n},1]", line)
                call = f"scatter(p0, p1, p2), {places}0}}, update_window_dims={{}}"
                yield program(f"{shapes[0]} {call}", *shapes, functions=add)
                shapes = (f"{t}[{n + 4},3]", "s32[2,1]", f"{t}[2,{n},3]")
                call = f"scatter(p0, p1, p2), {places}}}, update_window_dims={{1,2}}"
                yield program(f"{shapes[0]} {call}", *shapes, functions=add)
            copied = [f"x = {t}[{n + 2}] copy(p0)"]
            update = f"{t}[{n + 2}] dynamic-update-slice(x, p1, p2)"
            yield program(update, f"{t}[{n + 2}]", line, "s32[]", lines=copied)
            for part in ("u2", "s16", "c64"):
                parts = DType(t).bits // DType(part).bits
                if t != "pred" and parts > 1 and DType(t).is_complex == DType(part).is_complex:
                    yield program(f"{part}[{n},{parts}] bitcast-convert(p0)", line)
                    yield program(f"{line} bitcast-convert(p0)", f"{part}[{n},{parts}]")
            if t not in ("pred", "c64", "c128"):
                yield program(f"{line} iota(), iota_dimension=0")


def mixtures(sizes: Sequence[int]) -> Iterator[str]:
    """Kernels that compute in one width and write others."""
    for n in sizes:
        for a in EACH_KIND[:6]:
            for b in ("s64", "f32", "f16", "s8"):
                lines = [
                    f"x = {b}[{n}] convert(p0)",
                    f"y = {b}[{n}] maximum(x, p1)",
                    f"g = pred[{n}] compare(x, p1), direction=GT",
                    f"z = {a}[{n}] convert(y)",
                    f"w = {a}[{n}] select(g, p0, z)",
                    f"v = {a}[{n}] reverse(w), dimensions={{0}}",
                ]
                shapes = f"({b}[{n}], pred[{n}], {a}[{n}], {a}[{n}])"
                yield program(f"{shapes} tuple(y, g, w, v)", f"{a}[{n}]", f"{b}[{n}]", lines=lines)


def large() -> Iterator[str]:
    """Kernels that go by blocks."""
    for t in ("f32", "f64", "bf16", "s8"):
        yield program(f"{t}[65,129] transpose(p0), dimensions={{1,0}}", f"{t}[129,65]")
        for result, dimension in ((f"{t}[2049]", 0), (f"{t}[70]", 1)):
            call = f"{result} reduce(p0, p1), dimensions={{{dimension}}}, to_apply=f"
            yield program(call, f"{t}[70,2049]", f"{t}[]", functions=combiner("f", "maximum", t))
        lines = [f"m = {t}[] reduce(p0, p1), dimensions={{0}}, to_apply=f"]
        lines += [f"s = {t}[4097] broadcast(m), dimensions={{}}"]
        yield program(
            f"{t}[4097] subtract(p0, s)", f"{t}[4097]", f"{t}[]", lines=lines, functions=combiner("f", "maximum", t)
        )


def long_rows() -> Iterator[str]:
    """Sorts that part rows, and those that share rows out."""
    for n in (300, 700, 5000, 33_001):
        for t in ("f32", "f64", "s8"):
            sides = "".join(f"  {side} = {t}[] parameter({number})\n" for number, side in enumerate("ab"))
            others = "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
            less = f"before {{\n{sides}%s  ROOT r = pred[] compare(a, b), direction=LT\n}}\n"
            shape, attributes = f"{t}[1,{n}]", "dimensions={1}, is_stable=true, to_apply=before"
            yield program(f"{shape} sort(p0), {attributes}", shape, functions=less % "")
            pair = (shape, f"s32[1,{n}]")
            yield program(f"({', '.join(pair)}) sort(p0, p1), {attributes}", *pair, functions=less % others)
            yield program(f"({t}[1,9], s32[1,9]) topk(p0), k=9", shape)


def orders(sizes: Sequence[int]) -> Iterator[str]:
    """Sorts by keys alone, by keys with a passenger, and by a comparator that has no key; first elements."""
    for n in sizes:
        for t in NUMBERS:
            sides = "".join(f"  {side} = {t}[] parameter({number})\n" for number, side in enumerate("ab"))
            others = "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n"
            less = f"before {{\n{sides}%s  ROOT r = pred[] compare(a, b), direction=LT\n}}\n"
            after = "  c = pred[] compare(a, b), direction=GT\n  ROOT r = pred[] or(c, c)\n}\n"
            for result, dimension in ((f"{t}[3,{n}]", 1), (f"{t}[{n},3]", 0), (f"{t}[{n},5]", 0)):
                attributes = f"dimensions={{{dimension}}}, is_stable=true, to_apply=before"
                yield program(f"{result} sort(p0), {attributes}", result, functions=less % "")
                yield program(f"{result} sort(p0), {attributes}", result, functions=f"before {{\n{sides}{after}")
                pair = f"({result}, {result.replace(t, 's32')})"
                operands = (result, result.replace(t, "s32"))
                yield program(f"{pair} sort(p0, p1), {attributes}", *operands, functions=less % others)
            for k in {min(n, 1), n // 2, n}:
                yield program(f"({t}[3,{k}], s32[3,{k}]) topk(p0), k={k}", f"{t}[3,{n}]")


def windows(sizes: Sequence[int]) -> Iterator[str]:
    """Windows that overlap, step over elements or reach beyond them; and those of running sums, from either end."""
    for n in sizes:
        for t in NUMBERS:
            for operation in ("add", "maximum"):
                add = combiner("f", operation, t)
                for result, operand, window in (
                    (f"{t}[2,{n}]", f"{t}[2,{n}]", "size=1x3 pad=0_0x1_1"),
                    (f"{t}[2,{n}]", f"{t}[2,{2 * n}]", "size=1x2 stride=1x2"),
                    (f"{t}[2,{n + 1}]", f"{t}[2,{2 * n + 1}]", "size=1x3 stride=1x2 pad=0_0x1_1"),
                    (f"{t}[4,{n}]", f"{t}[8,{n}]", "size=3x1 stride=2x1 pad=1_0x0_0"),
                    (f"{t}[2,{n}]", f"{t}[2,{n}]", f"size=1x{n} pad=0_0x{n - 1}_0"),
                    (f"{t}[2,{n}]", f"{t}[2,{n}]", f"size=1x{n} pad=0_0x0_{n - 1}"),
                    (f"{t}[5,{n}]", f"{t}[5,{n}]", "size=5x1 pad=4_0x0_0"),
                    (f"{t}[11,{n}]", f"{t}[11,{n}]", "size=5x5 pad=2_2x2_2"),
                ):
                    call = f"reduce-window(p0, p1), window={{{window}}}, to_apply=f"
                    if n or "x0 " not in window:
                        yield program(f"{result} {call}", operand, f"{t}[]", functions=add)
                    if "size=5x1" not in window and f"x{n} " not in window:
                        pick = f"g {{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n"
                        pick += "  ROOT c = pred[] compare(a, b), direction=GE\n}\n"
                        call = f"{operand} select-and-scatter(p0, p1, p2), window={{{window}}}, select=g, scatter=f"
                        yield program(call, operand, result, f"{t}[]", functions=add + pick)


def gaps(sizes: Sequence[int]) -> Iterator[str]:
    """Windows over what lies apart, as in the gradient of average pooling."""
    for n in sizes:
        for t in NUMBERS:
            for step, low in ((2, 1), (4, 3), (3, -1)):
                padded = max(1, low + (n - 1) * step + 4)
                sides = f"{low}_{padded - low - (n - 1) * step - 1}_{step - 1}"
                lines = [f"p = {t}[2,{padded}] pad(p0, p1), padding=0_0x{sides}"]
                if n:
                    call = "reduce-window(p, p1), window={size=1x2 pad=0_0x1_0}, to_apply=f"
                    add = combiner("f", "add", t)
                    yield program(f"{t}[2,{padded}] {call}", f"{t}[2,{n}]", f"{t}[]", lines=lines, functions=add)
                    between = f"p = {t}[{padded},5] pad(p0, p1), padding={sides}x0_0"
                    call = f"{t}[{padded - 1},5] reduce-window(p, p1), window={{size=2x1}}, to_apply=f"
                    yield program(call, f"{t}[{n},5]", f"{t}[]", lines=[between], functions=add)


def systems(sizes: Sequence[int]) -> Iterator[str]:
    """Factors, NaN since nothing is positive definite here, and triangular systems from either side.

    These have few unknowns, so that all is exact, or many that are zero.
    """
    for n in sizes:
        for t in ("f32", "f64", "c64", "c128", "bf16"):
            matrix = f"{t}[2,{n},{n}]"
            for lower in ("true", "false"):
                negative, operand = [f"z = {matrix} negate(p0)"], "z" if n < 9 else "p0"
                call = f"{matrix} cholesky({operand}), lower={lower}"
                yield program(call, matrix, lines=negative if operand == "z" else ())
                for left, other, result in (("true", "false", f"{t}[2,5,{n}]"), ("false", "true", f"{t}[2,{n},5]")):
                    attributes = f"lower={lower}, unit_diagonal=true, left_side="
                    call = f"{result} triangular-solve(p0, p1), {attributes}{left}"
                    yield program(call, f"{t}[2,5,5]", result)
                    # Many unknowns, which run along the matrix if there are few right-hand sides.
                    few, size = f"{t}[{n},2]" if left == "true" else f"{t}[2,{n}]", f"{t}[{n},{n}]"
                    call = f"{few} triangular-solve(p0, z), {attributes}{left}"
                    yield program(call, size, few, lines=[f"z = {few} subtract(p1, p1)"])
                    call = f"{result} triangular-solve(p0, z), {attributes}{other}"
                    yield program(call, matrix, result, lines=[f"z = {result} subtract(p1, p1)"])


def splits(sizes: Sequence[int]) -> Iterator[str]:
    """Rotations, borders, gaps and updates inside loops that are split for them."""
    for n in sizes:
        for t in ("f32", "f64", "bf16", "s8", "s4", "c64"):
            for gap in (1, 2, 3) if n else ():
                line, row = n + (n - 1) * gap + 3, 3 + 2 * gap
                yield program(f"{t}[{line}] pad(p0, p1), padding=1_2_{gap}", f"{t}[{n}]", f"{t}[]")
                call = f"pad(p0, p1), padding=0_0_{gap}x2_1_{gap}"
                yield program(f"{t}[{row},{line}] {call}", f"{t}[3,{n}]", f"{t}[]")
            for dims, along in (((n + 40,), 0), ((3, n + 40), 1), ((n + 2, 33), 0)):
                shape, size = f"{t}[{','.join(map(str, dims))}]", dims[along]
                lines, parts = [], []
                for number, (begin, end) in enumerate(((size - 1, size), (0, size - 1), (1, size), (0, 1))):
                    part = ",".join(str(end - begin if d == along else one) for d, one in enumerate(dims))
                    ranges = ",".join(f"[{begin}:{end}]" if d == along else f"[0:{one}]" for d, one in enumerate(dims))
                    lines.append(f"s{number} = {t}[{part}] slice(p0), slice={{{ranges}}}")
                    parts.append(part)
                for number, pair in enumerate(("s0, s1", "s2, s3")):
                    lines.append(f"c{number} = {shape} concatenate({pair}), dimensions={{{along}}}")
                yield program(f"{shape} add(c0, c1)", shape, lines=lines)
                joined = ["z = s32[] constant(0)", "n = s32[] constant(1)", f"u = {t}[{parts[1]}] add(s1, s2)"]
                at = ", ".join("n" if d == along else "z" for d in range(len(dims)))
                updated = [*lines[1:3], *joined, f"d = {shape} dynamic-update-slice(p1, u, {at})"]
                yield program(f"{shape} add(d, p0)", shape, shape, lines=updated)
                around = "x".join("1_0" if d == along else "0_0" for d in range(len(dims)))
                padded = [lines[1], f"b = {shape} pad(s1, p1), padding={around}"]
                yield program(f"{shape} add(b, p0)", shape, f"{t}[]", lines=padded)


def reversals(sizes: Sequence[int]) -> Iterator[str]:
    """Pieces beside each other, and what lies in a border, read backwards in vectors."""
    for n in sizes:
        for t in ("f32", "f64", "s8", "c64"):
            shape = f"{t}[7,{n}]"
            joined = f"c = {shape} concatenate(p0, p1), dimensions={{0}}"
            pieces = (f"{t}[3,{n}]", f"{t}[4,{n}]")
            yield program(f"{shape} reverse(c), dimensions={{1}}", *pieces, lines=[joined])
            padded = [joined, f"d = {t}[9,{n + 5}] pad(c, p2), padding=1_1x2_3"]
            yield program(f"{t}[9,{n + 5}] reverse(d), dimensions={{0,1}}", *pieces, f"{t}[]", lines=padded)
            if t == "c64":
                parts = [joined, f"x = f32[7,{n}] real(c)", f"y = f32[7,{n}] imag(c)"]
                both = [*parts, f"b = f32[14,{n}] concatenate(x, y), dimensions={{0}}"]
                yield program(f"f32[14,{n}] reverse(b), dimensions={{1}}", *pieces, lines=both)


def columns(sizes: Sequence[int]) -> Iterator[str]:
    """Matrices of few columns, and lines of which every second to fourth element is read; types take turns."""
    kinds = ("pred", "f64", "u8", "c64", "bf16", "s32", "c128")
    for n in sizes:
        for t in kinds[n % 3 :: 3]:
            for count in (1, 2, 3, 4):
                yield from few_columns(t, n, count)
                if t != "pred":
                    yield rows_of_few(t, n, count)


def reduced_rows(sizes: Sequence[int]) -> Iterator[str]:
    """Rows of up to sixteen columns, in types and numbers that take turns."""
    kinds = ("pred", "f64", "u8", "bf16", "s32")
    for n in sizes:
        for count in range(5, 17):
            yield from narrow_rows(kinds[(n + count) % len(kinds)], n, count)


def matrices(sizes: Sequence[int]) -> Iterator[str]:
    """Matrices of a few rows and columns, in types and sizes that take turns."""
    kinds = ("f32", "pred", "f64", "u8", "bf16", "c64")
    for n in sizes:
        for rows in range(1, 6):
            for columns in range(2, 6):
                yield from small_matrices(kinds[(n + 5 * rows + columns) % len(kinds)], n, rows, columns)


def lines(sizes: Sequence[int]) -> Iterator[str]:
    """Lines of a few columns that are summed, in types that take turns."""
    kinds = ("f32", "pred", "f64", "u8", "bf16", "s4")
    for n in sizes:
        for columns in range(2, 9):
            yield from summed_lines(kinds[(n + columns) % len(kinds)], n * 3, columns)


FAMILIES = (
    *(reductions, moves, mixtures, orders, windows, gaps, systems, splits, reversals, columns, reduced_rows),
    *(matrices, lines),
)
IN_FUSIONS = (mixtures, splits, gaps, reversals, reduced_rows, matrices, lines)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_stay_in_their_arrays(
    run_guarded: Any, make_kernel: Any, isa: str, family: Callable[[Sequence[int]], Iterator[str]]
) -> None:
    chosen = sample(list(family(USUAL_SIZES)), isa, 36)
    run_guarded([make_kernel(text, whole=True) for text in chosen], isa=isa, optimize=family in IN_FUSIONS)


@pytest.mark.parametrize("family", [moves, mixtures, reductions])
def test_stores_past_the_caches_stay_in_their_arrays(
    run_streaming: Any, make_kernel: Any, isa: str, family: Callable[[Sequence[int]], Iterator[str]]
) -> None:
    """Arrays that end at a page's end begin anywhere, so that some vectors are aligned and others are not."""
    chosen = sample(list(family((130, 17))), isa, 36)
    run_streaming([make_kernel(text, whole=True) for text in chosen], isa=isa, optimize=family is mixtures)


def test_operations_past_the_caches_stay_in_their_arrays(
    run_streaming: Any, record_kernel: Any, op_cases: tuple[Any, ...], isa: str
) -> None:
    run_streaming([record_kernel(*pair) for pair in sample(operations(op_cases), isa, 60)], isa=isa)


def transforms(sizes: Sequence[int]) -> Iterator[str]:
    """Fourier transforms of lines one after the other, of lines beside each other, and of a line by itself."""
    for n in sizes:
        for numbers, spectra in (("c64", "c64"), ("c128", "c128"), ("f32", "c64"), ("f64", "c128")):
            for dims, rank in (((3, n), 1), ((n, 3), 1), ((n, 3), 2), ((5, n), 2), ((16 * n,), 1), ((n * n,), 1)):
                is_real = numbers != spectra
                frequencies = dims[-1] // 2 + bool(dims[-1]) if is_real else dims[-1]
                signal = f"{numbers}[{','.join(map(str, dims))}]"
                spectrum = f"{spectra}[{','.join(map(str, (*dims[:-1], frequencies)))}]"
                lengths = f"fft_length={{{','.join(map(str, dims[-rank:]))}}}"
                yield program(f"{spectrum} fft(p0), fft_type={'R' * is_real}FFT, {lengths}", signal)
                yield program(f"{signal} fft(p0), fft_type=I{'R' * is_real}FFT, {lengths}", spectrum)


def factorisations(sizes: Sequence[int]) -> Iterator[str]:
    """LAPACK's, of square, tall and wide matrices."""
    for n in filter(None, sizes):
        for t, letter in (("f32", "s"), ("f64", "d"), ("c64", "c"), ("c128", "z")):
            target = f'custom_call_target="lapack_{letter}%s_ffi"'
            for uplo in map(ord, "LU"):
                call = f"custom-call(p0), {target % 'potrf'}, backend_config={{uplo = {uplo} : ui8}}"
                yield program(f"({t}[2,{n},{n}], s32[2]) {call}", f"{t}[2,{n},{n}]")
            for rows, columns in ((n, n), (n + 3, n), (n, n + 3)):
                matrix = f"{t}[2,{rows},{columns}]"
                yield program(f"({matrix}, s32[2,{n}], s32[2]) custom-call(p0), {target % 'getrf'}", matrix)
                yield program(f"({matrix}, {t}[2,{n}]) custom-call(p0), {target % 'geqrf'}", matrix)
                results, order = f"({matrix}, s32[2,{columns}], {t}[2,{n}])", f"s32[2,{columns}]"
                yield program(f"{results} custom-call(p0, p1), {target % 'geqp3'}", matrix, order)
            square, real = f"{t}[2,{n},{n}]", DType(t).component.value
            less, line = f"{t}[2,{n - 1}]", f"{real}[2,{n}]"
            yield program(f"({square}, {less}, s32[2]) custom-call(p0), {target % 'gehrd'}", square)
            reduction = target % ("sytrd" if letter in "sd" else "hetrd")
            for uplo in map(ord, "LU"):
                results = f"({square}, {line}, {real}[2,{n - 1}], {less}, s32[2])"
                options = f"backend_config={{uplo = {uplo} : ui8}}"
                yield program(f"{results} custom-call(p0), {reduction}, {options}", square)
            values = (line, line) if letter in "sd" else (f"{t}[2,{n}]",)
            for mode in map(ord, "NV"):
                results = f"({', '.join((square, square, *values))}, s32[2], s32[2])"
                options = f"backend_config={{mode = {mode} : ui8, sort = 78 : ui8}}"
                yield program(f"{results} custom-call(p0), {target % 'gees'}, {options}", square)
            wide = {"f32": "c64", "f64": "c128"}.get(t, t)
            for left, right in ("VV", "VN", "NN"):
                results = f"({', '.join((*values, *(f'{wide}[2,{n},{n}]',) * 2))}, s32[2])"
                options = f"backend_config={{compute_left = {ord(left)} : ui8, compute_right = {ord(right)} : ui8}}"
                yield program(f"{results} custom-call(p0), {target % 'geev'}, {options}", square)
            eigh = target % ("syevd" if letter in "sd" else "heevd")
            for mode, uplo in (("V", "L"), ("V", "U"), ("N", "L")):
                options = f"backend_config={{mode = {ord(mode)} : ui8, uplo = {ord(uplo)} : ui8}}"
                yield program(f"({square}, {real}[2,{n}], s32[2]) custom-call(p0), {eigh}, {options}", square)
            for rows, columns, mode in ((n + 3, n, "S"), (n, n + 3, "A"), (n, n, "N")):
                matrix, options = f"{t}[2,{rows},{columns}]", f"backend_config={{mode = {ord(mode)} : ui8}}"
                u, v = (f"{t}[2,{rows},{n}]", f"{t}[2,{n},{columns}]")
                if mode == "A":
                    u, v = (f"{t}[2,{rows},{rows}]", f"{t}[2,{columns},{columns}]")
                results = f"({matrix}, {real}[2,{n}], {u}, {v}, s32[2])"
                yield program(f"{results} custom-call(p0), {target % 'gesdd'}, {options}", matrix)
            line, rhs = f"{t}[2,{n}]", f"{t}[2,{n},5]"
            results = f"({line}, {line}, {line}, {rhs}, s32[2])"
            yield program(f"{results} custom-call(p0, p1, p2, p3), {target % 'gtsv'}", line, line, line, rhs)
            q, other = ("orgqr", "ormqr") if letter in "sd" else ("ungqr", "unmqr")
            tall, taus = f"{t}[2,{n + 2},{n}]", f"{t}[2,{n}]"
            yield program(f"{tall} custom-call(p0, p1), {target % q}", tall, taus)
            for left, c in (("true", f"{t}[2,{n + 2},5]"), ("false", f"{t}[2,5,{n + 2}]")):
                options = f"{target % other}, backend_config={{left = {left}}}"
                yield program(f"{c} custom-call(p0, p1, p2), {options}", tall, taus, c)


def same_shapes(found: object, expected: object) -> None:
    """Rounding may choose another pivot in these matrices."""
    pairs = zip(leaves(found), leaves(expected), strict=True)
    assert all((one.shape, one.dtype) == (other.shape, other.dtype) for one, other in pairs)


def test_factorisations_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    texts = sample(list(factorisations(USUAL_SIZES)), isa, 24)
    run_guarded([replace(make_kernel(text), check=same_shapes) for text in texts], isa=isa)


@pytest.mark.slow
def test_factorisations_of_many_sizes_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    texts = sample(list(factorisations(MANY_SIZES)), isa, 200)
    run_guarded([replace(make_kernel(text), check=same_shapes) for text in texts], isa=isa)


def near(found: object, expected: object) -> None:
    """Close in units of the largest number."""
    one, other = np.asarray(found), np.asarray(expected)
    largest = np.max(np.abs(other), initial=0.0)
    np.testing.assert_allclose(one, other, rtol=0, atol=8 * float(np.finfo(other.dtype).eps) * largest)


def test_transforms_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    texts = sample(list(transforms(USUAL_SIZES)), isa, 36)
    run_guarded([replace(make_kernel(text, whole=True), check=near) for text in texts], isa=isa)


@pytest.mark.slow
def test_transforms_of_many_sizes_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    run_guarded([replace(make_kernel(text, whole=True), check=near) for text in transforms(MANY_SIZES)], isa=isa)


def test_large_kernels_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    kernels = [make_kernel(text, whole=True) for text in sample([*large(), *long_rows()], isa, 16)]
    run_guarded(kernels, isa=isa, optimize=True)


@pytest.mark.slow
def test_all_large_kernels_stay_in_their_arrays(run_guarded: Any, make_kernel: Any, isa: str) -> None:
    for optimize in (True, False):
        run_guarded([make_kernel(text, whole=True) for text in (*large(), *long_rows())], isa=isa, optimize=optimize)


@pytest.mark.slow
@pytest.mark.parametrize("size", MANY_SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_of_many_sizes_stay_in_their_arrays(
    run_guarded: Any, make_kernel: Any, isa: str, family: Callable[[Sequence[int]], Iterator[str]], size: int
) -> None:
    texts = list(family([size]))
    kernels = [make_kernel(text, whole=True) for text in sample(texts, isa, len(texts))]
    run_guarded(kernels, isa=isa, optimize=family in IN_FUSIONS)


def test_operations_stay_in_their_arrays(
    run_guarded: Any, record_kernel: Any, op_cases: tuple[Any, ...], isa: str
) -> None:
    """Records of all operations; elementwise ones have 65 elements."""
    run_guarded([record_kernel(*pair) for pair in sample(operations(op_cases), isa, 80)], isa=isa)


@pytest.mark.slow
@pytest.mark.parametrize("size", [None, *MANY_SIZES[::2]])
def test_operations_of_many_sizes_stay_in_their_arrays(
    run_guarded: Any, record_kernel: Any, op_cases: tuple[Any, ...], isa: str, size: int | None
) -> None:
    """All records as they are, then the elementwise ones with other sizes."""
    found = operations(op_cases)
    kernels = [
        record_kernel(record, dtype, text if size is None else text.replace("[5,13]", f"[{size}]"))
        for record, dtype, text in sample(found, isa, len(found))
        if size is None or is_elementwise(text)
    ]
    run_guarded(kernels, isa=isa)


def operations(records: tuple[Any, ...]) -> list[tuple[Any, DType, str]]:
    """Records that the compiler takes by themselves, for each of their types."""
    return [
        (record, dtype, record.text(dtype))
        for record in records
        if record.is_deterministic and record.is_local and "<=" not in record.hlo_text
        for dtype in record.dtypes
    ]


def is_elementwise(text: str) -> bool:
    """Whether the text is of those that stay valid when all sizes become others."""
    shapes_of_others = ("dimensions=", "[5,13,", "[13,5]", "k=", "[65]", "iota", "to_apply=map")
    return "[5,13]" in text and not any(word in text for word in shapes_of_others)
