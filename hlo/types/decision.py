"""Decision records: what the compiler decided about what, and why.

Every pass that chooses leaves its choices as data; text, JSON and HTML are views of these records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from xlalite.hlo.records import dataclass

Number = int | float | str


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Attributes:
        decided_by: Name of the pass or stage that decided.
        subject: What was decided about: names of instructions, operations or arguments.
        verdict: Short word: "fused", "not fused", "copied", "clustered", ...
        reason: Reason code, a short stable phrase.
        numbers: The figures the decision rests on.
    """

    decided_by: str
    subject: tuple[str, ...]
    verdict: str
    reason: str
    numbers: Mapping[str, Number] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def leaves_native_code(self) -> bool:
        """Whether it says that compiled code asks the evaluator for an instruction, and why."""
        return self.verdict == "evaluated" and "opcode" in self.numbers

    def __str__(self) -> str:
        """One line: pass, subject, verdict, reason and figures."""
        figures = ", ".join(f"{name}={value}" for name, value in self.numbers.items())
        return f"{self.decided_by}: {' -> '.join(self.subject)}: {self.verdict}: {self.reason}" + (
            f" ({figures})" if figures else ""
        )

    def as_dict(self) -> dict[str, object]:
        """The record for JSON."""
        return {
            "decided_by": self.decided_by,
            "subject": list(self.subject),
            "verdict": self.verdict,
            "reason": self.reason,
            "numbers": dict(self.numbers),
        }
