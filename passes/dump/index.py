"""Keeps `index.json` and `index.html` of dump directories up to date while a process compiles, and when it ends."""

from __future__ import annotations

import atexit
import json
import threading
import time
from pathlib import Path

from xlalite.hlo import log
from xlalite.hlo.errors import DumpError
from xlalite.passes.dump.records import read_contents, write_atomically

INDEX_JSON = "index.json"
INDEX_HTML = "index.html"

# The index is written again once the pause since the last time is this many times what writing took: 5 % of the time.
_PAUSE = 20.0


def write_index(directory: Path) -> int:
    """Writes both indexes of a directory anew, and says how many modules they list.

    Raises:
        DumpError: The directory cannot be read or written.
    """
    # Needed only where something is dumped.
    from xlalite.passes.dump.page import render_page

    contents = read_contents(directory)
    write_atomically(directory / INDEX_JSON, json.dumps(contents.as_json(), indent=1) + "\n")
    write_atomically(directory / INDEX_HTML, render_page(contents, directory))
    return len(contents.modules)


def note_change(directory: Path) -> None:
    """Says that a directory has new files: its indexes follow soon, at the end of the process at the latest.

    Raises:
        DumpError: The directory cannot be read or written.
    """
    with _lock:
        upkeep = _upkeeps.setdefault(directory.absolute(), _Upkeep())
        upkeep.is_stale = True
        if time.perf_counter() - upkeep.written_at >= _PAUSE * upkeep.cost:
            upkeep.write(directory.absolute())


def warn_of(error: DumpError, directory: str | Path) -> None:
    """Says that a directory of dumps cannot be used, the first time that it happens; whoever dumps goes on."""
    with _lock:
        path = Path(directory).absolute()
        if path in _failing:
            return
        _failing.add(path)
    log.warning("%s; the program goes on, its dumps are not complete", error)


class _Upkeep:
    """When the indexes of a directory were written, and whether they should be again."""

    __slots__ = ("cost", "is_stale", "written_at")

    def __init__(self) -> None:
        self.cost = 0.0
        self.written_at = 0.0
        self.is_stale = False

    def write(self, directory: Path) -> None:
        start = time.perf_counter()
        write_index(directory)
        self.written_at = time.perf_counter()
        self.cost = self.written_at - start
        self.is_stale = False


_upkeeps: dict[Path, _Upkeep] = {}
_failing: set[Path] = set()
_lock = threading.Lock()


@atexit.register
def _write_what_is_stale() -> None:
    for directory, upkeep in _upkeeps.items():
        if upkeep.is_stale and directory.is_dir():
            try:
                upkeep.write(directory)
            except DumpError as error:
                warn_of(error, directory)
