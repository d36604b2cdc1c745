"""The passes of the CPU backend, in order."""

from __future__ import annotations

from xlalite.backends.base import CompileOptions
from xlalite.backends.codegen.kernels.dot.operand_fusion import DotOperandFusion
from xlalite.backends.codegen.kernels.dot.operand_packing import DotOperandPacking
from xlalite.backends.codegen.kernels.dot.operand_types import DotOperandTypes
from xlalite.backends.codegen.kernels.product_chaining import ProductChaining
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.insertion import with_extra_passes
from xlalite.passes.core.pipeline import FixPoint, Pipeline, Stage
from xlalite.passes.fusion import Fusion
from xlalite.passes.memory.copy_insertion import CopyInsertion
from xlalite.passes.memory.loop_double_buffering import LoopDoubleBuffering
from xlalite.passes.memory.scheduler import Scheduler
from xlalite.passes.normalization.defusion import Defusion
from xlalite.passes.normalization.dynamic_padder import DynamicPadder
from xlalite.passes.normalization.run_time_sizes import RunTimeSizes
from xlalite.passes.pipelines import finishing, normalization, simplification
from xlalite.passes.preparation.complex_dot_expander import ComplexDotExpander
from xlalite.passes.preparation.convolution_canonicalizer import ConvolutionCanonicalizer
from xlalite.passes.preparation.convolution_winograd import ConvolutionWinograd
from xlalite.passes.preparation.reduction_splitter import ReductionSplitter
from xlalite.passes.registry import PASSES
from xlalite.passes.simplify.dce import DeadCodeElimination

CPU_PASSES: dict[str, type[HloPass]] = {
    **PASSES,
    **{hlo_pass.name: hlo_pass for hlo_pass in (DotOperandFusion, DotOperandPacking, DotOperandTypes, ProductChaining)},
}
"""Every pass by its name: those that know no target, and those that do, which are made for this machine by default."""


def cpu_pipeline(options: CompileOptions, target: TargetInfo) -> Pipeline:
    """All passes from the module as given to one that code can be generated for, for a target.

    Raises:
        PassError: An extra pass has no place among them.
    """
    buffering = (LoopDoubleBuffering(),) if options.optimize else ()
    memory = (Scheduler(), *buffering, CopyInsertion(), DeadCodeElimination())
    stages = (*_until_fused(options, target), *memory)
    return with_extra_passes(Pipeline("cpu", stages), options.extra_passes)


def cpu_unscheduled_pipeline(options: CompileOptions, target: TargetInfo) -> Pipeline:
    """The passes up to the scheduler: what is computed in which kernels, before order and memory are decided."""
    stages = cpu_pipeline(options, target).stages
    return Pipeline("cpu", stages[: next(n for n, stage in enumerate(stages) if stage.name == Scheduler.name)])


def _until_fused(options: CompileOptions, target: TargetInfo) -> tuple[Stage, ...]:
    needed = (RunTimeSizes(), DynamicPadder(), normalization())
    if options.pipeline is not None:
        return (options.pipeline, *needed, finishing())
    if not options.optimize:
        return (*needed, finishing())
    winograd = options.debug.cpu_winograd
    return (
        Defusion(),
        *needed,
        ComplexDotExpander(),
        *((ConvolutionWinograd(winograd),) if winograd else ()),
        ConvolutionCanonicalizer(),
        simplification(),
        DotOperandTypes(target),
        finishing(),
        FixPoint("splitting", (ReductionSplitter(),)),
        Fusion(dot_epilogues=True),
        DotOperandPacking(target),
        ProductChaining(target),
        DotOperandFusion(target),
    )
