"""Sorts order rows like the evaluator: by keys, by comparators of any kind, stably, with all that goes along."""

from typing import Any

import numpy as np
import pytest
from halves import HALVES, half_of

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

LENGTHS = (0, 1, 2, 3, 31, 32, 33, 100, 257)


def sort_text(dtype: str, dims: tuple[int, ...], dimension: int, order: str, passengers: tuple[str, ...] = ()) -> str:
    types = (dtype, *passengers)
    shape = ",".join(map(str, dims))
    sides = "".join(
        f"  {side}{number} = {one}[] parameter({2 * number + (side == 'b')})\n"
        for number, one in enumerate(types)
        for side in "ab"
    )
    operands = "\n".join(f"  x{number} = {one}[{shape}] parameter({number})" for number, one in enumerate(types))
    shapes = [f"{one}[{shape}]" for one in types]
    result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
    names = ", ".join(f"x{number}" for number in range(len(types)))
    return f"""HloModule m
before {{
{sides}  {order} }}
ENTRY e {{
{operands}
  ROOT s = {result} sort({names}), dimensions={{{dimension}}}, is_stable=true, to_apply=before }}"""


LESS = "ROOT r = pred[] compare(a0, b0), direction=LT"
GREATER = "ROOT r = pred[] compare(a0, b0), direction=GT"
TOTAL = f"{LESS}, type=TOTALORDER"
TWO_KEYS = """first = pred[] compare(a0, b0), direction=LT
  same = pred[] compare(a0, b0), direction=EQ
  second = pred[] compare(a1, b1), direction=GT
  then = pred[] and(same, second)
  ROOT r = pred[] or(first, then)"""


def values(rng: np.random.Generator, dtype: DType, dims: tuple[int, ...]) -> np.ndarray:
    """Few different ones, special ones among them."""
    found = rng.integers(-3 if dtype.is_signed else 0, 4, dims).astype(dtype.numpy)
    if dtype.is_floating and found.size and dtype is not DType.F8E8M0FNU:
        with np.errstate(all="ignore"):
            special = np.array([0.0, -0.0, np.inf, -np.inf, 0.5, np.nan, -np.nan]).astype(dtype.numpy)
        found = np.where(rng.random(dims) < 0.5, rng.choice(special, dims), found).astype(dtype.numpy)
    return found


@pytest.mark.parametrize("dtype", [t for t in DType if t.is_array and not t.is_complex], ids=lambda t: t.value)
def test_numbers_of_every_type(check: Any, kernels: Any, rng: np.random.Generator, dtype: DType) -> None:
    orders = (LESS, GREATER, TOTAL) if dtype.is_floating else (LESS, GREATER)
    for order in orders:
        for length in (3, 70):
            text = sort_text(dtype.value, (2, length), 1, order)
            executable = check(text, values(rng, dtype, (2, length)), num_threads=1)
            assert kernels(executable) == ["sort"]
        text = sort_text(dtype.value, (2, 40), 1, order, ("s32",))
        check(text, values(rng, dtype, (2, 40)), np.arange(80, dtype=np.int32).reshape(2, 40))


@pytest.mark.parametrize("order", [LESS, GREATER, TOTAL])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("half", HALVES)
def test_rows_of_any_length(check: Any, rng: np.random.Generator, order: str, length: int, half: int) -> None:
    for turn, dtype in enumerate(("f32", "s16") if order != TOTAL else ("f64", "bf16")):
        forms = ((length,), 0), ((3, length), 1), ((length, 3), 0), ((2, length, 2), 1)
        for dims, dimension in half_of(forms, turn + LENGTHS.index(length), half):
            check(sort_text(dtype, dims, dimension, order), values(rng, DType(dtype), dims))


@pytest.mark.parametrize("order", [LESS, TOTAL, TWO_KEYS])
@pytest.mark.parametrize("length", LENGTHS)
def test_others_go_along(check: Any, rng: np.random.Generator, order: str, length: int) -> None:
    dims, types = (2, length), ("f32" if order != TWO_KEYS else "s8", "s32", "c64", "bf16")
    arguments = [values(rng, DType(types[0]), dims), rng.integers(0, 5, dims).astype(np.int32)]
    arguments += [rng.standard_normal(dims).astype(np.complex64), values(rng, DType.BF16, dims)]
    check(sort_text(types[0], dims, 1, order, types[1:]), *arguments)


