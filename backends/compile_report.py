"""Where the time of a compilation goes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from xlalite.hlo.record_tables import RecordTable, html_table, html_text
from xlalite.hlo.records import dataclass
from xlalite.passes.core.pass_record import PassRecord, time_table


@dataclass(frozen=True, slots=True)
class CompileReport:
    """The phases of one compilation.

    Attributes:
        name: The module's name.
        phases: Milliseconds of each phase, in order; nothing lies between them.
        pass_records: What each pass did, which is most of the phase `passes`.
    """

    name: str
    phases: Mapping[str, float]
    pass_records: tuple[PassRecord, ...] = ()

    @property
    def total_ms(self) -> float:
        """All phases together."""
        return sum(self.phases.values())

    def table(self) -> str:
        """The phases with their shares."""
        total = self.total_ms
        rows = [*self.phases.items(), ("total", total)]
        return "\n".join(f"{name:20} {ms:10.3f} ms {ms / total if total else 1:6.1%}" for name, ms in rows)

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        rows = [(name, ms, f"{ms / self.total_ms:.1%}") for name, ms in self.phases.items()]
        phases = html_table(("phase", "ms", "share"), [*rows, ("total", self.total_ms, "")])
        return html_text(f"compilation of {self.name}") + phases + RecordTable(self.pass_records)._repr_html_()

    def __str__(self) -> str:
        """The phases, then the passes."""
        passes = f"\n\n{time_table(self.pass_records)}" if self.pass_records else ""
        return f"compilation of {self.name}\n{self.table()}{passes}"


class PhaseClock:
    """Takes the time of phases that follow each other."""

    def __init__(self) -> None:
        """Begins with the first phase."""
        self._phases: dict[str, float] = {}
        self._last = time.perf_counter()

    def end(self, phase: str) -> None:
        """The phase that ran until now."""
        now = time.perf_counter()
        self._phases[phase] = 1e3 * (now - self._last)
        self._last = now

    def report(self, name: str, records: Sequence[PassRecord] = ()) -> CompileReport:
        """What was taken so far."""
        return CompileReport(name, dict(self._phases), tuple(records))
