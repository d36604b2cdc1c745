"""Reads files with programs, HLO in all its forms and ONNX models: whole, or split at lines of `// -----`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from xlalite.hlo.errors import BinaryParseError, XlaliteError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.loading import Form, form_of, parse_file
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

STANDARD_INPUT = "-"
SEPARATOR = "// -----"
_SEPARATOR_LINE = re.compile(r"^// -----[ \t]*\n?", re.MULTILINE)


class InputError(XlaliteError, ValueError):
    """A file is not what a command can read; names the file."""


def read_module(path: str) -> HloModule:
    """The module in a file, or in standard input for `-`.

    Raises:
        InputError: The file holds no valid module; the message has the file and, for text, the line and the column.
        OSError: The file cannot be read.
    """
    return read_modules(path)[0]


def read_modules(path: str, *, split: bool = False) -> list[HloModule]:
    """The module in a file; with `split` those between its separator lines.

    Raises:
        InputError: The file holds no valid module; the message has the file and, for text, the line and the column.
        OSError: The file cannot be read.
    """
    data = _read(path)
    if _form(data, path) is Form.ONNX:  # whose constants would be long as text
        return [_of_onnx(data, path)]
    text = _text(data, path)
    return [module_of(part, path) for part in (split_text(text) if split else [text])]


def read_text(path: str) -> str:
    """The text of a file, or standard input for `-`; a module that is a protocol buffer is printed.

    Raises:
        InputError: The file is neither text nor a protocol buffer.
        OSError: The file cannot be read.
    """
    return _text(_read(path), path)


def _read(path: str) -> bytes:
    return sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()


def _form(data: bytes, path: str) -> Form:
    try:
        return form_of(data, path)
    except XlaliteError as error:
        raise InputError(f"{shown_name(path)}: {error}") from error


def _text(data: bytes, path: str) -> str:
    form = _form(data, path)
    if form is Form.ONNX:
        return _of_onnx(data, path).to_string("lossless")
    try:
        if form is not Form.TEXT:
            return parse_file(data, path).to_string("lossless")
    except BinaryParseError as error:
        raise InputError(f"{shown_name(path)}: expected HLO, found neither text nor a proto: {error}") from error
    except XlaliteError as error:
        raise InputError(f"{shown_name(path)}: {error}") from error
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        found = f"byte 0x{data[error.start]:02x} at {error.start}"
        raise InputError(f"{shown_name(path)}: expected HLO or StableHLO text in UTF-8, found {found}") from None


def module_of(text: str, path: str) -> HloModule:
    """The module of a text that came from a file, verified.

    Raises:
        InputError: It is not valid; the message starts with the file.
    """
    try:
        module = parse(text)
        verify(module)
    except XlaliteError as error:
        raise InputError(f"{shown_name(path)}: {error}") from error
    return module


def _of_onnx(data: bytes, path: str) -> HloModule:
    """The module of an ONNX model, for sizes of 1 where it leaves them open."""
    from xlalite.interop.onnx.model import model_of  # which few need

    directory = None if path == STANDARD_INPUT else Path(path).parent
    try:
        module = model_of(data, directory).module()
        verify(module)
    except XlaliteError as error:
        raise InputError(f"{shown_name(path)}: {error}") from error
    return module


def split_text(text: str) -> list[str]:
    """The parts between separator lines; each keeps its line numbers by starting with as many empty lines."""
    parts: list[str] = []
    start = 0
    for match in [*_SEPARATOR_LINE.finditer(text), None]:
        end = match.start() if match else len(text)
        parts.append("\n" * text.count("\n", 0, start) + text[start:end])
        start = match.end() if match else end
    return parts


def shown_name(path: str) -> str:
    """How messages call a file."""
    return "standard input" if path == STANDARD_INPUT else path
