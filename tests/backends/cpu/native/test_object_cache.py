import ctypes
import os
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from xlalite.backends.cpu.native import jit_options, object_cache
from xlalite.backends.cpu.native.cache_directory import CacheDirectory
from xlalite.backends.cpu.native.cache_file import write_entry
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.object_cache import ObjectCache, cache_key
from xlalite.backends.cpu.native.object_code import CodeSummary, IrSource, ObjectCode
from xlalite.hlo.errors import CacheError

TEXT = "define i32 @answer() {\n  ret i32 42\n}\n"


class Source:
    """Counts how often its text is asked for."""

    def __init__(self, text: str = TEXT, record: dict[str, object] | None = None) -> None:
        self.calls = 0
        self._source = IrSource(text, record or {})

    def __call__(self) -> IrSource:
        self.calls += 1
        return self._source


def entry_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix.startswith(".xlo"))


def call(module) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int32)(module.address("answer"))()


def test_second_process_finds_code_and_record_without_text(tmp_path):
    record = {"kernels": ["fusion.1"], "arena": 64}
    source = Source(record=record)
    module = ObjectCache.at(tmp_path / "cache").get_or_compile(("key",), source)
    again = ObjectCache.at(tmp_path / "cache")  # a new object shares nothing in memory
    found = again.get_or_compile(("key",), source)
    assert source.calls == 1
    assert call(module) == call(found) == 42
    stats = again.stats()
    assert (stats.disk_hits, stats.misses) == (1, 0)
    assert stats.loaded_bytes > 0
    assert again.use(cache_key(("key",), JitOptions()), lambda code: code.record) == record


def test_code_is_linked_again_from_memory():
    cache, source = ObjectCache.in_memory(), Source()
    assert [call(cache.get_or_compile(("key",), source)) for _ in range(3)] == [42] * 3
    assert source.calls == 1
    assert cache.stats().memory_hits == 2


@pytest.mark.parametrize(
    ("parts", "options"),
    [(("other",), JitOptions()), (("k", "ey"), JitOptions()), (("key",), JitOptions(max_isa="AVX2"))],
)
def test_key_separates_parts_and_options(parts, options):
    assert cache_key(parts, options) != cache_key(("key",), JitOptions())


def test_text_and_bytes_of_a_key_are_the_same():
    assert cache_key(("key",), JitOptions()) == cache_key((b"key",), JitOptions())


def test_files_and_directory_are_private(tmp_path):
    ObjectCache.at(tmp_path / "cache").get_or_compile(("key",), Source())
    (file,) = entry_files(tmp_path / "cache")
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data[:20], id="cut in the header"),
        pytest.param(lambda data: data[:-1], id="cut at the end"),
        pytest.param(lambda data: data[:-1] + bytes([data[-1] ^ 1]), id="one bit"),
        pytest.param(lambda data: b"X" + data[1:], id="another format"),
        pytest.param(lambda data: data + b"x", id="too long"),
        pytest.param(lambda data: data[:8] + b"\xff" * 24 + data[32:], id="sizes"),
    ],
)
def test_damaged_entry_is_removed_and_made_again(tmp_path, damage):
    ObjectCache.at(tmp_path).get_or_compile(("key",), Source())
    (file,) = entry_files(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    source, cache = Source(), ObjectCache.at(tmp_path)
    assert call(cache.get_or_compile(("key",), source)) == 42
    assert source.calls == 1
    assert "it is damaged" in cache.stats().problems[0]
    assert ObjectCache.at(tmp_path).get_or_compile(("key",), source)
    assert source.calls == 1


def test_entry_that_others_may_write_is_not_believed(tmp_path):
    ObjectCache.at(tmp_path).get_or_compile(("key",), Source())
    (file,) = entry_files(tmp_path)
    file.chmod(0o666)
    source, cache = Source(), ObjectCache.at(tmp_path)
    cache.get_or_compile(("key",), source)
    assert source.calls == 1
    assert "others may write to it (mode 0666)" in cache.stats().problems[0]


def test_link_in_place_of_an_entry_is_not_followed(tmp_path):
    ObjectCache.at(tmp_path / "cache").get_or_compile(("key",), Source())
    (file,) = entry_files(tmp_path / "cache")
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    source, cache = Source(), ObjectCache.at(tmp_path / "cache")
    cache.get_or_compile(("key",), source)
    assert source.calls == 1
    assert "cannot be opened" in cache.stats().problems[0]


def test_entry_under_another_name_counts_as_absent(tmp_path):
    """A wrong copy, by a careless tool: the file is sound, but of another key."""
    ObjectCache.at(tmp_path).get_or_compile(("other",), Source(TEXT.replace("42", "43")))
    (file,) = entry_files(tmp_path)
    key = cache_key(("key",), JitOptions())
    file.rename(file.with_name(f"{key}{file.suffix}"))
    source, cache = Source(), ObjectCache.at(tmp_path)
    assert call(cache.get_or_compile(("key",), source)) == 42
    assert source.calls == 1
    assert f"it is the entry of {cache_key(('other',), JitOptions())}" in cache.stats().problems[0]


def make_fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_loop(path: Path) -> None:
    path.symlink_to(path)


def make_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [Path.mkdir, make_fifo, make_socket, make_loop, make_dangling_link])
def test_what_is_no_file_counts_as_absent(tmp_path, make, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    cache = ObjectCache.at(".")
    suffix = entry_suffix(tmp_path)
    make(Path(f"{cache_key(('key',), JitOptions())}{suffix}"))
    source = Source()
    assert call(cache.get_or_compile(("key",), source)) == 42
    assert source.calls == 1
    assert "cannot be opened" in cache.stats().problems[0]


def entry_suffix(directory: Path) -> str:
    scratch = CacheDirectory(directory / "scratch", 1 << 20)
    scratch.store("aa", ObjectCode(b"", ()))
    return entry_files(directory / "scratch")[0].suffix


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda code: replace(code, image=b"no object file"), id="image"),
        pytest.param(lambda code: replace(code, exports=("other",)), id="exports"),
        pytest.param(lambda code: replace(code, exports=(1,)), id="number for a name"),
        pytest.param(lambda code: replace(code, record=[]), id="list for a record"),
        pytest.param(lambda code: replace(code, summary=CodeSummary(["x"])), id="list for a name"),
    ],
)
def test_sound_entry_that_makes_no_sense_counts_as_absent(tmp_path, forge):
    key = cache_key(("key",), JitOptions())
    ObjectCache.at(tmp_path).get_or_compile(("key",), Source())
    code = CacheDirectory(tmp_path, 1 << 20).load(key)
    with entry_files(tmp_path)[0].open("wb") as file:
        write_entry(file, key, forge(code))
    source, cache = Source(), ObjectCache.at(tmp_path)
    assert call(cache.get_or_compile(("key",), source)) == 42
    assert source.calls == 1
    assert "was removed" in cache.stats().problems[0]


