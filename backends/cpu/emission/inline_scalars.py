"""Work on single elements, which the entry does itself."""

from __future__ import annotations

from collections.abc import Callable

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource
from xlalite.backends.codegen.elements.rules import ELEMENT_RULES
from xlalite.backends.codegen.kernels.kernel_entry import read_from
from xlalite.backends.codegen.kernels.planner import KernelPlan
from xlalite.backends.codegen.llvm import FunctionBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.shape import Shape, ShapeIndex
from xlalite.passes.fusion.kernel_shape import results_of


def compute_inline(
    fb: FunctionBuilder,
    instruction: HloInstruction,
    plan: KernelPlan,
    address: Callable[[HloInstruction, ShapeIndex], Value],
) -> None:
    """Writes what a kernel would compute straight into the caller; `address` says where values lie."""
    sources: dict[HloInstruction, ElementSource] = {}
    for parameter, operand in zip(plan.kernel.request.body.parameters, plan.operands, strict=True):
        shape = parameter.shape
        sources[parameter] = read_from(ArrayView.row_major(address(operand, ()), shape.dtype, shape.dims))
    body = plan.kernel.request.body
    emitter = ElementEmitter(fb, 1, sources, ELEMENT_RULES)
    if plan.kernel.request.is_update:
        from xlalite.backends.codegen.elements.slicing import clamped_starts

        target, update, *starts = body.root.operands
        computed: tuple[HloInstruction, ...] = (update,)
        written = [target.shape]
        places = [clamped_starts(emitter, tuple(starts), target.shape.dims, update.shape.dims)]
    else:
        computed = results_of(body)
        written = [result.shape for result in computed]
        places = [*map(_first_index, written)]
    elements = [emitter.element(each, _first_index(each.shape)) for each in computed]
    leaves = [index for index, _ in instruction.shape.leaves()]
    for index, shape, place, element in zip(leaves, written, places, elements, strict=True):
        view = ArrayView.row_major(address(instruction, index), shape.dtype, shape.dims)
        view.write(emitter.math, place, element)


def _first_index(shape: Shape) -> Index:
    return (Affine(0),) * shape.rank
