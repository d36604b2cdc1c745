"""The pass that lets convolutions pad their input line by line, as pieces of work need it."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.dot.kernel import plan_dot_kernel
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.control_flow import FusionAttrs, FusionKind
from xlalite.hlo.records import dataclass
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.analysis.matrix_products import is_matrix_product
from xlalite.passes.core.base import HloPass
from xlalite.passes.fusion.joined_body import joined_body
from xlalite.passes.fusion.kernel_shape import KernelKind, kernel_shapes
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class ConvolutionPadFusion(HloPass):
    """convolution(pad(x), k) -> fusion(x, k) whose pieces of work copy the lines of x that they see, with zeros around.

    So an image is not written, and read again from memory, only to have zeros around it. Requires that kernels have
    been chosen. Declines, with a record, what others read, too, and convolutions whose pieces see much of an image
    each.

    Attributes:
        target: What the code is for.
    """

    name: ClassVar[str] = "convolution-pad-fusion"
    opcodes: ClassVar[frozenset[str]] = frozenset({"convolution"})
    counts_changes: ClassVar[bool] = True

    target: TargetInfo = field(default_factory=TargetInfo.host)

    def run(self, module: HloModule) -> bool:
        """Looks at the input of every convolution."""
        changed = False
        for computation in running_computations(module):
            for reader in computation.post_order():
                pad = _padded_input(reader)
                changed |= pad is not None and self._join(module, pad, reader)
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _join(self, module: HloModule, pad: HloInstruction, reader: HloInstruction) -> bool:
        subject, size = (pad.name, reader.name), {"bytes": pad.shape.size_bytes}
        if pad.use_count > 1 or pad.is_root or pad.is_controlled:
            module.record(self.name, subject, "not joined", "others read it, too", size)
            return False
        body, operands = joined_body(f"fused_{reader.name}", (pad, reader), (reader,))
        request = KernelRequest(collapse(body), target=self.target)
        shape = next(shape for shape in kernel_shapes(request.body) if shape.kind is KernelKind.DOT)
        kernel = plan_dot_kernel(request, shape)
        if isinstance(kernel, Declined):
            module.record(self.name, subject, "not joined", kernel.reason, size)
            return False
        if not self.may_change():
            return False
        module.record(self.name, subject, "joined", "lines are padded as they are needed", size)
        name = reader.name if reader.opcode == "fusion" else f"{reader.name}_fusion"
        joined = create(
            "fusion", operands, FusionAttrs(FusionKind.OUTPUT), (module.add(body),), shape=reader.shape, name=name
        )
        replace(reader, joined)
        return True


def _padded_input(reader: HloInstruction) -> HloInstruction | None:
    """What pads the input of the convolution that an instruction is, or contains; None if nothing does."""
    if reader.opcode == "convolution" and is_matrix_product(reader):
        image = reader.operand(0)
    elif reader.opcode == "fusion" and reader.attrs.kind is FusionKind.OUTPUT:
        products = [one for one in reader.called_computations[0].instructions if is_matrix_product(one)]
        inner = products[0].operand(0) if len(products) == 1 and products[0].opcode == "convolution" else None
        if inner is None or inner.opcode != "parameter" or inner.user_count > 1:
            return None
        image = reader.operand(inner.attrs.number)
        if reader.operands.count(image) > 1:
            return None
    else:
        return None
    root = image.called_computations[0].root if image.opcode == "fusion" else image
    return image if root.opcode == "pad" else None
