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

OPEN, CLOSE, LEAVE, STOP, POST, AWAIT = (
    f"xlalite_devices_{word}" for word in ("open", "close", "leave", "stop", "post", "await")
)

_LOCK_BYTES = 64
"""At least what a mutex, or a condition variable, of the C libraries takes."""


class Context(ctypes.Structure):
    """What an entry function takes as its context: threads, and the device that it runs on; a lone one has no run."""

    _fields_ = [
        ("pool", ctypes.c_void_p),
        ("run", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("unused", ctypes.c_int64 * 5),
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
        ("lock", ctypes.c_int8 * _LOCK_BYTES),
        ("devices", ctypes.c_int64),
        ("running", ctypes.c_int64),
        ("over", ctypes.c_int32),
        ("pad", ctypes.c_int32),
    ]


class Rendezvous:
    """Where the devices of one run meet; valid until `close`, which must come after all devices have left."""

    def __init__(self, devices: int, pool: int) -> None:
        """Makes a run whose devices have a native pool."""
        self._runtime = _runtime()
        self._memory = (ctypes.c_int64 * ((ctypes.sizeof(RunState) + devices * ctypes.sizeof(DeviceState)) // 8))()
        self._address = ctypes.addressof(self._memory)
        self._run = RunState.from_buffer(self._memory)
        self._devices = (DeviceState * devices).from_buffer(self._memory, ctypes.sizeof(RunState))
        self._contexts = [Context(pool, self._address, rank) for rank in range(devices)]
        self._runtime.open(self._address, devices)

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

    def post(self, rank: int) -> None:
        """Tells a device that it has mail."""
        self._runtime.post(self._address, rank)

    def wait_for_mail(self, rank: int) -> bool:
        """Waits until there was mail for a device since it last asked; whether there will be any."""
        return not self._runtime.wait_for_mail(self._address, rank)

    def leave(self, rank: int) -> None:
        """Says that a device will come no more."""
        self._runtime.leave(self._address, rank)

    def stop(self) -> None:
        """Ends the run: who waits, or comes to a meeting later, is told that it is over."""
        self._runtime.stop(self._address)

    def close(self) -> None:
        """Gives back what the run holds."""
        self._runtime.close(self._address)


def rendezvous_imports() -> Mapping[str, int]:
    """Address of what generated code calls by name."""
    return {MEET: _runtime().module.address(MEET)}


class _Runtime:
    """The native functions, callable from Python (ctypes releases the interpreter lock around each)."""

    def __init__(self, module: LinkedModule) -> None:
        self.module = module
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        self.meet = self._function(MEET, ctypes.c_int32, pointer, word, word, pointer, pointer, pointer)
        self.open = self._function(OPEN, None, pointer, word)
        self.close = self._function(CLOSE, None, pointer)
        self.leave = self._function(LEAVE, None, pointer, word)
        self.stop = self._function(STOP, None, pointer)
        self.post = self._function(POST, None, pointer, word)
        self.wait_for_mail = self._function(AWAIT, ctypes.c_int32, pointer, word)

    def _function(self, name: str, result: type | None, *arguments: type) -> ctypes._CFunctionType:
        return ctypes.CFUNCTYPE(result, *arguments)(self.module.address(name))


@once
def _runtime() -> _Runtime:
    def write() -> str:
        from xlalite.backends.cpu.native.rendezvous_ir import rendezvous_ir

        return rendezvous_ir()

    return _Runtime(runtime_code("rendezvous", write))
