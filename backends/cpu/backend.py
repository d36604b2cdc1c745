"""The CPU backend."""

from __future__ import annotations

from xlalite.backends.base import Backend, CompileOptions, Executable
from xlalite.backends.cpu.compiled_module import CompiledModule
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.hlo.module import HloModule


class CpuBackend(Backend):
    """Compiles modules to native code of this machine."""

    @property
    def name(self) -> str:
        """`cpu`."""
        return "cpu"

    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Verifies, optimises and compiles a module."""
        return CpuExecutable(CompiledModule(module, options))
