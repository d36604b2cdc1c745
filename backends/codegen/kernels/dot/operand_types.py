"""The pass that lets products read operands in the types that they have in memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from xlalite.backends.codegen.kernels.dot.numbers import why_no_numbers
from xlalite.backends.codegen.kernels.dot.plan import plan_dot
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.construct import reshape
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.base import HloPass
from xlalite.passes.simplify.conversion import is_lossless

_CONVERT = 3.0
"""Cycles to convert a vector and to write it, for someone else to read."""


@dataclass(frozen=True, slots=True)
class DotOperandTypes(HloPass):
    """dot(convert(A), convert(B)) -> dot(A, B) with the same result type, where the conversions lose nothing.

    The kernel converts as it packs or reads, or multiplies narrow numbers as they are. Comes after whatever moves
    conversions of weights out of loops, which is worth more. Declines where the converted array has other users, as it
    is in memory then, and where converting first is cheaper: an operand that is read where it lies need not be packed.

    Attributes:
        target: What the code is for.
    """

    name: ClassVar[str] = "dot-operand-types"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot"})
    counts_changes: ClassVar[bool] = True

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def run(self, module: HloModule) -> bool:
        """Looks at both operands of every dot, one by one and together."""
        changed = False
        for dot in [one for one in module.instructions() if one.opcode == "dot"]:
            if dot.shape.element_count == 0 or why_no_numbers(dot) is not None:
                continue
            narrow = [_unconverted(operand, dot) for operand in dot.operands]
            if narrow == [None, None]:
                continue
            sides = [(old,) if new is None else (old, new) for old, new in zip(dot.operands, narrow, strict=True)]
            best = min(itertools.product(*sides), key=lambda read: self._cycles(dot, read))
            if best == dot.operands or not self.may_change():
                continue
            types = " and ".join(operand.shape.dtype.value for operand in best)
            module.record(self.name, (dot.name,), "reads " + types, "cheaper than converting before")
            read = [reshape(new, old.shape.dims) for new, old in zip(best, dot.operands, strict=True)]
            replace(dot, create("dot", read, dot.attrs, shape=dot.shape))
            changed = True
        return changed

    def _cycles(self, dot: HloInstruction, read: Sequence[HloInstruction]) -> float:
        """Cycles of a product that reads some instructions, and of the conversions that this leaves before it."""
        parameters = [
            create("parameter", (), ParameterAttrs(number), shape=old.shape.with_dtype(new.shape.dtype), name="operand")
            for number, (old, new) in enumerate(zip(dot.operands, read, strict=True))
        ]
        plan = plan_dot(create("dot", parameters, dot.attrs, shape=dot.shape), self.target)
        converted = sum(new.shape.element_count for new in read if _unconverted(new, dot) is not None)
        return plan.cycles + _CONVERT * converted / plan.lanes


def _unconverted(operand: HloInstruction, dot: HloInstruction) -> HloInstruction | None:
    """What an operand of a dot was converted from, if that serves as well; it may have been reshaped since."""
    if any(user is not dot for user in operand.users) or operand.is_root:
        return None
    if operand.opcode == "reshape":
        operand = operand.operand(0)
        if operand.user_count > 1 or operand.is_root:
            return None
    if operand.opcode != "convert":
        return None
    narrow, wide = operand.operand(0).shape.dtype, operand.shape.dtype
    # The sum of what is f64 would be kept in fewer bits where the result has fewer.
    is_same = is_lossless(narrow, wide) and (wide is not DType.F64 or dot.shape.dtype is wide)
    return operand.operand(0) if is_same else None
