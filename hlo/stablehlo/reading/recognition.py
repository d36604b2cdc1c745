"""Tells StableHLO, text or bytecode, from HLO text."""

from __future__ import annotations

import re

_START = re.compile(
    r"""\s*+ (?: //[^\n]*+\n\s*+ )*+
    (?: module \s*+ (?: @ | \{ | attributes\b )
      | builtin\.module\b | "builtin\.module" | func\.func\b | "func\.func"
      | \#[\w.]++\s*+= | ![\w.]++\s*+= )""",
    re.VERBOSE | re.ASCII,
)


_BYTECODE = b"ML\xefR"
_CONTROL_CHARACTER = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def is_bytecode(data: bytes) -> bool:
    """Whether bytes are MLIR bytecode, or a binary file that begins soon, as those of `jax.export` do."""
    start = data[:65536]
    return start.startswith(_BYTECODE) or (_BYTECODE in start and _CONTROL_CHARACTER.search(start) is not None)


def is_stablehlo(text: str | bytes) -> bool:
    """Whether a text begins as a module of MLIR rather than of HLO, or is MLIR bytecode."""
    if isinstance(text, bytes) and is_bytecode(text):
        return True
    start = text[:65536].decode("utf-8", "replace") if isinstance(text, bytes) else text[:65536]
    return _START.match(start.removeprefix("\ufeff")) is not None
