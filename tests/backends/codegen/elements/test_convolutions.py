"""Convolutions of any form find what the evaluator finds."""

import random
from typing import Any

import numpy as np
import pytest
from random_products import any_convolution

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.kernels.convolution.plan import walk_of
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.analysis import matrix_products
from xlalite.passes.preparation.convolution_canonicalizer import ConvolutionCanonicalizer


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s8", "s32", "u16", "c64", "pred"])
def test_convolutions_of_any_form(check: Any, kernels: Any, rng: np.random.Generator, dtype: str) -> None:
    chance = random.Random(dtype)
    for _ in range(8):
        made = any_convolution(chance, (dtype,) * 3, largest=7)
        executable = check(made.text, *made.arguments(rng), optimize=False, ulps=32)
        assert kernels(executable) in (["loop"], ["convolution"]), made.text


def wide(found: Any) -> np.ndarray:
    """In a type whose NaN NumPy knows."""
    array = np.asarray(found)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "s8", "s32", "u16", "s4", "c64"])
def test_convolutions_of_any_form_are_products(
    rng: np.random.Generator, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Infinite weights show what was multiplied: padding, but no holes."""
    monkeypatch.setattr(matrix_products, "_LEAST_FLOPS", 0)
    chance, products = random.Random(dtype), 0
    for number in range(60):
        made = any_convolution(chance, (dtype,) * 3, largest=7)
        text, arguments = made.text, made.arguments(rng)
        if number % 2 and dtype.strip("b").startswith("f"):
            arguments[1][rng.random(made.rhs) < 0.2] = np.inf
        module = parse(text)
        ConvolutionCanonicalizer().run(module)
        verify(module)
        expected = wide(evaluate(parse(text), *arguments))
        np.testing.assert_array_equal(wide(evaluate(module, *arguments)), expected, err_msg=text)
        convolutions = [i for i in module.instructions() if i.opcode == "convolution"]
        if any(map(matrix_products.is_matrix_product, convolutions)):
            products += 1
            executable = get_backend("cpu").compile(module, CompileOptions(use_cache=False))
            np.testing.assert_array_equal(wide(executable(*arguments)), expected, err_msg=text)
    assert products >= 3 or dtype == "c64"


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ((2, 17, 15, 70), (3, 3, 70, 90), "2,9,8,90", "size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
        ((2, 70, 27, 25), (90, 70, 3, 3), "2,90,27,25", "size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
    ],
)
def test_products_are_equal_on_any_number_of_threads(
    compile_text: Any,
    rng: np.random.Generator,
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    result: str,
    attributes: str,
) -> None:
    shapes = [f"f32[{','.join(map(str, sizes))}]" for sizes in (lhs, rhs)]
    text = f"""HloModule m
ENTRY e {{
  x = {shapes[0]} parameter(0)
  k = {shapes[1]} parameter(1)
  ROOT c = f32[{result}] convolution(x, k), window={{{attributes} }}"""
    arguments = [rng.standard_normal(sizes).astype(np.float32) for sizes in (lhs, rhs)]
    executables = [compile_text(text, num_threads=threads) for threads in (1, 2, 5)]
    first, *others = (executable(*arguments) for executable in executables)
    np.testing.assert_allclose(first, np.asarray(evaluate(parse(text), *arguments)), rtol=1e-4, atol=1e-4)
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert "dot" in {d.verdict for d in executables[0].decisions()}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ((2, 9, 9, 19), (3, 3, 19, 33), (2, 9, 9, 33), "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
        ((2, 9, 33, 20), (7, 9, 3, 3), (2, 7, 33, 20), "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
        (
            (1, 8, 8, 40),
            (3, 3, 1, 40),
            (1, 4, 4, 40),
            "window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f, feature_group_count=40",
        ),
        ((1, 30, 5), (6, 5, 4), (1, 25, 4), "window={size=6}, dim_labels=b0f_0io->b0f"),
    ],
)
def test_layers(
    check: Any,
    rng: np.random.Generator,
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    result: tuple[int, ...],
    attributes: str,
    threads: int,
) -> None:
    shapes = [f"f32[{','.join(map(str, sizes))}]" for sizes in (lhs, rhs, result)]
    text = f"""HloModule m
ENTRY e {{
  x = {shapes[0]} parameter(0)
  k = {shapes[1]} parameter(1)
  ROOT c = {shapes[2]} convolution(x, k), {attributes} }}"""
    arguments = [rng.standard_normal(sizes).astype(np.float32) for sizes in (lhs, rhs)]
    check(text, *arguments, num_threads=threads, ulps=32)


def test_an_infinity_beside_padding_is_no_number(check: Any) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1,5,1] parameter(0)
  k = f32[3,1,1] parameter(1)
  ROOT c = f32[1,5,1] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f }"""
    x = np.array([np.inf, 1, 2, 3, -np.inf], np.float32).reshape(1, 5, 1)
    check(text, x, np.array([np.inf, 1, 1], np.float32).reshape(3, 1, 1))


def test_what_follows_shares_the_kernel(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1,9,9,4] parameter(0)
  k = f32[3,3,4,20] parameter(1)
  b = f32[20] parameter(2)
  c = f32[1,9,9,20] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  a = f32[1,9,9,20] broadcast(b), dimensions={3}
  s = f32[1,9,9,20] add(c, a)
  z = f32[] constant(0)
  zeros = f32[1,9,9,20] broadcast(z), dimensions={}
  ROOT r = f32[1,9,9,20] maximum(s, zeros) }"""
    arguments = [rng.standard_normal(sizes).astype(np.float32) for sizes in ((1, 9, 9, 4), (3, 3, 4, 20), (20,))]
    executable = check(text, *arguments, ulps=32, num_threads=2)
    assert kernels(executable)[-1] == "dot"


@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ((2, 20, 19, 21), (35, 20, 3, 3), (2, 35, 19, 21), "size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
        ((2, 20, 9, 9), (35, 20, 3, 3), (2, 35, 9, 9), "size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
        (
            (1, 6, 9, 9, 40),
            (33, 6, 3, 3, 3),
            (1, 33, 9, 9, 40),
            "size=3x3x3 pad=1_1x1_1x1_1}, dim_labels=bf012_oi012->bf012",
        ),
        (
            (2, 40, 12, 40),
            (48, 20, 3, 2),
            (2, 48, 10, 38),
            "size=3x2 rhs_dilate=1x2}, dim_labels=bf01_oi01->bf01, feature_group_count=2",
        ),
        ((2, 20, 300), (35, 20, 9), (2, 35, 300), "size=9 pad=4_4}, dim_labels=bf0_oi0->bf0"),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "s32"])
def test_what_follows_images_that_are_read_where_they_lie(
    check: Any,
    kernels: Any,
    rng: np.random.Generator,
    dtype: str,
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    result: tuple[int, ...],
    attributes: str,
) -> None:
    shape, others, features = (f"{dtype}[{','.join(map(str, sizes))}]" for sizes in (result, lhs, rhs))
    text = f"""HloModule m
ENTRY e {{
  x = {others} parameter(0)
  k = {features} parameter(1)
  b = {dtype}[{result[1]}] parameter(2)
  y = {shape} parameter(3)
  c = {shape} convolution(x, k), window={{{attributes}
  a = {shape} broadcast(b), dimensions={{1}}
  s = {shape} add(c, a)
  r = {shape} add(s, y)
  z = {dtype}[] constant(0)
  zeros = {shape} broadcast(z), dimensions={{}}
  ROOT m = {shape} maximum(r, zeros) }}"""
    arguments = [rng.integers(-3, 4, sizes).astype(DType(dtype).numpy) for sizes in (lhs, rhs, (result[1],), result)]
    executable = check(text, *arguments, num_threads=2)
    assert kernels(executable)[-1] == "dot"


def test_groups_of_few_features_have_a_kernel_that_what_follows_shares(
    check: Any, kernels: Any, rng: np.random.Generator
) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,9,9,20] parameter(0)
  k = f32[3,3,1,20] parameter(1)
  l = f32[3,3,1,20] parameter(2)
  c = f32[2,9,9,20] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f,
    feature_group_count=20
  d = f32[2,9,9,20] convolution(x, l), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f,
    feature_group_count=20
  s = f32[2,9,9,20] add(c, d)
  ROOT r = f32[2,9,9,20] tanh(s) }"""
    arguments = [
        rng.standard_normal(sizes).astype(np.float32) for sizes in ((2, 9, 9, 20), (3, 3, 1, 20), (3, 3, 1, 20))
    ]
    assert kernels(check(text, *arguments, ulps=32)) == ["convolution", "convolution"]


@pytest.mark.parametrize(
    ("result", "attributes", "kind"),
    [
        ("f32[2,9,9,40]", "b01f_01io->b01f, feature_group_count=20", "convolution"),
        ("f32[9,9,40,2]", "b01f_01io->01fb, feature_group_count=20", "loop"),
    ],
)
def test_which_kernel_computes_groups(
    check: Any, kernels: Any, rng: np.random.Generator, result: str, attributes: str, kind: str
) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[2,9,9,20] parameter(0)
  k = f32[3,3,1,40] parameter(1)
  ROOT c = {result} convolution(x, k), window={{size=3x3 pad=1_1x1_1}}, dim_labels={attributes} }}"""
    arguments = [rng.standard_normal(sizes).astype(np.float32) for sizes in ((2, 9, 9, 20), (3, 3, 1, 40))]
    assert kernels(check(text, *arguments, ulps=32)) == [kind]


def line_text(lhs: str, rhs: str, result: str, labels: str, groups: int, window: tuple[int, int, int, int]) -> str:
    """A convolution of images whose width is in braces, with a window of height 3: size, padding, distance along it."""
    size, low, high, apart = window
    return f"""HloModule m
ENTRY e {{{{
  x = f32[{lhs}] parameter(0)
  k = f32[{rhs}] parameter(1)
  ROOT c = f32[{result}] convolution(x, k), window={{{{size=3x{size} pad=1_1x{low}_{high} rhs_dilate=1x{apart}}}}},
    dim_labels={labels}, feature_group_count={groups} }}}}"""


_LINES = {
    "features": line_text("2,6,{0},20", "3,3,1,20", "2,6,{0},20", "b01f_01io->b01f", 20, (3, 1, 1, 1)),
    "few features": line_text("1,6,{0},3", "3,3,1,3", "1,6,{0},3", "b01f_01io->b01f", 3, (3, 1, 1, 1)),
    "wide padding": line_text("1,6,{0},17", "3,3,1,34", "1,6,{0},34", "b01f_01io->b01f", 17, (3, 5, 1, 3)),
    "large groups": line_text("1,6,{0},32", "3,3,4,32", "1,6,{0},32", "b01f_01io->b01f", 8, (3, 0, 2, 1)),
    "two of a group": line_text("1,6,{0},64", "3,3,2,32", "1,6,{0},32", "b01f_01io->b01f", 32, (3, 1, 1, 1)),
    "three of a group": line_text("2,6,{0},111", "3,3,3,37", "2,6,{0},37", "b01f_01io->b01f", 37, (3, 1, 1, 1)),
    "space": line_text("1,5,6,{0}", "10,1,3,3", "1,10,6,{0}", "bf01_oi01->bf01", 5, (3, 1, 1, 1)),
    "space, several of a group": line_text("1,6,6,{0}", "9,2,3,7", "1,9,6,{0}", "bf01_oi01->bf01", 3, (7, 3, 3, 1)),
}


@pytest.mark.parametrize("lines", _LINES)
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32", "c64"])
def test_lines_of_every_width(check: Any, kernels: Any, rng: np.random.Generator, lines: str, dtype: str) -> None:
    for width in (5, 9, 13, 29, 150):
        module = parse(_LINES[lines].format(width).replace("f32", dtype))
        shapes = [one.shape for one in module.entry_computation.parameters]
        arguments = [rng.integers(-3, 4, shape.dims).astype(shape.dtype.numpy) for shape in shapes]
        assert kernels(check(module, *arguments)) == ["convolution"]


@pytest.mark.skipif(not TargetInfo.host().has("avx512bw"), reason="else borders of lines have code of their own")
@pytest.mark.parametrize("lines", ["features", "large groups", "two of a group"])
def test_borders_of_a_line_have_no_code_of_their_own(compile_text: Any, lines: str) -> None:
    programs = [compile_text(_LINES[lines].format(width)).as_text("llvm") for width in (24, 29, 54)]
    products = [program.count("fmul") for program in programs]
    assert 0 < min(products) == max(products)


@pytest.mark.parametrize("width", [29, 30, 150])
@pytest.mark.parametrize("lines", ["features", "space"])
def test_what_is_added_in_its_own_place_is_added_once(
    check: Any, rng: np.random.Generator, lines: str, width: int
) -> None:
    text = _LINES[lines].format(width)
    dims = parse(text).entry_computation.root.shape.dims
    shape, moved = (f"f32[{','.join(map(str, sizes))}]" for sizes in (dims, dims[::-1]))
    text = f"""{text.replace("ROOT c", "c").rstrip("} ")}
  y = {moved} parameter(2)
  t = {shape} transpose(y), dimensions={{3,2,1,0}}
  ROOT r = {shape} add(c, t) }}"""
    shapes = [one.shape for one in parse(text).entry_computation.parameters]
    check(text, *(rng.integers(-3, 4, one.dims).astype(np.float32) for one in shapes))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32"])
@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "attributes"),
    [
        ((3, 11, 12, 20), (3, 11, 12, 20), (3, 3, 1, 20), "11x12 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"),
        ((3, 11, 11, 20), (3, 11, 11, 20), (2, 3, 1, 20), "11x11 pad=1_0x0_2}, dim_labels=f01b_i01o->01bf"),
        (
            (3, 20, 21, 20),
            (3, 10, 11, 20),
            (2, 3, 1, 20),
            "10x11 pad=0_0x2_0 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf",
        ),
        ((3, 11, 12, 20), (3, 11, 12, 40), (3, 3, 1, 40), "11x12 pad=1_1x2_0}, dim_labels=f01b_i01o->01bf"),
        ((3, 11, 12, 20), (3, 11, 12, 20), (5, 5, 1, 20), "11x12 pad=2_2x3_1}, dim_labels=f01b_i01o->01bf"),
        (
            (3, 9, 10, 11, 20),
            (3, 9, 10, 11, 20),
            (3, 3, 3, 1, 20),
            "9x10x11 pad=1_1x1_1x1_1}, dim_labels=f012b_i012o->012bf",
        ),
    ],
)
def test_gradients_of_kernels_of_few_features(
    check: Any,
    kernels: Any,
    rng: np.random.Generator,
    dtype: str,
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    result: tuple[int, ...],
    attributes: str,
) -> None:
    x, g, k = (f"{dtype}[{','.join(map(str, sizes))}]" for sizes in (lhs, rhs, result))
    text = f"""HloModule m
