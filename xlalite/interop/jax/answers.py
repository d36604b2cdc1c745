"""Texts, lists and attributes as the C API wants them: memory that lives as long as who answers says."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ErrorCode, ValueKind

NamedValue = ARGUMENTS["NamedValue"]
Text = ctypes.Array[ctypes.c_char]

_new_memory = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(("PyMem_RawMalloc", ctypes.pythonapi))
# No function of Python's: who gives memory back may do so while an exception is pending.
_give_back = ctypes.cast(ctypes.pythonapi.PyMem_RawFree, ctypes.c_void_p).value


class Refusal(Exception):
    """An error of the C API.

    Attributes:
        code: Its kind.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


_texts: dict[str, Text] = {}


def lasting_text(text: str) -> Text:
    """A text that is never freed; for names and other words that come again."""
    return _texts.setdefault(text, ctypes.create_string_buffer(text.encode()))


def put_text(arguments: Any, text: str | Text) -> None:
    """Answers with a text that comes again, or with one that somebody keeps."""
    data = lasting_text(text) if isinstance(text, str) else text
    arguments.text, arguments.text_size = ctypes.addressof(data), len(data) - 1


def put_list(arguments: Any, items: ctypes.Array[ctypes.c_void_p], start: int, count: int) -> None:
    """Answers with a part of a list."""
    arguments.items = ctypes.addressof(items) + ctypes.sizeof(ctypes.c_void_p) * start
    arguments.num_items = count


def put_bytes(arguments: Any, data: bytes) -> None:
    """Answers with bytes that the client gives back when it has read them."""
    memory = _new_memory(len(data))
    if memory is None:
        raise MemoryError(f"there is no memory for {len(data)} bytes")
    ctypes.memmove(memory, data, len(data))
    arguments.bytes = arguments.owner = memory
    arguments.size, arguments.deleter = len(data), _give_back


def clear_after(arguments: Any, field: str) -> None:
    """Clears what follows a field, however much of it the client knows."""
    place = getattr(type(arguments), field)
    begin = place.offset + place.size
    ctypes.memset(ctypes.addressof(arguments) + begin, 0, max(0, arguments.struct_size - begin))


def named_values(values: Mapping[str, str | int | float | Sequence[int]]) -> ctypes.Array[Any]:
    """Attributes: the array, which holds on to all that it points to."""
    kept: list[object] = []
    found = (NamedValue * len(values))()
    for entry, (name, value) in zip(found, values.items(), strict=False):
        text = lasting_text(name)
        entry.struct_size, entry.name, entry.name_size = (
            ctypes.sizeof(NamedValue),
            ctypes.addressof(text),
            len(text) - 1,
        )
        entry.value_size = 1
        if isinstance(value, str):
            data = lasting_text(value)
            entry.type, entry.value, entry.value_size = ValueKind.STRING, ctypes.addressof(data), len(data) - 1
        elif isinstance(value, float):
            entry.type, entry.value = ValueKind.FLOAT, struct.unpack("<i", struct.pack("<f", value))[0]
        elif isinstance(value, int):
            entry.type, entry.value = ValueKind.INTEGER, value
        else:
            numbers = (ctypes.c_int64 * max(1, len(value)))(*value)
            kept.append(numbers)
            entry.type, entry.value, entry.value_size = ValueKind.INTEGERS, ctypes.addressof(numbers), len(value)
    found.kept = kept
    array: ctypes.Array[Any] = found
    return array
