"""The stages of a compilation as text: what tools show, and what executables show of themselves."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from xlalite.backends.base import CompileOptions, StageOutput, checked_stage
from xlalite.backends.cpu.compilation.compiled_module import CompiledModule
from xlalite.backends.cpu.native.jit import emit_assembly, optimized_ir
from xlalite.hlo.ir.module import HloModule
from xlalite.passes.core.instrumentation import Instrumentation

STAGES = MappingProxyType(
    {
        "hlo-before-optimizations": "HLO as it was given",
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
    """The module, which is left as it is, at one of `STAGES`; nothing is linked and no cache is asked.

    Raises:
        ValueError: There is no such stage.
        VerificationError: The module is not valid.
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    name = checked_stage(stage, STAGES, "cpu")
    compiled = CompiledModule(module, options)
    with compiled.recording():
        if name == "hlo-before-optimizations":
            return StageOutput(_text(compiled.given, options))
        if name == "hlo":
            unscheduled = _unscheduled(compiled, compiled.instrumentation)
            records = tuple(compiled.instrumentation.records)
            return StageOutput(_text(unscheduled, options), tuple(unscheduled.decisions), records)
        text = _SHOWN[name](compiled)
    decisions = compiled.optimized.decisions
    if name in _WITH_CODE:
        decisions = [*decisions, *compiled.emitted.decisions]
    return StageOutput(text, tuple(decisions), tuple(compiled.instrumentation.records))


def text_at(stage: str, compiled: CompiledModule) -> str:
    """What `compile_to` gives, of a module that was compiled already.

    Raises:
        ValueError: There is no such stage.
    """
    return _SHOWN[checked_stage(stage, STAGES, "cpu")](compiled)


def _unscheduled(compiled: CompiledModule, instrumentation: Instrumentation) -> HloModule:
    from xlalite.backends.cpu.compilation.pipeline import cpu_unscheduled_pipeline

    module = compiled.given.clone()
    cpu_unscheduled_pipeline(optimize=compiled.options.optimize).run(module, instrumentation)
    return module


def _text(module: HloModule, options: CompileOptions) -> str:
    return module.to_string(options.debug.text_preset)


_SHOWN: dict[str, Callable[[CompiledModule], str]] = {
    "hlo-before-optimizations": lambda compiled: _text(compiled.given, compiled.options),
    "hlo": lambda compiled: _text(_unscheduled(compiled, Instrumentation(compiled.options.debug)), compiled.options),
    "hlo-backend": lambda compiled: _text(compiled.optimized, compiled.options),
    "buffer-assignment": lambda compiled: compiled.assignment.report,
    "llvm-before-optimizations": lambda compiled: compiled.emitted.text,
    "llvm-after-optimizations": lambda compiled: optimized_ir(compiled.emitted.text, compiled.jit_options),
    "llvm": lambda compiled: optimized_ir(compiled.emitted.text, compiled.jit_options),
    "asm": lambda compiled: emit_assembly(compiled.emitted.text, compiled.jit_options),
}
_WITH_CODE = ("llvm-before-optimizations", "llvm-after-optimizations", "llvm", "asm")
