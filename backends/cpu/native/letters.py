"""Letters between devices, programs and hosts, as Python writes and reads them (see `mail_ir`)."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from xlalite.backends.cpu.native.rendezvous import Context, Description, HostState, Letter, Mail, rendezvous_runtime
from xlalite.hlo.surroundings.host_transfers import HostTransfers
from xlalite.hlo.surroundings.mailbox import Mailbox, Queue
from xlalite.hlo.types.literal import Array, Literal, Token, Value
from xlalite.hlo.types.shape import Shape


def description(shape: Shape) -> bytes:
    """What a letter's value is like."""
    sizes = [leaf.size_bytes for _, leaf in shape.leaves() if leaf.is_array]
    text = shape.text().encode()
    size = ctypes.sizeof(Description) + 8 * len(sizes) + len(text)
    return bytes(Description(size, sum(sizes), len(sizes))) + np.array(sizes, np.int64).tobytes() + text


class Enclosed:
    """A value for a letter: its description, and the table of its arrays, which live as long as this object."""

    def __init__(self, value: Value) -> None:
        """Takes the value's arrays.

        Raises:
            LiteralError: It is no value of HLO.
        """
        literal = Literal(value)
        self._arrays = [*_leaves(literal)]
        self.description = description(literal.shape)
        self.table = (ctypes.c_void_p * max(len(self._arrays), 1))(*(array.ctypes.data for array in self._arrays))


def taken(mail: int, queue: Queue) -> Value | None:
    """The value of the oldest letter in a queue of a list of letters, which goes out of it; None if there is none."""
    runtime = rendezvous_runtime()
    letter = runtime.pop(mail, *queue)
    if letter is None:
        return None
    try:
        return _opened(letter)
    finally:
        runtime.release(letter)


def queues(mail: int) -> list[Queue]:
    """The queues of a list of letters that hold some, in the order of their first letters."""
    with _locked(mail):
        return [*dict.fromkeys(queue for _, queue in _letters(mail))]


class NativeMailbox(Mailbox):
    """The mailbox of a host in memory that compiled code reads and writes.

    Attributes:
        address: Where it is; for `Context.host`.
    """

    def __init__(self) -> None:
        """Empty."""
        self._runtime = rendezvous_runtime()
        self._state = HostState()
        self.address = ctypes.addressof(self._state)
        self._context = Context(host=self.address)
        self._runtime.open_host(self.address)
        weakref.finalize(self, _close, self._state)

    def put(self, queue: Queue, value: Value) -> None:
        """Puts a copy into the queue."""
        enclosed = Enclosed(value)
        if self._runtime.put(ctypes.addressof(self._context), *queue, enclosed.description, enclosed.table):
            raise MemoryError("no memory for a value between program and host")

    def take(self, queue: Queue, *, waits: bool) -> Value | None:
        """The value, in memory of its own."""
        if waits:
            self._runtime.wait_for_host(self.address, *queue)
        return taken(self.address, queue)

    def values(self, queue: Queue) -> list[Value]:
        """Copies."""
        with _locked(self.address):
            return [_opened(letter) for letter, found in _letters(self.address) if found == queue]

    def queues(self) -> list[Queue]:
        """In the order of their first letters."""
        return queues(self.address)


def native_mailbox(host: HostTransfers) -> NativeMailbox:
    """The mailbox of a host, which is native from now on."""
    return host.kept_in(NativeMailbox, NativeMailbox)


def _close(state: HostState) -> None:
    rendezvous_runtime().close_host(ctypes.addressof(state))


@contextmanager
def _locked(mail: int) -> Iterator[None]:
    runtime = rendezvous_runtime()
    runtime.lock(mail)
    try:
        yield
    finally:
        runtime.unlock(mail)


def _letters(mail: int) -> Iterator[tuple[int, Queue]]:
    address = Mail.from_address(mail).first
    while address:
        letter = Letter.from_address(address)
        yield address, (letter.channel, letter.target)
        address = letter.next


def _opened(letter: int) -> Value:
    """The value in a letter, copied."""
    begin = letter + Letter.description.offset
    described = Description.from_address(begin)
    skipped = ctypes.sizeof(Description) + described.count * ctypes.sizeof(ctypes.c_int64)
    shape = _parsed(ctypes.string_at(begin + skipped, described.size - skipped))
    arrays, address = [], begin + described.size
    for _, leaf in shape.leaves():
        if leaf.is_array:
            array = np.empty(leaf.dims, leaf.dtype.numpy)
            ctypes.memmove(array.ctypes.data, address, array.nbytes)
            arrays.append(array)
            address += array.nbytes
    return _nested(shape, iter(arrays))


@functools.lru_cache(256)
def _parsed(text: bytes) -> Shape:
    # Few programs need the parser.
    from xlalite.hlo.text import parse_shape

    return parse_shape(text.decode())


def _nested(shape: Shape, arrays: Iterator[Array]) -> Value:
    if shape.is_tuple:
        return tuple(_nested(element, arrays) for element in shape.elements)
    return next(arrays) if shape.is_array else Token()


def _leaves(literal: Literal) -> Iterator[Array]:
    if literal.shape.is_tuple:
        for element in literal.elements:
            yield from _leaves(element)
    elif literal.shape.is_array:
        yield np.ascontiguousarray(literal.value)
