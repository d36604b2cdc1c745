"""Queues of values between programs and their host: what was put in first comes out first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from threading import Condition
from typing import SupportsIndex, TypeAlias, overload

from xlalite.hlo.types.literal import Value

Queue: TypeAlias = tuple[int, int]
"""Which queue of a mailbox: a channel, and who takes values out of it."""


class Mailbox(ABC):
    """Where queues are kept; any thread may use it."""

    @abstractmethod
    def put(self, queue: Queue, value: Value) -> None:
        """Puts a value behind those of a queue."""

    @abstractmethod
    def take(self, queue: Queue, *, waits: bool) -> Value | None:
        """Takes the oldest value out of a queue; None if there is none, nor was after a moment if it waits."""

    @abstractmethod
    def values(self, queue: Queue) -> list[Value]:
        """What is in a queue, the oldest first."""

    @abstractmethod
    def queues(self) -> list[Queue]:
        """The queues that hold something."""


class PlainMailbox(Mailbox):
    """Values as they were put in."""

    MOMENT_SECONDS = 0.05

    def __init__(self) -> None:
        """Empty."""
        self._queues: dict[Queue, deque[Value]] = {}
        self._changed = Condition()

    def put(self, queue: Queue, value: Value) -> None:
        """Keeps the value itself."""
        with self._changed:
            self._queues.setdefault(queue, deque()).append(value)
            self._changed.notify_all()

    def take(self, queue: Queue, *, waits: bool) -> Value | None:
        """The value itself."""
        with self._changed:
            if waits:
                self._changed.wait_for(lambda: self._queues.get(queue), self.MOMENT_SECONDS)
            values = self._queues.get(queue)
            return values.popleft() if values else None

    def values(self, queue: Queue) -> list[Value]:
        """The values themselves."""
        with self._changed:
            return [*self._queues.get(queue, ())]

    def queues(self) -> list[Queue]:
        """In the order of their first values."""
        with self._changed:
            return [queue for queue, values in self._queues.items() if values]


class ValueQueue(Sequence[Value]):
    """One queue of a mailbox, as the host uses it: like a `deque` that is filled behind and emptied in front."""

    __slots__ = ("_mailbox", "_queue")

    def __init__(self, mailbox: Mailbox, queue: Queue) -> None:
        """Looks at the mailbox each time."""
        self._mailbox, self._queue = mailbox, queue

    def append(self, value: Value) -> None:
        """Puts a value behind the others."""
        self._mailbox.put(self._queue, value)

    def extend(self, values: Iterable[Value]) -> None:
        """Puts values behind the others."""
        for value in values:
            self.append(value)

    def popleft(self) -> Value:
        """Takes the oldest value.

        Raises:
            IndexError: There is none.
        """
        value = self._mailbox.take(self._queue, waits=False)
        if value is None:
            raise IndexError("pop from an empty queue")
        return value

    def clear(self) -> None:
        """Drops all values."""
        while self._mailbox.take(self._queue, waits=False) is not None:
            pass

    @overload
    def __getitem__(self, index: SupportsIndex) -> Value: ...

    @overload
    def __getitem__(self, index: slice) -> list[Value]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Value | list[Value]:
        """Values that stay in the queue."""
        return self._mailbox.values(self._queue)[index]

    def __iter__(self) -> Iterator[Value]:
        """What is there now."""
        return iter(self._mailbox.values(self._queue))

    def __len__(self) -> int:
        """How many are there now."""
        return len(self._mailbox.values(self._queue))

    def __repr__(self) -> str:
        """All values."""
        return f"ValueQueue({self._mailbox.values(self._queue)})"
