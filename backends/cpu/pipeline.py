"""The passes of the CPU backend, in order."""

from __future__ import annotations

from xlalite.passes.copy_insertion import CopyInsertion
from xlalite.passes.dce import DeadCodeElimination
from xlalite.passes.fusion import Fusion
from xlalite.passes.pipeline import FixPoint, Pipeline
from xlalite.passes.reduction_splitter import ReductionSplitter
from xlalite.passes.scheduler import Scheduler
from xlalite.passes.simplification import finishing, normalization, simplification


def cpu_pipeline(*, optimize: bool) -> Pipeline:
    """All passes from the module as given to one that code can be generated for.

    Args:
        optimize: Whether passes that only make code faster run.
    """
    memory = (Scheduler(), CopyInsertion(), DeadCodeElimination())
    if not optimize:
        return Pipeline("cpu", (normalization(), finishing(), *memory))
    kernels = (FixPoint("splitting", (ReductionSplitter(),)), Fusion())
    return Pipeline("cpu", (normalization(), simplification(), finishing(), *kernels, *memory))
