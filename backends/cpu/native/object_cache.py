"""Nothing is compiled twice: object code by content, in memory and on disk.

A key holds everything that decides the code: what the caller names (IR text, or a fingerprint of what the text is made
from), the options, the versions of llvmlite and LLVM, the CPU with its features. On a hit the IR is not even written.
Entries carry a small JSON record and the constants that were made on the way, so that an executable can be rebuilt
from the cache alone. Functions that many programs have, such as the tiles of products, are entries of their own, and so
are pieces of a program's kernels: when it changes, the others are not compiled again.

Environment: `XLALITE_CACHE_DIR` moves the directory, `XLALITE_CACHE=0` keeps everything in memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from xlalite.backends.cpu.native.cache_directory import CacheDirectory, make_private
from xlalite.backends.cpu.native.cache_file import FORMAT
from xlalite.backends.cpu.native.fork_lock import ForkLock, no_fork
from xlalite.backends.cpu.native.jit_options import JitOptions, host_fingerprint
from xlalite.backends.cpu.native.linker import LinkedModule, link
from xlalite.backends.cpu.native.object_code import CodeSummary, IrSource, ObjectCode
from xlalite.backends.cpu.native.once import once
from xlalite.hlo import log
from xlalite.hlo.digest import blake2b
from xlalite.hlo.errors import CacheError, XlaliteError
from xlalite.hlo.records import dataclass

_Used = TypeVar("_Used")

DEFAULT_SIZE_LIMIT_BYTES = 512 << 20
_MEMORY_LIMIT_BYTES = 32 << 20
_MAX_PROBLEMS = 32


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache has done since it was made.

    Attributes:
        memory_hits: Objects found in memory.
        disk_hits: Objects read from disk.
        misses: Objects compiled.
        loaded_bytes: Bytes read from disk.
        stored_bytes: Bytes written to disk.
        evicted_entries: Files removed to stay under the size limit.
        directory: Where the entries are, or None when everything stays in memory.
        problems: Why something was not stored, not believed, or kept in memory only.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    misses: int = 0
    loaded_bytes: int = 0
    stored_bytes: int = 0
    evicted_entries: int = 0
    directory: str | None = None
    problems: tuple[str, ...] = ()


class ObjectCache:
    """Object code by key; safe to use from several threads and processes."""

    def __init__(self, directory: CacheDirectory | None, problem: str | None = None) -> None:
        """Makes a cache over a directory; without one it lives in memory, and `problem` says why."""
        self._directory = directory
        self._lock = ForkLock()
        self._objects: OrderedDict[str, ObjectCode] = OrderedDict()
        self._object_bytes = 0
        self._counts = dict.fromkeys(("memory_hits", "disk_hits", "misses", "loaded_bytes", "stored_bytes"), 0)
        self._problems = [problem] if problem else []

    @staticmethod
    def at(path: str | os.PathLike[str], size_limit_bytes: int = DEFAULT_SIZE_LIMIT_BYTES) -> ObjectCache:
        """A cache in a directory named by the user.

        Raises:
            CacheError: The directory cannot be used; the message says why.
        """
        return ObjectCache(CacheDirectory(path, size_limit_bytes))

    @staticmethod
    def in_memory(reason: str | None = None) -> ObjectCache:
        """A cache that leaves nothing on disk."""
        return ObjectCache(None, reason)

    @property
    def directory(self) -> CacheDirectory | None:
        """The directory behind the cache, to list or clear it."""
        return self._directory

    def get_or_compile(
        self,
        key_parts: Sequence[str | bytes],
        make_ir: Callable[[], IrSource],
        options: JitOptions | None = None,
        imports: Mapping[str, int] | None = None,
    ) -> LinkedModule:
        """The code of a key, linked; compiled only when no cache has it.

        Args:
            key_parts: Everything that decides the IR, for instance the IR itself or a fingerprint of its source.
            make_ir: Writes the IR; called on a miss only.
            options: How to compile; part of the key.
            imports: Addresses of functions that the code calls by name.
        """
        options = options or JitOptions()
        key = cache_key(key_parts, options)
        module = self.use(key, lambda code: link([code], imports))
        if module is None:
            code = _compile(make_ir, options)
            self.add(key, code)
            module = link([code], imports)
        return module

    def use(self, key: str, use: Callable[[ObjectCode], _Used]) -> _Used | None:
        """What `use` makes of the object code of a key; None when no cache has it.

        Code that `use` fails on counts as absent, whatever is wrong with it.
        """
        found = self._find(key)
        if found is None:
            return None
        try:
            return use(found)
        except (XlaliteError, KeyError, TypeError, ValueError) as error:
            self._forget(key, f"cache entry {key} was removed: it cannot be used: {error}")
            return None

    def add(self, key: str, code: ObjectCode) -> None:
        """Keeps code that was compiled because no cache had it."""
        self._count("misses", 1)
        self._store(key, code)
        self._remember(key, code)

    def stats(self) -> CacheStats:
        """What the cache has done so far."""
        with self._lock:
            return CacheStats(
                **self._counts,
                evicted_entries=self._directory.evicted_entries if self._directory else 0,
                directory=self._directory.path if self._directory else None,
                problems=tuple(self._problems),
            )

    def _find(self, key: str) -> ObjectCode | None:
        with self._lock:
            code = self._objects.get(key)
            if code is not None:
                self._objects.move_to_end(key)
                self._counts["memory_hits"] += 1
                return code
        code = self._load(key)
        if code is not None:
            self._remember(key, code)
        return code

    def _load(self, key: str) -> ObjectCode | None:
        if self._directory is None:
            return None
        try:
            code = self._directory.load(key)
        except CacheError as error:
            self._note(str(error))
            return None
        if code is not None:
            self._count("disk_hits", 1)
            self._count("loaded_bytes", code.size_bytes)
        return code

    def _store(self, key: str, code: ObjectCode) -> None:
        if self._directory is None:
            return
        try:
            self._count("stored_bytes", self._directory.store(key, code))
        except CacheError as error:
            self._note(str(error))

    def _remember(self, key: str, code: ObjectCode) -> None:
        """Keeps code in memory, but for what would leave no room for anything else."""
        if self._directory is not None and code.size_bytes > _MEMORY_LIMIT_BYTES:
            return
        with self._lock:
            if key in self._objects:
                return
            self._objects[key] = code
            self._object_bytes += code.size_bytes
            while self._object_bytes > _MEMORY_LIMIT_BYTES and len(self._objects) > 1:
                _, oldest = self._objects.popitem(last=False)
                self._object_bytes -= oldest.size_bytes

    def _forget(self, key: str, problem: str) -> None:
        with self._lock:
            code = self._objects.pop(key, None)
            if code is not None:
                self._object_bytes -= code.size_bytes
        if self._directory is not None:
            self._directory.remove(key)
        self._note(problem)

    def _count(self, name: str, amount: int) -> None:
        with self._lock:
            self._counts[name] += amount

    def _note(self, problem: str) -> None:
        with self._lock:
            if len(self._problems) < _MAX_PROBLEMS and problem not in self._problems:
                self._problems.append(problem)


@dataclass(frozen=True, slots=True)
class SharedImages:
    """The object code of modules that programs share, or what else a text decides, in a cache.

    Attributes:
        cache: Where it is kept.
        options: How it is compiled.
        name: What it is, for people.
    """

    cache: ObjectCache
    options: JitOptions
    name: str = "(shared)"

    def find(self, text: str) -> bytes | None:
        """The object code of a module, if it was kept."""
        return self.cache.use(self._key(text), lambda code: code.image)

    def keep(self, text: str, image: bytes, compile_ms: float) -> None:
        """Takes object code that was made in so many milliseconds."""
        summary = CodeSummary(self.name, compile_ms=round(compile_ms, 3))
        self.cache.add(self._key(text), ObjectCode(image, (), summary=summary))

    def _key(self, text: str) -> str:
        return cache_key(("shared", text), self.options)


def _compile(make_ir: Callable[[], IrSource], options: JitOptions) -> ObjectCode:
    with no_fork:
        from xlalite.backends.cpu.native.jit import compile_ir  # brings LLVM

    start = time.perf_counter()
    code = compile_ir(make_ir(), options)
    summary = dataclasses.replace(code.summary, compile_ms=_milliseconds_since(start))
    return dataclasses.replace(code, summary=summary)


def _milliseconds_since(start: float) -> float:
    return round(1e3 * (time.perf_counter() - start), 3)


def cache_key(key_parts: Sequence[str | bytes], options: JitOptions) -> str:
    """The name of an entry: a digest of the parts, the options, and the compiler and machine they are for."""
    digest = blake2b(digest_size=20)
    for part in (f"format {FORMAT}", host_fingerprint(), options.key(), *key_parts):
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@once
def default_cache() -> ObjectCache:
    """The cache of this process, as the environment and the user's cache directory have it.

    Raises:
        CacheError: `XLALITE_CACHE_DIR` names a directory that cannot be used, or `XLALITE_CACHE` is neither on nor off.
    """
    if not _switched_on(os.environ.get("XLALITE_CACHE", "1")):
        return ObjectCache.in_memory("XLALITE_CACHE switches the disk off")
    named = os.environ.get("XLALITE_CACHE_DIR")
    if named:
        return ObjectCache.at(named)
    parent = _user_cache_path()
    with contextlib.suppress(OSError):
        make_private(parent)
    try:
        return ObjectCache.at(os.path.join(parent, "objects"))
    except CacheError as error:
        log.warning("compiled code is kept in memory only: %s (XLALITE_CACHE_DIR names another directory)", error)
        return ObjectCache.in_memory(str(error))


def _user_cache_path() -> str:
    if sys.platform != "linux":
        import platformdirs

        return platformdirs.user_cache_dir("xlalite", appauthor=False)
    # As `platformdirs` has it, which takes some milliseconds to import.
    caches = os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
    return os.path.join(os.path.expanduser(caches), "xlalite")


def _switched_on(value: str) -> bool:
    word = value.strip().lower()
    if word in ("1", "on", "true", "yes", ""):
        return True
    if word in ("0", "off", "false", "no"):
        return False
    raise CacheError(f"XLALITE_CACHE is {value!r}; expected 0 or 1")
