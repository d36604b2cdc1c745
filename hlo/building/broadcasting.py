"""NumPy's broadcasting of known sizes."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.errors import ShapeError


def broadcast_dims(lhs: Sequence[int], rhs: Sequence[int]) -> tuple[int, ...]:
    """The sizes two operands are broadcast to.

    Raises:
        ShapeError: two sizes differ and neither is 1.
    """
    rank = max(len(lhs), len(rhs))
    padded_lhs = (1,) * (rank - len(lhs)) + tuple(lhs)
    padded_rhs = (1,) * (rank - len(rhs)) + tuple(rhs)
    result = []
    for a, b in zip(padded_lhs, padded_rhs, strict=True):
        if a != b and 1 not in (a, b):
            raise ShapeError(f"Incompatible shapes {tuple(lhs)} and {tuple(rhs)}: sizes {a} and {b} differ")
        result.append(b if a == 1 else a)
    return tuple(result)


def repeated_axes(own: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Dimensions of the common shape along which `own` is repeated when it is broadcast with `other`."""
    common = broadcast_dims(own, other)
    offset = len(common) - len(own)
    return tuple(i for i, size in enumerate(common) if i < offset or (own[i - offset] == 1 and size != 1))
