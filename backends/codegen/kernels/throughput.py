"""What one core does in a nanosecond, about: whether a kernel is split over threads rests on it, and nothing else."""

BYTES_PER_NS = 8.0
FLOPS_PER_NS = 16.0
TRANSCENDENTALS_PER_NS = 1.0
MULTIPLY_ADDS_PER_NS = 3.0
DOT_BYTES_PER_NS = 20.0

MIN_TASK_NS = 2000.0
"""A task worth handing to another thread; a fork-join costs about 0.5 µs."""
