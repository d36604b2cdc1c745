"""The target-independent part of a compilation, as pipelines to read."""

from __future__ import annotations

import functools

from xlalite.hlo.ops import OPS
from xlalite.passes.core.late_pass import late
from xlalite.passes.core.pipeline import FixPoint, Pipeline
from xlalite.passes.normalization.computation_deduplicator import ComputationDeduplicator
from xlalite.passes.normalization.layout_normalization import LayoutNormalization
from xlalite.passes.normalization.mixed_precision_expander import MixedPrecisionExpander
from xlalite.passes.normalization.unschedule import Unschedule
from xlalite.passes.normalization.zero_sized import ZeroSizedElimination
from xlalite.passes.preparation.flatten_call_graph import FlattenCallGraph
from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from xlalite.passes.simplify.cse import CommonSubexpressionElimination
from xlalite.passes.simplify.dce import DeadCodeElimination
from xlalite.passes.simplify.tuple_simplifier import TupleSimplifier

_HALVES = tuple(name for name in OPS if name.endswith(("-start", "-update", "-done")))
_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-")
_BATCH_NORMS = ("batch-norm-training", "batch-norm-inference", "batch-norm-grad")

AsyncExpander = late("xlalite.passes.normalization.async_expander:AsyncExpander", *_HALVES)
CollectiveExpander = late(
    "xlalite.passes.normalization.collective_expander:CollectiveExpander",
    *(name for name in OPS if name.startswith(_COLLECTIVES)),
    "partition-id",
    "replica-id",
)
ScanExpander = late("xlalite.passes.normalization.scan_expander:ScanExpander", "scan")
RaggedDotExpander = late("xlalite.passes.normalization.ragged_dot_expander:RaggedDotExpander", "ragged-dot")
ScaledDotExpander = late("xlalite.passes.normalization.scaled_dot_expander:ScaledDotExpander", "scaled-dot")
RngExpander = late("xlalite.passes.normalization.rng_expander:RngExpander", "rng")
RngBitGeneratorExpander = late(
    "xlalite.passes.normalization.rng_bit_generator_expander:RngBitGeneratorExpander", "rng-bit-generator"
)
BatchNormExpander = late("xlalite.passes.normalization.batch_norm_expander:BatchNormExpander", *_BATCH_NORMS)
TopKExpander = late("xlalite.passes.normalization.top_k_expander:TopKExpander", "custom-call")
LapackExpander = late("xlalite.passes.normalization.lapack_expander:LapackExpander", "custom-call")
DynamicIndexSplitter = late(
    "xlalite.passes.normalization.dynamic_index_splitter:DynamicIndexSplitter", "dynamic-slice", "dynamic-update-slice"
)
SplatConstants = late("xlalite.passes.simplify.constant_folding:SplatConstants", "constant")
ConstantFolding = late("xlalite.passes.simplify.constant_folding:ConstantFolding", "constant", "iota")
ReshapeMover = late("xlalite.passes.simplify.reshape_mover:ReshapeMover", "broadcast", "reshape", "transpose")
CallInliner = late("xlalite.passes.normalization.call_inliner:CallInliner", "call")
ConditionalToSelect = late("xlalite.passes.normalization.conditional_to_select:ConditionalToSelect", "conditional")
MapInliner = late("xlalite.passes.normalization.map_inliner:MapInliner", "map")
ConditionalSimplifier = late("xlalite.passes.simplify.conditional_simplifier:ConditionalSimplifier", "conditional")
WhileSimplifier = late(
    "xlalite.passes.simplify.while_simplifier:WhileSimplifier", "while", name="while-loop-simplifier"
)
LoopInvariantCodeMotion = late(
    "xlalite.passes.simplify.loop_invariant_code_motion:LoopInvariantCodeMotion",
    "while",
    name="while-loop-invariant-code-motion",
)
LoopProductMotion = late(
    "xlalite.passes.simplify.loop_product_motion:LoopProductMotion", "while", name="while-loop-product-motion"
)
TripCountAnnotator = late(
    "xlalite.passes.analysis.trip_count:TripCountAnnotator", "while", name="while-loop-trip-count-annotator"
)


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
            ReshapeMover(explain),
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