def test_code_that_its_user_refuses_is_made_again(tmp_path):
    ObjectCache.at(tmp_path).get_or_compile(("key",), Source(record={"arena": "x"}))

    def use(code: ObjectCode) -> int:
        return int(code.record["arena"])

    cache, key = ObjectCache.at(tmp_path), cache_key(("key",), JitOptions())
    assert cache.use(key, use) is None
    assert "it cannot be used: invalid literal" in cache.stats().problems[0]
    cache.add(key, compile_ir(Source(record={"arena": 64})()))
    assert cache.use(key, use) == ObjectCache.at(tmp_path).use(key, use) == 64


def test_memory_is_not_for_what_leaves_no_room_for_anything_else(tmp_path, monkeypatch):
    cache = ObjectCache.at(tmp_path)
    monkeypatch.setattr(object_cache, "_MEMORY_LIMIT_BYTES", 1 << 20)
    cache.add("small", compile_ir(IrSource(TEXT)))
    cache.add("large", compile_ir(IrSource(TEXT, constants={"c": np.zeros(2 << 20, np.uint8)})))
    for _ in range(2):
        assert cache.use("small", len_of) == 0
        assert cache.use("large", len_of) == 2 << 20
    stats = cache.stats()
    assert (stats.misses, stats.memory_hits, stats.disk_hits) == (2, 2, 2)


def len_of(code: ObjectCode) -> int:
    return sum(data.size for data in code.constants.values())


def test_entries_say_what_they_are(tmp_path):
    source = IrSource(TEXT, summary=CodeSummary("m", 3))
    cache = ObjectCache.at(tmp_path)
    cache.get_or_compile(("key",), lambda: source)
    (entry,) = cache.directory.entries()
    assert (entry.summary.name, entry.summary.kernels) == ("m", 3)
    assert 0 < entry.summary.compile_ms < 60_000


def test_processor_decides_the_key(monkeypatch, tmp_path):
    """A home directory may be shared by machines that differ."""
    text = "processor\t: {0}\nmodel\t\t: {1}\ncpu MHz\t: {0}\nflags\t\t: {2}\n\nprocessor\t: 7\nflags\t\t: others\n"
    machines = [(text.format(n, *decisive), cache) for n, decisive, cache in _MACHINES] + [("none of that", (1, 2, 3))]
    keys = []
    for number, (processor, cache_bytes) in enumerate(machines):
        with monkeypatch.context() as patch:
            (tmp_path / str(number)).write_text(processor)
            patch.setattr(jit_options, "PROCESSOR", tmp_path / str(number))
            patch.setattr(jit_options, "host_cache_bytes", lambda cache_bytes=cache_bytes: cache_bytes)
            jit_options.host_fingerprint.cache_clear()
            keys.append(cache_key(("key",), JitOptions()))
    jit_options.host_fingerprint.cache_clear()
    assert len(set(keys)) == 5
    assert keys[0] == keys[3]


