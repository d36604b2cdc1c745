"""The order in which operations that exchange values with others should run."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import callees, dependencies, reachable

_SENDING = ("send", "outfeed")
_WAITING = ("recv", "recv-done", "infeed")
_CALLING = ("while", "conditional", "call", "async-start")


def senders_and_waiters(
    post_order: Sequence[HloInstruction],
) -> tuple[Sequence[HloInstruction], Sequence[HloInstruction]]:
    """What sends, in an order in which it can run, and what may wait for it; with what they call.

    Whoever waits may wait for what another device, or a host that was told something, sends at the same time. So all
    that does not need what is waited for is to be sent first: the senders behind the fewest that wait come first.
    """
    waits_before: dict[HloInstruction, int] = {}
    senders: list[HloInstruction] = []
    waiters: list[HloInstruction] = []
    if not any(one.opcode in (*_SENDING, *_WAITING, *_CALLING) for one in post_order):
        return senders, waiters
    for one in post_order:
        called = reachable(one.called_computations if one.opcode in _CALLING else (), callees)
        opcodes = {one.opcode, *(inside.opcode for function in called for inside in function.instructions)}
        before = max((waits_before[other] for other in dependencies(one)), default=0)
        waits_before[one] = before + (not opcodes.isdisjoint(_WAITING))
        if not opcodes.isdisjoint(_WAITING):
            waiters.append(one)
        if not opcodes.isdisjoint(_SENDING):
            senders.append(one)
    return sorted(senders, key=waits_before.__getitem__), waiters
