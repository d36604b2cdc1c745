"""What a program exchanges with its host while it runs.

>>> with host_transfers(HostTransfers(infeed=[batch])) as transfers:
...     evaluate(module)
>>> transfers.outfeed
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TypeVar

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.surroundings.mailbox import Mailbox, PlainMailbox, Queue, ValueQueue
from xlalite.hlo.types.literal import Value

Kind = TypeVar("Kind", bound=Mailbox)

INFEED: Queue = (0, -1)
OUTFEED: Queue = (0, -2)


def channel_queue(channel: int) -> Queue:
    """Where values of a channel are, between `send` and `recv`."""
    return channel, 0


class HostTransfers:
    """Queues between programs and their host; any thread may fill and empty them while programs run.

    Attributes:
        timeout_seconds: How long `infeed` and `recv` wait for a value that is not there yet.
    """

    def __init__(self, infeed: Iterable[Value] = (), *, timeout_seconds: float = 0) -> None:
        """Starts with values for `infeed`; without a timeout all must be there when the program asks for them."""
        self.timeout_seconds = timeout_seconds
        self._lock = Lock()
        self._kept: Mailbox = PlainMailbox()
        self._times_let_go = 0
        self.infeed.extend(infeed)

    @property
    def infeed(self) -> ValueQueue:
        """Values that `infeed` will take, the first first."""
        return ValueQueue(_Forwarding(self), INFEED)

    @property
    def outfeed(self) -> ValueQueue:
        """Values that `outfeed` gave, the first first."""
        return ValueQueue(_Forwarding(self), OUTFEED)

    @property
    def channels(self) -> Mapping[int, ValueQueue]:
        """The channels that hold values, by number, between `send` and `recv`."""
        queues = [queue for queue in self._kept.queues() if queue not in (INFEED, OUTFEED)]
        return {queue[0]: ValueQueue(_Forwarding(self), queue) for queue in queues}

    def send(self, channel: int, value: Value) -> None:
        """Puts a value into a channel."""
        _Forwarding(self).put(channel_queue(channel), value)

    def receive(self, channel: int) -> Value:
        """Takes the oldest value out of a channel.

        Raises:
            EvaluationError: The channel is empty.
        """
        return self._take(channel_queue(channel), f"recv: nothing was sent to channel {channel}")

    def take_infeed(self) -> Value:
        """Takes the next value for `infeed`.

        Raises:
            EvaluationError: There is none.
        """
        return self._take(INFEED, "infeed: the host has no more values")

    def let_go(self) -> None:
        """Tells programs that wait now that nothing will come."""
        self._times_let_go += 1

    def kept_in(self, kind: type[Kind], make: Callable[[], Kind]) -> Kind:
        """The mailbox behind the queues, which from now on is one of a kind: `make` gives an empty one."""
        with self._lock:
            kept = self._kept
            if not isinstance(kept, kind):
                made = make()
                for queue in kept.queues():
                    ValueQueue(made, queue).extend(kept.values(queue))
                self._kept = kept = made
            return kept

    def _take(self, queue: Queue, absent: str) -> Value:
        end, times = time.monotonic() + self.timeout_seconds, self._times_let_go
        waits = False
        while True:
            value = self._kept.take(queue, waits=waits)
            if value is not None:
                return value
            waits = self._times_let_go == times and time.monotonic() < end
            if not waits:
                waited = f" after {self.timeout_seconds:g} s" if self.timeout_seconds else ""
                raise EvaluationError(absent + waited)


class _Forwarding(Mailbox):
    """The mailbox that a host's queues are kept in now."""

    def __init__(self, host: HostTransfers) -> None:
        self._host = host

    def put(self, queue: Queue, value: Value) -> None:
        with self._host._lock:
            self._host._kept.put(queue, value)

    def take(self, queue: Queue, *, waits: bool) -> Value | None:
        return self._host._kept.take(queue, waits=waits)

    def values(self, queue: Queue) -> list[Value]:
        return self._host._kept.values(queue)

    def queues(self) -> list[Queue]:
        return self._host._kept.queues()


_CURRENT: ContextVar[HostTransfers | None] = ContextVar("xlalite_host_transfers", default=None)


@contextmanager
def host_transfers(transfers: HostTransfers) -> Iterator[HostTransfers]:
    """Connects programs that run inside with a host."""
    token = _CURRENT.set(transfers)
    try:
        yield transfers
    finally:
        _CURRENT.reset(token)


def connected_host() -> HostTransfers | None:
    """The host of programs that run here; None if there is none."""
    return _CURRENT.get()


def current_transfers(opcode: str) -> HostTransfers:
    """The connection of the running program.

    Raises:
        EvaluationError: There is none.
    """
    transfers = connected_host()
    if transfers is None:
        raise EvaluationError(f"{opcode}: no host is connected; evaluate inside `host_transfers(HostTransfers(...))`")
    return transfers
