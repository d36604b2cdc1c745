"""Evaluates one program on many simulated devices, replicas x partitions, with everything they say to each other.

Each device runs on a thread of its own, but only one runs at a time, in the order of ranks, until it must wait; so
results never depend on timing. When nobody can go on, the error says who waits where, and for whom.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import Argument, Evaluator
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.devices import Device, running_on
from xlalite.hlo.surroundings.host_transfers import HostTransfers, host_transfers
from xlalite.hlo.types.literal import Value


def evaluate_spmd(
    module: HloModule,
    arguments: Sequence[Sequence[Argument]],
    *,
    replica_count: int | None = None,
    num_partitions: int | None = None,
    transfers: Sequence[HostTransfers] = (),
) -> tuple[Value, ...]:
    """The value of a module's entry computation on every device, by rank (`replica * num_partitions + partition`).

    Args:
        module: What every device runs.
        arguments: The arguments of each device, by rank.
        replica_count: Number of replicas; by default what the module's header says.
        num_partitions: Number of partitions of each replica; by default what the module's header says.
        transfers: The host of each device, by rank, for infeed, outfeed and sending to the host.

    Raises:
        EvaluationError: The arguments do not fit, an operation has no value, groups are wrong, or devices wait for each
            other forever.
    """
    replicas = module.config.replica_count if replica_count is None else replica_count
    partitions = module.config.num_partitions if num_partitions is None else num_partitions
    check_devices(replicas, partitions, len(arguments), len(transfers))
    on_device = partial(Evaluator().run, module.entry_computation)

    def program(rank: int) -> Callable[[], Value]:
        def start() -> Value:
            with host_transfers(transfers[rank] if transfers else HostTransfers()):
                return on_device(*arguments[rank])

        return start

    world = _World()
    for rank in range(len(arguments)):
        replica, partition = divmod(rank, partitions)
        device = _SimulatedDevice(replica, partition, replicas, partitions, world)
        device.strand = _Strand(device, program(rank))
        world.devices.append(device)
    return world.run()


def check_devices(replicas: int, partitions: int, arguments: int, transfers: int) -> None:
    """Raises `EvaluationError` unless there are arguments for all devices, and hosts for all or none."""
    count = replicas * partitions
    if replicas < 1 or partitions < 1:
        raise EvaluationError(f"evaluate_spmd: found {replicas} replicas of {partitions} partitions, expected some")
    if arguments != count or transfers not in (0, count):
        raise EvaluationError(
            f"evaluate_spmd: found arguments of {arguments} and transfers of {transfers} devices, expected {count} "
            f"({replicas} replicas x {partitions} partitions)"
        )


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a device does not go on: for others to come to an instruction, or (without members) for a value."""

    instruction: HloInstruction
    members: tuple[int, ...] = ()
    value: Value = ()
    channel: int = 0

    @property
    def meeting(self) -> object:
        """What is equal for those who meet: the channel, or the instruction if it has none."""
        channel = self.instruction.attrs.channel_id
        return (self.instruction.opcode, channel) if channel is not None else self.instruction

    def meets(self, other: Wait | None) -> bool:
        """Whether another device waits in the same place for the same ranks, with arrays of the same sizes."""
        return (
            other is not None
            and (other.meeting, other.members) == (self.meeting, self.members)
            and other.instruction.shape.compatible(self.instruction.shape)
        )

    def __str__(self) -> str:
        return f"{self.instruction.opcode} (%{self.instruction.name})"


def deadlock(waits: Mapping[int, Wait], failed: Collection[int] = ()) -> str:
    """Who waits where and for whom; ranks that do not wait have finished, or failed."""
    lines: dict[str, list[int]] = {}
    for rank, wait in waits.items():
        if not wait.members:
            lines.setdefault(f"in {wait} for a value on channel {wait.channel}", []).append(rank)
            continue
        absent = (other for other in wait.members if not wait.meets(waits.get(other)))
        missing = ", ".join(f"{other} ({_whereabouts(other, waits, failed)})" for other in absent)
        lines.setdefault(f"in {wait} for {missing}", []).append(rank)
    shown = "; ".join(f"ranks {', '.join(map(str, ranks))} wait {line}" for line, ranks in lines.items())
    return f"deadlock: {shown}"


def _whereabouts(rank: int, waits: Mapping[int, Wait], failed: Collection[int]) -> str:
    if rank in waits:
        return f"in %{waits[rank].instruction.name}"
    return "failed" if rank in failed else "finished"


def check_mail(left: Iterable[tuple[int, int]]) -> None:
    """Raises `EvaluationError` if values are left for a rank in a channel."""
    for channel, target in left:
        raise EvaluationError(f"send: nobody received what was sent to rank {target} on channel {channel}")


