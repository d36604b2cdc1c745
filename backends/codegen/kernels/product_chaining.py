"""The pass that makes one kernel of a product, the rows made of its result, and a product of those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xlalite.backends.codegen.kernels.chain import ChainKernel, plan_chain
from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion.kernel_shape import KernelKind, kernel_shapes
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class ProductChaining(HloPass):
    """dot -> fusion that reduces rows -> dot, each needed by the next one only -> one fusion.

    What is handed on, such as the scores of attention, is then never whole in memory. Requires that kernels have been
    chosen. Declines, with a record, where the kernel does, see `plan_chain`.

    Attributes:
        target: What the code is for; its caches say how many rows are computed at a time.
    """

    name: ClassVar[str] = "product-chaining"
    counts_changes: ClassVar[bool] = True

    target: TargetInfo

    def run(self, module: HloModule) -> bool:
        """Makes one fusion of every chain; says whether there was any."""
        changed = False
        for computation in running_computations(module):
            for rows in computation.post_order():
                members = _chain_around(rows)
                if members is not None:
                    changed |= self._join(module, members)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _join(self, module: HloModule, members: Sequence[HloInstruction]) -> bool:
        body, operands = _body(members)
        request = KernelRequest(collapse(body), target=self.target)
        shape = next(shape for shape in kernel_shapes(request.body) if shape.kind is KernelKind.CHAIN)
        kernel = plan_chain(request, shape)
        subject = tuple(member.name for member in members)
        if isinstance(kernel, Declined):
            module.record(self.name, subject, "not joined", kernel.reason)
            return False
        if not self.may_change():
            return False
        assert isinstance(kernel, ChainKernel), "what plans chains gives one"
        saved = sum(member.shape.size_bytes for member in members[:-1])
        figures = {"bytes": saved, "rows": kernel.rows}
        module.record(self.name, subject, "joined", "what they hand on is never whole in memory", figures)
        last = members[-1]
        attrs = FusionAttrs(FusionKind.OUTPUT)
        replace(
            last, create("fusion", operands, attrs, (module.add(body),), shape=last.shape, name=f"{last.name}_chain")
        )
        return True


def _chain_around(rows: HloInstruction) -> tuple[HloInstruction, ...] | None:
    """A product, a fusion, and what it is only needed for, a product or a fusion with one."""
    if rows.opcode != "fusion" or not rows.shape.is_array or not _is_for_one(rows):
        return None
    if not any(one.opcode == "reduce" for one in rows.called_computations[0].instructions):
        return None
    (last,) = rows.users
    if not last.shape.is_array or last.is_controlled or last.operand_positions(rows) != _left_of_product(last):
        return None
    first = next((one for one in rows.operands if one.opcode == "dot" and _is_for_one(one)), None)
    return None if first is None else (first, rows, last)


def _is_for_one(instruction: HloInstruction) -> bool:
    return instruction.user_count == 1 and not instruction.is_root and not instruction.is_controlled


def _left_of_product(last: HloInstruction) -> tuple[int, ...]:
    """Where the left operand of the only product stands among the operands."""
    if last.opcode == "dot":
        return (0,)
    dots = [one for called in last.called_computations for one in called.instructions if one.opcode == "dot"]
    if last.opcode != "fusion" or len(dots) != 1 or dots[0].operand(0).opcode != "parameter":
        return ()
    return (dots[0].operand(0).attrs.number,)


def _body(members: Sequence[HloInstruction]) -> tuple[HloComputation, list[HloInstruction]]:
    """The members in one computation, and what they need from outside, by the number of the parameter."""
    body = HloComputation(f"fused_{members[-1].name}")
    inner: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    for member in members:
        for operand in member.operands:
            if operand not in inner:
                attrs = ParameterAttrs(len(operands))
                name = f"param_{len(operands)}.{operand.name}"
                inner[operand] = body.add(create("parameter", (), attrs, shape=operand.shape, name=name))
                operands.append(operand)
        if member.opcode != "fusion":
            inner[member] = body.add(member.clone([inner[operand] for operand in member.operands]))
            continue
        (called,) = member.called_computations
        copies = {parameter: inner[member.operand(parameter.attrs.number)] for parameter in called.parameters}
        for one in called.post_order():
            if one not in copies:
                copies[one] = body.add(one.clone([copies[operand] for operand in one.operands]))
        inner[member] = copies[called.root]
    body.set_root(inner[members[-1]])
    return body, operands
