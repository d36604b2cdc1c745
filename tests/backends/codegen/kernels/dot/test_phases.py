"""Convolutions with holes in their input: one kernel computes the products of all phases."""

import re

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo import evaluate, parse

LAST, TURNED, GRADIENT = "b01f_01oi->b01f", "b01f_o01i->b01f", "f01b_i01o->01bf"
FIRST = "bf01_io01->bf01"
PHASES = [
    pytest.param("2,7,7,24", "3,3,20,24", "2,13,13,20", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", LAST, id="odd"),
    pytest.param("2,7,9,24", "3,3,20,24", "2,14,18,20", "size=3x3 pad=1_2x1_2 lhs_dilate=2x2", LAST, id="even"),
    pytest.param(
        "2,7,7,24", "3,4,20,24", "2,13,14,20", "size=3x4 pad=1_1x2_2 lhs_dilate=2x2 rhs_reversal=1x1", LAST, id="back"
    ),
    pytest.param("3,8,8,40", "20,7,7,40", "3,16,16,20", "size=7x7 pad=3_4x3_4 lhs_dilate=2x2", TURNED, id="rows"),
    pytest.param("2,9,9,32", "7,7,3,32", "2,18,18,3", "size=7x7 pad=3_4x3_4 lhs_dilate=2x2", LAST, id="few"),
    pytest.param("2,9,9,64", "2,2,32,64", "2,18,18,32", "size=2x2 pad=1_1x1_1 lhs_dilate=2x2", LAST, id="one each"),
    pytest.param(
        "1,9,9,30", "5,5,20,30", "1,12,12,20", "size=5x5 pad=2_0x2_0 stride=2x2 lhs_dilate=3x3", LAST, id="3/2"
    ),
    pytest.param("2,9,9,30", "4,3,20,30", "2,19,7,20", "size=4x3 pad=2_3x0_0 lhs_dilate=2x1", LAST, id="one dimension"),
    pytest.param(
        "4,28,28,64", "4,55,55,64", "4,4,64,64", "size=55x55 pad=1_2x1_2 lhs_dilate=2x2", GRADIENT, id="sums in parts"
    ),
]


def program(image: str, kernel: str, result: str, window: str, labels: str, t: str = "f32", after: str = "") -> str:
    name = "c" if after else "ROOT c"
    return f"""HloModule phases
ENTRY main {{
  x = {t}[{image}] parameter(0)
  k = {t}[{kernel}] parameter(1)
  {name} = {t}[{result}] convolution(x, k), window={{{window}}}, dim_labels={labels}
  {after}
}}"""


def compiled(text: str, threads: int = 1) -> Executable:
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=threads, use_cache=False))


def arguments(text: str, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
    return [rng.standard_normal(shape.dims).astype(shape.dtype.numpy) for shape in shapes]


def kernels(executable: Executable) -> list[str]:
    return [decision.verdict for decision in executable.decisions() if decision.decided_by == "kernel planner"]


def functions(text: str, name: str) -> set[str]:
    """What functions are defined whose names begin so."""
    llvm = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions()).text
    return set(re.findall(rf'^define [^@]*@"?({name}[\w.]*)', llvm, re.MULTILINE))


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize(("image", "kernel", "result", "window", "labels"), PHASES)
def test_one_kernel_computes_all_phases(
    image: str, kernel: str, result: str, window: str, labels: str, t: str, rng: np.random.Generator
) -> None:
    text = program(image, kernel, result, window, labels, t)
    executable, arrays = compiled(text), arguments(text, rng)
    assert [kind for kind in kernels(executable) if kind != "zero pad"] == ["phases"]
    found, expected = executable(*arrays), evaluate(parse(text), *arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-3 if t == "f32" else 1e-9, atol=1e-3)
    for threads in (2, 5):
        np.testing.assert_array_equal(compiled(text, threads)(*arrays), found)


NARROW = [
    *(pytest.param(t, t, t, id=t) for t in ("bf16", "f16", "f8e5m2")),
    *(pytest.param(t, t, "s32", id=t) for t in ("s8", "u8", "s16", "s4")),
    pytest.param("bf16", "f32", "f32", id="bf16 and f32"),
    pytest.param("s8", "u8", "s32", id="s8 and u8"),
]


@pytest.mark.parametrize(("image", "kernel", "result"), NARROW)
@pytest.mark.parametrize("inputs", [24, 23], ids=["words", "padded"])
def test_narrow_types_are_rounded_once(
    inputs: int, image: str, kernel: str, result: str, rng: np.random.Generator
) -> None:
    """Small integers, of which sums are exact in f32."""
    window = "size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_reversal=1x1"
    text = program(f"2,7,7,{inputs}", f"3,3,20,{inputs}", "2,13,13,20", window, LAST, image)
    text = text.replace(f"k = {image}", f"k = {kernel}").replace(f"c = {image}", f"c = {result}")
    executable = compiled(text)
    arrays = [
        rng.integers(0 if one.shape.dtype.is_unsigned else -7, 8, one.shape.dims).astype(one.shape.dtype.numpy)
        for one in parse(text).entry_computation.parameters
    ]
    assert {*kernels(executable)} - {"zero pad"} == {"phases"}
    found = executable(*arrays)
    np.testing.assert_array_equal(found, evaluate(parse(text), *arrays))
    for threads in (2, 5):
        np.testing.assert_array_equal(compiled(text, threads)(*arrays), found)


