"""Which names HLO text can hold."""

from __future__ import annotations

import re

from xlalite.hlo.types.dtype import DType

_NAME = re.compile(r"[\w.]+(?:-[\w.]*)*", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z_][\w.]*(?:-[\w.]*)*", re.ASCII)
_RESERVED = frozenset(
    {"HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames", "FileLocations", "StackFrames"}
    | {dtype.value for dtype in DType}
)


def is_writable_name(name: str) -> bool:
    """Whether a name can stand in HLO text: letters, digits, `_`, `.` and `-`, ASCII only."""
    return _NAME.fullmatch(name) is not None


def needs_percent(name: str) -> bool:
    """Whether a name must be written with `%` lest it be read as something else."""
    return name in _RESERVED or _PLAIN.fullmatch(name) is None
