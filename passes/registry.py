"""Every pass that knows no target by its name; a backend's list (`Backend.passes`) has its own ones, too."""

from __future__ import annotations

from xlalite.passes.analysis.trip_count import TripCountAnnotator
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion import Fusion
from xlalite.passes.memory.copy_insertion import CopyInsertion
from xlalite.passes.memory.loop_double_buffering import LoopDoubleBuffering
from xlalite.passes.memory.scheduler import Scheduler
from xlalite.passes.normalization.async_expander import AsyncExpander
from xlalite.passes.normalization.batch_norm_expander import BatchNormExpander
from xlalite.passes.normalization.call_inliner import CallInliner
from xlalite.passes.normalization.collective_expander import CollectiveExpander
from xlalite.passes.normalization.computation_deduplicator import ComputationDeduplicator
from xlalite.passes.normalization.conditional_to_select import ConditionalToSelect
from xlalite.passes.normalization.defusion import Defusion
from xlalite.passes.normalization.dynamic_index_splitter import DynamicIndexSplitter
from xlalite.passes.normalization.dynamic_padder import DynamicPadder
from xlalite.passes.normalization.lapack_expander import LapackExpander
from xlalite.passes.normalization.layout_normalization import LayoutNormalization
from xlalite.passes.normalization.map_inliner import MapInliner
from xlalite.passes.normalization.mixed_precision_expander import MixedPrecisionExpander
from xlalite.passes.normalization.ragged_dot_expander import RaggedDotExpander
from xlalite.passes.normalization.rng_bit_generator_expander import RngBitGeneratorExpander
from xlalite.passes.normalization.rng_expander import RngExpander
from xlalite.passes.normalization.run_time_sizes import RunTimeSizes
from xlalite.passes.normalization.scaled_dot_expander import ScaledDotExpander
from xlalite.passes.normalization.scan_expander import ScanExpander
from xlalite.passes.normalization.top_k_expander import TopKExpander
from xlalite.passes.normalization.unschedule import Unschedule
from xlalite.passes.normalization.zero_sized import ZeroSizedElimination
from xlalite.passes.preparation.complex_dot_expander import ComplexDotExpander
from xlalite.passes.preparation.convolution_canonicalizer import ConvolutionCanonicalizer
from xlalite.passes.preparation.convolution_kernel_order import ConvolutionKernelOrder
from xlalite.passes.preparation.convolution_winograd import ConvolutionWinograd
from xlalite.passes.preparation.flatten_call_graph import FlattenCallGraph
from xlalite.passes.preparation.line_merger import LineMerger
from xlalite.passes.preparation.logical_dot_expander import LogicalDotExpander
from xlalite.passes.preparation.reduction_splitter import ReductionSplitter
from xlalite.passes.preparation.window_splitter import WindowSplitter
from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from xlalite.passes.simplify.conditional_simplifier import ConditionalSimplifier
from xlalite.passes.simplify.constant_folding import ConstantFolding, SplatConstants
from xlalite.passes.simplify.cse import CommonSubexpressionElimination
from xlalite.passes.simplify.dce import DeadCodeElimination
from xlalite.passes.simplify.loop_invariant_code_motion import LoopInvariantCodeMotion
from xlalite.passes.simplify.loop_product_motion import LoopProductMotion
from xlalite.passes.simplify.reshape_mover import ReshapeMover
from xlalite.passes.simplify.tuple_simplifier import TupleSimplifier
from xlalite.passes.simplify.while_simplifier import WhileSimplifier

PASSES: dict[str, type[HloPass]] = {
    hlo_pass.name: hlo_pass
    for hlo_pass in (
        AlgebraicSimplifier,
        AsyncExpander,
        BatchNormExpander,
        CallInliner,
        CollectiveExpander,
        CommonSubexpressionElimination,
        ComplexDotExpander,
        ComputationDeduplicator,
        ConditionalSimplifier,
        ConditionalToSelect,
        ConstantFolding,
        ConvolutionCanonicalizer,
        ConvolutionKernelOrder,
        ConvolutionWinograd,
        CopyInsertion,
        DeadCodeElimination,
        Defusion,
        DynamicIndexSplitter,
        DynamicPadder,
        FlattenCallGraph,
        Fusion,
        LayoutNormalization,
        LineMerger,
        LogicalDotExpander,
        LoopDoubleBuffering,
        LoopInvariantCodeMotion,
        LoopProductMotion,
        MapInliner,
        ReductionSplitter,
        ReshapeMover,
        RngBitGeneratorExpander,
        MixedPrecisionExpander,
        RngExpander,
        RunTimeSizes,
        ScanExpander,
        RaggedDotExpander,
        ScaledDotExpander,
        Scheduler,
        SplatConstants,
        TopKExpander,
        LapackExpander,
        TripCountAnnotator,
        TupleSimplifier,
        Unschedule,
        WhileSimplifier,
        WindowSplitter,
        ZeroSizedElimination,
    )
}
