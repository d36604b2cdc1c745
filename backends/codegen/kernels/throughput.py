"""What one core does in a nanosecond, about: on it rests how a kernel is split over threads and compiled, nothing else.

Beside each is what one core of an AMD EPYC with AVX512 did; the figures are those of a machine of half its speed. They
need not be better: a kernel that is split without need loses half a microsecond where other cores are idle, but on a
busy machine, where a thread of the pool may lose its core in the middle of a task, milliseconds now and then.
"""

from __future__ import annotations

from collections.abc import Sequence

_BYTES_PER_NS = (100.0, 50.0, 25.0)
"""Read and written by loops, in L2 or nearer, in L3 and in memory; measured 190, 105 and 37 (`add` of f32)."""

FLOPS_PER_NS = 32.0
"""Operations on elements in vectors; measured 48 to 64 (`subtract` of f32)."""

ELEMENTS_PER_NS = 8.0
"""Elements that are written one by one in code that LLVM did not improve, beyond what it takes else; measured 2."""

TRANSCENDENTALS_PER_NS = 4.0
"""Measured 2 (`log`), 5 (`tanh`), 8.6 (`exponential`) of f32."""

MULTIPLY_ADDS_PER_NS = 4.0
"""Vector multiply-adds of a product's tiles; measured 6.5 to 8 (f32, 256 to 1024 in each dimension)."""

DOT_BYTES_PER_NS = 20.0
"""Operands of products, which are read like streams; measured 32 for a matrix of 4 MB times a vector, 21 for 64 MB."""

MIN_TASK_NS = 2000.0
"""A task worth handing to another thread; a fork-join costs about 0.5 µs."""


def bytes_per_ns(size_bytes: int, cache_bytes: Sequence[int]) -> float:
    """What one core reads and writes of so many bytes that lie in the nearest cache that holds them."""
    _, second, third = cache_bytes
    level = 0 if size_bytes <= second else 1 if size_bytes <= third else 2
    return _BYTES_PER_NS[level]
