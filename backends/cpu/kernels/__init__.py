"""The kinds of kernels: each file turns one shape of computation into one native function."""

from __future__ import annotations

from xlalite.backends.cpu.kernels.column import COLUMN
from xlalite.backends.cpu.kernels.concatenate import CONCATENATE
from xlalite.backends.cpu.kernels.dot import DOT
from xlalite.backends.cpu.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.cpu.kernels.loop import LOOP
from xlalite.backends.cpu.kernels.row import ROW
from xlalite.backends.cpu.kernels.transpose import TRANSPOSE
from xlalite.backends.cpu.kernels.update import UPDATE

KERNEL_KINDS: tuple[KernelKind, ...] = (UPDATE, TRANSPOSE, CONCATENATE, DOT, ROW, COLUMN, LOOP)
"""All kinds, the most special first; the loop kernel takes what the others decline."""

__all__ = ["KERNEL_KINDS", "KernelKind", "KernelRequest"]