@dataclass(eq=False)
class _SimulatedDevice(Device):
    """A device among others."""

    world: _World
    strand: _Strand = field(init=False)
    wait: Wait | None = None
    answer: Sequence[Value] = ()

    def exchange(self, instruction: HloInstruction, members: Sequence[int], value: Value) -> Sequence[Value]:
        """Waits for the members."""
        return self._pause(Wait(instruction, tuple(members), value))

    def send(self, channel: int, target: int, value: Value) -> None:
        """Puts the value into the target's mailbox."""
        self.world.mail.setdefault((channel, target), deque()).append(value)

    def receive(self, instruction: HloInstruction, channel: int) -> Value:
        """Waits for mail."""
        return self._pause(Wait(instruction, channel=channel))[0]

    def _pause(self, wait: Wait) -> Sequence[Value]:
        self.wait = wait
        self.strand.pause()
        return self.answer

    def go_on(self, answer: Sequence[Value]) -> None:
        """Gives what the device waits for."""
        self.answer, self.wait = answer, None


class _World:
    """All devices and what is under way between them."""

    def __init__(self) -> None:
        self.devices: list[_SimulatedDevice] = []
        self.mail: dict[tuple[int, int], deque[Value]] = {}

    def run(self) -> tuple[Value, ...]:
        try:
            while not all(device.strand.finished for device in self.devices):
                ready = [device for device in self.devices if device.wait is None and not device.strand.finished]
                for device in ready:
                    device.strand.resume()
                if not ready and not self._serve():
                    waits = {device.rank: device.wait for device in self.devices if device.wait is not None}
                    raise EvaluationError(deadlock(waits))
        finally:
            for device in self.devices:
                device.strand.cancel()
        check_mail(queue for queue, values in self.mail.items() if values)
        return tuple(device.strand.result for device in self.devices)

    def _serve(self) -> bool:
        """Lets those go on who have what they wait for; whether there are any."""
        served = False
        for device in self.devices:
            wait = device.wait
            if wait is None:
                continue
            if not wait.members:
                mail = self.mail.get((wait.channel, device.rank))
                if mail:
                    device.go_on((mail.popleft(),))
                    served = True
            elif not self._missing(wait):
                self._meet(wait)
                served = True
        return served

    def _missing(self, wait: Wait) -> list[_SimulatedDevice]:
        """The members that are not there."""
        others = [self.devices[rank] for rank in wait.members]
        return [
            other
            for other in others
            if other.wait is None or other.wait.meeting != wait.meeting or other.wait.members != wait.members
        ]

    def _meet(self, wait: Wait) -> None:
        waits = [one for one in (self.devices[rank].wait for rank in wait.members) if one is not None]
        for one in waits:
            if not one.instruction.shape.compatible(wait.instruction.shape):
                raise EvaluationError(
                    f"{wait.instruction.opcode}: %{wait.instruction.name} of shape {wait.instruction.shape.text()} "
                    f"meets %{one.instruction.name} of shape {one.instruction.shape.text()} in one channel"
                )
        values = tuple(one.value for one in waits)
        for rank in wait.members:
            self.devices[rank].go_on(values)


class _Cancelled(BaseException):
    """Unwinds a strand that nobody needs any more."""


class _Strand:
    """A function that can pause: it runs on a thread, and only while somebody waits in `resume`.

    Attributes:
        finished: Whether the function has returned or failed.
        result: What it returned.
    """

    def __init__(self, device: Device, function: Callable[[], Value]) -> None:
        self.finished = False
        self.result: Value = ()
        self._device = device
        self._function = function
        self._error: BaseException | None = None
        self._is_cancelled = False
        self._go = threading.Semaphore(0)
        self._stop = threading.Semaphore(0)
        self._thread = threading.Thread(target=contextvars.copy_context().run, args=(self._run,), daemon=True)

    def resume(self) -> None:
        """Runs until the next pause, or the end; raises what the function raised."""
        if self._thread.ident is None:
            self._thread.start()
        self._go.release()
        self._stop.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Gives control back; called from inside."""
        self._stop.release()
        self._go.acquire()
        if self._is_cancelled:
            raise _Cancelled

    def cancel(self) -> None:
        """Ends the thread, wherever it is."""
        if self._thread.ident is None:
            return
        if not self.finished:
            self._is_cancelled = True
            self._go.release()
        self._thread.join()

    def _run(self) -> None:
        self._go.acquire()
        try:
            with running_on(self._device):
                self.result = self._function()
        except _Cancelled:
            pass
        except BaseException as error:
            if isinstance(error, EvaluationError):
                error.add_note(f"on {self._device}")
            self._error = error
        finally:
            self.finished = True
            self._stop.release()
