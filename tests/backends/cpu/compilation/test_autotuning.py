"""Autotuning of products: what may be chosen changes no result, and what was chosen is remembered."""

from pathlib import Path

import numpy as np
import pytest

import xlalite as xl
from xlalite.backends.base import CompileOptions
from xlalite.backends.codegen.kernels.dot.pieces import Pieces, choices
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.compilation import autotuning
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.compilation.stages import EMITTED, run_to
from xlalite.backends.cpu.native.object_cache import ObjectCache
from xlalite.hlo import parse
from xlalite.hlo.types.decision import Decision
from xlalite.passes.core.debug_options import DebugOptions


def product(sizes: tuple[int, int, int], config: str = "", dtype: str = "f32", more: str = "") -> str:
    m, k, n = sizes
    annotation = f", backend_config={config}" if config else ""
    attributes = f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{annotation}"
    root = f"  d = {dtype}[{m},{n}] dot(x, y), {attributes}\n  ROOT r = {dtype}[{m},{n}] {more}(d)"
    if not more:
        root = f"  ROOT d = {dtype}[{m},{n}] dot(x, y), {attributes}"
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{m},{k}] parameter(0)
  y = {dtype}[{k},{n}] parameter(1)
{root}
}}"""


def options(*, autotune: bool = True, use_cache: bool = True, threads: int = 2) -> CompileOptions:
    return CompileOptions(num_threads=threads, use_cache=use_cache, debug=DebugOptions(cpu_autotune=autotune))


def compiled(text: str, options: CompileOptions) -> xl.Executable:
    return xl.compile(parse(text), options=options)


def decided(text: str, options: CompileOptions, by: str) -> list[Decision]:
    """What was decided in a compilation that takes each step once."""
    compilation, _ = run_to(EMITTED, CompileRequest.of(parse(text), options))
    return [one for one in compilation.decisions if one.decided_by == by]


def tuned(text: str, options: CompileOptions) -> list[tuple[str, str]]:
    return [(one.verdict, one.reason) for one in decided(text, options, "autotuning")]


def planned(text: str, options: CompileOptions) -> list[str]:
    return [str(one.numbers["piece"]) for one in decided(text, options, "kernel planner")]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectCache:
    """A cache of the test's own for what is remembered; two rounds are enough to choose."""
    own = ObjectCache.at(tmp_path)
    monkeypatch.setattr(autotuning, "default_cache", lambda: own)
    monkeypatch.setattr(autotuning, "_SECONDS", 0.0)
    return own


@pytest.mark.parametrize("dtype", ["f32", "f64", "s8", "bf16"])
@pytest.mark.parametrize("sizes", [(256, 300, 320), (131, 600, 97), (515, 70, 333)])
def test_results_are_the_same_in_all_pieces(sizes: tuple[int, int, int], dtype: str, rng: np.random.Generator) -> None:
    m, k, n = sizes
    arrays = [rng.integers(-9, 9, dims).astype(xl.hlo.DType(dtype).numpy) for dims in ((m, k), (k, n))]
    if dtype in ("f32", "f64"):
        arrays = [rng.standard_normal(array.shape).astype(array.dtype) for array in arrays]
    dot = parse(product(sizes, dtype=dtype)).entry_computation.root
    tried = choices(plan_dot(dot, TargetInfo.host(), may_overlap=True))
    expected = compiled(product(sizes, dtype=dtype), options(autotune=False))(*arrays)
    for pieces in tried:
        text = product(sizes, pieces.config, dtype)
        assert planned(text, options(autotune=False))[0].startswith(f"{pieces.rows}x{pieces.columns}x")
        np.testing.assert_array_equal(compiled(text, options(autotune=False))(*arrays), expected)


def test_products_are_tuned_when_asked_only() -> None:
    text = product((256, 256, 256))
    assert tuned(text, options(autotune=False)) == []
    ((verdict, reason),) = tuned(text, options(use_cache=False))
    assert reason == "the quickest of those tried"
    assert verdict


def test_small_products_and_those_that_say_their_pieces_are_left_alone() -> None:
    assert tuned(product((16, 16, 16)), options()) == []
    text = product((256, 256, 256), Pieces(256, 64, False).config)
    assert tuned(text, options()) == []
    assert planned(text, options()) == ["256x64x256"]


def test_choices_are_remembered_by_product_and_threads(cache: ObjectCache) -> None:
    text = product((256, 256, 256))
    ((verdict, _),) = tuned(text, options())
    assert tuned(text, options()) == [(verdict, "remembered")]
    assert cache.directory is not None
    assert "(pieces of a product)" in {entry.summary.name for entry in cache.directory.entries()}
    assert tuned(text, options(threads=1))[0][1] != "remembered"
    assert tuned(product((256, 256, 260)), options())[0][1] != "remembered"


def test_damaged_files_are_measured_again(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    text = product((256, 256, 256))
    tuned(text, options())
    assert cache.directory is not None
    for file in Path(cache.directory.path).rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-9] + b"nonsense!")
    other = ObjectCache.at(cache.directory.path)
    monkeypatch.setattr(autotuning, "default_cache", lambda: other)
    ((_, reason),) = tuned(text, options())
    assert reason == "the quickest of those tried"
    assert other.stats().problems


@pytest.mark.parametrize(
    "config",
    [
        '{"piece":"7x1","rows_outside":false}',
        '{"piece":"0x0","rows_outside":true}',
        '{"piece":"512x512","rows_outside":true}',
        '{"piece":"256","rows_outside":1}',
        '"nothing of ours"',
    ],
)
def test_pieces_that_do_not_fit_leave_the_plan(config: str) -> None:
    plain = planned(product((256, 256, 256)), options(autotune=False))
    assert planned(product((256, 256, 256), config), options(autotune=False)) == plain


def test_what_follows_a_product_is_measured_with_it(rng: np.random.Generator) -> None:
    text = product((256, 256, 256), more="tanh")
    x, y = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    assert len(tuned(text, options())) == 1
    np.testing.assert_array_equal(compiled(text, options())(x, y), compiled(text, options(autotune=False))(x, y))


def test_images_that_are_padded_line_by_line_keep_their_pieces() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[8,56,56,64] parameter(0)
  k = f32[3,3,64,64] parameter(1)
  ROOT c = f32[8,56,56,64] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}"""
    joined, *_ = decided(text, options(), "convolution-pad-fusion")
    assert joined.verdict == "joined"
    (tuning,) = decided(text, options(use_cache=False), "autotuning")
    assert tuning.numbers["tried"] == 1
    assert planned(text, options()) == planned(text, options(autotune=False))
