"""The update kernel: a dynamic-update-slice whose result lies in its operand's memory writes the update only."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.elements.slicing import clamped_starts
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import loop_nest, loop_nest_extent
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape
from xlalite.passes.fusion.seams import loop_seams


def plan_update(request: KernelRequest, shape: KernelShape) -> UpdateKernel | Declined:
    """The kernel that writes a dynamic-update-slice in place."""
    if not request.is_update:
        return Declined("the result does not lie in the memory of what it updates")
    return UpdateKernel(request, shape.domain.dims)


@dataclass(frozen=True, slots=True)
class UpdateKernel(Kernel):
    """An update in place.

    Attributes:
        dims: Sizes of the update.
    """

    dims: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The outermost dimension, or blocks of the only one."""
        return loop_nest_extent(self.dims)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over the update."""
        body, dims = self.request.body, self.dims
        entry = open_kernel(module, name, self.request)
        target, update, *starts = body.root.operands
        offsets = clamped_starts(entry.emitter(1), tuple(starts), target.shape.dims, dims)

        def visit(index: Index, lanes: int, mask: Value | None) -> None:
            emitter = entry.emitter(lanes, mask)
            element = emitter.element(update, index)
            place = tuple(emitter.math.add(at, offset) for at, offset in zip(index, offsets, strict=True))
            entry.outputs[0].write(emitter.math, place, element, mask)

        lanes = lane_count(module, body, dims[-1] if dims else 1)
        loop_nest(entry, dims, lanes, visit, loop_seams((update,), dims))
        entry.fb.ret()
        return entry.function
