"""What lies behind the handles that jaxlib holds; machine code and Python share these records."""

from __future__ import annotations

import ctypes


class ErrorRecord(ctypes.Structure):
    """An error; its text lies behind it."""

    _fields_ = (("code", ctypes.c_int64), ("length", ctypes.c_int64))


class Event(ctypes.Structure):
    """Something that will have happened.

    Fields:
        awaiting: The last who wants to know; the event's own address when it has happened.
    """

    _fields_ = (("references", ctypes.c_int64), ("awaiting", ctypes.c_void_p))


class Awaiter(ctypes.Structure):
    """What is to be called when an event has happened, and who wanted to know before."""

    _fields_ = (("next", ctypes.c_void_p), ("callback", ctypes.c_void_p), ("user_arg", ctypes.c_void_p))


class Block(ctypes.Structure):
    """Memory that buffers share; it is the host's own if an event says when it is not needed any more."""

    _fields_ = (
        ("references", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("size_bytes", ctypes.c_int64),
        ("host_event", ctypes.c_void_p),
    )


class Buffer(ctypes.Structure):
    """An array on a device; its sizes lie behind it.

    Fields:
        holds: Who needs the block: the buffer itself until it is deleted, and each call that reads it.
    """

    _fields_ = (
        ("block", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("size_bytes", ctypes.c_int64),
        ("type", ctypes.c_int32),
        ("is_deleted", ctypes.c_int32),
        ("holds", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("device", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
    )


class Place(ctypes.Structure):
    """A device or a memory of it.

    Fields:
        other: The device of a memory; of a device, its usual memory.
        kind, kind_size: What kind of memory it is.
    """

    _fields_ = (
        ("number", ctypes.c_int64),
        ("other", ctypes.c_void_p),
        ("kind", ctypes.c_void_p),
        ("kind_size", ctypes.c_int64),
    )


class OutputSpec(ctypes.Structure):
    """What a result of an executable is; `alias` is the argument whose block it takes, or -1."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("alias", ctypes.c_int32),
        ("size_bytes", ctypes.c_int64),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
    )


class Loaded(ctypes.Structure):
    """An executable.

    Fields:
        call: Its record for `xlalite_run`.
        specs: What its results are.
        input_bytes: Sizes of its arguments.
        is_donated: Which arguments are donated, an int each; null when none is.
        next: The next one that jaxlib has destroyed.
    """

    _fields_ = (
        ("call", ctypes.c_void_p),
        ("num_inputs", ctypes.c_int64),
        ("num_outputs", ctypes.c_int64),
        ("num_replicas", ctypes.c_int64),
        ("num_partitions", ctypes.c_int64),
        ("specs", ctypes.c_void_p),
        ("input_bytes", ctypes.c_void_p),
        ("is_donated", ctypes.c_void_p),
        ("is_deleted", ctypes.c_int32),
        ("pad", ctypes.c_int32),
        ("next", ctypes.c_void_p),
    )


class Shared(ctypes.Structure):
    """What the machine code and Python tell each other.

    Fields:
        run: Runs the entry of an executable.
        buffer_from_strided, execute_on_devices: Functions of the table for what machine code leaves to Python.
        explain_failure: The error for an executable and the status of a run.
        item_bytes: Bytes of an element of each type.
        default_device: Where arrays go that name no place.
        bytes_in_use: What the blocks hold.
        destroyed: The executables that jaxlib has destroyed, a list.
        ready: An event that has always happened.
    """

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("run", "buffer_from_strided", "execute_on_devices", "explain_failure")),
        *((name, ctypes.c_void_p) for name in ("item_bytes", "default_device")),
        ("bytes_in_use", ctypes.c_int64),
        ("destroyed", ctypes.c_void_p),
        ("ready", Event),
    )
