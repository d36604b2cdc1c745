"""What is known of one run of a pass: in memory, in tables, and in the index of a dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One run of a pass: where it stands in the pipelines, and what it did once it has run.

    Attributes:
        number: Position among all pass runs of the compilation, from 1.
        pipeline: Name of the innermost pipeline.
        name: Name of the pass.
        following: Name of the next pass of that pipeline, or `pipeline-end`.
        changed: What the pass said.
        time_ms: Time in the pass itself.
        verification_ms: Time in the verifier afterwards.
        instructions: How many the module had before and after.
        computations: How many it had before and after.
        before: File with the module as it was; None when that was not dumped.
        after: File with the module as it became; None when that was not dumped.
    """

    number: int
    pipeline: str
    name: str
    following: str
    changed: bool = False
    time_ms: float = 0.0
    verification_ms: float = 0.0
    instructions: tuple[int, int] = (0, 0)
    computations: tuple[int, int] = (0, 0)
    before: str | None = None
    after: str | None = None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PassRecord:
        """The record that `dataclasses.asdict` and JSON made of one."""
        sizes = {name: tuple(data[name]) for name in ("instructions", "computations")}
        return PassRecord(**{**data, **sizes})


def time_table(records: Sequence[PassRecord]) -> str:
    """A table of the passes by total time: name, runs, changing runs, milliseconds."""
    totals: dict[str, tuple[int, int, float]] = {}
    for record in records:
        runs, changes, time_ms = totals.get(record.name, (0, 0, 0.0))
        totals[record.name] = (runs + 1, changes + record.changed, time_ms + record.time_ms)
    lines = [f"{'pass':32} {'runs':>5} {'changed':>8} {'ms':>10}"]
    for name, (runs, changes, time_ms) in sorted(totals.items(), key=lambda item: -item[1][2]):
        lines.append(f"{name:32} {runs:5} {changes:8} {time_ms:10.3f}")
    return "\n".join(lines)
