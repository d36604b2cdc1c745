"""Compilation up to a stage, for tools that show it; nothing is linked and no cache is asked."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from xlalite.backends.base import CompileOptions, StageOutput
from xlalite.backends.cpu.compiled_module import CompiledModule
from xlalite.backends.cpu.native.jit import emit_assembly, optimised_ir
from xlalite.hlo.module import HloModule

STAGES = MappingProxyType(
    {
        "hlo": "HLO after the optimising passes, fused, not yet scheduled",
        "hlo-backend": "HLO that code is made of: scheduled, with all copies",
        "buffer-assignment": "which bytes every array lies in",
        "llvm-before-optimizations": "LLVM IR as emitted",
        "llvm-after-optimizations": "LLVM IR after LLVM's passes",
        "llvm": "the same as llvm-after-optimizations",
        "asm": "assembly of this machine",
    }
)
"""Names of the stages with what they show."""


def compile_to(stage: str, module: HloModule, options: CompileOptions) -> StageOutput:
    """The module at one of `STAGES`, which is left as it is.

    Raises:
        VerificationError: The module is not valid.
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    compiled = CompiledModule(module, options)
    with compiled.recording():
        if stage == "hlo":
            return _unscheduled(compiled)
        text = _SHOWN[stage](compiled)
    decisions = compiled.optimized.decisions
    if stage in _WITH_CODE:
        decisions = [*decisions, *compiled.emitted.decisions]
    return StageOutput(text, tuple(decisions), tuple(compiled.instrumentation.records))


_SHOWN: dict[str, Callable[[CompiledModule], str]] = {
    "hlo-backend": lambda compiled: compiled.optimized.to_string(compiled.options.debug.text_preset),
    "buffer-assignment": lambda compiled: compiled.assignment.report,
    "llvm-before-optimizations": lambda compiled: compiled.emitted.text,
    "llvm-after-optimizations": lambda compiled: optimised_ir(compiled.emitted.text, compiled.jit_options),
    "llvm": lambda compiled: optimised_ir(compiled.emitted.text, compiled.jit_options),
    "asm": lambda compiled: emit_assembly(compiled.emitted.text, compiled.jit_options),
}
_WITH_CODE = ("llvm-before-optimizations", "llvm-after-optimizations", "llvm", "asm")


def _unscheduled(compiled: CompiledModule) -> StageOutput:
    from xlalite.backends.cpu.pipeline import cpu_unscheduled_pipeline

    module = compiled.given.clone()
    cpu_unscheduled_pipeline(optimize=compiled.options.optimize).run(module, compiled.instrumentation)
    text = module.to_string(compiled.options.debug.text_preset)
    return StageOutput(text, tuple(module.decisions), tuple(compiled.instrumentation.records))
