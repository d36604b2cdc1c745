"""Tells StableHLO text from HLO text."""

from __future__ import annotations

import re

_START = re.compile(
    r"""\s*+ (?: //[^\n]*+\n\s*+ )*+
    (?: module \s*+ (?: @ | \{ | attributes\b )
      | builtin\.module\b | "builtin\.module" | func\.func\b | "func\.func"
      | \#[\w.]++\s*+= | ![\w.]++\s*+= )""",
    re.VERBOSE | re.ASCII,
)


def is_stablehlo(text: str | bytes) -> bool:
    """Whether a text begins as a module of MLIR rather than of HLO."""
    start = text[:65536].decode("utf-8", "replace") if isinstance(text, bytes) else text[:65536]
    return _START.match(start.removeprefix("\ufeff")) is not None
