"""The loop kernel: every result element on its own. All results have the same sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar

from xlalite.backends.codegen.arrays.index import Affine, Index, Position, patterned
from xlalite.backends.codegen.arrays.interleaving import filled_row
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.rules import SEVERAL_ELEMENTS
from xlalite.backends.codegen.kernels.ahead import ahead_in_order
from xlalite.backends.codegen.kernels.block_copy import BlockCopyKernel, plan_block_copy
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import loop_nest, loop_nest_extent
from xlalite.backends.codegen.kernels.plain_body import is_plain
from xlalite.backends.codegen.kernels.vector_dimension import vector_dimension, whole_lines
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value, lane_mask, lanes_of_mask
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
    if 0 < vectors == len(dims) - 1 and _shares_columns(request, dims):
        beside = next((dimension for dimension in (0, vectors - 1) if dims[dimension] <= FEW), None)
        if beside is not None:
            return LoopKernel(request, dims, vectors, beside)
    leaves = (leaf for result in results_of(request.body) for _, leaf in result.shape.leaves())
    bits = max((leaf.dtype.bits for leaf in leaves), default=8)
    lines = whole_lines(request.body, dims, request.target.lanes(bits)) if vectors == len(dims) - 1 else None
    return LoopKernel(request, dims, vectors if lines is None else lines, takes_lines=lines is not None)


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
        vectors: The last dimension that has a loop, which vectors lie along; -1 if there is none. A lane computes the
            few elements behind it side by side.
        beside: A dimension before it whose few elements a lane computes side by side, too; -1 if there is none.
        takes_lines: Whether the elements behind it are lanes of one vector instead.
    """

    takes_places: ClassVar[bool] = True
    writes_once: ClassVar[bool] = True

    dims: tuple[int, ...]
    vectors: int
    beside: int = -1
    takes_lines: bool = False

    @property
    def extent(self) -> int:
        """The outermost dimension that has a loop, or blocks of the only one."""
        return loop_nest_extent(self._walked(self.dims))

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over all elements of all results at once."""
        body, dims = self.request.body, self.dims
        reads_windows = any(instruction.opcode == "reduce-window" for instruction in body.instructions)
        ahead = ahead_in_order(self.request, dims, _FAR_BYTES if reads_windows else 0)
        entry = open_kernel(module, name, self.request, ahead=ahead)
        results = results_of(body)

        inner, behind = self._walked(dims), tuple(product(*map(range, dims[self.vectors + 1 :])))

        def visit(index: Index, lanes: int, mask: Value | None) -> None:
            emitter = entry.emitter(lanes, mask)
            lines = [[(*before, *map(Affine, b)) for b in behind] for before in self._beside(index)]
            # All elements are there before the first is stored: a result may lie in an operand's memory.
            found = [
                [[element for result in results for element in _elements(emitter, result, at)] for at in line]
                for line in lines
            ]
            for line, places in zip(lines, found, strict=True):
                for view, elements in zip(entry.outputs, zip(*places, strict=True), strict=True):
                    view.write_side_by_side(emitter.math, line[0], elements, mask)

        def visit_lines(index: Index, lines: int, mask: Value | None) -> None:
            known = lines if mask is None else len(lanes_of_mask(mask) or ())
            used = known * len(behind)
            width = filled_row(used)
            at = _places_of_lines(index, lines, dims[self.vectors + 1 :], width)
            emitter = entry.emitter(width, None if used == width else lane_mask(width, used))
            found = [emitter.element(result, at) for result in results]
            for view, element in zip(entry.outputs, found, strict=True):
                view.write(emitter.math, at, element, emitter.mask)

        lanes = lane_count(module, body, (inner[-1] if inner else 1) * (len(behind) if self.takes_lines else 1))
        if lanes > _NARROW_LANES and (len(behind) > 1 or _reads_columns(body, dims, self.vectors)):
            lanes = _NARROW_LANES
        entry.fb.is_as_written = _has_lines_alone(body) and is_plain(body)
        seams, phases = self._walked(loop_seams(results, dims, self.vectors)), self._walked(loop_phases(results, dims))
        if self.takes_lines:
            lines = 1 << max(lanes // len(behind), 1).bit_length() - 1
            loop_nest(entry, inner, lines, visit_lines, seams, phases)
        else:
            loop_nest(entry, inner, lanes, visit, seams, phases)
        entry.close()
        return entry.function

    def _walked(self, dimensions: Sequence[Any]) -> tuple[Any, ...]:
        """Of something for each dimension, that of those that have a loop."""
        return tuple(one for d, one in enumerate(dimensions[: self.vectors + 1]) if d != self.beside)

    def _beside(self, index: Index) -> list[Index]:
        """The indices that a lane computes, of the dimensions up to that of the vectors, for one of those walked."""
        if self.beside < 0:
            return [index]
        return [
            (*index[: self.beside], Affine(number), *index[self.beside :]) for number in range(self.dims[self.beside])
        ]


def _places_of_lines(index: Index, lines: int, dims: Sequence[int], lanes: int) -> Index:
    """The index of each lane of a vector that takes lines of some sizes, one behind the other."""
    last, places, rest = index[-1], list[Position](), list(range(lanes))
    assert isinstance(last, Affine), "lines follow each other"
    for size in reversed(dims[1:] if lines == 1 else dims):
        places.append(patterned(0, [lane % size for lane in rest]))
        rest = [lane // size for lane in rest]
    line = [last, patterned(0, rest)] if lines == 1 else [patterned(last.base, rest)]
    return (*index[:-1], *line, *reversed(places))


def _has_lines_alone(body: HloComputation) -> bool:
    """Whether no array has more dimensions than one."""
    shapes = (leaf for instruction in body.instructions for _, leaf in instruction.shape.leaves())
    return all(not shape.is_array or shape.rank <= 1 for shape in shapes)


def _elements(emitter: ElementEmitter, result: HloInstruction, index: Index) -> tuple[Element, ...]:
    if result.shape.is_tuple:
        return SEVERAL_ELEMENTS[result.opcode](emitter, result, index)
    return (emitter.element(result, index),)
