"""Checks operations that belong together: the start and the end of something asynchronous, users of one channel.

Which operations are partners their names tell: `X-done` and `X-update` go with `X-start`, or with `X` itself.
"""

from __future__ import annotations

from functools import cache

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import OPS


class PairVerifier:
    """Checks the instructions of one module, one after the other."""

    __slots__ = ("_channels",)

    def __init__(self) -> None:
        self._channels: dict[int, HloInstruction] = {}

    def problem(self, instruction: HloInstruction) -> str | None:
        """What is wrong with the instruction as one of a pair, or None."""
        name = instruction.opcode
        partners = partners_of(name)
        if partners and instruction.operands:
            operand = instruction.operands[0]
            if operand.opcode not in partners and not _may_come_from_elsewhere(operand):
                return f"operand 0 is %{operand.name}, a {operand.opcode}, expected {' or '.join(sorted(partners))}"
            if operand.opcode in partners:
                rivals = [user for user in operand.users if partners_of(user.opcode) and user is not instruction]
                if rivals:
                    return f"%{operand.name} is ended twice, here and by %{rivals[0].name}"
        return self._channel_problem(instruction)

    def _channel_problem(self, instruction: HloInstruction) -> str | None:
        channel = getattr(instruction.attrs, "channel_id", None)
        if not channel or partners_of(instruction.opcode):
            return None
        other = self._channels.setdefault(channel, instruction)
        if _kind(other.opcode) == _kind(instruction.opcode):
            return None
        return f"channel {channel} is used by %{other.name} for {other.opcode}, here for {instruction.opcode}"


def _may_come_from_elsewhere(operand: HloInstruction) -> bool:
    """Whether the start may stand behind it, as it does when a loop runs ahead; a tuple made here started nothing."""
    return operand.opcode == "parameter" or (operand.op.hands_on and operand.opcode != "tuple")


@cache
def partners_of(opcode: str) -> frozenset[str]:
    """The operations whose result an operation ends or carries on; empty for those that end nothing."""
    base, _, suffix = opcode.rpartition("-")
    if suffix not in ("done", "update"):
        return frozenset()
    if f"{base}-start" not in OPS:
        return frozenset({base})
    return frozenset({f"{base}-start", f"{base}-update"} & OPS.keys())


def _kind(opcode: str) -> str:
    """What a channel is used for; sending and receiving are the two ends of one thing."""
    return "transfer" if opcode in ("send", "recv") else opcode.removesuffix("-start")
