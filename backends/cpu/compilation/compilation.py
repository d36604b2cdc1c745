"""The compilation of a module in a straight line: `Compilation.steps`.

Loaded only where something is compiled: a process that finds its code in the cache runs no step.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from xlalite.backends.codegen.llvm import ModuleBuilder, TargetInfo
from xlalite.backends.compile_report import CompileReport, PhaseClock
from xlalite.backends.cpu.compilation.code_record import CodeRecord
from xlalite.backends.cpu.compilation.pipeline import cpu_pipeline, cpu_unscheduled_pipeline
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.emission.constant_pool import divide_constants
from xlalite.backends.cpu.emission.emitted_module import EmittedModule
from xlalite.backends.cpu.emission.module_emitter import emit_module
from xlalite.backends.cpu.native.jit import CodeForm, GeneratedCode, generate_code
from xlalite.backends.cpu.native.object_cache import SharedImages, default_cache
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode
from xlalite.backends.cpu.native.threads import available_cpus, has_native_pool
from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core.instrumentation import Instrumentation, PassObserver
from xlalite.passes.core.pipeline import Pipeline
from xlalite.passes.memory.buffer_assignment import assign_buffers
from xlalite.passes.memory.buffers import ALIGNMENT_BYTES, BufferAssignment

if TYPE_CHECKING:
    from xlalite.backends.cpu.native.native_compiler import NativeCompiler

_FEWEST_AT_FIRST = 150
"""Instructions of a process's first program that are worth making the compiler ready that all later ones have."""

_programs = itertools.count()


class Step(enum.Enum):
    """What a compilation has come to; the values name the phases that end there."""

    GIVEN = "verification"
    OPTIMIZED = "passes"
    ASSIGNED = "buffer assignment"
    EMITTED = "LLVM IR"
    GENERATED = "machine code"


