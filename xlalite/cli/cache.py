"""`xlalite cache`: the compiled code that outlives processes."""

from __future__ import annotations

import dataclasses
import datetime
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from xlalite.backends.base import CodeCache, get_backend
from xlalite.cli.arguments import CommandParser, add_platform
from xlalite.cli.errors import UsageError

_NAME_WIDTH = 34
"""Of the column of names; lines have 80 characters."""

_EPILOG = """\
actions:
  ls      every entry: module, kernels, time to compile, size, last use
  stats   where it is, how many entries, how large, how large it may become
  clear   remove all entries
  export  write all entries into FILE, for machines with the same processor
          and the same xlalite
  import  take over the entries of FILE, which is then trusted like a program

XLALITE_CACHE_DIR moves the cache, XLALITE_CACHE=0 keeps code in memory only.
"""


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    parser = CommandParser(
        "cache",
        "Looks after the cache of compiled code.",
        "(ls | stats | clear | export FILE | import FILE) [--json]",
        _EPILOG,
    )
    parser.add_argument("action", choices=(*_ACTIONS, *_ACTIONS_WITH_FILE), help="what to do")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="export, import: the file")
    parser.add_argument("--json", action="store_true", help="ls: print the entries as JSON, with their keys")
    add_platform(parser)
    arguments, _ = parser.read(words)
    cache = get_backend(arguments.platform).code_cache()
    if cache is None:
        raise UsageError(f"platform {arguments.platform} keeps no compiled code")
    if (arguments.file is not None) != (arguments.action in _ACTIONS_WITH_FILE):
        raise UsageError(f"cache {arguments.action} takes {'no' if arguments.file else 'a'} file")
    if arguments.json:
        if arguments.action != "ls":
            raise UsageError(f"cache {arguments.action} has no --json")
        print(json.dumps([dataclasses.asdict(entry) for entry in cache.entries()], indent=1))
    elif arguments.file is not None:
        _ACTIONS_WITH_FILE[arguments.action](cache, arguments.file)
    else:
        _ACTIONS[arguments.action](cache)
    return 0


def shown_bytes(size: float) -> str:
    """A size for people: `12.3 KiB`."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def _list(cache: CodeCache) -> None:
    entries, now = cache.entries(), time.time()
    if entries:
        print(f"{'module':{_NAME_WIDTH}} {'kernels':>8} {'compiled in':>12} {'size':>11} {'last use':>11}")
    for entry in entries:
        compiled = f"{entry.compile_ms:.0f} ms" if entry.name else ""
        kernels = str(entry.kernels) if entry.name else ""
        print(
            f"{_shown_name(entry.name):{_NAME_WIDTH}} {kernels:>8} {compiled:>12} "
            f"{shown_bytes(entry.size_bytes):>11} {_shown_age(now - entry.last_use):>11}"
        )


def _shown_name(name: str) -> str:
    """A name in one line of the column's width; `?` when there is none."""
    shown = (name if name.isprintable() else ascii(name)) or "?"
    return shown if len(shown) <= _NAME_WIDTH else f"{shown[: _NAME_WIDTH - 3]}..."


def _shown_age(seconds: float) -> str:
    """How long ago something was: `5 min ago`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return "just now"


def _measure(cache: CodeCache) -> None:
    entries = cache.entries()
    total = sum(entry.size_bytes for entry in entries)
    print(f"location  {cache.location}")
    print(f"entries   {len(entries)}")
    print(f"size      {shown_bytes(total)} of at most {shown_bytes(cache.size_limit_bytes)}")
    if entries:
        print(f"last use  from {_shown_time(entries[0].last_use)} to {_shown_time(entries[-1].last_use)}")


def _clear(cache: CodeCache) -> None:
    entries = cache.entries()
    cache.clear()
    left = len(cache.entries())
    print(f"removed {len(entries) - left} entries, {shown_bytes(sum(entry.size_bytes for entry in entries))}")


def _export(cache: CodeCache, path: Path) -> None:
    count = cache.export_to(path)
    print(f"exported {count} entries, {shown_bytes(path.stat().st_size)}, to {path}")


def _import(cache: CodeCache, path: Path) -> None:
    print(f"imported {cache.import_from(path)} entries from {path}")


def _shown_time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="minutes")


_ACTIONS: dict[str, Callable[[CodeCache], None]] = {"ls": _list, "stats": _measure, "clear": _clear}
_ACTIONS_WITH_FILE: dict[str, Callable[[CodeCache, Path], None]] = {"export": _export, "import": _import}
