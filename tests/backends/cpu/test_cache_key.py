"""The stamp of the compiler's sources follows their contents, and nothing else."""

import os
from pathlib import Path

from xlalite.backends.cpu.code_version import code_version, sources_digest


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