class Compilation:
    """A compilation in progress: what each step has made, from the step on.

    Attributes:
        request: What is compiled, and how.
        optimized: The module that code is generated for: optimised, scheduled, with all copies.
        assignment: Where every array lies.
        emitted: The LLVM IR.
        generated: What LLVM made of it.
        decisions: What was decided so far.
        instrumentation: What the passes did so far.
    """

    optimized: HloModule
    assignment: BufferAssignment
    emitted: EmittedModule
    generated: GeneratedCode

    def __init__(
        self,
        request: CompileRequest,
        wanted: CodeForm = CodeForm.OBJECT,
        observers: Sequence[PassObserver] = (),
    ) -> None:
        """Compiles nothing yet; LLVM is to make what is `wanted`, and the observers will see the passes run."""
        self.request = request
        self.decisions: tuple[Decision, ...] = ()
        self._wanted = wanted
        self._target = TargetInfo.host(request.jit_options.max_isa)
        self.instrumentation = Instrumentation(request.options.debug, observers)
        self._clock = PhaseClock()

    def steps(self) -> Iterator[Step]:
        """Takes one step after the other, for as long as it is asked for the next.

        Raises:
            VerificationError: The module is not valid.
            PassError: A pass failed.
            CodegenError: No code could be made.
        """
        try:
            for step in self._steps():
                self._clock.end(step.value)
                yield step
        finally:
            self.instrumentation.progress.end()

    def _steps(self) -> Iterator[Step]:
        verify(self.request.given)
        yield Step.GIVEN
        self.optimized = self._optimize(self.request.given)
        if self.request.options.debug.cpu_autotune:
            # It compiles products by themselves.
            from xlalite.backends.cpu.compilation.autotuning import tune_products

            self._note("autotuning")
            self.decisions += tune_products(self.optimized, self.request)
        yield Step.OPTIMIZED
        self.assignment = self._assign(self.optimized)
        yield Step.ASSIGNED
        compiler = self._compiler(self.optimized)
        try:
            self.emitted = self._emit(self.optimized, self.assignment, compiler)
            yield Step.EMITTED
            self.generated = self._generate(self.emitted, compiler)
        finally:
            if compiler is not None:
                compiler.end()
        yield Step.GENERATED

    def unscheduled(self) -> HloModule:
        """The module after the passes that decide what is computed in which kernel."""
        return self._run_passes(cpu_unscheduled_pipeline(self.request.options, self._target), self.request.given.clone)

    def object_code(self) -> ObjectCode:
        """The code with all that is needed to link and call it without compiling again."""
        constants, given_constants = divide_constants(self.emitted.constants, self.request.given)
        record = CodeRecord(
            arena_bytes=_arena_bytes(self.emitted, self.assignment),
            donations=tuple((donation.parameter, donation.output) for donation in self.assignment.donations),
            has_loops=any(instruction.opcode == "while" for instruction in self.optimized.instructions()),
            meets=self.emitted.meets,
            forks=self.emitted.forks,
            evaluator_calls=self.emitted.evaluator_calls,
            given_constants=given_constants,
            clocked=self.emitted.clocked,
        )
        compile_ms = round(self.report().total_ms, 3)
        summary = CodeSummary(self.request.given.name, self.emitted.kernel_count, compile_ms)
        return ObjectCode(self.generated.image, self.generated.exports, asdict(record), constants, summary)

    def report(self) -> CompileReport:
        """Time of the steps so far."""
        return self._clock.report(self.request.given.name, self.instrumentation.records)

    def _optimize(self, given: HloModule) -> HloModule:
        def copy() -> HloModule:
            module = given.clone()
            # A call checks only of aliased arguments that they may be written to, so that donors give nothing.
            aliases = module.config.input_output_alias if self.request.options.donate_arguments else ()
            module.update_config(input_output_alias=aliases, buffer_donors=())
            return module

        return self._run_passes(cpu_pipeline(self.request.options, self._target), copy)

    def _run_passes(self, pipeline: Pipeline, copy: Callable[[], HloModule]) -> HloModule:
        """A copy of the valid module after the passes, which is valid again."""
        module, debug = copy(), self.request.options.debug
        try:
            pipeline.run_stages(module, self.instrumentation)
            self.instrumentation.verify_output(module, pipeline.name)
        except PassError:
            if not debug.verifies_passes:
                # Once more, verified after each pass: the one that failed may have met what another one broke.
                pipeline.run_stages(copy(), Instrumentation(replace(debug, verify_passes=True)))
            raise
        self.decisions = tuple(module.decisions)
        return module

    def _assign(self, optimized: HloModule) -> BufferAssignment:
        self._note("buffer assignment")
        return assign_buffers(optimized)

    def _compiler(self, optimized: HloModule) -> NativeCompiler | None:
        """Who makes the object code, if not the interpreter's threads."""
        is_first = next(_programs) == 0
        is_short = sum(map(len, optimized.computations())) < _FEWEST_AT_FIRST
        if self._wanted is not CodeForm.OBJECT or not has_native_pool() or (is_first and is_short):
            return None
        from xlalite.backends.cpu.native.native_compiler import NativeCompiler

        return NativeCompiler(self.request.jit_options, self._keeper())

    def _emit(
        self, optimized: HloModule, assignment: BufferAssignment, compiler: NativeCompiler | None
    ) -> EmittedModule:
        self._note("LLVM IR")
        has_threads = min(self.request.num_threads, available_cpus()) > 1
        options = self.request.options
        emitted = emit_module(
            optimized,
            assignment,
            ModuleBuilder(
                optimized.name,
                self._target,
                contract=options.fp_contract,
                excess_precision=options.debug.allow_excess_precision,
            ),
            num_threads=self.request.num_threads,
            profile=options.profile,
            offer=compiler.offer if compiler is not None and has_threads else None,
        )
        self.decisions += tuple(emitted.decisions)
        return emitted

    def _generate(self, emitted: EmittedModule, compiler: NativeCompiler | None) -> GeneratedCode:
        self._note("machine code")
        options, threads = self.request.jit_options, self.request.num_threads
        return generate_code(emitted.text, self._wanted, options, self._keeper(), threads, compiler)

    def _keeper(self) -> SharedImages | None:
        return SharedImages(default_cache(), self.request.jit_options) if self.request.may_be_cached else None

    def _note(self, step: str) -> None:
        """Says that a step behind the passes begins, if the compilation takes long."""
        size = sum(map(len, self.optimized.computations()))
        self.instrumentation.progress.note(self.optimized.name, step, size)


def _arena_bytes(emitted: EmittedModule, assignment: BufferAssignment) -> int:
    """The arena and the kernels' scratch memory behind it."""
    if not emitted.scratch_bytes:
        return assignment.arena_bytes
    return -(-assignment.arena_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES + emitted.scratch_bytes
