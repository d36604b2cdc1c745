"""Reads files that hold a program, in whichever form their names promise."""

from __future__ import annotations

import os
from pathlib import Path

from xlalite.hlo.module import HloModule
from xlalite.hlo.proto.serialization import parse_pbtxt, parse_proto
from xlalite.hlo.text import parse

BINARY_SUFFIX = ".pb"
"""End of the name of a file that holds a serialized `HloModuleProto` or `HloProto`."""

TEXT_PROTO_SUFFIXES = (".pbtxt", ".textproto")
"""Ends of the names of files that hold the text form of one."""


def load(path: str | os.PathLike[str]) -> HloModule:
    """The module in a file: `.pb`, `.pbtxt` or `.textproto`; HLO or StableHLO text under every other name.

    Raises:
        ParseError: The file does not hold what its name promises; says where.
        OSError: The file cannot be read.
    """
    return parse_file(Path(path).read_bytes(), Path(path).name)


def parse_file(data: bytes, file_name: str) -> HloModule:
    """The module in the contents of a file, whose name tells the form.

    Raises:
        ParseError: The contents are not what the name promises; says where.
    """
    suffix = Path(file_name).suffix.lower()
    if suffix == BINARY_SUFFIX:
        return parse_proto(data)
    if suffix in TEXT_PROTO_SUFFIXES:
        return parse_pbtxt(data)
    return parse(data)
