"""What one core does in a nanosecond, about: whether a kernel is split over threads rests on it, and nothing else.

Beside each is what one core of an AMD EPYC with AVX512 did: arrays of 16 KB unless said otherwise, chains of one
operation, the quickest of nine runs. The figures are those of a slower machine on purpose: a kernel that is split
without need loses half a microsecond, one that is not split where it pays loses all that other threads would have done.
"""

from __future__ import annotations

from xlalite.passes.fusion.work import EXPENSIVE_FLOPS

BYTES_PER_NS = 8.0
"""Read and written by loops; measured 60 to 90 in the caches, 29 in memory (`negate` of f32, 64 MB)."""

FLOPS_PER_NS = 16.0
"""Operations on elements in vectors; measured 48 to 64 (`subtract` of f32)."""

TRANSCENDENTALS_PER_NS = FLOPS_PER_NS / EXPENSIVE_FLOPS
"""Measured 1.6 (`tanh`) to 3.3 (`exponential`) of f32."""

MULTIPLY_ADDS_PER_NS = 3.0
"""Vector multiply-adds of a product's tiles; measured 3.2 to 3.6 (f32 and f64, 256 and 512 in each dimension)."""

DOT_BYTES_PER_NS = 20.0
"""Operands of products, which are read like streams; measured 32 for a matrix of 4 MB times a vector, 21 for 64 MB."""

MIN_TASK_NS = 2000.0
"""A task worth handing to another thread; a fork-join costs about 0.5 µs."""
