"""Plans of steps on several devices: each device runs its part in a thread of its own, and values are sent between.

A value goes to a device once, however many operations there use it; so does the news that an operation has run. All
parts keep one order of the whole step, so that no two can wait for each other.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.host import Array, HostValue
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.runtime.deadline import Deadline
from xlalite.runtime.operation_step import PlanRegisters, PlanStep
from xlalite.runtime.plan import Plan, PlanParts
from xlalite.runtime.trace import StepTrace, tensor_label
from xlalite.runtime.variables import VariableStore

_PATIENCE_S: Final = 0.02
"""How often a part that waits looks whether the time of the step is over."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """What goes from one device to another.

    Attributes:
        what: The tensor, or the operation after whose end something there may begin.
        source: Where it is made.
        destination: Where it is used.
    """

    what: Tensor | Operation
    source: str
    destination: str

    @property
    def label(self) -> str:
        """It as timelines show it."""
        return tensor_label(self.what) if isinstance(self.what, Tensor) else f"^{self.what.name}"

    @property
    def decision(self) -> Decision:
        """The record of it."""
        reason = "used on another device" if isinstance(self.what, Tensor) else "waited for on another device"
        return Decision("partitioning", (self.label, self.source, self.destination), "sent", reason)


class _StepEndedError(Exception):
    """Another part of the step has failed."""


class Rendezvous:
    """Where the parts of one step leave values for each other."""

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline = deadline
        self._values: dict[int, HostValue | None] = {}
        self._changed = threading.Condition()
        self._error: BaseException | None = None

    def send(self, number: int, value: HostValue | None) -> None:
        """Leaves a value."""
        with self._changed:
            self._values[number] = value
            self._changed.notify_all()

    def receive(self, number: int) -> HostValue | None:
        """Waits for a value and takes it.

        Raises:
            _StepEndedError: It will not come.
            DeadlineExceededError: The time is over.
        """
        with self._changed:
            while number not in self._values:
                if self._error is not None:
                    raise _StepEndedError
                self._changed.wait(None if self._deadline is None else _PATIENCE_S)
                if self._deadline is not None:
                    self._deadline.check()
            return self._values.pop(number)

    def fail(self, error: BaseException) -> None:
        """Ends the step; the first error is the one that counts."""
        with self._changed:
            if self._error is None and not isinstance(error, _StepEndedError):
                self._error = error
            self._changed.notify_all()

    def require_success(self) -> None:
        """Raises the error that ended the step, if one did."""
        if self._error is not None:
            raise self._error

    def check(self) -> None:
        """Raises when the step is over already."""
        if self._error is not None:
            raise _StepEndedError
        if self._deadline is not None:
            self._deadline.check()


class _TransferStep:
    """One end of a transfer.

    Attributes:
        transfer: The transfer.
        registers: The register of the value, unless only the news is sent.
    """

    def __init__(self, transfer: Transfer, number: int, register: int | None, meeting: int) -> None:
        """`number` distinguishes the step's transfers; `meeting` is the register of the step's rendezvous."""
        self.transfer = transfer
        self.registers = () if register is None else (register,)
        self._number, self._meeting = number, meeting


class SendStep(_TransferStep):
    """Leaves what a register holds for another device."""

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Sends."""
        start = trace.now() if trace is not None else 0
        meeting: Rendezvous = registers[self._meeting]  # type: ignore[assignment]  # put there when the step begins
        meeting.send(self._number, registers[self.registers[0]] if self.registers else None)
        if trace is not None:
            trace.record(f"send_{self._number}", "_Send", [_described(self.transfer)], start)


class ReceiveStep(_TransferStep):
    """Waits for what another device leaves."""

    def run(self, registers: PlanRegisters, store: VariableStore, trace: StepTrace | None) -> None:
        """Receives."""
        start = trace.now() if trace is not None else 0
        meeting: Rendezvous = registers[self._meeting]  # type: ignore[assignment]  # put there when the step begins
        value = meeting.receive(self._number)
        for register in self.registers:
            registers[register] = value
        if trace is not None:
            trace.record(f"receive_{self._number}", "_Recv", [_described(self.transfer)], start)


def _described(transfer: Transfer) -> str:
    return f"{transfer.label} @{transfer.destination}"


@dataclass(frozen=True, slots=True)
class Division:
    """The steps of a plan, divided among devices.

    Attributes:
        steps: The steps of each device in order, sends and receives among them.
        homes: The device of each register that a step writes.
        meeting: The register of the step's rendezvous.
    """

    steps: Mapping[str, tuple[PlanStep, ...]]
    homes: Mapping[int, str]
    meeting: int


class DevicePlan(Plan):
    """A plan whose steps are divided among devices.

    Attributes:
        division: The steps of each device.
        transfers: What goes between them.
    """

    def __init__(self, made: PlanParts, division: Division) -> None:
        """Takes what the builder made; the steps are those of the division."""
        super().__init__(made)
        self.division = division
        self.transfers = tuple(step.transfer for step in self.steps if isinstance(step, SendStep))
        first = next(iter(division.steps))
        self._homes = tuple(division.homes.get(number, first) for number in self._fetched)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What placement, clustering, partitioning and compilation decided so far."""
        return (*super().decisions, *(transfer.decision for transfer in self.transfers))

    def run(
        self,
        feeds: Sequence[Array],
        store: VariableStore,
        trace: StepTrace | None = None,
        deadline: Deadline | None = None,
    ) -> list[HostValue]:
        """As every plan; the calling thread runs the steps of the first device."""
        if trace is not None:
            self._trace_feeds(feeds, trace)
        division, meeting = self.division, Rendezvous(deadline)
        registers: dict[str, PlanRegisters] = {}
        for device in division.steps:
            own = registers[device] = self._registers.copy()
            own[: len(feeds)] = feeds
            own[division.meeting] = meeting  # type: ignore[call-overload]  # only sends and receives look at it

        def run_part(device: str) -> None:
            own, its_trace = registers[device], None if trace is None else trace.on(device)
            try:
                for step in division.steps[device]:
                    meeting.check()
                    step.run(own, store, its_trace)
            except BaseException as error:
                meeting.fail(error)

        first, *others = division.steps
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(run_part, device), name=device, daemon=True)
            for device in others
        ]
        for thread in threads:
            thread.start()
        run_part(first)
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:
            meeting.fail(error)
            raise
        meeting.require_success()
        fetched = zip(self._homes, self._fetched, strict=True)
        return self._results([registers[device][number] for device, number in fetched])
