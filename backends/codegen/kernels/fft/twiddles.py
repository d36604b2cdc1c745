"""Tables of roots of unity, correctly rounded but for the last bit, as bytes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from xlalite.backends.codegen.kernels.fft.plan import LinePlan, SplitPlan
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array


def roots(numerators: Array, count: int) -> Array:
    """`exp(-2 pi i numerator / count)`, in the longest complex type; angles become those of an eighth of a turn."""
    eighths = 8 * (np.asarray(numerators, np.int64) % count)
    octant, rest = eighths // count, eighths % count
    odd = octant % 2 == 1
    angle = np.arctan(np.longdouble(1)) * np.where(odd, count - rest, rest) / count
    cosine, sine = np.cos(angle), np.sin(angle)
    quarter = (octant + 1) // 2
    sine = np.where(odd, -sine, sine)
    found: Array = (cosine - 1j * sine) * np.array([1, -1j, -1, 1j])[quarter % 4]
    return found


def pass_table(radix: int, groups: int, dtype: DType) -> bytes:
    """What a pass multiplies by: `[groups, radix - 1]` complex numbers."""
    numerators = np.multiply.outer(np.arange(groups), np.arange(1, radix))
    return interleaved(roots(numerators, radix * groups), dtype)


def turns(rows: Array, columns: int, count: int, lanes: int, dtype: DType) -> bytes:
    """`exp(-2 pi i row column / count)` for rows and columns `[rows, vectors, 2, lanes]`, real parts first."""
    width = -(-columns // lanes) * lanes
    table = roots(np.multiply.outer(rows, np.arange(width)), count)
    blocks = table.reshape(len(rows), width // lanes, 1, lanes)
    return np.concatenate([blocks.real, blocks.imag], axis=2).astype(dtype.numpy).tobytes()


@lru_cache(maxsize=2)  # a transform and its inverse have the same, of megabytes
def chirp(plan: LinePlan | SplitPlan, dtype: DType) -> tuple[bytes, bytes]:
    """What Bluestein's method multiplies by: elements of the line, and of the convolution's transform.

    The second is divided by the convolution's length, which its inverse transform leaves out.
    """
    numbers = np.arange(plan.length, dtype=np.int64)
    line = roots(numbers * numbers % (2 * plan.length), 2 * plan.length)
    wrapped = np.zeros(plan.size, line.dtype)
    wrapped[: plan.length] = line.conj()
    wrapped[plan.size - plan.length + 1 :] = line[1:][::-1].conj()
    return interleaved(line, dtype), interleaved(np.fft.fft(wrapped) / plan.size, dtype)


def interleaved(table: Array, dtype: DType) -> bytes:
    """Complex numbers as pairs of a type."""
    return np.stack([table.real, table.imag], axis=-1).astype(dtype.numpy).tobytes()
