"""Windows in steps: which steps there are, and that the results are the same."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo import evaluate, parse
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.core.pipeline import FixPoint
from xlalite.passes.preparation.window_splitter import WindowSplitter


def module_of(array: str, window: str, function: str = "add", start: str = "0") -> HloModule:
    dtype = array.partition("[")[0]
    text = f"""HloModule m
f {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {function}(a, b)
}}
ENTRY e {{
  x = {array} parameter(0)
  z = {dtype}[] constant({start})
  ROOT r = reduce-window(x, z), window={{{window}}}, to_apply=f
}}"""
    return parse(text)


def steps(module: HloModule, least_work: int = 0) -> list[str]:
    """The windows after splitting, the first one first."""
    FixPoint("splitting", (WindowSplitter(least_work=least_work),)).run(module)
    return [str(one.attrs.window) for one in module.entry_computation.post_order() if one.opcode == "reduce-window"]


def numbers(module: HloModule) -> np.ndarray:
    """Whole ones, of which sums are exact in any order."""
    shape = module.entry_computation.parameters[0].shape
    values = np.random.default_rng(0).integers(0 if shape.dtype.is_unsigned else -9, 10, shape.dims)
    return np.asarray(values).astype(shape.dtype.numpy)


FORMS = {
    "a square": ("f32[3,20,20]", "size=1x7x7", "add", ["size=1x7x1", "size=1x1x7"]),
    "the one that leaves less comes first": (
        "f32[40,40]",
        "size=7x8 stride=1x4",
        "add",
        ["size=1x8 stride=1x4", "size=7x1"],
    ),
    "small windows stay whole": ("f32[20,20]", "size=3x3", "add", ["size=3x3"]),
    "windows side by side stay whole": ("f32[40,40]", "size=8x8 stride=8x8", "add", ["size=8x8 stride=8x8"]),
    "a long one": (
        "f32[900]",
        "size=64 stride=2",
        "add",
        ["size=4", "size=16 stride=2 rhs_dilate=4"],
    ),
    "a long one with holes and padding": (
        "s32[4000]",
        "size=25 pad=24_3 lhs_dilate=2 rhs_dilate=3",
        "add",
        ["size=5 pad=24_3 lhs_dilate=2 rhs_dilate=3", "size=5 rhs_dilate=15"],
    ),
    "sums of a prime number stay whole": ("f32[200]", "size=31", "add", ["size=31"]),
    "maxima overlap": ("f32[200]", "size=31", "maximum", ["size=6", "size=6 rhs_dilate=5"]),
    "padding and strides": (
        "s8[30,9,30]",
        "size=9x1x9 stride=1x2x2 pad=4_4x1_0x-1_3",
        "minimum",
        ["size=1x1x9 stride=1x2x2 pad=0_0x1_0x-1_3", "size=9x1x1 pad=4_4x0_0x0_0"],
    ),
    "all that comes before": ("f32[40]", "size=40 pad=39_0", "add", ["size=40 pad=39_0"]),
    "sums of a narrow type": ("bf16[40,40]", "size=9x9", "add", ["size=9x9"]),
    "maxima of a narrow type": ("bf16[40,40]", "size=9x9", "maximum", ["size=9x1", "size=1x9"]),
    "sums that wrap around": ("u8[40,40]", "size=9x9", "multiply", ["size=9x1", "size=1x9"]),
    "no element": ("f32[5,5]", "size=7x7", "add", ["size=7x7"]),
    "an unknown function": ("f32[40,40]", "size=9x9", "subtract", ["size=9x9"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_steps_and_results(form: str) -> None:
    array, window, function, expected = FORMS[form]
    module = module_of(array, window, function, "3")
    given = numbers(module)
    before = evaluate(module, given)
    assert steps(module) == expected
    np.testing.assert_array_equal(evaluate(module, given), before)


@pytest.mark.parametrize("function", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("start", ["0", "-inf", "nan"])
def test_extreme_values(function: str, start: str) -> None:
    module = module_of("f32[12,12]", "size=6x6 pad=5_0x0_5", function, start)
    given = np.random.default_rng(1).choice(np.array([0, -0.0, np.inf, -np.inf, np.nan, 1], np.float32), (12, 12))
    given[:, 6:] = -0.0
    with np.errstate(invalid="ignore"):
        before = np.asarray(evaluate(module, given))
        assert len(steps(module)) > 1
        after = np.asarray(evaluate(module, given))
    np.testing.assert_array_equal(after, before)
    np.testing.assert_array_equal(np.signbit(after)[after == 0], np.signbit(before)[before == 0])


def test_little_work_is_done_in_one_step() -> None:
    assert len(steps(module_of("f32[40,40]", "size=9x9"), WindowSplitter().least_work)) == 1
    assert len(steps(module_of("f32[400,400]", "size=9x9"), WindowSplitter().least_work)) == 2


@pytest.mark.parametrize("channels", [1, 3, 16, 33])
@pytest.mark.parametrize(
    "window", ["size=1x7x7x1", "size=1x7x7x1 pad=0_0x3_3x3_3x0_0", "size=1x9x9x1 pad=0_0x0_8x8_0x0_0"]
)
def test_images(channels: int, window: str) -> None:
    module = module_of(f"f32[2,70,61,{channels}]", window)
    given = numbers(module)
    executable = get_backend("cpu").compile(module, CompileOptions(use_cache=False))
    np.testing.assert_array_equal(executable(given), evaluate(module, given))
