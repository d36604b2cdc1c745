"""Texts, lists and attributes as the C API wants them: memory that lives as long as who answers says."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ErrorCode, ValueKind

NamedValue = ARGUMENTS["NamedValue"]


class Refusal(Exception):
    """An error of the C API.

    Attributes:
        code: Its kind.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


_texts: dict[str, ctypes.Array[ctypes.c_char]] = {}


def lasting_text(text: str) -> ctypes.Array[ctypes.c_char]:
    """A text that is never freed; for names and other words that come again."""
    return _texts.setdefault(text, ctypes.create_string_buffer(text.encode()))


def put_text(arguments: Any, text: str) -> None:
    """Answers with a text that comes again."""
    data = lasting_text(text)
    arguments.text, arguments.text_size = ctypes.addressof(data), len(data) - 1


def put_list(arguments: Any, items: ctypes.Array[ctypes.c_void_p], start: int, count: int) -> None:
    """Answers with a part of a list."""
    arguments.items = ctypes.addressof(items) + ctypes.sizeof(ctypes.c_void_p) * start
    arguments.num_items = count


def put_bytes(arguments: Any, data: bytes) -> None:
    """Answers with bytes that the client gives back when it has read them."""
    memory = ctypes.create_string_buffer(data, max(1, len(data)))
    _lent[ctypes.addressof(memory)] = memory
    arguments.bytes = arguments.owner = ctypes.addressof(memory)
    arguments.size, arguments.deleter = len(data), ctypes.cast(_give_back, ctypes.c_void_p).value


_lent: dict[int, ctypes.Array[ctypes.c_char]] = {}


_give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda owner: _lent.pop(owner, None) and None)


def named_values(values: Mapping[str, str | int | float | Sequence[int]]) -> ctypes.Array[Any]:
    """Attributes: the array, which holds on to all that it points to."""
    kept: list[object] = []
    found = (NamedValue * max(1, len(values)))()
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
