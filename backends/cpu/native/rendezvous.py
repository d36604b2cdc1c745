"""Runs of several devices, seen from Python: the memory in which they meet, and how they wait.

The machine code is in `rendezvous_ir`; compiled code calls `xlalite_meet` by name (`rendezvous_imports`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.runtime_code import runtime_code

MEET = "xlalite_meet"
"""`i32 xlalite_meet(ptr context, i64 number, i64 count, ptr ranks, ptr own, ptr tables)`: 0 if all are there.

It waits for the devices of some ranks, and gives the table of addresses that each brought. A meeting is known by its
number and ranks.
"""

SEND, RECEIVE = "xlalite_send", "xlalite_receive"
"""`i32 xlalite_send(ptr context, i64 channel, i64 rank, ptr description, ptr table)`, and `xlalite_receive` without the
rank: 0 if the arrays of a table went to, or came from, another device. What has another description does not come."""

HOST_PUT, HOST_TAKE = "xlalite_host_put", "xlalite_host_take"
"""`i32 xlalite_host_put(ptr context, i64 channel, i64 target, ptr description, ptr table)`, and `xlalite_host_take`: 0
if the arrays of a table went to, or came from, a queue of the host. Neither waits."""

OPEN, CLOSE, LEAVE, STOP, AWAIT = (f"xlalite_devices_{word}" for word in ("open", "close", "leave", "stop", "await"))
HOST_OPEN, HOST_CLOSE, HOST_AWAIT = (f"xlalite_host_{word}" for word in ("open", "close", "await"))
LOCK, UNLOCK, POP, RELEASE = (f"xlalite_mail_{word}" for word in ("lock", "unlock", "pop", "release"))

_LOCK_BYTES = 64
"""At least what a mutex, or a condition variable, of the C libraries takes."""


class Context(ctypes.Structure):
    """What an entry function takes as its context: threads, the run of several devices and the rank in it, the host."""

    _fields_ = [
        ("pool", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("host", ctypes.c_void_p),
        ("unused", ctypes.c_int64 * 4),
    ]


class Mail(ctypes.Structure):
    """A list of letters: the first, and where the pointer to the next one will be written."""

    _fields_ = [("lock", ctypes.c_int8 * _LOCK_BYTES), ("first", ctypes.c_void_p), ("end", ctypes.c_void_p)]


class HostState(ctypes.Structure):
    """The mailbox of a host."""

    _fields_ = [*Mail._fields_, ("arrived", ctypes.c_int8 * _LOCK_BYTES)]


class Description(ctypes.Structure):
    """What a value is like: sizes of this record, of all arrays; behind it the size of each array, then its type."""

    _fields_ = [("size", ctypes.c_int64), ("data_size", ctypes.c_int64), ("count", ctypes.c_int64)]


class Letter(ctypes.Structure):
    """A value on its way; its arrays lie behind the description, one right after the other."""

    _fields_ = [
        ("next", ctypes.c_void_p),
        ("channel", ctypes.c_int64),
        ("target", ctypes.c_int64),
        ("description", Description),
    ]


class DeviceState(ctypes.Structure):
    """A device of a run: how it is, how its last wait ended, whether it has mail; the meeting it came to, its table."""

    _fields_ = [
        ("awake", ctypes.c_int8 * _LOCK_BYTES),
        ("state", ctypes.c_int32),
        ("outcome", ctypes.c_int32),
        ("posted", ctypes.c_int32),
        ("pad", ctypes.c_int32),
        ("number", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("ranks", ctypes.c_void_p),
        ("own", ctypes.c_void_p),
    ]


class RunState(ctypes.Structure):
    """A run; its devices lie behind it."""

    _fields_ = [
        *Mail._fields_,
        ("devices", ctypes.c_int64),
        ("running", ctypes.c_int64),
        ("over", ctypes.c_int32),
        ("pad", ctypes.c_int32),
    ]


class Rendezvous:
    """Where the devices of one run meet; valid until `close`, which must come after all devices have left.

    Attributes:
        address: The run; also a list of the letters between its devices.
    """

    def __init__(self, hosts: Sequence[int], pool: int) -> None:
        """Makes a run of as many devices as there are mailboxes of their hosts, with a native pool."""
        devices = len(hosts)
        self._runtime = rendezvous_runtime()
        self._memory = (ctypes.c_int64 * ((ctypes.sizeof(RunState) + devices * ctypes.sizeof(DeviceState)) // 8))()
        self.address = ctypes.addressof(self._memory)
        self._run = RunState.from_buffer(self._memory)
        self._devices = (DeviceState * devices).from_buffer(self._memory, ctypes.sizeof(RunState))
        self._contexts = [Context(pool, self.address, rank, host) for rank, host in enumerate(hosts)]
        self._runtime.open(self.address, devices)

    def context(self, rank: int) -> int:
        """Address of what an entry function takes as its context on a device."""
        return ctypes.addressof(self._contexts[rank])

    def meet(self, rank: int, number: int, ranks: Sequence[int], own: int) -> list[int] | None:
        """Waits for ranks; the address that each brings; None if the run is over."""
        places, tables = (ctypes.c_int64 * len(ranks))(*ranks), (ctypes.c_void_p * len(ranks))()
        if self._runtime.meet(self.context(rank), number, len(ranks), places, own, tables):
            return None
        return [table or 0 for table in tables]

    def tables(self, rank: int, ranks: Sequence[int]) -> list[int] | None:
        """What each of the ranks has brought to the meeting that native code of a device is in; None if in none."""
        state = self._devices[rank]
        if not state.count or state.number % 2 or state.outcome or self._run.over:
            return None
        return [self._devices[other].own or 0 for other in ranks]

    def send(self, rank: int, queue: tuple[int, int], described: bytes, table: ctypes.Array[ctypes.c_void_p]) -> bool:
        """Sends arrays to another device in a channel; whether there was memory for the letter."""
        return not self._runtime.send(self.context(rank), *queue, described, table)

    def wait_for_mail(self, rank: int) -> bool:
        """Waits until there was mail for a device since it last asked; whether there will be any."""
        return not self._runtime.wait_for_mail(self.address, rank)

    def leave(self, rank: int) -> None:
        """Says that a device will come no more."""
        self._runtime.leave(self.address, rank)

    def stop(self) -> None:
        """Ends the run: who waits, or comes to a meeting later, is told that it is over."""
        self._runtime.stop(self.address)

    def close(self) -> None:
        """Gives back what the run holds."""
        self._runtime.close(self.address)


def rendezvous_imports() -> Mapping[str, int]:
    """Addresses of what generated code calls by name."""
    names = (MEET, SEND, RECEIVE, HOST_PUT, HOST_TAKE)
    return {name: rendezvous_runtime().module.address(name) for name in names}


class RendezvousRuntime:
    """The native functions, callable from Python (ctypes releases the interpreter lock around each)."""

    def __init__(self, module: LinkedModule) -> None:
        """Finds them in the code."""
        self.module = module
        word, pointer, text = ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
        self.meet = self._function(MEET, ctypes.c_int32, pointer, word, word, pointer, pointer, pointer)
        self.open = self._function(OPEN, None, pointer, word)
        self.close = self._function(CLOSE, None, pointer)
        self.leave = self._function(LEAVE, None, pointer, word)
        self.stop = self._function(STOP, None, pointer)
        self.send = self._function(SEND, ctypes.c_int32, pointer, word, word, text, pointer)
        self.wait_for_mail = self._function(AWAIT, ctypes.c_int32, pointer, word)
        self.lock, self.unlock = self._function(LOCK, None, pointer), self._function(UNLOCK, None, pointer)
        self.pop = self._function(POP, pointer, pointer, word, word)
        self.release = self._function(RELEASE, None, pointer)
        self.open_host, self.close_host = (
            self._function(HOST_OPEN, None, pointer),
            self._function(HOST_CLOSE, None, pointer),
        )
        self.put = self._function(HOST_PUT, ctypes.c_int32, pointer, word, word, text, pointer)
        self.wait_for_host = self._function(HOST_AWAIT, None, pointer, word, word)

    def _function(self, name: str, result: type | None, *arguments: type) -> ctypes._CFunctionType:
        return ctypes.CFUNCTYPE(result, *arguments)(self.module.address(name))


@once
def rendezvous_runtime() -> RendezvousRuntime:
    """The runtime of this process."""

    def write() -> str:
        from xlalite.backends.cpu.native.rendezvous_ir import rendezvous_ir

        return rendezvous_ir()

    return RendezvousRuntime(runtime_code("rendezvous", write))
