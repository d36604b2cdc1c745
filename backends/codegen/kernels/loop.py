"""The loop kernel: every result element on its own. All results have the same sizes."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.rules import SEVERAL_ELEMENTS
from xlalite.backends.codegen.kernels.ahead import ahead_in_order
from xlalite.backends.codegen.kernels.block_copy import BlockCopyKernel, plan_block_copy
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import loop_nest, loop_nest_extent
from xlalite.backends.codegen.kernels.plain_body import is_plain
from xlalite.backends.codegen.kernels.vector_dimension import vector_dimension
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape, result_dims, results_of
from xlalite.passes.fusion.read_steps import FEW, read_steps
from xlalite.passes.fusion.seams import loop_phases, loop_seams

_FAR_BYTES = 4096
"""How far ahead memory under windows is asked for: its rows are too many, and too short, for what machines do alone."""

_NARROW_LANES = 32
"""Lanes of vectors whose elements are picked out of lines: of more, LLVM takes four times as long to find shuffles."""


def plan_loop(request: KernelRequest, shape: KernelShape) -> LoopKernel | BlockCopyKernel | Declined:
    """The loop kernel of a request, or what copies blocks if that is all."""
    results = results_of(request.body)
    if any(r.shape.is_tuple for r in results) and (len(results) > 1 or results[0].opcode not in SEVERAL_ELEMENTS):
        return Declined("a result is itself a tuple")
    if len({result_dims(result) for result in results}) > 1:
        return Declined("the results differ in size")
    return plan_block_copy(request) or _loops_over(request, shape.domain.dims)


def _loops_over(request: KernelRequest, dims: tuple[int, ...]) -> LoopKernel:
    vectors = vector_dimension(request.body, dims)
    is_narrow = 0 < vectors == len(dims) - 1 and dims[0] <= FEW
    return LoopKernel(request, dims, int(is_narrow and _shares_columns(request, dims)), vectors)


def _shares_columns(request: KernelRequest, dims: tuple[int, ...]) -> bool:
    """Whether rows of a result take elements of the same rows of an operand, which are better read once.

    What is only moved out of the nearer caches is quicker row by row of the result.
    """
    body, second_cache = request.body, request.target.cache_bytes[1]
    is_far = sum(one.shape.size_bytes for one in (*body.parameters, body.root)) > second_cache
    has_dot = any(instruction.opcode == "dot" for instruction in body.instructions)
    return (is_far or has_dot) and _reads_columns(body, dims, len(dims) - 1)


def _reads_columns(body: HloComputation, dims: tuple[int, ...], vectors: int) -> bool:
    """Whether the lanes of a vector read elements a few apart, so far as is known."""
    steps = read_steps(results_of(body), dims, vectors)
    return steps is not None and max(steps, default=0) > 1


@dataclass(frozen=True, slots=True)
class LoopKernel(Kernel):
    """A loop over elements.

    Attributes:
        dims: Sizes of each result.
        first: The first dimension that has a loop; a lane computes the few elements before it side by side.
        vectors: The last one, which vectors lie along, and likewise; -1 if there is none.
    """

    takes_places: ClassVar[bool] = True
    writes_once: ClassVar[bool] = True

    dims: tuple[int, ...]
    first: int
    vectors: int

    @property
    def extent(self) -> int:
        """The outermost dimension that has a loop, or blocks of the only one."""
        return loop_nest_extent(self.dims[self.first : self.vectors + 1])

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over all elements of all results at once."""
        body, dims = self.request.body, self.dims
        reads_windows = any(instruction.opcode == "reduce-window" for instruction in body.instructions)
        ahead = ahead_in_order(self.request, dims, _FAR_BYTES if reads_windows else 0)
        entry = open_kernel(module, name, self.request, ahead=ahead)
        results = results_of(body)

        walked = slice(self.first, self.vectors + 1)
        before, behind = (tuple(product(*map(range, few))) for few in (dims[: walked.start], dims[walked.stop :]))

        def visit(index: Index, lanes: int, mask: Value | None) -> None:
            emitter = entry.emitter(lanes, mask)
            lines = [[(*map(Affine, a), *index, *map(Affine, b)) for b in behind] for a in before]
            # All elements are there before the first is stored: a result may lie in an operand's memory.
            found = [
                [[element for result in results for element in _elements(emitter, result, at)] for at in line]
                for line in lines
            ]
            for line, places in zip(lines, found, strict=True):
                for view, elements in zip(entry.outputs, zip(*places, strict=True), strict=True):
                    view.write_side_by_side(emitter.math, line[0], elements, mask)

        inner = dims[walked]
        lanes = lane_count(module, body, inner[-1] if inner else 1)
        if lanes > _NARROW_LANES and (len(behind) > 1 or _reads_columns(body, dims, self.vectors)):
            lanes = _NARROW_LANES
        entry.fb.is_as_written = _has_lines_alone(body) and is_plain(body)
        seams, phases = loop_seams(results, dims, self.vectors)[walked], loop_phases(results, dims)[walked]
        loop_nest(entry, inner, lanes, visit, seams, phases)
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
