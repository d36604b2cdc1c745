"""Products of bf16 and narrower, multiplied in pairs, are as exact as those of f32, however small the numbers are."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.kernels.dot.words import Words
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

BF16 = DType.BF16.numpy
SIZES = [(64, 96, 48), (13, 33, 70), (5, 1700, 31), (100, 7, 100), (140, 2100, 33), (100, 4200, 97)]
TURNED = [(False, False), (True, False), (False, True)]


def product(
    sizes: tuple[int, int, int], types: tuple[str, str, str], turned: tuple[bool, bool] = (False, False)
) -> str:
    m, k, n = sizes
    lhs = f"{types[0]}[{k},{m}]" if turned[0] else f"{types[0]}[{m},{k}]"
    rhs = f"{types[1]}[{n},{k}]" if turned[1] else f"{types[1]}[{k},{n}]"
    return f"""HloModule m
ENTRY e {{
  a = {lhs} parameter(0)
  b = {rhs} parameter(1)
  ROOT d = {types[2]}[{m},{n}] dot(a, b), lhs_contracting_dims={{{int(not turned[0])}}}, \
rhs_contracting_dims={{{int(turned[1])}}} }}"""


def numbers(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0) -> Any:
    return (rng.standard_normal(shape, np.float32) * np.float32(scale)).astype(BF16)


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("types", [("bf16", "bf16", "f32"), ("f8e5m2", "bf16", "bf16"), ("s8", "f8e4m3fn", "f32")])
def test_products_of_any_size(
    check: Any, rng: np.random.Generator, types: tuple[str, str, str], sizes: tuple[int, int, int], turned: Any
) -> None:
    text = product(sizes, types, turned)
    shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
    arguments = [(rng.standard_normal(shape.dims) * 3).astype(shape.dtype.numpy) for shape in shapes]
    for threads in (1, 2, 5):
        check(text, *arguments, ulps=64, num_threads=threads)


@pytest.mark.parametrize("scale", [1.0, 1e-25])
@pytest.mark.parametrize("columns", [256, 257, 275, 300])
@pytest.mark.parametrize(("depth", "result"), [(255, "f32"), (700, "f32"), (700, "bf16")])
def test_rows_that_meet_many_columns(
    check: Any, rng: np.random.Generator, depth: int, result: str, columns: int, scale: float
) -> None:
    text = product((259, depth, columns), ("bf16", "bf16", result))
    a, b = numbers(rng, (259, depth), scale), numbers(rng, (depth, columns), scale)
    for threads in (1, 2, 5):
        check(text, a, b, ulps=64, num_threads=threads)


@pytest.mark.parametrize(
    ("sizes", "walks"),
    [
        ((96, 128, 96), True),
        ((600, 128, 64), True),
        ((1024, 1024, 1024), True),
        ((95, 1024, 1024), False),
        ((500, 1024, 95), False),
        ((600, 1024, 63), False),
        ((600, 126, 600), False),
        ((1024, 32, 1024), True),
        ((1024, 30, 1024), False),
        ((1024, 4096, 1024), True),
        ((8192, 8192, 8192), False),
    ],
)
def test_tiles_go_through_columns_where_these_stay_in_a_cache(sizes: tuple[int, int, int], *, walks: bool) -> None:
    target = TargetInfo.of(
        "x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "amx-tile", "amx-bf16", "amx-int8")
    )
    dot = parse(product(sizes, ("bf16", "bf16", "bf16"), (True, False))).entry_computation.root
    assert plan_dot(dot, target).walks_columns is walks


@pytest.mark.parametrize("scale", [1.0, 1e-25])
@pytest.mark.parametrize(("types", "ulps"), [("bf16 bf16 f32", 64), ("bf16 bf16 bf16", 2), ("s8 u8 s32", 0)])
def test_sums_of_long_rows_are_kept(
    check: Any, rng: np.random.Generator, types: str, ulps: float, scale: float
) -> None:
    """Of all pieces, while these take some terms after others; with work after the product, too."""
    lhs, rhs, result = types.split()
    sizes = (130, 2600 if lhs == "bf16" else 5200, 400)
    text = product(sizes, (lhs, rhs, result))
    plan = plan_dot(parse(text).entry_computation.root, TargetInfo.host())
    assert plan.keeps_sums == plan.numbers.in_matrices
    after = f"""{text.replace("ROOT d", "d")[:-2]}
  two = {result}[] constant(2)
  twos = {result}[{sizes[0]},{sizes[2]}] broadcast(two), dimensions={{}}
  ROOT r = {result}[{sizes[0]},{sizes[2]}] add(d, twos) }}"""
    if lhs == "bf16":
        arguments = [numbers(rng, sizes[:2], scale), numbers(rng, sizes[1:], scale)]
    else:
        arguments = [rng.integers(-128, 128, sizes[:2]).astype(np.int8), rng.integers(0, 256, sizes[1:]).astype("u1")]
    for program in (text, after):
        found = [check(program, *arguments, ulps=ulps, num_threads=threads)(*arguments) for threads in (1, 2, 5)]
        np.testing.assert_array_equal(found[1:], [found[0]] * 2)


@pytest.mark.parametrize("isa", ["", "AVX512_BF16"])
@pytest.mark.parametrize("depth", [96, 95, 2100])
@pytest.mark.parametrize("exponent", [-40, -60, -100, -110])
def test_scaling_an_operand_scales_the_result(
    compile_text: Any, rng: np.random.Generator, exponent: int, depth: int, isa: str
) -> None:
    """Bit by bit, though products of smaller numbers are computed in another way."""
    debug = DebugOptions(cpu_max_isa=isa)
    executable = compile_text(product((64, depth, 48), ("bf16", "bf16", "f32")), debug=debug)
    a, b = numbers(rng, (64, depth)), numbers(rng, (depth, 48))
    found = executable((a.astype(np.float32) * np.float32(2.0**exponent)).astype(BF16), b)
    np.testing.assert_array_equal(found, executable(a, b) * np.float32(2.0**exponent))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (2.0**-130, 2.0**100),  # a denormal operand
        (2.0**100, 2.0**-133),
        (2.0**-70, 2.0**-60),  # a denormal product
        (2.0**-126, 2.0**-7),
        (2.0**-126, 1.0),
        (-(2.0**-149), 0.5),  # nothing left
        (0.0, 2.0**-130),
    ],
)
@pytest.mark.parametrize("place", [(0, 0), (63, 95), (30, 51)])
@pytest.mark.parametrize("turned", TURNED)
def test_one_tiny_number(check: Any, left: float, right: float, place: tuple[int, int], turned: Any) -> None:
    a, b = np.zeros((64, 96), np.float64), np.zeros((96, 48), np.float64)
    a[place], b[place[1], 17] = left, right
    arguments = [(x.T if is_turned else x).astype(BF16) for x, is_turned in zip((a, b), turned, strict=True)]
    check(product((64, 96, 48), ("bf16", "bf16", "f32"), turned), *arguments)


def test_sums_that_cancel_to_denormal_numbers(check: Any) -> None:
    a, b = np.zeros((64, 96), np.float32), np.zeros((96, 48), np.float32)
    a[:, 0], a[:, 50] = 2.0**-60 * 1.0078125, -(2.0**-60)
    b[0], b[50] = 2.0**-62, 2.0**-62
    check(product((64, 96, 48), ("bf16", "bf16", "f32")), a.astype(BF16), b.astype(BF16))


@pytest.mark.parametrize("isa", ["", "AVX512_BF16"])
@pytest.mark.parametrize("sizes", [(64, 8200, 512), (300, 8200, 192)])
def test_denormal_sums_of_earlier_terms(check: Any, sizes: tuple[int, int, int], isa: str) -> None:
    """Later terms, of which pairs are exact, are added to them."""
    (m, k, n), debug = sizes, DebugOptions(cpu_max_isa=isa)
    a, b = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32)
    a[:, 0], b[0] = 2.0**-70, 2.0**-70
    a[:, k - 1] = 1
    for threads in (1, 2):
        check(product(sizes, ("bf16", "bf16", "f32")), a.astype(BF16), b.astype(BF16), debug=debug, num_threads=threads)


def test_infinities_and_nan(check: Any, rng: np.random.Generator) -> None:
    a, b = numbers(rng, (64, 95)), numbers(rng, (95, 48))
    a[3, 5], a[7, 94], b[20, 9], b[94, 11] = np.inf, np.nan, -np.inf, np.inf
    a[9, 94] = 0
    check(product((64, 95, 48), ("bf16", "bf16", "f32")), a, b, ulps=64)


@pytest.mark.parametrize("labels", ["b01f_01io->b01f", "bf01_oi01->bf01"])
def test_convolutions(check: Any, kernels: Any, rng: np.random.Generator, labels: str) -> None:
    image, kernel, result = (
        ((2, 20, 33, 8), (3, 3, 8, 20), (2, 18, 31, 20))
        if labels.startswith("b0")
        else ((2, 8, 20, 33), (20, 8, 3, 3), (2, 20, 18, 31))
    )
    dims = [",".join(map(str, sizes)) for sizes in (image, kernel, result)]
    text = f"""HloModule m