APART = [
    pytest.param(
        "2,24,7,7",
        "20,24,3,3",
        "2,20,13,13",
        "size=3x3 pad=1_1x1_1 lhs_dilate=2x2",
        "bf01_oi01->bf01",
        "f32",
        id="first",
    ),
    pytest.param("2,9,9,64", "1,1,32,64", "2,17,17,32", "size=1x1 lhs_dilate=2x2", LAST, "f32", id="nothing to see"),
    pytest.param(
        "2,9,9,64", "4,4,3,64", "2,19,19,3", "size=4x4 pad=2_3x2_3 lhs_dilate=2x2", LAST, "f32", id="together"
    ),
    pytest.param(
        "4,28,28,64", "4,55,55,64", "4,4,64,64", "size=55x55 pad=1_2x1_2 lhs_dilate=2x2", GRADIENT, "f16", id="words"
    ),
    pytest.param("2,9,9,64", "7,7,3,64", "2,18,18,3", "size=7x7 pad=3_4x3_4 lhs_dilate=2x2", LAST, "s8", id="few"),
    pytest.param("2,9,9,64", "2,2,32,64", "2,18,18,32", "size=2x2 pad=1_1x1_1 lhs_dilate=2x2", LAST, "f16", id="once"),
    pytest.param("2,9,9,30", "3,3,20,30", "2,9,9,20", "size=3x3 pad=1_1x1_1", LAST, "f32", id="no holes"),
]


@pytest.mark.parametrize(("image", "kernel", "result", "window", "labels", "t"), APART)
def test_other_convolutions_are_brought_into_order_before(
    image: str, kernel: str, result: str, window: str, labels: str, t: str, rng: np.random.Generator
) -> None:
    text = program(image, kernel, result, window, labels, t)
    executable, arrays = compiled(text), arguments(text, rng)
    assert "phases" not in kernels(executable)
    np.testing.assert_allclose(executable(*arrays), evaluate(parse(text), *arrays), rtol=1e-2, atol=2e-1)


@pytest.mark.parametrize(
    ("result", "window", "labels"),
    [
        pytest.param("2,32,13,13", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", FIRST, id="first"),
        pytest.param("2,32,13,13", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_reversal=1x1", FIRST, id="back"),
        pytest.param("13,2,32,13", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", "bf01_io01->0bf1", id="between"),
        pytest.param("2,32,7,13", "size=3x3 pad=1_1x1_1 lhs_dilate=1x2", FIRST, id="one dimension"),
    ],
)
def test_features_are_moved_behind_where_phases_overlap(
    result: str, window: str, labels: str, rng: np.random.Generator
) -> None:
    text = program("2,24,7,7", "24,32,3,3", result, window, labels)
    executable, arrays = compiled(text), arguments(text, rng)
    assert "phases" in kernels(executable)
    np.testing.assert_allclose(executable(*arrays), evaluate(parse(text), *arrays), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("kernel", "result", "window"),
    [
        pytest.param("24,32,2,2", "2,32,14,14", "size=2x2 pad=1_1x1_1 lhs_dilate=2x2", id="no overlap"),
        pytest.param("24,20,3,3", "2,20,13,13", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", id="empty lanes"),
        pytest.param("24,16,4,4", "2,16,14,14", "size=4x4 pad=2_2x2_2 lhs_dilate=2x2", id="together"),
    ],
)
def test_features_stay_in_front_where_phases_are_better_apart(
    kernel: str, result: str, window: str, rng: np.random.Generator
) -> None:
    text = program("2,24,7,7", kernel, result, window, FIRST)
    executable, arrays = compiled(text), arguments(text, rng)
    assert "phases" not in kernels(executable)
    np.testing.assert_allclose(executable(*arrays), evaluate(parse(text), *arrays), rtol=1e-3, atol=1e-3)


def test_what_follows_is_a_kernel_of_its_own(rng: np.random.Generator) -> None:
    after = """n = f32[] constant(0)
  z = f32[2,13,13,20] broadcast(n), dimensions={}
  ROOT m = f32[2,13,13,20] maximum(c, z)"""
    text = program("2,7,7,24", "3,3,20,24", "2,13,13,20", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", LAST, after=after)
    executable, arrays = compiled(text), arguments(text, rng)
    assert kernels(executable) == ["phases", "loop"]
    np.testing.assert_allclose(executable(*arrays), evaluate(parse(text), *arrays), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("size", "pad", "count"), [(4, "2_2", 1), (3, "1_2", 4)])
def test_phases_that_differ_in_places_only_have_one_function(size: int, pad: str, count: int) -> None:
    window = f"size={size}x{size} pad={pad}x{pad} lhs_dilate=2x2"
    text = program("2,28,28,64", f"{size},{size},64,64", "2,56,56,64", window, LAST)
    assert len(functions(text, "dot_phase")) == count


@pytest.mark.parametrize("t", ["f32", "f16", "s8"])
def test_phases_have_tiles_of_one_size(t: str) -> None:
    """29 and 28 pixels in a row: one number of rows does for both, and the last tile begins in the one before.

    Packed ones of 14 rows are told how many there are.
    """
    text = program("8,29,29,128", "3,3,64,128", "8,57,57,64", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", LAST, t)
    assert len(functions(text, "dot_tile")) == 1


def test_gradients_of_all_sizes_share_the_functions_that_pack() -> None:
    def packing(side: int, window: int) -> set[str]:
        fields = f"size={window}x{window} pad=1_2x1_2 lhs_dilate=2x2"
        text = program(f"4,{side},{side},64", f"4,{window},{window},64", "4,4,64,64", fields, GRADIENT)
        return functions(text, "dot_pack")

    assert packing(28, 55) == packing(34, 67) != set()
