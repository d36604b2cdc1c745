"""`xlalite cache`: the compiled code that outlives processes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from xlalite.backends.base import CodeCache, get_backend
from xlalite.cli.arguments import CommandParser, add_platform
from xlalite.cli.errors import UsageError

_EPILOG = """\
actions:
  ls      every entry: last use, size, key
  stats   where it is, how many entries, how large, how large it may become
  clear   remove all entries

XLALITE_CACHE_DIR moves the cache, XLALITE_CACHE=0 keeps code in memory only.
"""


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    parser = CommandParser(
        "cache", "Lists, measures or clears the cache of compiled code.", "(ls | stats | clear)", _EPILOG
    )
    parser.add_argument("action", choices=tuple(_ACTIONS), help="what to do")
    add_platform(parser)
    arguments, _ = parser.read(words)
    cache = get_backend(arguments.platform).code_cache()
    if cache is None:
        raise UsageError(f"platform {arguments.platform} keeps no compiled code")
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
    for entry in cache.entries():
        print(f"{_shown_time(entry.last_use)}  {shown_bytes(entry.size_bytes):>10}  {entry.key}")


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


def _shown_time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().isoformat(sep=" ", timespec="minutes")


_ACTIONS: dict[str, Callable[[CodeCache], None]] = {"ls": _list, "stats": _measure, "clear": _clear}
