"""The device that a program runs on, as its collectives see it.

Without a context there is one device, which refuses to wait for others; `xlalite.hlo.evaluation.spmd` evaluates
programs on many, `Executable.run_on_devices` runs them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Value

if TYPE_CHECKING:
    from xlalite.hlo.ir.instruction import HloInstruction

Pairs = Sequence[tuple[int, int]]


@dataclass(eq=False)
class Device(ABC):
    """One of `replica_count * num_partitions` devices that run a program.

    Devices are numbered by rank: `replica * num_partitions + partition`.

    Attributes:
        replica: Number of the replica.
        partition: Number of the partition.
        replica_count: Number of replicas.
        num_partitions: Number of partitions of each.
    """

    replica: int
    partition: int
    replica_count: int
    num_partitions: int

    @property
    def rank(self) -> int:
        """Number among all devices."""
        return self.replica * self.num_partitions + self.partition

    def __str__(self) -> str:
        return f"rank {self.rank} (replica {self.replica}, partition {self.partition})"

    @abstractmethod
    def exchange(self, instruction: HloInstruction, members: Sequence[int], value: Value) -> Sequence[Value]:
        """Waits for all members (ranks) to come to the instruction; the value of each, in their order.

        Raises:
            EvaluationError: Some will never come.
        """

    @abstractmethod
    def send(self, channel: int, target: int, value: Value) -> None:
        """Sends a value to a rank, without waiting."""

    @abstractmethod
    def receive(self, instruction: HloInstruction, channel: int) -> Value:
        """Waits for the oldest value that was sent to this device on a channel.

        Raises:
            EvaluationError: Nobody will send it.
        """


class LoneDevice(Device):
    """The only device there is, whatever the program says about others."""

    def exchange(self, instruction: HloInstruction, members: Sequence[int], value: Value) -> Sequence[Value]:
        """The value alone."""
        if len(members) != 1:
            raise EvaluationError(
                f"{instruction.opcode} (%{instruction.name}) needs {len(members)} devices, one is there; "
                f"use evaluate_spmd or run_on_devices"
            )
        return (value,)

    def send(self, channel: int, target: int, value: Value) -> None:
        """Refuses."""
        raise EvaluationError(f"send: channel {channel} goes to rank {target}, one device is there; use run_on_devices")

    def receive(self, instruction: HloInstruction, channel: int) -> Value:
        """Refuses."""
        raise EvaluationError(
            f"{instruction.opcode} (%{instruction.name}) needs a value from another device, one is there; "
            f"use evaluate_spmd or run_on_devices"
        )


_CURRENT: ContextVar[Device | None] = ContextVar("xlalite_device", default=None)


@contextmanager
def running_on(device: Device) -> Iterator[None]:
    """Programs that are evaluated inside run on a device."""
    token = _CURRENT.set(device)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_device(instruction: HloInstruction) -> Device:
    """The device on which an instruction runs."""
    device = _CURRENT.get()
    if device is not None:
        return device
    module = instruction.module
    if module is None:
        return LoneDevice(0, 0, 1, 1)
    return LoneDevice(0, 0, module.config.replica_count, module.config.num_partitions)
