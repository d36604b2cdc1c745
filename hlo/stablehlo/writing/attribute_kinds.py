"""How wide the integers of attributes are, which only their names tell."""

from __future__ import annotations

from xlalite.hlo.types.dtype import DType

_NARROW = frozenset({"api_version", "index", "exponent_bits", "mantissa_bits", "version"})
_NARROW_PREFIXES = ("tf.", "mhlo.num_")


def integer_dtype(key: str) -> DType:
    """The type of an integer under a name."""
    return DType.S32 if key in _NARROW or key.startswith(_NARROW_PREFIXES) else DType.S64
