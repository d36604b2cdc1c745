"""The loop kernel: every result element on its own. All results have the same sizes."""

from __future__ import annotations

from typing import ClassVar

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.rules import SEVERAL_ELEMENTS
from xlalite.backends.codegen.kernels.block_copy import BlockCopyKernel, plan_block_copy
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import loop_nest, loop_nest_extent
from xlalite.backends.codegen.kernels.plain_body import is_plain
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape, result_dims, results_of
from xlalite.passes.fusion.seams import loop_phases, loop_seams

_AHEAD_BYTES = 4096
"""How far ahead memory under windows is asked for: its rows are too many, and too short, for what machines do alone."""


def plan_loop(request: KernelRequest, shape: KernelShape) -> LoopKernel | BlockCopyKernel | Declined:
    """The loop kernel of a request, or what copies blocks if that is all."""
    results = results_of(request.body)
    if any(r.shape.is_tuple for r in results) and (len(results) > 1 or results[0].opcode not in SEVERAL_ELEMENTS):
        return Declined("a result is itself a tuple")
    if len({result_dims(result) for result in results}) > 1:
        return Declined("the results differ in size")
    return plan_block_copy(request) or LoopKernel(request, shape.domain.dims)


@dataclass(frozen=True, slots=True)
class LoopKernel(Kernel):
    """A loop over elements.

    Attributes:
        dims: Sizes of each result.
    """

    takes_places: ClassVar[bool] = True
    writes_once: ClassVar[bool] = True

    dims: tuple[int, ...]

    @property
    def extent(self) -> int:
        """The outermost dimension, or blocks of the only one."""
        return loop_nest_extent(self.dims)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over all elements of all results at once."""
        body, dims = self.request.body, self.dims
        reads_windows = any(instruction.opcode == "reduce-window" for instruction in body.instructions)
        entry = open_kernel(module, name, self.request, ahead=_AHEAD_BYTES if reads_windows else 0)
        results = results_of(body)

        def visit(index: Index, lanes: int, mask: Value | None) -> None:
            emitter = entry.emitter(lanes, mask)
            # All elements are there before the first is stored: a result may lie in an operand's memory.
            elements = [element for result in results for element in _elements(emitter, result, index)]
            for view, element in zip(entry.outputs, elements, strict=True):
                view.write(emitter.math, index, element, mask)

        lanes = lane_count(module, body, dims[-1] if dims else 1)
        entry.fb.is_as_written = _has_lines_alone(body) and is_plain(body)
        loop_nest(entry, dims, lanes, visit, loop_seams(results, dims), loop_phases(results, dims))
        entry.close()
        return entry.function


def _has_lines_alone(body: HloComputation) -> bool:
    """Whether no array has more dimensions than one."""
    shapes = (leaf for instruction in body.instructions for _, leaf in instruction.shape.leaves())
    return all(not shape.is_array or shape.rank <= 1 for shape in shapes)


def _elements(emitter: ElementEmitter, result: HloInstruction, index: Index) -> tuple[Element, ...]:
    if result.shape.is_tuple:
        return SEVERAL_ELEMENTS[result.opcode](emitter, result, index)
    return (emitter.element(result, index),)
