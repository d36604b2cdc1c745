"""Products of matrices: views, plans, tiles in registers, packing, and the kernel that puts them together."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.kernel import plan_dot_kernel
from xlalite.backends.codegen.kernels.dot.view import why_not_viewable

__all__ = ["plan_dot_kernel", "why_not_viewable"]
