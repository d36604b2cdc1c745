"""Kernels that differ only in the values of constants: one that takes them as arguments serves all.

LLVM needs a millisecond or two for any kernel, however small. A constant in the code is quicker than one in memory, so
only kernels of little work share, and only where a module has many kernels and many of one form.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from xlalite.backends.codegen.kernels.loop import LoopKernel
from xlalite.backends.codegen.kernels.planner import KernelPlan
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.literal import Literal
from xlalite.passes.fusion.fusible import is_immediate

_MANY_KERNELS = 64
_MANY_OF_A_FORM = 8
_MOST_ELEMENTS = 4096

_SAME_FOR_ALL_VALUES = frozenset({
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "compare", "select", "clamp", "and", "or", "xor",
})  # fmt: skip
"""What LLVM computes to the same bits whether an operand is known or not."""


@dataclass(frozen=True, slots=True)
class SharedKernel:
    """What one kernel for all values of some constants computes.

    Attributes:
        kernel: The kernel, whose last parameters are the constants.
        form: Equal for plans that may share it.
        constants: Their values for one of the plans.
    """

    kernel: LoopKernel
    form: str
    constants: tuple[Literal, ...]

    def decision(self, instruction: HloInstruction) -> Decision:
        """The record for one of the instructions that share it."""
        reason = "many small kernels differ from it only in the values of constants"
        return Decision("constant sharing", (instruction.name,), "shared", reason, {"constants": len(self.constants)})


class ConstantSharing:
    """Looks at the kernels of a module in turn, and says from when on they share."""

    def __init__(self) -> None:
        self._kernels = 0
        self._forms: Counter[str] = Counter()

    def of(self, plan: KernelPlan) -> SharedKernel | None:
        """The kernel to share; None for a kernel of its own."""
        self._kernels += 1
        if self._kernels <= _MANY_KERNELS or not isinstance(plan.kernel, LoopKernel):
            return None
        found = _with_constants_as_parameters(plan.kernel)
        if found is None:
            return None
        self._forms[found.form] += 1
        return found if self._forms[found.form] > _MANY_OF_A_FORM else None


def _has_little_work(body: HloComputation) -> bool:
    return not any(i.called_computations for i in body.instructions) and all(
        leaf.element_count <= _MOST_ELEMENTS for _, leaf in body.root.shape.leaves() if leaf.is_array
    )


def _with_constants_as_parameters(kernel: LoopKernel) -> SharedKernel | None:
    """None where there is much work, or no constant whose value may come late."""
    request, body = kernel.request, HloComputation("shared")
    if not _has_little_work(request.body):
        return None
    inner: dict[HloInstruction, HloInstruction] = {}
    for parameter in request.body.parameters:
        inner[parameter] = body.add(parameter.clone(()))
    constants: list[Literal] = []
    for instruction in request.body.post_order():
        if instruction.opcode == "parameter":
            continue
        if is_immediate(instruction) and _may_come_late(instruction):
            attrs = ParameterAttrs(len(request.body.parameters) + len(constants))
            late = HloInstruction(OPS["parameter"], instruction.shape, attrs=attrs, name=instruction.name)
            inner[instruction] = body.add(late)
            constants.append(instruction.attrs.literal)
            continue
        inner[instruction] = body.add(instruction.clone([inner[operand] for operand in instruction.operands]))
    if not constants:
        return None
    body.set_root(inner[request.body.root])
    return SharedKernel(replace(kernel, request=replace(request, body=body)), fingerprint(body), tuple(constants))


def _may_come_late(constant: HloInstruction) -> bool:
    """Whether its readers, through broadcasts too, need not know the value."""
    readers: list[HloInstruction] = []
    for reader in constant.users:
        readers += reader.users if reader.opcode == "broadcast" else (reader,)
    return bool(readers) and all(reader.opcode in _SAME_FOR_ALL_VALUES for reader in readers)
