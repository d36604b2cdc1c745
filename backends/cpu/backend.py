"""The CPU backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xlalite.backends.base import Backend, CachedCode, CodeCache, CompileOptions, Executable, StageOutput
from xlalite.backends.cpu.compilation.compile import compile_request
from xlalite.backends.cpu.compilation.interface import Interface
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.backends.cpu.native.cache_directory import CacheDirectory
from xlalite.backends.cpu.native.object_cache import ObjectCache, default_cache
from xlalite.backends.watch import wants_clocks
from xlalite.hlo.errors import CacheError
from xlalite.hlo.garbage import few_collections
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.extensions import registered_passes

if TYPE_CHECKING:
    from pathlib import Path

    from xlalite.passes.core.pipeline import Pipeline


class ObjectCodeCache(CodeCache):
    """A view of the cache of object code on disk."""

    def __init__(self, cache: ObjectCache) -> None:
        self._cache = cache

    @property
    def location(self) -> str:
        """The directory, or why there is none."""
        directory = self._cache.directory
        if directory is not None:
            return directory.path
        return f"in memory only: {'; '.join(self._cache.stats().problems)}"

    @property
    def size_limit_bytes(self) -> int:
        """The limit of the directory."""
        return self._cache.directory.size_limit_bytes if self._cache.directory is not None else 0

    def entries(self) -> Sequence[CachedCode]:
        """The files of the directory."""
        if self._cache.directory is None:
            return ()
        return tuple(
            CachedCode(
                entry.key,
                entry.size_bytes,
                entry.last_use,
                entry.summary.name,
                entry.summary.kernels,
                entry.summary.compile_ms,
            )
            for entry in self._cache.directory.entries()
        )

    def clear(self) -> None:
        """Removes the files."""
        if self._cache.directory is not None:
            self._cache.directory.clear()

    def export_to(self, path: Path) -> int:
        """The files of the directory as one."""
        from xlalite.backends.cpu.native.cache_export import export_entries

        return export_entries(self._directory(), path)

    def import_from(self, path: Path) -> int:
        """Files for the directory out of one."""
        from xlalite.backends.cpu.native.cache_export import import_entries

        return import_entries(self._directory(), path)

    def _directory(self) -> CacheDirectory:
        if self._cache.directory is None:
            raise CacheError(f"compiled code is kept {self.location}")
        return self._cache.directory


class CpuBackend(Backend):
    """Compiles modules to native code of this machine."""

    @property
    def name(self) -> str:
        """`cpu`."""
        return "cpu"

    @few_collections
    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Verifies, optimises and compiles a module, or finds its code in the cache."""
        if wants_clocks():
            options = replace(options, profile=True)
        request = CompileRequest.of(module, options)
        return CpuExecutable(Interface.of(request), compile_request(request), request)

    def load_executable(self, data: bytes) -> Executable:
        """The executable that bytes hold; no pass runs, and nothing is compiled."""
        return CpuExecutable.loaded(data)

    def code_cache(self) -> CodeCache:
        """The cache of object code, as the environment has it.

        Raises:
            CacheError: It cannot be used.
        """
        return ObjectCodeCache(default_cache())

    @property
    def passes(self) -> Mapping[str, type[HloPass]]:
        """All, those that are made for a target, too."""
        from xlalite.backends.cpu.compilation.pass_table import CPU_PASSES

        return {**CPU_PASSES, **registered_passes()}

    def pipeline(self, options: CompileOptions) -> Pipeline:
        """All passes up to code generation."""
        from xlalite.backends.codegen.llvm import TargetInfo
        from xlalite.backends.cpu.compilation.pipeline import cpu_pipeline

        return cpu_pipeline(options, TargetInfo.host(options.debug.cpu_max_isa))

    @property
    def stages(self) -> Mapping[str, str]:
        """From HLO to assembly."""
        from xlalite.backends.cpu.compilation.stages import STAGES

        return {name: stage.shows for name, stage in STAGES.items()}

    def compile_to(self, stage: str, module: HloModule, options: CompileOptions) -> StageOutput:
        """The module at a stage."""
        from xlalite.backends.cpu.compilation.stages import compile_to

        return compile_to(stage, CompileRequest.of(module, options))
