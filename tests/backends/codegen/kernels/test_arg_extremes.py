"""Reductions to an extreme and its position: the bits of combining in order, from vectors of neighbours."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, DebugOptions, Executable, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse

COLUMNS = (1, 2, 3, 8, 9, 16, 17, 31, 40, 67, 150)
ROWS = 12

# Whether the value (v) and the position (p) of the earlier element are taken; a is earlier than b, i than j.
FORMS = {
    "jax": "v = or(gt, a_nan)\n tie = and(eq, earlier)\n p = or(v, tie)",
    "first": "v = or(ge, a_nan)\n p = copy(v)",
    "last": "later = or(le, b_nan)\n v = not(later)\n p = copy(v)",
    "nan_after": "v = or(ge, b_nan)\n p = copy(v)",
    "last_nan_after": "better = or(gt, b_nan)\n v = and(better, a_number)\n p = copy(v)",
    "first_value_last_position": "only = and(a_nan, b_number)\n v = or(ge, a_nan)\n p = or(gt, only)",
    "no_nan": "v = copy(ge)\n p = copy(ge)",
}
COMPARISONS = {
    "gt": "compare(a, b), direction=GT",
    "ge": "compare(a, b), direction=GE",
    "le": "compare(a, b), direction=LE",
    "eq": "compare(a, b), direction=EQ",
    "earlier": "compare(i, j), direction=LT",
    "a_nan": "compare(a, a), direction=NE",
    "b_nan": "compare(b, b), direction=NE",
    "a_number": "compare(a, a), direction=EQ",
    "b_number": "compare(b, b), direction=EQ",
}
MINIMUM = {"GT": "LT", "GE": "LE", "LE": "GE"}


def combiner(form: str, kind: str, dtype: str, position: str) -> str:
    lines = []
    for name, comparison in COMPARISONS.items():
        text, direction = comparison.rsplit("=", 1)
        turned = MINIMUM.get(direction, direction) if kind == "minimum" else direction
        lines.append(f"{name} = pred[] {text}={turned}")
    body = "\n ".join([*lines, FORMS[form].replace(" = ", " = pred[] ")])
    return f"""pick {{ a = {dtype}[] parameter(0)
 i = {position}[] parameter(1)
 b = {dtype}[] parameter(2)
 j = {position}[] parameter(3)
 {body}
 x = {dtype}[] select(v, a, b)
 k = {position}[] select(p, i, j)
 ROOT r = ({dtype}[], {position}[]) tuple(x, k) }}"""


def program(form: str, kind: str, dtype: str, position: str, columns: tuple[int, ...] = COLUMNS) -> str:
    lines, results = [], []
    for n, size in enumerate(columns):
        shapes = f"({dtype}[{ROWS}], {position}[{ROWS}])"
        lines += [
            f"x{n} = {dtype}[{ROWS},{size}] parameter({n})",
            f"i{n} = {position}[{ROWS},{size}] iota(), iota_dimension=1",
            f"r{n} = {shapes} reduce(x{n}, i{n}, s, z), dimensions={{1}}, to_apply=pick",
        ]
        results.append((f"r{n}", shapes))
    body = "\n ".join(lines)
    names, types = ", ".join(name for name, _ in results), ", ".join(shapes for _, shapes in results)
    return f"""HloModule m
{combiner(form, kind, dtype, position)}
ENTRY e {{ s = {dtype}[] parameter({len(columns)})
 z = {position}[] constant(0)
 {body}
 ROOT t = ({types}) tuple({names}) }}"""


def rows(rng: np.random.Generator, columns: int, dtype: Any) -> np.ndarray:
    """Ties, zeros of both signs, infinities, one NaN, several and nothing else."""
    x = rng.integers(0, 4, (ROWS, columns)).astype(np.float64)
    floating = np.dtype(dtype).kind not in "iub"
    if not floating:
        return x.astype(dtype)
    x[1] = rng.choice([-0.0, 0.0], columns)
    x[2] = rng.choice([-0.0, 0.0, -1.0, 1.0], columns)
    x[3], x[4], x[5] = -np.inf, np.inf, np.nan
    x[6, columns // 2] = np.nan
    x[7, rng.random(columns) < 0.2] = np.nan
    x[8, [0, -1]] = np.nan
    x[9, rng.random(columns) < 0.5] = -np.inf
    x[10, rng.random(columns) < 0.5] = np.inf
    return x.astype(dtype)


def run(text: str, arguments: list[np.ndarray], isa: str = "") -> Executable:
    """Compiles, runs, and compares every bit with the evaluator, but for those of NaN."""
    module = parse(text)
    options = CompileOptions(use_cache=False, debug=DebugOptions(cpu_max_isa=isa))
    executable = get_backend("cpu").compile(module, options)
    with np.errstate(all="ignore"):
        expected: Any = evaluate(module, *arguments)
    found: Any = executable(*arguments)
    for x, one, other in zip(arguments, found, expected, strict=False):
        context = f"{text}\n{x}"
        np.testing.assert_array_equal(one[1], other[1], err_msg=context)
        values, wanted = one[0].astype(np.float64), other[0].astype(np.float64)
        np.testing.assert_array_equal(values, wanted, err_msg=context)
        signs = [np.signbit(v) & ~np.isnan(v) for v in (values, wanted)]
        np.testing.assert_array_equal(*signs, err_msg=context)
    return executable


def recognised(executable: Executable) -> list[str]:
    return [str(d.numbers["extremes"]).split(": ", 1)[1] for d in executable.decisions() if "extremes" in d.numbers]


def start(kind: str, dtype: Any) -> np.ndarray:
    if np.dtype(dtype).kind in "iub":
        limits = np.iinfo(dtype)
        return np.asarray(limits.min if kind == "maximum" else limits.max, dtype)
    return np.asarray(-np.inf if kind == "maximum" else np.inf).astype(dtype)


@pytest.mark.parametrize("kind", ["maximum", "minimum"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "no_nan"])
def test_every_order(rng: np.random.Generator, form: str, kind: str) -> None:
    arguments = [*(rows(rng, size, np.float32) for size in COLUMNS), start(kind, np.float32)]
    executable = run(program(form, kind, "f32", "s32"), arguments)
    last = form in ("last", "last_nan_after", "first_value_last_position")
    nan = "after" if "after" in form else "before"
    wanted = f"{'last' if last else 'first'} {kind}, NaN {nan} all numbers"
    found = recognised(executable)
    assert found == [wanted] * len(found)
    assert len(found) >= sum(size > 4 for size in COLUMNS), "few columns may be no rows"


@pytest.mark.parametrize("isa", ["AVX512", "AVX2", "SSE2"])
@pytest.mark.parametrize("form", ["jax", "last"])
def test_vectors_of_every_width(rng: np.random.Generator, form: str, isa: str) -> None:
    arguments = [*(rows(rng, size, np.float32) for size in COLUMNS), start("maximum", np.float32)]
    assert recognised(run(program(form, "maximum", "f32", "s32"), arguments, isa))


@pytest.mark.parametrize(
    ("name", "dtype", "position"),
    [
        ("bf16", ml_dtypes.bfloat16, "s32"),
        ("f16", np.float16, "u8"),
        ("f64", np.float64, "s32"),
        ("f32", np.float32, "s64"),
        ("f8e4m3fn", ml_dtypes.float8_e4m3fn, "s32"),
    ],
)
def test_other_floats(rng: np.random.Generator, name: str, dtype: Any, position: str) -> None:
    arguments = [*(rows(rng, size, dtype) for size in COLUMNS), np.asarray(0).astype(dtype)]
    assert recognised(run(program("jax", "maximum", name, position), arguments))


@pytest.mark.parametrize(
    ("name", "dtype"), [("s8", np.int8), ("u8", np.uint8), ("s32", np.int32), ("u64", np.uint64), ("s64", np.int64)]
)
@pytest.mark.parametrize(("form", "kind"), [("no_nan", "minimum"), ("last", "maximum"), ("jax", "maximum")])
def test_integers(rng: np.random.Generator, name: str, dtype: Any, form: str, kind: str) -> None:
    columns = (2, 17, 67)
    arguments = [*(rows(rng, size, dtype) for size in columns), start(kind, dtype)]
    assert recognised(run(program(form, kind, name, "s32", columns), arguments))


def test_an_initial_value_that_wins_gives_its_own_position(rng: np.random.Generator) -> None:
    columns = (2, 17, 67)
    arguments = [*(rows(rng, size, np.float32) for size in columns), np.float32(2)]
    text = program("jax", "maximum", "f32", "s32", columns).replace("constant(0)", "constant(-7)")
    assert recognised(run(text, [np.asarray(a) for a in arguments]))


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("form", ["jax", "first_value_last_position"])
def test_only_one_of_the_results_is_read(rng: np.random.Generator, form: str, index: int) -> None:
    """The signs of zeros need a position of their own, unless nobody reads values."""
    shape = ("f32[12]", "s32[12]")[index]
    text = program(form, "maximum", "f32", "s32", (67,))
    head, _ = text.split(" ROOT t = ")
    module = parse(f"{head} ROOT n = {shape} get-tuple-element(r0), index={index} }}")
    executable = get_backend("cpu").compile(module, CompileOptions(use_cache=False))
    assert len(recognised(executable)) == 1
    arguments = [rows(rng, 67, np.float32), start("maximum", np.float32)]
    found, expected = np.asarray(executable(*arguments)), np.asarray(evaluate(module, *arguments))
    np.testing.assert_array_equal(found, expected)
    signs = [np.signbit(array) & ~np.isnan(array) for array in (found, expected)]
    np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize(
    "positions",
    [
        "i0 = u8[12,300] iota(), iota_dimension=1",
        "i0 = u8[12,300] parameter(2)",
        "i0 = u8[12,300] iota(), iota_dimension=0",
        "up = u8[12,300] iota(), iota_dimension=1\n i0 = u8[12,300] negate(up)",
    ],
    ids=["wrapping", "unknown", "along rows", "downwards"],
)
def test_other_positions_go_in_order(rng: np.random.Generator, positions: str) -> None:
    text = program("first", "maximum", "f32", "u8", (300,))
    counting = "i0 = u8[12,300] iota(), iota_dimension=1"
    assert counting in text
    arguments = [rows(rng, 300, np.float32), start("maximum", np.float32)]
    if "parameter" in positions:
        arguments.append(rng.integers(0, 9, (ROWS, 300)).astype(np.uint8))
    assert recognised(run(text.replace(counting, positions), arguments)) == []


def test_next_to_a_sum_and_a_computation_of_unknown_order(rng: np.random.Generator, check: Any, kernels: Any) -> None:
    """A sum of the same row joins in; a reduction that needs the order takes the extreme with it."""
    for body, count in (("add(p, q)", 1), ("copy(p)", 0)):
        text = f"""HloModule m
{combiner("jax", "maximum", "f32", "s32")}
other {{ p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT r = f32[] {body} }}
ENTRY e {{ x = f32[12,67] parameter(0)
 i = s32[12,67] iota(), iota_dimension=1
 low = f32[] constant(-inf)
 z = s32[] constant(0)
 zero = f32[] constant(0)
 r = (f32[12], s32[12]) reduce(x, i, low, z), dimensions={{1}}, to_apply=pick
 n = s32[12] get-tuple-element(r), index=1
 o = f32[12] reduce(x, zero), dimensions={{1}}, to_apply=other
 c = s32[12] convert(o)
 ROOT d = s32[12] add(n, c) }}"""
        executable = check(text, rng.integers(-3, 4, (12, 67)).astype(np.float32))
        if kernels(executable) == ["row"]:
            assert len(recognised(executable)) == count
