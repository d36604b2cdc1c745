"""Products of matrices: views, plans, tiles in registers, packing, and the kernel that puts them together."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.kernel import DOT
from xlalite.backends.codegen.kernels.dot.view import why_not_viewable

__all__ = ["DOT", "why_not_viewable"]
