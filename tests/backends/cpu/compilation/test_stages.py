"""One name, one text: what an executable shows of itself is what the backend shows of the module."""

import random
from collections.abc import Callable

import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions

SOFTMAX = """HloModule softmax
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
ENTRY e {
  x = f32[4,16] parameter(0)
  least = f32[] constant(-inf)
  m = f32[4] reduce(x, least), dimensions={1}, to_apply=larger
  n = f32[4,16] broadcast(m), dimensions={0}
  d = f32[4,16] subtract(x, n)
  y = f32[4,16] exponential(d)
  ROOT z = f32[4,16] exponential(d)
}
"""
SORT = """HloModule sorted
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[40] parameter(0)
  i = f32[40] iota(), iota_dimension=0
  s = f32[40] sort(x), dimensions={0}, to_apply=less
  ROOT r = f32[40] add(s, i)
}
"""
OPTIONS = {
    "plain": CompileOptions(),
    "unoptimised": CompileOptions(optimize=False),
    "fuel": CompileOptions(debug=DebugOptions(fuel=(("cse", 1), ("fusion", 1)))),
    "two threads": CompileOptions(num_threads=2, use_cache=False),
}


@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
@pytest.mark.parametrize("options", OPTIONS)
def test_executables_and_backends_show_the_same(
    platform: str, options: str, random_module: Callable[[random.Random, int], HloModule]
) -> None:
    backend = get_backend(platform)
    for module in (parse(SOFTMAX), parse(SORT), random_module(random.Random(3), 12)):
        executable = backend.compile(module, OPTIONS[options])
        for stage in backend.stages:
            shown = backend.compile_to(stage, module, OPTIONS[options]).text
            assert shown, stage
            assert executable.as_text(stage) == shown, stage


def compiled(platform: str) -> Executable:
    return get_backend(platform).compile(parse(SOFTMAX), CompileOptions())


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("hlo_backend", "hlo-backend"),
        ("optimized_hlo", "hlo-backend"),
        ("buffer_assignment", "buffer-assignment"),
        ("llvm_optimized", "llvm-after-optimizations"),
        ("llvm", "llvm-after-optimizations"),
    ],
)
def test_stages_have_several_spellings(name: str, other: str) -> None:
    assert compiled("cpu").as_text(name) == compiled("cpu").as_text(other)
    assert get_backend("cpu").compile_to(name, parse(SOFTMAX), CompileOptions()).text == compiled("cpu").as_text(other)


def test_stages_differ() -> None:
    texts = {stage: compiled("cpu").as_text(stage) for stage in get_backend("cpu").stages}
    assert texts.pop("llvm") in texts.values()
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_unknown_stage_lists_the_known(platform: str) -> None:
    message = f"the {platform} backend has no stage 'wasm', expected one of hlo-before-optimizations, hlo, hlo-backend"
    with pytest.raises(ValueError, match=message):
        compiled(platform).as_text("wasm")
    with pytest.raises(ValueError, match=message):
        get_backend(platform).compile_to("wasm", parse(SOFTMAX), CompileOptions())
