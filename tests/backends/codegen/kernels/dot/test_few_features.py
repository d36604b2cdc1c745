"""Convolutions with few output features, and gradients of their kernels, read images where they lie."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.dot.image_lines import plan_with_lines
from xlalite.backends.codegen.kernels.dot.plan import Form, plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import parse
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType

WIDE = TargetInfo.of("x86_64-unknown-linux-gnu", features=("avx512f", "avx512vl", "avx512bw", "fma"))

LAST = "size=3x3}, dim_labels=b01f_01io->b01f"
DILATED = "size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f"
LAST_GRADIENT, FIRST_GRADIENT = "dim_labels=f01b_i01o->01bf", "dim_labels=fb01_io01->fb01"


def text_of(lhs: str, rhs: str, result: str, attributes: str, types: str = "f32", behind: str = "") -> str:
    """A convolution; with what is `behind` it, the value that is subtracted from an array."""
    name = "c" if behind else "ROOT c"
    body = f"\n  y = {types}[{result}] parameter(2)\n  ROOT d = {types}[{result}] {behind}(y, c)" if behind else ""
    return f"""HloModule m
ENTRY e {{
  x = {types}[{lhs}] parameter(0)
  k = {types}[{rhs}] parameter(1)
  {name} = {types}[{result}] convolution(x, k), window={{{attributes}{body} }}"""


def convolution_of(*parts: str) -> HloInstruction:
    return parse(text_of(*parts)).entry_computation.root


@pytest.mark.parametrize(
    ("parts", "run", "packed"),
    [
        (("2,30,30,32", "3,3,32,5", "2,28,28,5", LAST), 96, (False, True)),
        (("2,30,30,32", "3,3,32,5", "2,26,26,5", DILATED), 32, (False, True)),
        (("2,30,30,8", "3,3,8,1", "2,28,28,1", LAST), 24, (False, False)),
        (("4,5,30,30", "4,6,28,28", "6,5,3,3", f"size=28x28}}, {FIRST_GRADIENT}"), 28, (False, False)),
        (("2,6,6,4000", "3,3,4000,5", "2,4,4,5", LAST), 4000, (False, True)),
    ],
)
def test_terms_are_read_run_by_run(parts: tuple[str, ...], run: int, packed: tuple[bool, bool]) -> None:
    plan = plan_dot(convolution_of(*parts), WIDE)
    assert plan.form is Form.DEPTH
    assert max(plan.view.lhs.looked_up, plan.view.rhs.looked_up) == run
    assert (plan.packs_lhs, plan.packs_rhs) == packed


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(("2,30,30,2", "3,3,2,5", "2,26,26,5", DILATED), id="short runs"),
        pytest.param(("2,30,30,64", "3,3,64,64", "2,28,28,64", LAST), id="many features"),
        pytest.param(("2,16,30,30", "5,16,3,3", "2,5,28,28", "size=3x3}, dim_labels=bf01_oi01->bf01"), id="first"),
    ],
)
def test_short_runs_and_full_vectors_are_no_runs_of_terms(parts: tuple[str, ...]) -> None:
    assert plan_dot(convolution_of(*parts), WIDE).form is not Form.DEPTH


def test_rows_stay_in_the_nearest_cache() -> None:
    plan = plan_dot(convolution_of("9,8,30,40", "9,8,28,38", "8,8,3,3", f"size=28x38}}, {FIRST_GRADIENT}"), WIDE)
    assert plan.form is Form.DEPTH
    assert plan.unit_depth % 38 == 0
    assert plan.rows * plan.unit_depth * 4 <= WIDE.cache_bytes[0]
    assert plan.depth_units > 1
    assert plan.rows_outside


@pytest.mark.parametrize(
    ("parts", "form", "products"),
    [
        (("4,30,30,64", "4,28,28,5", "3,3,64,5", f"size=28x28}}, {LAST_GRADIENT}"), Form.ROWS, (3,)),
        (
            ("4,31,31,64", "4,27,27,5", "3,3,64,5", f"size=27x27 stride=2x2}}, {LAST_GRADIENT}"),
            Form.ROWS,
            (3, 3),
        ),
        (("4,30,30,64", "4,28,28,1", "3,3,64,1", f"size=28x28}}, {LAST_GRADIENT}"), Form.COLUMNS, (3,)),
    ],
)
def test_features_of_the_image_are_read_where_they_lie(
    parts: tuple[str, ...], form: Form, products: tuple[int, ...]
) -> None:
    plan = plan_dot(convolution_of(*parts), WIDE)
    assert (plan.form, plan.view.batch, plan.view.rhs.looked_up) == (form, products, 1)
    assert not plan.packs_rhs


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(("4,30,30,64", "4,28,28,64", "3,3,64,64", f"size=28x28}}, {LAST_GRADIENT}"), id="many features"),
        pytest.param(("2,66,66,1", "3,3,1,5", "2,64,64,5", LAST), id="many rows of pixels"),
    ],
)
def test_many_features_and_many_rows_are_one_product(parts: tuple[str, ...]) -> None:
    assert plan_dot(convolution_of(*parts), WIDE).view.batch == ()


def test_copied_lines_are_read_in_runs_too() -> None:
    """4,096 terms of a row of the window are the most that follow one another."""
    text = """HloModule m
ENTRY e {
  x = f32[9,20,1400] parameter(0)
  k = f32[3,1400,5] parameter(1)
  z = f32[] constant(0)
  p = f32[9,22,1400] pad(x, z), padding=0_0x1_1x0_0
  ROOT c = f32[9,20,5] convolution(p, k), window={size=3}, dim_labels=b0f_0io->b0f }"""
    product = parse(text).entry_computation.root
    plan = plan_dot(product, WIDE)
    in_lines = plan_with_lines(plan, product, WIDE)
    assert in_lines is not None
    assert in_lines.view.lhs.depth.run == in_lines.view.lhs.looked_up == 2100


CASES = (
    ("2,11,20,16", "3,3,16,5", "2,9,18,5", LAST),
    ("3,9,40,24", "3,3,24,1", "3,7,38,1", LAST),
    ("2,13,35,17", "5,3,17,4", "2,9,33,4", "size=5x3}, dim_labels=b01f_01io->b01f"),
    ("5,3,30,40", "5,7,28,38", "7,3,3,3", f"size=28x38}}, {FIRST_GRADIENT}"),
    ("5,32,23,11", "5,1,17,9", "7,3,32,1", "size=17x9}, dim_labels=fb01_io01->01bf"),
    ("2,17,29,38", "2,9,28,33", "2,6,17,9", "size=28x33}, dim_labels=fb01_io01->01bf"),
    ("4,35,36,24", "4,33,33,5", "3,4,24,5", f"size=33x33}}, {LAST_GRADIENT}"),
    ("9,67,67,20", "9,33,33,3", "3,3,20,3", f"size=33x33 rhs_dilate=2x2}}, {LAST_GRADIENT}"),
    ("5,37,37,64", "5,33,33,1", "3,3,64,1", f"size=33x33 stride=2x2}}, {LAST_GRADIENT}"),
    ("3,3004,30", "3,3000,7", "5,30,7", "size=3000}, dim_labels=f0b_i0o->0bf"),
)


@pytest.mark.parametrize("behind", ["", "subtract"])
@pytest.mark.parametrize("types", ["f32", "f16"])
@pytest.mark.parametrize("parts", CASES)
def test_results_are_right_and_the_same_for_all_threads(
    check: Any, rng: np.random.Generator, parts: tuple[str, ...], types: str, behind: str
) -> None:
    text = text_of(*parts, types, behind)
    dtype: Any = DType(types).numpy
    shapes = [tuple(map(int, one.split(","))) for one in parts[: 3 if behind else 2]]
    arguments = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    found = [check(text, *arguments, ulps=64, num_threads=threads)(*arguments) for threads in (1, 3)]
    np.testing.assert_array_equal(found[0], found[1])
