"""Convolutions that pad their input line by line: what is joined, what stays apart, and results that are the same."""

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo import evaluate, parse
from xlalite.passes.core.debug_options import DebugOptions

LAST, FIRST = "b01f_01io->b01f", "bf01_oi01->bf01"
IMAGES = [
    ("8,20,20,32", "3,3,32,32", "8,20,20,32", "size=3x3 pad=1_1x1_1", LAST),
    ("8,19,23,32", "3,3,32,32", "8,10,12,32", "size=3x3 stride=2x2 pad=1_1x1_1", LAST),
    ("8,20,20,32", "5,3,32,16", "8,17,16,16", "size=5x3 pad=3_2x-1_1 rhs_dilate=2x2", LAST),
    ("1,99,40,32", "3,3,32,32", "1,97,40,32", "size=3x3 pad=0_0x1_1", LAST),
    ("8,32,28,28", "32,32,3,3", "8,32,28,28", "size=3x3 pad=1_1x1_1", FIRST),
    ("8,3,29,33", "64,3,7,7", "8,64,15,17", "size=7x7 stride=2x2 pad=3_3x3_3", FIRST),
    ("8,100,32", "3,32,32", "8,100,32", "size=3 pad=2_0", "b0f_0io->b0f"),
    ("8,6,14,14,16", "3,3,3,16,32", "8,6,14,14,32", "size=3x3x3 pad=1_1x1_1x1_1", "b012f_012io->b012f"),
    ("8,16,5,14,14", "32,16,3,3,3", "8,32,6,14,14", "size=3x3x3 pad=1_2x1_1x1_1", "bf012_oi012->bf012"),
]


def program(image: str, kernel: str, result: str, window: str, labels: str, t: str = "f32", after: str = "") -> str:
    name = "c" if after else "ROOT c"
    return f"""HloModule image
ENTRY main {{
  x = {t}[{image}] parameter(0)
  k = {t}[{kernel}] parameter(1)
  {name} = {t}[{result}] convolution(x, k), window={{{window}}}, dim_labels={labels}
  {after}
}}"""


def compiled(text: str, *, threads: int = 1, fuel: int | None = None) -> Executable:
    debug = DebugOptions() if fuel is None else DebugOptions(fuel=(("convolution-pad-fusion", fuel),))
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=threads, use_cache=False, debug=debug))


def arguments(text: str, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
    return [(4 * rng.standard_normal(shape.dims)).astype(shape.dtype.numpy) for shape in shapes]


def decided(executable: Executable) -> list[str]:
    return [f"{d.verdict}: {d.reason}" for d in executable.decisions() if d.decided_by == "convolution-pad-fusion"]


JOINED = ["joined: lines are padded as they are needed"]


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_is_padded_line_by_line(image: tuple[str, ...], rng: np.random.Generator) -> None:
    text = program(*image)
    executable, whole, arrays = compiled(text), compiled(text, fuel=0), arguments(text, rng)
    assert (decided(executable), decided(whole)) == (JOINED, [])
    found = executable(*arrays)
    np.testing.assert_array_equal(found, whole(*arrays))
    np.testing.assert_allclose(found, evaluate(parse(text), *arrays), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("t", ["bf16", "f16", "f64", "s32", "s8"])
@pytest.mark.parametrize("image", IMAGES)
def test_images_of_every_type_are_padded_alike(image: tuple[str, ...], t: str, rng: np.random.Generator) -> None:
    text = program(*image, t=t)
    arrays = arguments(text, rng)
    np.testing.assert_array_equal(compiled(text)(*arrays), compiled(text, fuel=0)(*arrays))


@pytest.mark.parametrize("image", IMAGES)
def test_results_do_not_depend_on_the_threads(image: tuple[str, ...], rng: np.random.Generator) -> None:
    text = program(*image)
    arrays = arguments(text, rng)
    alone = compiled(text)(*arrays)
    for threads in (2, 5):
        np.testing.assert_array_equal(compiled(text, threads=threads)(*arrays), alone)


def test_what_follows_the_product_stays_with_it(rng: np.random.Generator) -> None:
    after = """bias = f32[32] parameter(2)
  spread = f32[8,20,20,32] broadcast(bias), dimensions={3}
  ROOT sum = f32[8,20,20,32] add(c, spread)"""
    text = program(*IMAGES[0], after=after)
    executable, arrays = compiled(text), arguments(text, rng)
    assert decided(executable) == JOINED
    assert [d.verdict for d in executable.decisions() if d.decided_by == "kernel planner"] == ["dot"]
    np.testing.assert_allclose(executable(*arrays), evaluate(parse(text), *arrays), rtol=1e-3, atol=1e-3)


def test_zeros_around_an_image_meet_weights_that_are_infinite(rng: np.random.Generator) -> None:
    text = program(*IMAGES[0])
    image, kernel = arguments(text, rng)
    kernel[0, 0, 3, 5] = np.inf
    found = compiled(text)(image, kernel)
    assert np.isnan(found[:, 0, :, 5]).all()
    assert not np.isnan(found[:, 1:, 1:, 5]).any()


@pytest.mark.parametrize(
    ("pad", "reason"),
    [
        ("pad(x, one)", "it is padded with other numbers than zero"),
        ("pad(n, zero)", "what is padded is computed"),
    ],
)
def test_only_zeros_around_an_image_in_memory_are_joined(pad: str, reason: str, rng: np.random.Generator) -> None:
    text = f"""HloModule image
ENTRY main {{
  x = f32[8,20,20,32] parameter(0)
  k = f32[3,3,32,32] parameter(1)
  zero = f32[] constant(0)
  one = f32[] constant(1)
  n = f32[8,20,20,32] negate(x)
  p = f32[8,22,22,32] {pad}, padding=0_0x1_1x1_1x0_0
  ROOT c = f32[8,20,20,32] convolution(p, k), window={{size=3x3}}, dim_labels={LAST}
}}"""
    executable, arrays = compiled(text), arguments(text, rng)
    assert decided(executable) == [f"not joined: {reason}"]
    np.testing.assert_allclose(executable(*arrays), evaluate(parse(text), *arrays), rtol=1e-3, atol=1e-3)


def test_what_others_read_is_padded_once() -> None:
    text = """HloModule image
ENTRY main {
  x = f32[8,20,20,32] parameter(0)
  k = f32[3,3,32,32] parameter(1)
  zero = f32[] constant(0)
  p = f32[8,22,22,32] pad(x, zero), padding=0_0x1_1x1_1x0_0
  c = f32[8,20,20,32] convolution(p, k), window={size=3x3}, dim_labels=b01f_01io->b01f
  ROOT both = (f32[8,20,20,32], f32[8,22,22,32]) tuple(c, p)
}"""
    executable = compiled(text)
    assert decided(executable) == ["not joined: others read it, too"]


@pytest.mark.parametrize(
    ("image", "kernel", "result"),
    [("1,20,20,32", "9,9,32,32", "1,20,20,32"), ("8,14,14,256", "9,9,256,512", "8,14,14,512")],
)
def test_lines_are_not_copied_again_and_again(image: str, kernel: str, result: str) -> None:
    text = program(image, kernel, result, "size=9x9 pad=4_4x4_4", LAST)
    assert decided(compiled(text)) == ["not joined: no piece copies a few lines"]
