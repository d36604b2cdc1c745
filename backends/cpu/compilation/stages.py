"""The stages of a compilation: one list of what tools, executables and dumps show, under one set of names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING

from xlalite.backends.base import StageOutput, checked_stage
from xlalite.backends.cpu.compilation.compilation import Compilation, Step
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.native.jit import CodeForm
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.passes.dump.dumper import ModuleDumper


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage.

    Attributes:
        name: What everybody calls it.
        shows: What it shows, for people.
        step: The step that it is there after.
        content: What it shows of a compilation that has come to the step.
        suffix: How the name of its file in a dump ends, as XLA has it; empty for what is not dumped.
        form: What LLVM must make for it.
    """

    name: str
    shows: str
    step: Step
    content: Callable[[Compilation], str | bytes]
    suffix: str = ""
    form: CodeForm = CodeForm.NONE


def compile_to(name: str, request: CompileRequest) -> StageOutput:
    """The module at one of `STAGES`, by any of its names; nothing is linked and no cache is asked.

    Raises:
        ValueError: There is no such stage.
        VerificationError: The module is not valid.
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    stage = STAGES[checked_stage(name, STAGES, "cpu")]
    compilation, content = run_to(stage, request)
    assert isinstance(content, str), "stages with a name for users are texts"
    return StageOutput(content, compilation.decisions, tuple(compilation.instrumentation.records))


def run_to(stage: Stage, request: CompileRequest) -> tuple[Compilation, str | bytes]:
    """A compilation that has come to a stage, and the stage's content; each step is dumped if that is wanted."""
    dumper = _dumper(request)
    compilation = Compilation(request, CodeForm.ALL if dumper else stage.form, (dumper,) if dumper else ())
    with dumper or nullcontext():
        for step in compilation.steps():
            if dumper:
                dumper.end_phase(step.value)
                _dump(step, compilation, dumper)
                dumper.end_phase("dumps")
            if step is stage.step:
                break
        return compilation, stage.content(compilation)


def _schedule_report(compilation: Compilation) -> str:
    from xlalite.passes.memory.schedule_report import schedule_report

    return schedule_report(compilation.optimized)


def _dumper(request: CompileRequest) -> ModuleDumper | None:
    if request.options.debug.dump_to is None:
        return None
    from xlalite.passes.dump.dumper import module_dumper

    return module_dumper(request.options.debug, request.given.name)


def _dump(step: Step, compilation: Compilation, dumper: ModuleDumper) -> None:
    """Writes what the step has made."""
    if step is Step.GIVEN:
        dumper.write_given(compilation.request.given)
    for stage in (*STAGES.values(), OBJECT):
        if stage.step is step and stage.suffix:
            dumper.write(stage.name, stage.suffix, stage.content(compilation))
            if stage.name == "hlo-backend":
                dumper.write_forms(compilation.optimized, stage.suffix)
    if step in (Step.OPTIMIZED, Step.EMITTED):
        dumper.write_decisions(compilation.decisions)


def _text(module: HloModule, compilation: Compilation) -> str:
    return module.to_string(compilation.request.options.debug.text_preset)


EMITTED = Stage(
    "llvm-before-optimizations", "LLVM IR as emitted", Step.EMITTED, lambda c: c.emitted.text, "ir-no-opt.ll"
)
OBJECT = Stage("object", "object code", Step.GENERATED, lambda c: c.generated.image, "obj-file.o", CodeForm.OBJECT)
"""The end of every compilation, which is no text."""

_ALL = (
    Stage("hlo-before-optimizations", "HLO as it was given", Step.GIVEN, lambda c: _text(c.request.given, c)),
    Stage(
        "hlo",
        "HLO after the optimising passes, fused, not yet scheduled",
        Step.GIVEN,
        lambda c: _text(c.unscheduled(), c),
    ),
    Stage(
        "hlo-backend",
        "HLO that code is made of: scheduled, with all copies",
        Step.OPTIMIZED,
        lambda c: _text(c.optimized, c),
        "cpu_after_optimizations.txt",
    ),
    Stage(
        "schedule",
        "what runs when, and how many bytes are alive",
        Step.OPTIMIZED,
        _schedule_report,
        "cpu_after_optimizations-schedule.txt",
    ),
    Stage(
        "buffer-assignment",
        "which bytes every array lies in",
        Step.ASSIGNED,
        lambda c: c.assignment.report(),
        "cpu_after_optimizations-buffer-assignment.txt",
    ),
    EMITTED,
    Stage(
        "llvm-after-optimizations",
        "LLVM IR after LLVM's passes",
        Step.GENERATED,
        lambda c: c.generated.optimized_ir,
        "ir-with-opt.ll",
        CodeForm.IR,
    ),
    Stage("asm", "assembly of this machine", Step.GENERATED, lambda c: c.generated.assembly, "s", CodeForm.ASSEMBLY),
)

STAGES = MappingProxyType({stage.name: stage for stage in _ALL})
"""The stages that are text, by name, in order."""
