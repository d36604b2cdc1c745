"""What a program exchanges with its host while the evaluator runs it.

>>> with host_transfers(HostTransfers(infeed=[batch])) as transfers:
...     evaluate(module)
>>> transfers.outfeed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.types.literal import Value


class HostTransfers:
    """Queues between programs and their host.

    Attributes:
        infeed: Values that `infeed` will take, the first first.
        outfeed: Values that `outfeed` gave, the first first.
        channels: Values by channel number, between `send` and `recv`.
    """

    __slots__ = ("channels", "infeed", "outfeed")

    def __init__(self, infeed: Iterable[Value] = ()) -> None:
        """Starts with values for `infeed`."""
        self.infeed: deque[Value] = deque(infeed)
        self.outfeed: deque[Value] = deque()
        self.channels: dict[int, deque[Value]] = {}

    def send(self, channel: int, value: Value) -> None:
        """Puts a value into a channel."""
        self.channels.setdefault(channel, deque()).append(value)

    def receive(self, channel: int) -> Value:
        """Takes the oldest value out of a channel.

        Raises:
            EvaluationError: The channel is empty.
        """
        queue = self.channels.get(channel)
        if not queue:
            raise EvaluationError(f"recv: nothing was sent to channel {channel}")
        return queue.popleft()

    def take_infeed(self) -> Value:
        """Takes the next value for `infeed`.

        Raises:
            EvaluationError: There is none.
        """
        if not self.infeed:
            raise EvaluationError("infeed: the host has no more values")
        return self.infeed.popleft()


_CURRENT: ContextVar[HostTransfers | None] = ContextVar("xlalite_host_transfers", default=None)


@contextmanager
def host_transfers(transfers: HostTransfers) -> Iterator[HostTransfers]:
    """Connects programs that are evaluated inside with a host."""
    token = _CURRENT.set(transfers)
    try:
        yield transfers
    finally:
        _CURRENT.reset(token)


def current_transfers(opcode: str) -> HostTransfers:
    """The connection of the running program.

    Raises:
        EvaluationError: There is none.
    """
    transfers = _CURRENT.get()
    if transfers is None:
        raise EvaluationError(f"{opcode}: no host is connected; evaluate inside `host_transfers(HostTransfers(...))`")
    return transfers
