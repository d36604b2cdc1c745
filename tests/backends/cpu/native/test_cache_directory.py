"""Files of the cache: what they hold, how damage is seen, which go when there is no room."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from xlalite.backends.cpu.native.cache_directory import CacheDirectory
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode
from xlalite.hlo.errors import CacheError


def entry_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix.startswith(".xlo"))


def test_every_single_wrong_byte_is_seen(tmp_path):
    directory = CacheDirectory(tmp_path, 1 << 20)
    constants = {"c": np.arange(70, dtype=np.uint8)}
    directory.store("aa", ObjectCode(b"code", ("f",), {"arena": 64}, constants, CodeSummary("m", 1)))
    (file,) = entry_files(tmp_path)
    good = file.read_bytes()
    for place in range(len(good)):
        for wrong in (good[place] ^ 1, good[place] ^ 0x80):
            file.write_bytes(good[:place] + bytes([wrong]) + good[place + 1 :])
            assert directory.entries()[0].key == "aa"  # a listing looks at less, and never fails
            with pytest.raises(CacheError, match="was removed"):
                directory.load("aa")
        file.write_bytes(good[:place])
        with pytest.raises(CacheError, match="was removed"):
            directory.load("aa")
    assert not file.exists()


def test_constants_travel_as_bytes_at_aligned_addresses(tmp_path):
    constants = {"a": np.arange(100, dtype=np.uint8), "none": np.zeros(0, np.uint8), "b": np.full(1 << 20, 7, np.uint8)}
    directory = CacheDirectory(tmp_path, 4 << 20)
    size = directory.store("aa", ObjectCode(b"code", ("f",), constants=constants))
    assert sum(data.size for data in constants.values()) < size < (1 << 20) + 1000
    assert directory.entries()[0].size_bytes == size
    found = directory.load("aa").constants
    assert list(found) == list(constants)
    for name, data in found.items():
        assert data.ctypes.data % 64 == 0
        np.testing.assert_array_equal(data, constants[name])
    data = bytearray(entry_files(tmp_path)[0].read_bytes())
    data[-1] ^= 1
    entry_files(tmp_path)[0].write_bytes(data)
    with pytest.raises(CacheError, match="it is damaged"):
        directory.load("aa")


def test_code_larger_than_the_cache_is_not_stored_and_drives_nothing_out(tmp_path):
    directory = CacheDirectory(tmp_path, 10_000)
    directory.store("aa", ObjectCode(bytes(100), ("f",)))
    with pytest.raises(CacheError, match="code of big is not kept: its 20000 bytes are more than the cache may hold"):
        directory.store(
            "bb", ObjectCode(b"", ("f",), constants={"c": np.zeros(20_000, np.uint8)}, summary=CodeSummary("big"))
        )
    assert [entry.key for entry in directory.entries()] == ["aa"]


def test_files_of_other_versions_count_and_go(tmp_path):
    directory = CacheDirectory(tmp_path, 10_000)
    old = tmp_path / "00ff.xlo1"
    old.write_bytes(bytes(9000))
    os.utime(old, (1000, 1000))
    assert [(entry.key, entry.summary) for entry in directory.entries()] == [("00ff", CodeSummary())]
    directory.store("aa", ObjectCode(bytes(5000), ("f",)))
    assert [entry.key for entry in directory.entries()] == ["aa"]


def test_entries_not_used_for_longest_go_first(tmp_path):
    directory = CacheDirectory(tmp_path, size_limit_bytes=10_000)
    now = time.time()
    for i in range(4):
        directory.store(f"{i:02d}", ObjectCode(bytes(2000), ("f",)))
        os.utime(entry_files(tmp_path)[i], (now - 1000 + i, now - 1000 + i))
    assert directory.load("00") is not None  # 01 is now the oldest
    directory.store("04", ObjectCode(bytes(2000), ("f",)))
    assert [entry.key for entry in directory.entries()] == ["02", "03", "00", "04"]
    assert directory.evicted_entries == 1


def test_leftovers_of_killed_processes_go(tmp_path):
    old, new, foreign = (tmp_path / name for name in ("old.xlo.tmp", "new.xlo.tmp", "of somebody else.tmp"))
    old.write_text("")
    new.write_text("")
    foreign.write_text("")
    os.utime(old, (0, 0))
    os.utime(foreign, (0, 0))
    CacheDirectory(tmp_path, 10_000).store("00", ObjectCode(b"", ()))
    assert not old.exists()
    assert new.exists()
    assert foreign.exists()


def test_entries_are_listed_removed_and_cleared(tmp_path):
    directory = CacheDirectory(tmp_path, 10_000)
    for key in ("aa", "bb", "cc"):
        directory.store(key, ObjectCode(b"code", ()))
    directory.remove("bb")
    directory.remove("bb")
    assert sorted(entry.key for entry in directory.entries()) == ["aa", "cc"]
    directory.clear()
    assert directory.entries() == ()
    assert directory.load("aa") is None
