"""The passes of the CPU backend, in order."""

from __future__ import annotations

from xlalite.backends.cpu.kernels.dot.canonicalizer import DotCanonicalizerForKernel
from xlalite.passes.copy_insertion import CopyInsertion
from xlalite.passes.dce import DeadCodeElimination
from xlalite.passes.defusion import Defusion
from xlalite.passes.fusion import Fusion
from xlalite.passes.pipeline import FixPoint, Pipeline, Stage
from xlalite.passes.reduction_splitter import ReductionSplitter
from xlalite.passes.run_time_sizes import RunTimeSizes
from xlalite.passes.scheduler import Scheduler
from xlalite.passes.simplification import finishing, normalization, simplification


def cpu_pipeline(*, optimize: bool) -> Pipeline:
    """All passes from the module as given to one that code can be generated for.

    Args:
        optimize: Whether passes that only make code faster run.
    """
    memory = (Scheduler(), CopyInsertion(), DeadCodeElimination())
    return Pipeline("cpu", (*_until_fused(optimize=optimize), *memory))


def cpu_unscheduled_pipeline(*, optimize: bool) -> Pipeline:
    """The passes up to the scheduler: what is computed in which kernels, before order and memory are decided."""
    return Pipeline("cpu", _until_fused(optimize=optimize))


def _until_fused(*, optimize: bool) -> tuple[Stage, ...]:
    if not optimize:
        return (RunTimeSizes(), normalization(), finishing())
    return (
        Defusion(),
        RunTimeSizes(),
        normalization(),
        simplification(),
        finishing(),
        FixPoint("splitting", (ReductionSplitter(),)),
        DotCanonicalizerForKernel(),
        Fusion(dot_epilogues=True),
    )
