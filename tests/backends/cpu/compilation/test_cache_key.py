"""What decides the code is in the key of a cache entry: the compiler's sources by their contents, the options."""

import dataclasses
import os
from importlib.util import source_hash
from pathlib import Path

import pytest

import xlalite.backends
import xlalite.hlo
import xlalite.passes
from xlalite.backends.base import CompileOptions
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.native import code_version as module_of_version
from xlalite.backends.cpu.native.code_version import code_version, sources_digest
from xlalite.backends.cpu.native.object_cache import ObjectCache
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.pipeline import Pipeline
from xlalite.passes.simplify.dce import DeadCodeElimination

DECIDES: dict[str, object] = {
    "num_threads": 7,
    "fp_contract": False,
    "optimize": False,
    "donate_arguments": True,
    "profile": True,
    "disable_passes": ("cse",),
    "enable_only": ("cse",),
    "fuel": (("cse", 1),),
    "cpu_max_isa": "AVX",
    "cpu_winograd": 2,
    "cpu_autotune": True,
    "allow_excess_precision": True,
    "pipeline": Pipeline("own", (DeadCodeElimination(),)),
    "extra_passes": (("before:fusion", DeadCodeElimination()),),
}
"""Options that change code, with another value than the default."""

ONLY_WATCHES = {
    "use_cache",
    "debug",
    "dump_to",
    "dump_hlo_pass_re",
    "dump_hlo_module_re",
    "dump_hlo_pipeline_re",
    "dump_large_constants",
    "dump_forms",
    "dump_max_modules",
    "verify_passes",
    "check_passes",
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (0, 0))


def test_stamp_follows_contents_where_all_times_and_sizes_are_the_same(tmp_path: Path) -> None:
    source = tmp_path / "room" / "a.py"
    write(source, "x = 1\n")
    before = sources_digest(str(tmp_path))
    write(source, "x = 2\n")
    assert sources_digest(str(tmp_path)) != before
    write(source, "x = 1\n")
    os.utime(source, (5, 5))
    write(tmp_path / "room" / "notes.txt", "no source")
    write(tmp_path / "__pycache__" / "a.cpython-311.pyc", "made of the source")
    assert sources_digest(str(tmp_path)) == before


def test_stamp_follows_names_and_places(tmp_path: Path) -> None:
    stamps = []
    for number, place in enumerate(("a.py", "b.py", "room/a.py")):
        (tmp_path / str(number)).mkdir()
        write(tmp_path / str(number) / place, "x = 1\n")
        stamps.append(sources_digest(str(tmp_path / str(number))))
    assert len(set(stamps)) == 3


def test_compiler_has_a_stamp() -> None:
    assert len(code_version()) == 32


def test_sources_are_read_again_only_when_the_system_says_that_they_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, reads = tmp_path / "room" / "a.py", []

    def counted(data: bytes) -> bytes:
        reads.append(data)
        return source_hash(data)

    monkeypatch.setattr(module_of_version, "source_hash", counted)
    cache = ObjectCache.in_memory()
    monkeypatch.setattr(module_of_version, "default_cache", lambda: cache)
    for package in (xlalite.hlo, xlalite.passes, xlalite.backends):
        monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    write(source, "x = 1\n")
    written = source.stat().st_ctime_ns
    versions = [code_version.__wrapped__() for _ in range(2)]
    while source.stat().st_ctime_ns == written:  # the system's clock of files goes in steps
        write(source, "x = 2\n")
    versions.append(code_version.__wrapped__())
    assert versions[0] == versions[1] != versions[2]
    assert len(reads) == 2 * 3


def key(options: CompileOptions) -> str:
    module = parse("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }")
    return CompileRequest.of(module, options).cache_key()


def fields(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_option_is_in_the_key_or_known_to_change_nothing() -> None:
    assert fields(CompileOptions) | fields(DebugOptions) == DECIDES.keys() | ONLY_WATCHES


@pytest.mark.parametrize("name", DECIDES)
def test_option_that_changes_code_changes_the_key(name: str) -> None:
    changed = {name: DECIDES[name]}
    in_debug = name in fields(DebugOptions)
    options = CompileOptions(debug=DebugOptions(**changed)) if in_debug else CompileOptions(**changed)  # type: ignore[arg-type]
    assert key(options) != key(CompileOptions())


def test_option_that_only_watches_keeps_the_key() -> None:
    assert key(CompileOptions(debug=DebugOptions(verify_passes=True, check_passes=True))) == key(CompileOptions())
