"""Convolutions of any form find what the evaluator finds."""

import random
from typing import Any

import numpy as np
import pytest
from random_products import any_convolution

from xlalite.backends.base import CompileOptions, get_backend
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
    assert kernels(executable) == ["zero pad", "dot"]


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
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s32"])
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
