"""Arrays without elements become constants: nothing has to compute them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from xlalite.hlo.building.construct import constant
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class ZeroSizedElimination(HloPass):
    """Replaces every array instruction whose result has no elements by an empty constant.

    Parameters, side effects, instructions with control dependencies and dynamic shapes stay.
    """

    name: ClassVar[str] = "zero-sized-elimination"
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Replaces in every computation; says whether anything changed."""
        changed = False
        for instruction in module.instructions():
            if _is_replaceable(instruction) and self.may_change():
                shape = instruction.shape
                replace(instruction, constant(np.zeros(shape.dims, shape.dtype.numpy)))
                changed = True
        return changed


def _is_replaceable(instruction: HloInstruction) -> bool:
    shape = instruction.shape
    if 0 not in shape.dims or not shape.is_array or shape.is_dynamic:
        return False
    if instruction.opcode in ("constant", "parameter") or instruction.has_side_effect:
        return False
    return not instruction.is_controlled
