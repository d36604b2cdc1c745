"""The CPU backend."""

from __future__ import annotations

from collections.abc import Mapping

from xlalite.backends.base import Backend, CompileOptions, Executable, StageOutput
from xlalite.backends.cpu.compiled_module import CompiledModule
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.backends.cpu.stages import STAGES, compile_to
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

    @property
    def stages(self) -> Mapping[str, str]:
        """From HLO to assembly."""
        return STAGES

    def compile_to(self, stage: str, module: HloModule, options: CompileOptions) -> StageOutput:
        """The module at a stage."""
        if stage not in STAGES:
            raise ValueError(f"the cpu backend has no stage {stage!r}, expected one of {', '.join(STAGES)}")
        return compile_to(stage, module, options)
