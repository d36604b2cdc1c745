"""From a module to machine code, step by step, each step's outcome kept for whoever asks to see it.

Passes and code generation are imported by the step that needs them: on a cache hit no step runs, and loading them would
be most of what a process pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from xlalite.backends.base import CompileOptions
from xlalite.backends.cpu.emission.emitted_module import EmittedModule
from xlalite.backends.cpu.native.code_version import code_version
from xlalite.backends.cpu.native.jit import JitOptions, emit_assembly, optimized_ir
from xlalite.backends.cpu.native.threads import resolve_num_threads
from xlalite.hlo.ir.fingerprint import module_fingerprint
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.dump.dumper import DumpObserver, ModuleDumper, module_dumper
from xlalite.passes.dump.records import Artefact
from xlalite.passes.memory.buffers import BufferAssignment


class CompiledModule:
    """A module on its way to LLVM IR; later steps run when first asked for.

    Attributes:
        given: The module as it was given.
        options: How to compile it.
        num_threads: Threads that calls use.
        jit_options: How LLVM makes machine code of it.
        dumper: What writes the dumps; None when none are wanted.
        instrumentation: What the passes did.
    """

    def __init__(self, module: HloModule, options: CompileOptions) -> None:
        """Verifies the module; compiles nothing yet.

        Raises:
            VerificationError: It is not valid.
            FlagError: The number of threads is out of range, or the options name a pass that does not exist.
        """
        verify(module)
        _check_pass_names(options.debug)
        self.given = module.clone()
        self.options = options
        self.num_threads = resolve_num_threads(options.num_threads)
        self.jit_options = JitOptions(max_isa=options.debug.cpu_max_isa)
        self.dumper: ModuleDumper | None = module_dumper(options.debug, module.name)
        self._observer: DumpObserver | None = None
        if self.dumper is not None:
            self.dumper.write_module(Artefact.HLO, self.given)
            self._observer = DumpObserver(self.dumper, options.debug)
        self.instrumentation = Instrumentation(options.debug, () if self._observer is None else (self._observer,))

    @cached_property
    def cache_key(self) -> tuple[str, ...]:
        """Everything that decides the code, but for LLVM and the processor."""
        options = self.options
        return (
            "module",
            code_version(),
            module_fingerprint(self.given),
            f"threads={self.num_threads} contract={options.fp_contract} optimize={options.optimize}",
            f"donate={options.donate_arguments}",
            f"{options.debug.disable_passes} {options.debug.enable_only} {options.debug.fuel}",
        )

    @cached_property
    def optimized(self) -> HloModule:
        """The module that code is generated for: optimised, scheduled, with all copies."""
        from xlalite.backends.cpu.compilation.pipeline import cpu_pipeline

        module = self.given.clone()
        # A call checks only of aliased arguments that they may be written to, so that donors give nothing.
        aliases = module.config.input_output_alias if self.options.donate_arguments else ()
        module.update_config(input_output_alias=aliases, buffer_donors=())
        cpu_pipeline(optimize=self.options.optimize).run(module, self.instrumentation)
        if self.dumper is not None:
            self.dumper.write_module(Artefact.OPTIMIZED_HLO, module)
            self.dumper.write_decisions(module.decisions)
        return module

    @cached_property
    def assignment(self) -> BufferAssignment:
        """Where every array lies."""
        from xlalite.passes.memory.buffer_assignment import assign_buffers
        from xlalite.passes.memory.schedule_report import schedule_report

        self.note_step("buffer assignment")
        assignment = assign_buffers(self.optimized)
        if self.dumper is not None:
            self.dumper.write_artefact(Artefact.SCHEDULE, schedule_report(self.optimized))
            self.dumper.write_artefact(Artefact.BUFFER_ASSIGNMENT, assignment.report)
        return assignment

    @cached_property
    def emitted(self) -> EmittedModule:
        """The LLVM IR."""
        from xlalite.backends.codegen.llvm import TargetInfo
        from xlalite.backends.cpu.emission.module_emitter import emit_module

        assignment = self.assignment
        self.note_step("LLVM IR")
        emitted = emit_module(
            self.optimized,
            assignment,
            num_threads=self.num_threads,
            contract=self.options.fp_contract,
            target=TargetInfo.host(self.jit_options.max_isa),
        )
        if self.dumper is not None:
            self.dumper.write_artefact(Artefact.LLVM, emitted.text)
            self.dumper.write_decisions([*self.optimized.decisions, *emitted.decisions])
        return emitted

    def note_step(self, step: str) -> None:
        """Says that a step behind the passes begins, if the compilation takes long."""
        module = self.optimized
        self.instrumentation.progress.note(module.name, step, sum(map(len, module.computations())))

    def dump_code(self, image: bytes) -> None:
        """Writes the object code, and what it looks like to people, if dumps are wanted."""
        if self.dumper is None:
            return
        text = self.emitted.text
        self.dumper.write_artefact(Artefact.LLVM_OPTIMIZED, optimized_ir(text, self.jit_options))
        self.dumper.write_artefact(Artefact.ASM, emit_assembly(text, self.jit_options))
        self.dumper.write_artefact(Artefact.OBJECT, image)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Writes the record of the dump when the work inside is done, or has failed."""
        if self.dumper is None or self._observer is None:
            yield
            return
        try:
            yield
        except BaseException as error:
            self.dumper.finish(self._observer.entries(self.instrumentation.records), error)
            raise
        self.dumper.finish(self._observer.entries(self.instrumentation.records))


def _check_pass_names(options: DebugOptions) -> None:
    if options.names_passes:
        from xlalite.passes.registry import PASSES

        options.check_pass_names(PASSES)