ENTRY e {{
  x = bf16[{dims[0]}] parameter(0)
  k = bf16[{dims[1]}] parameter(1)
  ROOT c = bf16[{dims[2]}] convolution(x, k), window={{size=3x3}}, dim_labels={labels} }}"""
    found = kernels(check(text, numbers(rng, image), numbers(rng, kernel), ulps=64))
    assert [one for one in found if one != "transpose"] == ["dot"]


@pytest.mark.parametrize("scale", [1.0, 1e-25])
@pytest.mark.parametrize(
    "window", ["size=3x3", "size=2x3 stride=2x1 pad=1_0x1_1", "size=3x1 rhs_dilate=2x1", "size=1x1"]
)
def test_convolutions_of_rows_where_they_lie(
    check: Any, kernels: Any, rng: np.random.Generator, window: str, scale: float
) -> None:
    """Of numbers so small, too, that pairs of them are not multiplied at once."""
    sizes = {"size=3x3": (10, 38), "size=1x1": (12, 40), "size=3x1 rhs_dilate=2x1": (8, 40)}.get(window, (6, 40))
    taps = window.split()[0].removeprefix("size=").replace("x", ",")
    text = f"""HloModule m
ENTRY e {{
  x = bf16[2,12,40,32] parameter(0)
  k = bf16[{taps},32,40] parameter(1)
  ROOT c = f32[2,{sizes[0]},{sizes[1]},40] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f }}"""
    kernel = [int(tap) for tap in taps.split(",")]
    arguments = numbers(rng, (2, 12, 40, 32), scale), numbers(rng, (*kernel, 32, 40))
    for threads in (1, 3):
        assert kernels(check(text, *arguments, ulps=64, num_threads=threads))[-1] == "dot"


@pytest.mark.parametrize("dtype", ["bf16", "s8"])
@pytest.mark.parametrize(("features", "side", "step"), [(4, 7, 2), (20, 3, 1), (12, 5, 2), (64, 3, 1)])
def test_runs_of_fewer_words_than_a_register_has_are_read_where_they_lie(
    check: Any, kernels: Any, rng: np.random.Generator, dtype: str, features: int, side: int, step: int
) -> None:
    """Of as many words as divide a run; beside numbers that pairs are not exact for, too."""
    width, result = step * 18 + side, "s32" if dtype == "s8" else "f32"
    text = f"""HloModule m
