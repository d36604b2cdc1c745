"""Products of matrices: views, plans, tiles in registers, packing, and the kernel that puts them together."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.kernel import plan_dot_kernel

__all__ = ["plan_dot_kernel"]
