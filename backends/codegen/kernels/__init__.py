"""The kinds of kernels: each file turns one shape of computation into one native function."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.column import COLUMN
from xlalite.backends.codegen.kernels.concatenate import CONCATENATE
from xlalite.backends.codegen.kernels.dot import DOT
from xlalite.backends.codegen.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.codegen.kernels.loop import LOOP
from xlalite.backends.codegen.kernels.row import ROW
from xlalite.backends.codegen.kernels.transpose import TRANSPOSE
from xlalite.backends.codegen.kernels.update import UPDATE

KERNEL_KINDS: tuple[KernelKind, ...] = (UPDATE, TRANSPOSE, CONCATENATE, DOT, ROW, COLUMN, LOOP)
"""All kinds, the most special first; the loop kernel takes what the others decline."""

__all__ = ["KERNEL_KINDS", "KernelKind", "KernelRequest"]
