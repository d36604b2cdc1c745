"""The pass that lets products compute their operands where they would pack them."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.dot.computed_operand import bytes_for_computing
from xlalite.backends.codegen.kernels.dot.kernel import plan_dot_kernel
from xlalite.backends.codegen.kernels.estimate import kernel_work
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.loop import plan_loop
from xlalite.backends.codegen.kernels.throughput import (
    FLOPS_PER_NS,
    MULTIPLY_ADDS_PER_NS,
    TRANSCENDENTALS_PER_NS,
    bytes_per_ns,
)
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion.fusible import is_immediate, why_not_fusible
from xlalite.passes.fusion.joined_body import joined_body
from xlalite.passes.fusion.kernel_shape import KernelKind, kernel_shapes
from xlalite.passes.simplify.dce import remove_uncalled_computations

_WORTH = 0.95
"""Part of the time that must remain at most: the kernel is larger, and takes longer to compile."""


@dataclass(frozen=True, slots=True)
class DotOperandFusion(HloPass):
    """dot(fusion(x), y) -> fusion(x, y) that computes the operand part by part, as a packed one is copied.

    So dequantised weights, gathered rows, slices and pads are never whole in memory. Requires that kernels have been
    chosen, and comes after what makes operands that are packed once, or chains of products. Declines, with a record,
    what others read, too, and what is cheaper written once: a product packs an operand again for every block of the
    other one.

    Attributes:
        target: What the code is for.
    """

    name: ClassVar[str] = "dot-operand-fusion"
    opcodes: ClassVar[frozenset[str]] = frozenset({"dot"})
    counts_changes: ClassVar[bool] = True

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def run(self, module: HloModule) -> bool:
        """Looks at every operand of every product."""
        changed = False
        for computation in running_computations(module):
            for reader in computation.post_order():
                changed |= self._join_operands(module, reader)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _join_operands(self, module: HloModule, reader: HloInstruction) -> bool:
        for number in _operands_of_product(reader):
            members = _made_for(reader.operand(number))
            joined = None if members is None else self._joined(module, reader, members)
            if joined is not None:
                self._join_operands(module, joined)
                return True
        return False

    def _joined(
        self, module: HloModule, reader: HloInstruction, members: tuple[HloInstruction, ...]
    ) -> HloInstruction | None:
        """What takes the place of a product and of what its operand is made by."""
        subject = members[0].name, reader.name
        writing, reading = self._time_of(members[0], KernelKind.LOOP), self._time_of(reader, KernelKind.DOT)
        if isinstance(writing, Declined) or isinstance(reading, Declined):
            return None
        apart = writing + reading
        figures: dict[str, Number] = {"apart_ns": round(apart), "bytes": members[0].shape.size_bytes}
        if reading > _WORTH * apart:
            module.record(self.name, subject, "not joined", "writing the operand takes next to no time", figures)
            return None
        body, operands = joined_body(f"fused_{reader.name}", (*members, reader), (reader,))
        together = self._time_ns(body, KernelKind.DOT)
        if isinstance(together, Declined):
            module.record(self.name, subject, "not joined", together.reason)
            return None
        figures["together_ns"] = round(together)
        if together > _WORTH * apart:
            module.record(self.name, subject, "not joined", "an operand written once is as quick", figures)
            return None
        if not self.may_change():
            return None
        module.record(self.name, subject, "joined", "it is computed where it would be packed", figures)
        name = reader.name if reader.opcode == "fusion" else f"{reader.name}_fusion"
        attrs = FusionAttrs(FusionKind.OUTPUT)
        joined = create("fusion", operands, attrs, (module.add(body),), shape=reader.shape, name=name)
        replace(reader, joined)
        return joined

    def _time_of(self, instruction: HloInstruction, kind: KernelKind) -> float | Declined:
        body, _ = joined_body(instruction.name, (instruction,), (instruction,))
        return self._time_ns(body, kind)

    def _time_ns(self, body: HloComputation, kind: KernelKind) -> float | Declined:
        """What a kernel takes on one core: loops hide what is shorter, arithmetic or traffic; tiles wait for lines."""
        request = KernelRequest(collapse(body), target=self.target)
        shape = next(shape for shape in kernel_shapes(request.body) if shape.kind is kind)
        work = kernel_work(request.body, shape)
        if kind is KernelKind.DOT:
            kernel = plan_dot_kernel(request, shape)
            if isinstance(kernel, Declined):
                return kernel
            moved = work.bytes_moved - bytes_for_computing(kernel.dot)
            return self._moving_ns(moved) + kernel.plan.cycles / MULTIPLY_ADDS_PER_NS
        loop = plan_loop(request, shape)
        arithmetic = work.flops / FLOPS_PER_NS + work.transcendentals / TRANSCENDENTALS_PER_NS
        return loop if isinstance(loop, Declined) else max(self._moving_ns(work.bytes_moved), arithmetic)

    def _moving_ns(self, size_bytes: int) -> float:
        return size_bytes / bytes_per_ns(size_bytes, self.target.cache_bytes)


def _operands_of_product(reader: HloInstruction) -> tuple[int, ...]:
    """Which operands of an instruction are operands of the one product that it is, or contains, and nothing else."""
    if reader.opcode == "dot":
        return (0, 1) if reader.operand(0) is not reader.operand(1) else ()
    if reader.opcode != "fusion" or reader.attrs.kind is not FusionKind.OUTPUT:
        return ()
    dots = [one for one in reader.called_computations[0].instructions if one.opcode == "dot"]
    if len(dots) != 1:
        return ()
    parameters = (one for one in dots[0].operands if one.opcode == "parameter" and one.user_count == 1)
    return tuple(one.attrs.number for one in parameters)


def _made_for(operand: HloInstruction) -> tuple[HloInstruction, ...] | None:
    """What computes an operand for one reader only, before reshapes of it; None if that is no loop."""
    reshapes: list[HloInstruction] = []
    while operand.use_count == 1 and not operand.is_root:
        if operand.is_controlled:
            return None
        if operand.opcode != "reshape":
            is_loop = operand.shape.is_array and not is_immediate(operand) and _is_loop(operand)
            return (operand, *reversed(reshapes)) if is_loop else None
        reshapes.append(operand)
        operand = operand.operand(0)
    return None


def _is_loop(instruction: HloInstruction) -> bool:
    """Whether all that an instruction computes is computed element by element."""
    if instruction.opcode != "fusion":
        return instruction.op.computes and why_not_fusible(instruction) is None
    body = instruction.called_computations[0].instructions
    return all(one.opcode == "parameter" or why_not_fusible(one) is None for one in body)
