"""The pass that gives every dot a view as a batch of matrix products."""

from __future__ import annotations

from dataclasses import dataclass

from xlalite.backends.codegen.kernels.dot.view import why_not_viewable
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.preparation.dot_canonicalizer import DotCanonicalizer


@dataclass(frozen=True, slots=True)
class DotCanonicalizerForKernel(DotCanonicalizer):
    """Canonicalises only the dots that the dot kernel cannot read where their operands lie.

    The kernel packs and transposes on its own, so that all others are better left as they are.
    """

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether an operand has dimensions that lie apart and would have to be walked by one stride."""
        return why_not_viewable(instruction) is not None