_MACHINES = (
    (0, ("EPYC", "avx2"), (1, 2, 3)),
    (0, ("EPYC", "avx2 fma"), (1, 2, 3)),
    (0, ("XEON", "avx2"), (1, 2, 3)),
    (1, ("EPYC", "avx2"), (1, 2, 3)),
    (0, ("EPYC", "avx2"), (4, 2, 3)),
)


def test_directory_that_others_may_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(CacheError, match=r"is refused: others may write to it \(mode 0777\)"):
        ObjectCache.at(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a directory away")
def test_directory_of_another_user_is_refused(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(CacheError, match="it belongs to user 12345"):
        ObjectCache.at(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a link away")
def test_link_to_a_directory_is_followed_only_when_it_is_ours(tmp_path):
    link = tmp_path / "link"
    (tmp_path / "cache").mkdir(mode=0o700)
    link.symlink_to(tmp_path / "cache")
    ObjectCache.at(link).get_or_compile(("key",), Source())
    assert entry_files(tmp_path / "cache")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(CacheError, match="is refused: it is a link of user 12345"):
        ObjectCache.at(link)


def test_directory_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="cannot be made: Not a directory"):
        ObjectCache.at(tmp_path / "file" / "cache")


def test_directory_that_vanishes_costs_only_the_cache(tmp_path):
    cache = ObjectCache.at(tmp_path / "cache")
    (tmp_path / "cache").rmdir()
    assert call(cache.get_or_compile(("key",), Source())) == 42
    assert "cannot be written" in cache.stats().problems[0]


FILL = """
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.backends.cpu.native.object_code import IrSource
cache = default_cache()
modules = []
for i in range(15):
    text = f"define i32 @answer() {{ ret i32 {i} }}"
    modules.append(cache.get_or_compile((text,), lambda: IrSource(text)))
stats = cache.stats()
print(stats.disk_hits + stats.misses, len(stats.problems), stats.directory)
"""


def test_processes_share_a_directory(tmp_path, run_python):
    cache = tmp_path / "cache"
    processes = [run_python(FILL, XLALITE_CACHE_DIR=str(cache)) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=20)
        assert output.split() == ["15", "0", str(cache)], errors
    assert len(entry_files(cache)) == 15
    assert not list(cache.glob("*.tmp"))
    assert all(CacheDirectory(cache, 1 << 20).load(entry.key) for entry in CacheDirectory(cache, 1 << 20).entries())


REPORT = """
from xlalite.backends.cpu.native.object_cache import default_cache
try:
    stats = default_cache().stats()
    print(stats.directory, *stats.problems)
except Exception as error:
    print(type(error).__name__, error)
"""


def report(run_python, expected_error: str = "", **environment: str) -> str:
    output, errors = run_python(REPORT, **environment).communicate(timeout=20)
    assert errors.startswith(expected_error) if expected_error else not errors
    return output


def test_environment_chooses_the_directory(tmp_path, run_python):
    (tmp_path / "file").write_text("")
    blocked = str(tmp_path / "file")
    home = str(tmp_path / "home")
    assert report(run_python, XDG_CACHE_HOME=home).strip() == f"{home}/xlalite/objects"
    assert report(run_python, XLALITE_CACHE="0", XLALITE_CACHE_DIR=blocked).startswith("None XLALITE_CACHE switches")
    assert report(run_python, XLALITE_CACHE_DIR=blocked).startswith("CacheError cache directory")
    assert report(run_python, XLALITE_CACHE="maybe").startswith("CacheError XLALITE_CACHE is 'maybe'")


def test_directory_that_cannot_be_used_is_one_warning_and_costs_only_the_cache(tmp_path, run_python):
    (tmp_path / "xlalite" / "objects").mkdir(parents=True)
    (tmp_path / "xlalite" / "objects").chmod(0o777)
    warning = "compiled code is kept in memory only: cache directory "
    output = report(run_python, warning, XDG_CACHE_HOME=str(tmp_path))
    assert "is refused: others may write to it (mode 0777)" in output
    (tmp_path / "file").write_text("")
    assert "Not a directory" in report(run_python, warning, XDG_CACHE_HOME=str(tmp_path / "file"))
