"""The operations by which devices exchange values with each other and with the host; few programs have any.

How their code is written, and what it calls, is imported with the first of them.
"""

from __future__ import annotations

from xlalite.hlo.ir.instruction import HloInstruction

COLLECTIVES = (
    *("all-reduce", "reduce-scatter", "all-gather", "all-to-all", "ragged-all-to-all"),
    *("collective-broadcast", "collective-permute"),
)
TRANSFERS = ("infeed", "outfeed", "send", "send-done", "recv", "recv-done")


class MeetingNumbers:
    """Numbers of collectives: those of a kind and channel with equal shapes meet each other, others only themselves."""

    def __init__(self) -> None:
        """None yet."""
        self._numbers: dict[object, int] = {}

    def of(self, instruction: HloInstruction) -> int:
        """The number of a collective."""
        channel, shapes = (
            instruction.attrs.channel_id,
            [one.shape.text() for one in (instruction, *instruction.operands)],
        )
        key = instruction if channel is None else (instruction.opcode, channel, *shapes)
        return self._numbers.setdefault(key, len(self._numbers))
