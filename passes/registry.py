"""Every pass by its name, for command lines, flags and tests. A pass whose options have no defaults is not here."""

from __future__ import annotations

from xlalite.passes.algebraic_simplifier import AlgebraicSimplifier
from xlalite.passes.barrier_remover import BarrierRemover
from xlalite.passes.base import HloPass
from xlalite.passes.batch_norm_expander import BatchNormExpander
from xlalite.passes.call_inliner import CallInliner
from xlalite.passes.conditional_simplifier import ConditionalSimplifier
from xlalite.passes.conditional_to_select import ConditionalToSelect
from xlalite.passes.constant_folding import ConstantFolding, SplatConstants
from xlalite.passes.copy_insertion import CopyInsertion
from xlalite.passes.cse import CommonSubexpressionElimination
from xlalite.passes.dce import DeadCodeElimination
from xlalite.passes.defusion import Defusion
from xlalite.passes.dot_canonicalizer import DotCanonicalizer
from xlalite.passes.dynamic_index_splitter import DynamicIndexSplitter
from xlalite.passes.flatten_call_graph import FlattenCallGraph
from xlalite.passes.fusion import Fusion
from xlalite.passes.layout_normalization import LayoutNormalization
from xlalite.passes.loop_invariant_code_motion import LoopInvariantCodeMotion
from xlalite.passes.map_inliner import MapInliner
from xlalite.passes.mixed_precision_expander import MixedPrecisionExpander
from xlalite.passes.reduction_splitter import ReductionSplitter
from xlalite.passes.reshape_mover import ReshapeMover
from xlalite.passes.rng_bit_generator_expander import RngBitGeneratorExpander
from xlalite.passes.rng_expander import RngExpander
from xlalite.passes.run_time_sizes import RunTimeSizes
from xlalite.passes.scheduler import Scheduler
from xlalite.passes.trip_count import TripCountAnnotator
from xlalite.passes.tuple_simplifier import TupleSimplifier
from xlalite.passes.unschedule import Unschedule
from xlalite.passes.while_simplifier import WhileSimplifier
from xlalite.passes.zero_sized import ZeroSizedElimination

PASSES: dict[str, type[HloPass]] = {
    hlo_pass.name: hlo_pass
    for hlo_pass in (
        AlgebraicSimplifier,
        BarrierRemover,
        BatchNormExpander,
        CallInliner,
        CommonSubexpressionElimination,
        ConditionalSimplifier,
        ConditionalToSelect,
        ConstantFolding,
        CopyInsertion,
        DeadCodeElimination,
        Defusion,
        DotCanonicalizer,
        DynamicIndexSplitter,
        FlattenCallGraph,
        Fusion,
        LayoutNormalization,
        LoopInvariantCodeMotion,
        MapInliner,
        ReductionSplitter,
        ReshapeMover,
        RngBitGeneratorExpander,
        MixedPrecisionExpander,
        RngExpander,
        RunTimeSizes,
        Scheduler,
        SplatConstants,
        TripCountAnnotator,
        TupleSimplifier,
        Unschedule,
        WhileSimplifier,
        ZeroSizedElimination,
    )
}
