"""Runs compiled code on several simulated devices, a thread each; they meet in native code.

Results do not depend on time: each device combines in the order of its group. Those who wait in vain are told so when
nobody can go on, and the error then is that of the first device which failed, or says who waits where and for whom.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
import zlib
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.backends.cpu.compilation.evaluator_calls import copied, values_at
from xlalite.backends.cpu.native.letters import Enclosed, native_mailbox, queues, taken
from xlalite.backends.cpu.native.rendezvous import Rendezvous
from xlalite.hlo.errors import EvaluationError, XlaliteError
from xlalite.hlo.evaluation.spmd import Wait, check_mail, deadlock
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.devices import Device, running_on
from xlalite.hlo.surroundings.host_transfers import HostTransfers, host_transfers
from xlalite.hlo.types.literal import Array, Value
from xlalite.hlo.types.shape import Shape

Program = Callable[[int, Sequence[object]], object]
"""Runs the code on a device, whose context is given by its address, for its arguments."""


def run_on_devices(
    program: Program,
    arguments: Sequence[Sequence[object]],
    counts: tuple[int, int],
    pool: int,
    transfers: Sequence[HostTransfers],
) -> tuple[object, ...]:
    """The results of the devices, by rank.

    Args:
        program: What each device runs.
        arguments: The arguments of each device.
        counts: Replicas, and partitions of each.
        pool: The native pool of threads.
        transfers: The host of each device; none if they have none.
    """
    hosts = transfers or [HostTransfers() for _ in arguments]
    rendezvous = Rendezvous([native_mailbox(host).address for host in hosts], pool)
    run = _Run(rendezvous)
    for rank in range(len(arguments)):
        run.devices.append(_RunningDevice(*divmod(rank, counts[1]), *counts, run))
    threads = []
    for device, given in zip(run.devices, arguments, strict=True):
        context = contextvars.copy_context()
        work = (context.run, device.run_program, program, given, hosts[device.rank])
        threads.append(threading.Thread(target=_call, args=work, daemon=True))
    try:
        _run_threads(threads, rendezvous, hosts)
        run.check()
    finally:
        rendezvous.close()
    return tuple(device.result for device in run.devices)


def _run_threads(threads: Sequence[threading.Thread], rendezvous: Rendezvous, hosts: Sequence[HostTransfers]) -> None:
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        rendezvous.stop()
        for host in hosts:
            host.let_go()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _call(run: Callable[..., None], *arguments: object) -> None:
    run(*arguments)


class _RunIsOver(EvaluationError):
    """Others will never come."""


class _Run:
    """The devices of a run."""

    def __init__(self, rendezvous: Rendezvous) -> None:
        self.rendezvous = rendezvous
        self.devices: list[_RunningDevice] = []

    def check(self) -> None:
        """Raises what went wrong."""
        failed = [device for device in self.devices if device.error is not None and device.wait is None]
        waits = {device.rank: device.wait for device in self.devices if device.wait is not None}
        if failed:
            error = failed[0].error
            assert error is not None, "it failed"
            if waits:
                error.add_note(deadlock(waits, [device.rank for device in failed]))
            raise error
        if waits:
            raise EvaluationError(deadlock(waits))
        check_mail(queues(self.rendezvous.address))


@dataclass(eq=False)
class _RunningDevice(Device):
    """A device whose program is compiled: what it says here is what the program does not do itself."""

    run: _Run
    wait: Wait | None = None
    error: BaseException | None = None
    result: object = None

    def run_program(self, program: Program, arguments: Sequence[object], host: HostTransfers) -> None:
        """Runs it to its end; whatever that is, others are told."""
        try:
            with running_on(self), host_transfers(host):
                self.result = program(self.run.rendezvous.context(self.rank), arguments)
        except BaseException as error:
            if isinstance(error, XlaliteError):
                error.add_note(f"on {self}")
            self.error = error
        finally:
            self.run.rendezvous.leave(self.rank)

    def exchange(self, instruction: HloInstruction, members: Sequence[int], value: Value) -> Sequence[Value]:
        """What the others bring, whether native code has met them or this must."""
        shape = Shape.tuple([operand.shape for operand in instruction.operands])
        rendezvous = self.run.rendezvous
        tables = rendezvous.tables(self.rank, members)
        if tables is not None:
            return [values_at(shape, table) for table in tables]
        number = _number(instruction)
        arrays = [*map(np.ascontiguousarray, _arrays(value))]
        own = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        tables = rendezvous.meet(self.rank, number, members, ctypes.addressof(own))
        if tables is None:
            self.wait = Wait(instruction, tuple(members))
            raise _RunIsOver(f"{self.wait} waits in vain")
        try:
            return [copied(values_at(shape, table)) for table in tables]
        finally:
            rendezvous.meet(self.rank, number + 1, members, ctypes.addressof(own))

    def send(self, channel: int, target: int, value: Value) -> None:
        """Posts a letter."""
        enclosed = Enclosed(value)
        if not self.run.rendezvous.send(self.rank, (channel, target), enclosed.description, enclosed.table):
            raise MemoryError("send: no memory for a letter")

    def receive(self, instruction: HloInstruction, channel: int) -> Value:
        """Waits for a letter."""
        rendezvous = self.run.rendezvous
        while True:
            value = taken(rendezvous.address, (channel, self.rank))
            if value is not None:
                return value
            if not rendezvous.wait_for_mail(self.rank):
                self.wait = Wait(instruction, channel=channel)
                raise _RunIsOver(f"{self.wait} waits in vain")


def _arrays(value: Value) -> list[Array]:
    return [array for part in value for array in _arrays(part)] if isinstance(value, tuple) else [array_value(value)]


def _number(instruction: HloInstruction) -> int:
    """What a meeting is known by that native code does not arrange."""
    channel = instruction.attrs.channel_id
    name = f"{instruction.opcode} {instruction.shape} {instruction.name if channel is None else channel}"
    return -2 * zlib.crc32(name.encode()) - 2
