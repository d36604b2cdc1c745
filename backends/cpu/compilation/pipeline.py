"""The passes of the CPU backend, in order."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.operand_fusion import DotOperandFusion
from xlalite.backends.codegen.kernels.dot.operand_packing import DotOperandPacking
from xlalite.backends.codegen.kernels.dot.operand_types import DotOperandTypes
from xlalite.backends.codegen.kernels.product_chaining import ProductChaining
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.passes.core.base import HloPass
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


def cpu_pipeline(*, optimize: bool, target: TargetInfo, winograd: int = 0) -> Pipeline:
    """All passes from the module as given to one that code can be generated for.

    Args:
        optimize: Whether passes that only make code faster run.
        target: What code is generated for.
        winograd: Results of a tile of `ConvolutionWinograd`; 0 if it does not run.
    """
    buffering = (LoopDoubleBuffering(),) if optimize else ()
    memory = (Scheduler(), *buffering, CopyInsertion(), DeadCodeElimination())
    return Pipeline("cpu", (*_until_fused(optimize=optimize, target=target, winograd=winograd), *memory))


def cpu_unscheduled_pipeline(*, optimize: bool, target: TargetInfo, winograd: int = 0) -> Pipeline:
    """The passes up to the scheduler: what is computed in which kernels, before order and memory are decided."""
    return Pipeline("cpu", _until_fused(optimize=optimize, target=target, winograd=winograd))


def _until_fused(*, optimize: bool, target: TargetInfo, winograd: int) -> tuple[Stage, ...]:
    if not optimize:
        return (RunTimeSizes(), DynamicPadder(), normalization(), finishing())
    return (
        Defusion(),
        RunTimeSizes(),
        DynamicPadder(),
        normalization(),
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