ENTRY e {{
  x = {dtype}[2,{width},{width},{features}] parameter(0)
  k = {dtype}[{side},{side},{features},40] parameter(1)
  ROOT c = {result}[2,19,19,40] convolution(x, k), window={{size={side}x{side} stride={step}x{step}}}, \
dim_labels=b01f_01io->b01f }}"""
    shapes = (2, width, width, features), (side, side, features, 40)
    for scale in (1.0, 1e-25):
        if dtype == "s8":
            arguments = [rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes]
        else:
            arguments = [numbers(rng, shape, scale) for shape in shapes]
        executable = check(text, *arguments, ulps=64 * (dtype == "bf16"), num_threads=3)
    assert kernels(executable) == ["dot"]
    target = TargetInfo.of(
        "x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "amx-tile", "amx-bf16", "amx-int8")
    )
    plan = plan_dot(parse(text).entry_computation.root, target)
    assert (plan.numbers.in_matrices, plan.packs_lhs) == (True, False)


@pytest.mark.parametrize(
    ("types", "sizes", "features", "words"),
    [
        (("bf16", "bf16", "bf16"), (64, 64, 64), ("avx512bf16",), Words.BF16_PAIRS),
        (("bf16", "s8", "f32"), (64, 64, 64), ("amx-tile", "amx-bf16"), Words.MATRICES_OF_BF16_PAIRS),
        (("bf16", "bf16", "f32"), (1, 2000, 2000), ("amx-tile", "amx-bf16"), None),
        (("f8e4m3fn", "u8", "f32"), (64, 64, 64), ("avx512bf16",), Words.BF16_PAIRS),
        (("bf16", "bf16", "f32"), (1, 2000, 2000), ("avx512bf16",), None),
        (("bf16", "bf16", "f32"), (64, 64, 64), (), None),
        (("bf16", "f16", "f32"), (64, 64, 64), ("avx512bf16",), None),
        (("bf16", "bf16", "f64"), (64, 64, 64), ("avx512bf16",), None),
        (("s16", "bf16", "f32"), (64, 64, 64), ("avx512bf16",), None),
    ],
)
def test_pairs_are_for_what_bf16_holds(types: Any, sizes: Any, features: tuple[str, ...], words: Words | None) -> None:
    target = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "fma", *features))
    dot = parse(product(sizes, types)).entry_computation.root
    assert plan_dot(dot, target).numbers.words is words
