"""One name, one text: what an executable shows of itself is what the backend shows of the module."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.codegen.llvm import library
from xlalite.backends.cpu.native import jit
from xlalite.hlo.errors import ExecutionError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.dump.records import read_contents

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
    assert len(set(texts.values())) == len(texts)


@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_unknown_stage_lists_the_known(platform: str) -> None:
    message = f"the {platform} backend has no stage 'wasm', expected one of hlo-before-optimizations, hlo, hlo-backend"
    with pytest.raises(ValueError, match=message):
        compiled(platform).as_text("wasm")
    with pytest.raises(ValueError, match=message):
        get_backend(platform).compile_to("wasm", parse(SOFTMAX), CompileOptions())


def test_a_dumped_compilation_parses_and_optimizes_its_code_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled("cpu")  # The runtime's own code is there from now on.
    counts: Counter[str] = Counter()

    def counted(name: str, *arguments: object) -> object:
        counts[name] += 1
        return call(name, *arguments)

    call = library.call
    for module in (library, jit):
        monkeypatch.setattr(module, "call", counted)
    options = CompileOptions(debug=DebugOptions(dump_to=str(tmp_path)))
    improved = SOFTMAX.replace("f32", "bf16")  # in f32 its code is as LLVM's passes leave it
    get_backend("cpu").compile(parse(improved), options)
    assert (counts["ParseAssembly"], counts["RunNewModulePassManager"]) == (1, 1)
    (entry,) = read_contents(tmp_path).modules
    assert {"llvm-before-optimizations", "llvm-after-optimizations", "asm", "object"} < entry.files.keys()


def test_a_dump_holds_the_stages_under_their_names(tmp_path: Path) -> None:
    backend, options = get_backend("cpu"), CompileOptions(debug=DebugOptions(dump_to=str(tmp_path)))
    executable = backend.compile(parse(SOFTMAX), options)
    (entry,) = read_contents(tmp_path).modules
    dumped = {name: tmp_path / file for name, file in entry.files.items() if name in backend.stages}
    assert dumped.keys() == backend.stages.keys() - {"hlo"}
    for name, path in dumped.items():
        assert path.read_text() == executable.as_text(name), name


def test_report_names_every_phase_and_pass():
    text = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] exponential(x)\n}\n"
    executable = get_backend("cpu").compile(parse(text), CompileOptions())
    report = executable.compile_report()
    assert report.total_ms == sum(report.phases.values())
    assert sum(record.time_ms for record in report.pass_records) < report.phases["passes"]
    assert {record.name for record in report.pass_records} == {record.name for record in executable.pass_records()}
    assert "machine code" in str(report)


def test_the_report_is_the_page_of_a_dump() -> None:
    page = compiled("cpu").report()
    assert page.startswith("<!DOCTYPE html>")
    assert all(f'data-stage="{stage}"' in page for stage in ("hlo-backend", "llvm-before-optimizations", "asm"))
    with pytest.raises(ExecutionError, match="compiles nothing that a page could show"):
        compiled("interpreter").report()


def test_code_is_the_same_in_every_compilation() -> None:
    """Rows with several results, which take what is computed once a row in the order of the results."""
    lines = ["  x = f32[64,96] parameter(0)", "  z = f32[] constant(0)"]
    lines += ["  s = f32[64] reduce(x, z), dimensions={1}, to_apply=sum"]
    for i in range(6):
        lines += [f"  v{i} = f32[64] parameter({i + 1})", f"  p{i} = f32[64] multiply(v{i}, s)"]
        lines += [f"  b{i} = f32[64,96] broadcast(p{i}), dimensions={{0}}", f"  r{i} = f32[64,96] add(x, b{i})"]
    shapes = ", ".join(["f32[64,96]"] * 6)
    lines += [f"  ROOT t = ({shapes}) tuple({', '.join(f'r{i}' for i in range(6))})"]
    sum_ = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
    module = parse("\n".join(["HloModule m", sum_, "ENTRY e {", *lines, "}"]))
    backend = get_backend("cpu")
    texts = {backend.compile_to("llvm-before-optimizations", module, CompileOptions()).text for _ in range(8)}
    assert len(texts) == 1
