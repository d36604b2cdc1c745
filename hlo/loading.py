"""Reads files that hold a program, in whichever form: by their contents, and by their names where in doubt."""

from __future__ import annotations

import enum
import os
import re
from pathlib import Path

from xlalite.hlo.errors import ParseError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.proto.serialization import parse_pbtxt, parse_proto
from xlalite.hlo.proto.wire import field_numbers
from xlalite.hlo.stablehlo.reading.recognition import is_bytecode
from xlalite.hlo.text import parse

_BINARY_SUFFIX = ".pb"
_ONNX_SUFFIX = ".onnx"
_ONNX_START = b"\x08"  # the version of the format, a number; the protos of HLO begin with a message or a name
_ONNX_FIELDS = {7, 8}  # a graph and the versions of its operators
_TEXT_PROTO_SUFFIXES = (".pbtxt", ".textproto")
_CONTROL_CHARACTER = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_TEXT_PROTO = re.compile(rb"(?:\s|#[^\n]*\n)*+(?:hlo_module\s*+\{\s*+)?name\s*+:\s*+[\"']")
_STRANGERS = (
    (b"PK\x03\x04", "a ZIP archive, as NumPy's *.npz is: arrays, not a program"),
    (b"\x93NUMPY", "an array that NumPy saved, not a program"),
    (b"\xff\xfe", "text in UTF-16; HLO is text in UTF-8"),
    (b"\xfe\xff", "text in UTF-16; HLO is text in UTF-8"),
    (b"\x1f\x8b", "compressed data; gunzip makes the program of it"),
)


class Form(enum.Enum):
    """How a file spells a program."""

    TEXT = "HLO or StableHLO text"
    BYTECODE = "StableHLO as MLIR bytecode"
    TEXT_PROTO = "the text form of an HLO proto"
    PROTO = "an HLO proto"
    ONNX = "an ONNX model"


def load(path: str | os.PathLike[str]) -> HloModule:
    """The module in a file: HLO or StableHLO text, StableHLO bytecode, `HloModuleProto`, `HloProto`, `HloSnapshot`.

    Raises:
        ParseError: The file holds nothing of the kind, or it is damaged; says where.
        OSError: The file cannot be read.
    """
    return parse_file(Path(path).read_bytes(), Path(path).name)


def parse_file(data: bytes, file_name: str) -> HloModule:
    """The module in the contents of a file.

    Raises:
        ParseError: The contents are no program that can be read; says where, or what they are instead.
    """
    match form_of(data, file_name):
        case Form.PROTO:
            return parse_proto(data)
        case Form.TEXT_PROTO:
            return parse_pbtxt(data)
        case Form.TEXT | Form.BYTECODE:
            return parse(data)
        case Form.ONNX:
            raise ParseError("expected HLO, found an ONNX model; xlalite.onnx.load reads it")


def form_of(data: bytes, file_name: str) -> Form:
    """The form of a file: protos by their suffixes or by their contents; everything else is text.

    Raises:
        ParseError: The contents are known to be something else.
    """
    for start, what in _STRANGERS:
        if data.startswith(start):
            raise ParseError(f"expected HLO, found {what}")
    suffix = Path(file_name).suffix.lower()
    if suffix in _TEXT_PROTO_SUFFIXES:
        return Form.TEXT_PROTO
    if suffix == _ONNX_SUFFIX or (data.startswith(_ONNX_START) and field_numbers(data) >= _ONNX_FIELDS):
        return Form.ONNX
    if is_bytecode(data):
        return Form.BYTECODE
    is_binary = _CONTROL_CHARACTER.search(data) is not None
    if suffix == _BINARY_SUFFIX or is_binary:
        return Form.PROTO
    return Form.TEXT_PROTO if _TEXT_PROTO.match(data) else Form.TEXT
