"""What a program's session left in a dump directory, read back: which operations ran where, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.passes.dump.records import DECISIONS_SUFFIX, REPORT_SUFFIX

_OPERATION = re.compile(r"(?P<name>\S+) = (?P<call>\w+\(.*?\))(?:  # (?P<cluster>\S+))?")


@dataclass(frozen=True, slots=True)
class SessionStory:
    """One session.

    Attributes:
        report: The cluster report, without the lines of operations.
        operations: The line of each operation, and its cluster or None, by its name.
        decisions: Everything that was decided.
    """

    report: str
    operations: dict[str, tuple[str, str | None]]
    decisions: Sequence[Decision]

    @classmethod
    def read(cls, path: Path) -> SessionStory:
        """The session whose cluster report with operations lies at `path`."""
        lines = path.read_text().splitlines()
        found = [(line, _OPERATION.fullmatch(line)) for line in lines]
        operations = {match["name"]: (match["call"], match["cluster"]) for _, match in found if match}
        report = "\n".join(line for line, match in found if not match).strip()
        records = json.loads(path.with_name(path.name.replace(REPORT_SUFFIX, DECISIONS_SUFFIX)).read_text())
        return cls(report, operations, [Decision(**{**each, "subject": tuple(each["subject"])}) for each in records])

    def concerns(self, name: str) -> bool:
        """Whether it ran an operation of that name."""
        return name in self.operations

    def places(self, name: str) -> list[str]:
        """Where the operation ran, as a line."""
        call, cluster = self.operations[name]
        return [f"{name} = {call}", f"runs in {cluster}" if cluster else "runs by itself"]

    def decisions_about(self, name: str | None) -> list[Decision]:
        """What was decided about an operation and its cluster; about all of them without a name."""
        if name is None:
            return list(self.decisions)
        about = {name, self.operations[name][1]}
        return [decision for decision in self.decisions if about.intersection(decision.subject)]