def test_keys_that_are_computed(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """By the distance from 7, as array libraries canonicalise zeros and NaNs before they compare."""
    order = """seven = s32[] constant(7)
  da = s32[] subtract(a0, seven)
  db = s32[] subtract(b0, seven)
  ka = s32[] abs(da)
  kb = s32[] abs(db)
  ROOT r = pred[] compare(ka, kb), direction=LT"""
    check(sort_text("s32", (4, 90), 1, order), rng.integers(-20, 20, (4, 90)).astype(np.int32))


@pytest.mark.parametrize("order", [TOTAL, TWO_KEYS])
def test_a_long_row_and_many_rows_on_threads(check: Any, rng: np.random.Generator, order: str) -> None:
    for dims in ((1, 70_000), (700, 130)):
        arguments = [rng.integers(-1000, 1000, dims).astype(np.int32), rng.integers(0, 9, dims).astype(np.int32)]
        text = sort_text("s32", dims, 1, order.replace(", type=TOTALORDER", ""), ("s32",))
        check(text, *arguments, num_threads=2)


def test_keys_that_share_digits(check: Any) -> None:
    """Digits that all keys share move nothing; results lie in either buffer."""
    for step in (1, 256, 65536, 257):
        check(sort_text("u32", (300,), 0, GREATER), (np.arange(300, dtype=np.uint32) * step)[::-1].copy())


def all_bits(value: Any) -> list[bytes]:
    return [one.tobytes() for one in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("isa", ["AVX512", "AVX2", "SSE2"])
@pytest.mark.parametrize("passengers", [(), ("s32",)])
@pytest.mark.parametrize(("dtype", "length"), [("f32", 5), ("bf16", 100), ("f64", 700), ("f32", 5000), ("f32", 40_000)])
def test_no_bit_depends_on_threads_or_instructions(
    rng: np.random.Generator, isa: str, dtype: str, length: int, passengers: tuple[str, ...]
) -> None:
    """Zeros of both signs and NaNs of any bits, which comparators do not tell apart, keep the order of the row."""
    found = with_special_numbers(rng, dtype, (2, length))
    arguments = [found, *(rng.integers(0, 9, found.shape).astype(np.int32) for _ in passengers)]
    require_bits(dtype, found.shape, 1, isa, passengers, *arguments)


@pytest.mark.parametrize("isa", ["AVX512", "AVX2", "SSE2"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s8"])
@pytest.mark.parametrize("half", HALVES)
def test_rows_side_by_side(rng: np.random.Generator, isa: str, dtype: str, half: int) -> None:
    forms = ((33, 21), 0), ((2, 40, 2, 16), 1), ((600, 35), 0), ((3, 100, 5), 1)
    for dims, dimension in half_of(forms, dtype in ("f64", "s8"), half):
        numbers = rng.integers(-9, 9, dims).astype(np.int8) if dtype == "s8" else with_special_numbers(rng, dtype, dims)
        require_bits(dtype, dims, dimension, isa, (), numbers)


def with_special_numbers(rng: np.random.Generator, dtype: str, dims: tuple[int, ...]) -> np.ndarray:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]).astype(DType(dtype).numpy)
    found = rng.standard_normal(dims).astype(special.dtype)
    found = np.where(rng.random(dims) < 0.1, rng.choice(special, dims), found)
    payloads = {2: np.uint16, 4: np.uint32, 8: np.uint64}[found.itemsize]
    bits = found.view(payloads) | np.where(np.isnan(found), rng.integers(0, 9, dims), 0).astype(payloads)
    return bits.view(found.dtype)


def require_bits(
    dtype: str, dims: tuple[int, ...], dimension: int, isa: str, passengers: tuple[str, ...], *arguments: np.ndarray
) -> None:
    for order in (LESS, GREATER):
        module = parse(sort_text(dtype, dims, dimension, order, passengers))
        expected = all_bits(evaluate(module, *arguments))
        # Rows that are not shared out are sorted by the same code, however many threads there are.
        for threads in (1, 2, 5) if max(dims) > 1000 else (2,):
            options = CompileOptions(num_threads=threads, debug=DebugOptions(cpu_max_isa=isa))
            assert all_bits(get_backend("cpu").compile(module, options)(*arguments)) == expected, (order, threads)


@pytest.mark.parametrize("dtype", ["s32", "u64", "u8"])
@pytest.mark.parametrize("order", [LESS, GREATER])
def test_long_rows_of_any_pattern(compile_text: Any, order: str, dtype: str) -> None:
    length, numpy_type = 50_001, DType(dtype).numpy
    ramp = np.arange(length) % 251
    patterns = [ramp, ramp // 250, np.full(length, 7), np.minimum(ramp, ramp[::-1]), np.sort(ramp), np.sort(ramp)[::-1]]
    # Pivots out of these vectors leave little behind.
    patterns += [
        np.where(np.arange(length) % 8 < 5, 3, ramp),
        np.iinfo(numpy_type).max - (ramp // 125).astype(numpy_type),
    ]
    for threads in (1, 2):
        executable = compile_text(sort_text(dtype, (length,), 0, order), num_threads=threads)
        for pattern in patterns:
            numbers = pattern.astype(numpy_type)
            expected = np.sort(numbers)[:: -1 if order == GREATER else 1]
            np.testing.assert_array_equal(executable(numbers), expected)


SPELT_OUT = """less = pred[] compare({small}, {large}), direction=LT
  number = pred[] compare({small}, {small}), direction=EQ
  none = pred[] compare({large}, {large}), direction=NE
  numbers_first = pred[] and({parts})
  ROOT r = pred[] or(less, numbers_first)"""


@pytest.mark.parametrize("parts", ["number, none", "none, number"])
@pytest.mark.parametrize(("small", "large"), [("a0", "b0"), ("b0", "a0")])
def test_comparators_that_know_about_nan_have_keys(check: Any, small: str, large: str, parts: str) -> None:
    x = np.array([1, np.nan, -0.0, 3, 0.0, -np.inf, np.nan, np.inf, 1, -np.nan], np.float32)
    is_descending = small == "b0"

    def rank(place: int) -> tuple[bool, float]:
        is_nan = bool(np.isnan(x[place]))
        return (is_nan != is_descending, 0 if is_nan else float(-x[place] if is_descending else x[place]))

    order = SPELT_OUT.format(small=small, large=large, parts=parts)
    executable = check(sort_text("f32", x.shape, 0, order, ("s64",)), x, np.arange(10))
    np.testing.assert_array_equal(executable(x, np.arange(10))[1], sorted(range(10), key=rank))
    (decision,) = (d for d in executable.decisions() if d.decided_by == "kernel planner")
    assert "word_bits" in decision.numbers