ENTRY e {{
  x = {x} parameter(0)
  g = {g} parameter(1)
  ROOT c = {k} convolution(x, g), window={{size={attributes}, batch_group_count=20 }}"""
    arguments = [rng.integers(-2, 3, sizes).astype(DType(dtype).numpy) for sizes in (lhs, rhs)]
    assert kernels(check(text, *arguments)) == ["convolution"]


@pytest.mark.parametrize(("features", "lanes"), [(20, 16), (32, 16), (33, 32), (61, 32), (64, 32), (96, 16)])
def test_gradients_of_kernels_have_long_vectors_where_several_threads_find_work(
    check: Any, kernels: Any, rng: np.random.Generator, features: int, lanes: int
) -> None:
    sizes, window = (2, 11, 12, features), "window={size=11x12 pad=1_1x1_1}"
    dims = ",".join(map(str, sizes))
    text = f"""HloModule m
ENTRY e {{
  x = f32[{dims}] parameter(0)
  g = f32[{dims}] parameter(1)
  ROOT c = f32[3,3,1,{features}] convolution(x, g), {window}, dim_labels=f01b_i01o->01bf, batch_group_count={features}
}}"""
    wide = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "avx512bw", "fma"))
    assert walk_of(parse(text).entry_computation.root, wide).lanes == lanes
    arguments = [rng.integers(-2, 3, sizes).astype(np.float32) for _ in range(2)]
    for threads in (1, 3):
        assert kernels(check(text, *arguments, num_threads=threads)) == ["convolution"]


_GRADIENTS_IN_GROUPS = {
    "several images": ("2,11,11,20", "2,11,11,20", "3,3,4,20", "size=11x11 pad=1_1x1_1", 5),
    "many vectors": ("1,9,9,288", "1,9,9,144", "3,3,8,144", "size=9x9 pad=1_1x1_1", 36),
    "no whole vector": ("1,8,9,6", "1,8,8,15", "3,2,2,15", "size=8x8 stride=1x2 pad=1_1x1_0", 3),
    "all of a window": ("1,9,9,4", "1,9,9,16", "3,3,1,16", "size=9x9 pad=1_1x1_1", 4),
    "strides": ("2,10,10,32", "2,5,5,64", "3,3,4,64", "size=5x5 pad=1_0x1_0 rhs_dilate=2x2", 8),
    "many of the input": ("1,7,7,64", "1,7,7,8", "3,3,16,8", "size=7x7 pad=1_1x1_1", 4),
    "lines": ("2,9,12", "2,9,12", "3,3,12", "size=9 pad=1_1", 4),
}
"""Image, gradient, result, window and number of groups."""


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32", "c64"])
@pytest.mark.parametrize("case", _GRADIENTS_IN_GROUPS)
def test_gradients_of_kernels_in_groups_of_several_features(
    check: Any, kernels: Any, rng: np.random.Generator, case: str, dtype: str
) -> None:
    lhs, rhs, result, window, groups = _GRADIENTS_IN_GROUPS[case]
    space = "01" if "x" in window else "0"
    text = f"""HloModule m
ENTRY e {{
  x = {dtype}[{lhs}] parameter(0)
  g = {dtype}[{rhs}] parameter(1)
  y = {dtype}[{result}] parameter(2)
  c = {dtype}[{result}] convolution(x, g), window={{{window}}}, dim_labels=f{space}b_i{space}o->{space}bf,
    batch_group_count={groups}
  ROOT r = {dtype}[{result}] add(c, y) }}"""
    shapes = [one.shape for one in parse(text).entry_computation.parameters]
    arguments = [rng.integers(-2, 3, shape.dims).astype(shape.dtype.numpy) for shape in shapes]
    for threads in (1, 3):
        assert kernels(check(text, *arguments, num_threads=threads)) == ["convolution"]


def test_padding_of_gradients_in_groups_is_multiplied(check: Any, rng: np.random.Generator) -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1,6,6,8] parameter(0)
  g = f32[1,6,6,8] parameter(1)
  ROOT c = f32[3,3,4,8] convolution(x, g), window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf,
    batch_group_count=2 }"""
    x, g = (rng.integers(-2, 3, (1, 6, 6, 8)).astype(np.float32) for _ in range(2))
    g[0, 0, 0, 5] = np.inf
    check(text, x, g)
