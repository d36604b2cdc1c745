"""A cache as one file: what travels, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from xlalite.backends.cpu.native import cache_export
from xlalite.backends.cpu.native.cache_directory import CacheDirectory
from xlalite.backends.cpu.native.cache_export import export_entries, import_entries
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode
from xlalite.hlo.errors import CacheError


@pytest.fixture
def full(tmp_path):
    directory = CacheDirectory(tmp_path / "full", 1 << 20)
    constants = {"c": np.arange(70, dtype=np.uint8)}
    directory.store("aa", ObjectCode(b"code", ("f",), {"arena": 64}, constants, CodeSummary("m", 1)))
    directory.store("bb", ObjectCode(b"", ()))
    return directory


@pytest.fixture
def empty(tmp_path):
    return CacheDirectory(tmp_path / "empty", 1 << 20)


def test_entries_arrive_as_they_were(full, empty, tmp_path):
    file = tmp_path / "file"
    assert export_entries(full, file) == 2
    assert import_entries(empty, file) == 2
    for key in ("aa", "bb"):
        (left,), (arrived,) = (tuple(Path(one.path).glob(f"{key}.*")) for one in (full, empty))
        assert left.read_bytes() == arrived.read_bytes()
    assert import_entries(empty, file) == 2  # once more


def test_an_empty_cache_travels(empty, full, tmp_path):
    assert export_entries(empty, tmp_path / "file") == 0
    assert import_entries(full, tmp_path / "file") == 0
    assert len(full.entries()) == 2


def test_what_this_version_cannot_use_stays(full, tmp_path):
    (Path(full.path) / "cc.xlo1").write_bytes(b"an older format")
    (damaged,) = Path(full.path).glob("bb.*")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert export_entries(full, tmp_path / "file") == 1


def test_every_single_wrong_byte_is_seen(full, empty, tmp_path):
    file = tmp_path / "file"
    export_entries(full, file)
    good = file.read_bytes()
    for place in range(len(good)):
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(CacheError):
            import_entries(empty, file)
    for length in range(0, len(good), 7):
        file.write_bytes(good[:length])
        with pytest.raises(CacheError, match=r"is damaged|is no exported cache"):
            import_entries(empty, file)
    assert not empty.entries()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("host_fingerprint", "was exported for another processor or llvmlite: .*; this is llvmlite 0"),
        ("code_version", "was exported by another version of xlalite, NumPy or ml_dtypes; export it anew"),
    ],
)
def test_a_cache_of_another_machine_or_version_is_refused(full, empty, tmp_path, monkeypatch, name, message):
    monkeypatch.setattr(cache_export, name, lambda: "llvmlite 1")
    export_entries(full, tmp_path / "file")
    monkeypatch.setattr(cache_export, name, lambda: "llvmlite 0")
    with pytest.raises(CacheError, match=message):
        import_entries(empty, tmp_path / "file")
    assert not empty.entries()


@pytest.mark.parametrize("key", ["../aa", "", "AA", 5, None])
def test_keys_that_are_none_are_refused(empty, full, tmp_path, monkeypatch, key):
    written = json.dumps
    monkeypatch.setattr(json, "dumps", lambda table: written({**table, "entries": [[key, 10]]}))
    export_entries(empty, tmp_path / "file")
    with pytest.raises(CacheError, match="is damaged: its table"):
        import_entries(full, tmp_path / "file")


def test_a_file_that_cannot_be_replaced_leaves_nothing(full, tmp_path):
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="directory"):
        export_entries(full, tmp_path / "directory")
    assert not list(tmp_path.glob("*.tmp"))
