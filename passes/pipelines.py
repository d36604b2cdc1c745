"""The target-independent part of a compilation, as pipelines to read."""

from __future__ import annotations

import functools

from xlalite.passes.analysis.trip_count import TripCountAnnotator
from xlalite.passes.core.pipeline import FixPoint, Pipeline
from xlalite.passes.normalization.async_expander import AsyncExpander
from xlalite.passes.normalization.batch_norm_expander import BatchNormExpander
from xlalite.passes.normalization.call_inliner import CallInliner
from xlalite.passes.normalization.collective_expander import CollectiveExpander
from xlalite.passes.normalization.computation_deduplicator import ComputationDeduplicator
from xlalite.passes.normalization.conditional_to_select import ConditionalToSelect
from xlalite.passes.normalization.dynamic_index_splitter import DynamicIndexSplitter
from xlalite.passes.normalization.lapack_expander import LapackExpander
from xlalite.passes.normalization.layout_normalization import LayoutNormalization
from xlalite.passes.normalization.map_inliner import MapInliner
from xlalite.passes.normalization.mixed_precision_expander import MixedPrecisionExpander
from xlalite.passes.normalization.ragged_dot_expander import RaggedDotExpander
from xlalite.passes.normalization.rng_bit_generator_expander import RngBitGeneratorExpander
from xlalite.passes.normalization.rng_expander import RngExpander
from xlalite.passes.normalization.scaled_dot_expander import ScaledDotExpander
from xlalite.passes.normalization.scan_expander import ScanExpander
from xlalite.passes.normalization.top_k_expander import TopKExpander
from xlalite.passes.normalization.unschedule import Unschedule
from xlalite.passes.normalization.zero_sized import ZeroSizedElimination
from xlalite.passes.preparation.flatten_call_graph import FlattenCallGraph
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


@functools.cache
def normalization() -> Pipeline:
    """Whatever module comes in: no schedule, no layouts, no calls, no operations that others express."""
    return Pipeline(
        "normalization",
        (
            Unschedule(),
            ComputationDeduplicator(),
            LayoutNormalization(),
            DeadCodeElimination(),
            AsyncExpander(),
            CollectiveExpander(),
            ScanExpander(),
            RaggedDotExpander(),
            ScaledDotExpander(),
            MixedPrecisionExpander(),
            RngExpander(),
            RngBitGeneratorExpander(),
            BatchNormExpander(),
            TopKExpander(),
            LapackExpander(),
            DynamicIndexSplitter(),
            CallInliner(),
            ConditionalToSelect(),
            TupleSimplifier(),
            MapInliner(),
            ZeroSizedElimination(),
            SplatConstants(),
            CommonSubexpressionElimination(),
        ),
    )


@functools.cache
def simplification(*, reorder_reductions: bool = True, explain: bool = False) -> FixPoint:
    """What makes programs smaller, over and over until nothing changes.

    Args:
        reorder_reductions: Whether the order of floating-point sums may change.
        explain: Whether rules that declined are recorded.
    """
    reordering = (LoopProductMotion(),) if reorder_reductions else ()
    return FixPoint(
        "simplification",
        (
            AlgebraicSimplifier(reorder_reductions=reorder_reductions, explain=explain),
            ReshapeMover(explain=explain),
            ConstantFolding(),
            ConditionalSimplifier(),
            WhileSimplifier(),
            LoopInvariantCodeMotion(),
            *reordering,
            TupleSimplifier(),
            ZeroSizedElimination(),
            CommonSubexpressionElimination(),
            DeadCodeElimination(),
        ),
    )


@functools.cache
def finishing() -> Pipeline:
    """What later stages rely on: one caller for each computation, known numbers of iterations."""
    return Pipeline("finishing", (FlattenCallGraph(), TripCountAnnotator(), DeadCodeElimination()))


def target_independent(*, reorder_reductions: bool = True, explain: bool = False) -> Pipeline:
    """Normalisation, simplification and finishing; what a backend runs before its own passes."""
    return Pipeline(
        "target-independent",
        (normalization(), simplification(reorder_reductions=reorder_reductions, explain=explain), finishing()),
    )
