"""The passes of the CPU backend, in order."""

from __future__ import annotations

from xlalite.backends.base import CompileOptions
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.passes.core.insertion import with_extra_passes
from xlalite.passes.core.late_pass import late
from xlalite.passes.core.pipeline import FixPoint, Pipeline, Stage
from xlalite.passes.fusion import Fusion
from xlalite.passes.memory.copy_insertion import CopyInsertion
from xlalite.passes.memory.scheduler import Scheduler
from xlalite.passes.normalization.run_time_sizes import RunTimeSizes
from xlalite.passes.pipelines import finishing, normalization, simplification
from xlalite.passes.simplify.dce import DeadCodeElimination

Defusion = late("xlalite.passes.normalization.defusion:Defusion", "fusion")
DynamicPadder = late("xlalite.passes.normalization.dynamic_padder:DynamicPadder", "custom-call")
ComplexDotExpander = late("xlalite.passes.preparation.complex_dot_expander:ComplexDotExpander", "dot", "convolution")
LogicalDotExpander = late("xlalite.passes.preparation.logical_dot_expander:LogicalDotExpander", "dot", "convolution")
ConvolutionWinograd = late("xlalite.passes.preparation.convolution_winograd:ConvolutionWinograd", "convolution")
ConvolutionCanonicalizer = late(
    "xlalite.passes.preparation.convolution_canonicalizer:ConvolutionCanonicalizer", "convolution"
)
ConvolutionKernelOrder = late(
    "xlalite.passes.preparation.convolution_kernel_order:ConvolutionKernelOrder", "convolution"
)
LineMerger = late(
    "xlalite.passes.preparation.line_merger:LineMerger", "dynamic-slice", "dynamic-update-slice", "gather"
)
ReductionSplitter = late("xlalite.passes.preparation.reduction_splitter:ReductionSplitter", "reduce")
WindowSplitter = late("xlalite.passes.preparation.window_splitter:WindowSplitter", "reduce-window")
ConvolutionFeatureOrder = late(
    "xlalite.backends.codegen.kernels.dot.feature_order:ConvolutionFeatureOrder", "convolution"
)
ConvolutionFeaturePadding = late(
    "xlalite.backends.codegen.kernels.dot.feature_padding:ConvolutionFeaturePadding", "convolution"
)
ConvolutionResultOrder = late("xlalite.backends.codegen.kernels.dot.result_order:ConvolutionResultOrder", "convolution")
DotOperandTypes = late("xlalite.backends.codegen.kernels.dot.operand_types:DotOperandTypes", "dot")
DotOperandPacking = late("xlalite.backends.codegen.kernels.dot.operand_packing:DotOperandPacking", "dot")
ProductRematerialization = late(
    "xlalite.backends.codegen.kernels.product_rematerialization:ProductRematerialization", "dot"
)
ProductChaining = late("xlalite.backends.codegen.kernels.product_chaining:ProductChaining", "dot")
LoopDoubleBuffering = late(
    "xlalite.passes.memory.loop_double_buffering:LoopDoubleBuffering", "while", name="loop-double-buffer-transformer"
)
ConvolutionPadFusion = late("xlalite.backends.codegen.kernels.dot.pad_fusion:ConvolutionPadFusion", "convolution")
DotOperandFusion = late("xlalite.backends.codegen.kernels.dot.operand_fusion:DotOperandFusion", "dot")


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
        LogicalDotExpander(),
        *((ConvolutionWinograd(winograd),) if winograd else ()),
        ConvolutionKernelOrder(),
        ConvolutionCanonicalizer(),
        ConvolutionFeatureOrder(target),
        ConvolutionFeaturePadding(target),
        ConvolutionResultOrder(target),
        simplification(),
        DotOperandTypes(target),
        LineMerger(),
        finishing(),
        FixPoint("splitting", (ReductionSplitter(), WindowSplitter())),
        ProductRematerialization(target),
        Fusion(dot_epilogues=True),
        DotOperandPacking(target),
        ProductChaining(target),
        DotOperandFusion(target),
        ConvolutionPadFusion(target),
    )
