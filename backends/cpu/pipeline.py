"""The passes of the CPU backend, in order."""

from __future__ import annotations

from xlalite.passes.algebraic_simplifier import AlgebraicSimplifier
from xlalite.passes.call_inliner import CallInliner
from xlalite.passes.conditional_simplifier import ConditionalSimplifier
from xlalite.passes.constant_folding import ConstantFolding, SplatConstants
from xlalite.passes.copy_insertion import CopyInsertion
from xlalite.passes.cse import CommonSubexpressionElimination
from xlalite.passes.dce import DeadCodeElimination
from xlalite.passes.fusion import Fusion
from xlalite.passes.layout_normalization import LayoutNormalization
from xlalite.passes.loop_invariant_code_motion import LoopInvariantCodeMotion
from xlalite.passes.map_inliner import MapInliner
from xlalite.passes.pipeline import FixPoint, Pipeline, Stage
from xlalite.passes.scheduler import Scheduler
from xlalite.passes.tuple_simplifier import TupleSimplifier
from xlalite.passes.unschedule import Unschedule
from xlalite.passes.while_simplifier import WhileSimplifier
from xlalite.passes.zero_sized import ZeroSizedElimination

_NORMALIZE: tuple[Stage, ...] = (
    Unschedule(),
    LayoutNormalization(),
    CallInliner(),
    MapInliner(),
    ZeroSizedElimination(),
)

_SIMPLIFY = FixPoint(
    "simplification",
    (
        SplatConstants(),
        AlgebraicSimplifier(),
        TupleSimplifier(),
        WhileSimplifier(),
        ConditionalSimplifier(),
        LoopInvariantCodeMotion(),
        ConstantFolding(),
        CommonSubexpressionElimination(),
        DeadCodeElimination(),
    ),
)

_MEMORY: tuple[Stage, ...] = (Scheduler(), CopyInsertion(), DeadCodeElimination())


def cpu_pipeline(*, optimize: bool) -> Pipeline:
    """All passes from the module as given to one that code can be generated for.

    Args:
        optimize: Whether passes that only make code faster run.
    """
    return Pipeline("cpu", (*_NORMALIZE, *((_SIMPLIFY, Fusion()) if optimize else ()), *_MEMORY))
