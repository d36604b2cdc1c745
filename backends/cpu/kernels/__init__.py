"""The kinds of kernels: each file turns one shape of computation into one native function."""

from __future__ import annotations

from xlalite.backends.cpu.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.cpu.kernels.loop import LOOP

KERNEL_KINDS: tuple[KernelKind, ...] = (LOOP,)
"""All kinds, the most special first; the loop kernel takes what the others decline."""

__all__ = ["KERNEL_KINDS", "KernelKind", "KernelRequest"]
