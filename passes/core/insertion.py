"""Puts passes into a pipeline, before or behind those that are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xlalite.hlo.errors import PassError
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.late_pass import LatePass
from xlalite.passes.core.pipeline import FixPoint, Pipeline, Stage

SIDES = ("before", "after")


def with_extra_passes(pipeline: Pipeline, extra: Sequence[tuple[str, HloPass]]) -> Pipeline:
    """The pipeline with passes at places such as `before:fusion`, those of one place in their order.

    A place names a pass or a pipeline; where it occurs several times, `before` is before the first and `after` behind
    the last of them. Inside a fixpoint the pass runs in each of its rounds.

    Raises:
        PassError: There is no such place.
    """
    # The nearest to its place is put there last.
    behind = [one for one in extra if one[0].startswith("after:")]
    for place, hlo_pass in [*(one for one in extra if one not in behind), *reversed(behind)]:
        side, _, name = place.partition(":")
        ways = [way for way, stage in _stages(pipeline) if stage.name == name]
        if side not in SIDES or not ways:
            known = [f"{side}:{stage.name}" for side in SIDES for _, stage in _stages(pipeline)]
            hint = did_you_mean(place, known, "before:NAME and after:NAME are, with a name of the pipeline")
            raise PassError(f"extra pass {hlo_pass.name}: {place!r} is no place in pipeline {pipeline.name}{hint}")
        *outer, position = ways[0] if side == "before" else ways[-1]
        stages = _with(pipeline.stages, outer, position + (side == "after"), hlo_pass)
        pipeline = replace(pipeline, stages=stages)
    return pipeline


def pipeline_text(stage: Stage, indent: int = 0) -> str:
    """The stage as lines, what is inside it further to the right; options that are not the default in braces."""
    pad = "  " * indent
    stage = stage.loaded() if isinstance(stage, LatePass) else stage
    if isinstance(stage, HloPass):
        usual = type(stage)()
        names = [name for name in stage.__dataclass_fields__ if name != "fuel"]
        given = [f"{name}={getattr(stage, name)}" for name in names if getattr(stage, name) != getattr(usual, name)]
        return f"{pad}{stage.name}{'{' + ','.join(given) + '}' if given else ''}\n"
    over = ", until nothing changes" if isinstance(stage, FixPoint) else ""
    return f"{pad}{stage.name}{over}:\n" + "".join(pipeline_text(inner, indent + 1) for inner in stage.stages)


def passes_of(pipeline: Pipeline) -> Iterator[HloPass]:
    """All passes of a pipeline, in order."""
    stages = (stage.loaded() if isinstance(stage, LatePass) else stage for _, stage in _stages(pipeline))
    return (stage for stage in stages if isinstance(stage, HloPass))


def _stages(pipeline: Pipeline | FixPoint) -> Iterator[tuple[tuple[int, ...], Stage]]:
    """All stages, outer ones first, each with the positions that lead to it."""
    for position, stage in enumerate(pipeline.stages):
        yield (position,), stage
        if isinstance(stage, Pipeline | FixPoint):
            yield from (((position, *way), inner) for way, inner in _stages(stage))


def _with(stages: Sequence[Stage], outer: Sequence[int], position: int, hlo_pass: HloPass) -> tuple[Stage, ...]:
    """The stages with the pass at a position of a stage inside them."""
    made = list(stages)
    if outer:
        inner = made[outer[0]]
        assert isinstance(inner, Pipeline | FixPoint), "the way leads through pipelines"
        made[outer[0]] = replace(inner, stages=_with(inner.stages, outer[1:], position, hlo_pass))
    else:
        made.insert(position, hlo_pass)
    return tuple(made)
