"""The concatenate kernel: each operand is written to its part of the result by a loop of its own.

No element asks which operand it comes from, and operands may be computed on the way. The parallel extent is the
outermost result dimension, or blocks of a one-dimensional result. Of many operands, those that are computed alike share
a loop, and the others are spread over several functions: LLVM's time and memory grow faster than a function does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index
from xlalite.backends.codegen.elements.elements import ElementSource
from xlalite.backends.codegen.kernels.ahead import ahead_in_order
from xlalite.backends.codegen.kernels.block_copy import BlockCopyKernel, plan_block_copy
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, lane_count, open_kernel
from xlalite.backends.codegen.kernels.loop_nest import (
    BLOCK,
    for_lanes,
    leading_ones,
    loop_nest_extent,
    nested_loops,
    task_loops,
)
from xlalite.backends.codegen.kernels.piece_table import Piece, parameters_of, piece_at, read_row, table_of
from xlalite.backends.codegen.kernels.vector_dimension import vector_dimension
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_LOOPS_IN_FUNCTION = 64


def plan_concatenate(request: KernelRequest, shape: KernelShape) -> ConcatenateKernel | BlockCopyKernel | Declined:
    """The kernel that writes operand after operand, or what copies blocks if that is all."""
    if request.in_place:
        return Declined("a result lies in the memory of an operand")
    root = request.body.root
    if vector_dimension(request.body, root.shape.dims) < root.attrs.dimension:
        return Declined("its lines have few elements, which a loop puts side by side")
    return plan_block_copy(request) or ConcatenateKernel(request)


@dataclass(frozen=True, slots=True)
class ConcatenateKernel(Kernel):
    """A concatenation."""

    writes_once: ClassVar[bool] = True

    @property
    def extent(self) -> int:
        """The outermost dimension of the result, or blocks of the only one."""
        return loop_nest_extent(self.request.body.root.shape.dims)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """One function, or one that calls several."""
        families = _families(self.request.body.root)
        if len(families) <= _LOOPS_IN_FUNCTION:
            return _emit_function(module, name, self.request, families)
        entry = open_kernel(module, name, self.request, ())
        for first in range(0, len(families), _LOOPS_IN_FUNCTION):
            part = module.unique_name(f"{name}.part")
            function = _emit_function(module, part, self.request, families[first : first + _LOOPS_IN_FUNCTION])
            entry.fb.call(function, *entry.fb.parameters)
        entry.close()
        return entry.function


def _families(root: HloInstruction) -> list[list[Piece]]:
    """The operands that have elements; of many, those that are computed alike together."""
    offset = 0
    pieces: list[Piece] = []
    for operand in root.operands:
        if operand.shape.element_count:
            pieces.append(piece_at(operand, offset))
        offset += operand.shape.dims[root.attrs.dimension]
    if len(pieces) <= _LOOPS_IN_FUNCTION:
        return [[piece] for piece in pieces]
    families: dict[object, list[Piece]] = {}
    for piece in pieces:
        families.setdefault(piece.form, []).append(piece)
    return list(families.values())


def _emit_function(
    module: ModuleBuilder, name: str, request: KernelRequest, families: Sequence[Sequence[Piece]]
) -> Function:
    """The function that writes some of the operands."""
    reads = parameters_of([family[0] for family in families if len(family) == 1])
    entry = open_kernel(module, name, request, reads, ahead=ahead_in_order(request))
    body = request.body
    if families:
        lanes = lane_count(module, body, max(piece.shape.dims[-1] for piece in body.root.operands))
        _ConcatenateEmitter(module, entry, body.root, lanes).emit(families)
    entry.close()
    return entry.function


@dataclass(frozen=True, slots=True)
class _Part:
    """What to write where: `sources` says where the leaves of an operand are read if it is one of many."""

    computed: HloInstruction
    offset: Value | int
    sources: Mapping[HloInstruction, ElementSource]


class _ConcatenateEmitter:
    def __init__(self, module: ModuleBuilder, entry: KernelEntry, root: HloInstruction, lanes: int) -> None:
        self._module = module
        self._entry = entry
        self._ones = min(leading_ones(root.shape.dims), root.attrs.dimension)
        self._dimension = root.attrs.dimension - self._ones
        self._lanes = lanes
        self._dims = root.shape.dims[self._ones :]

    def emit(self, families: Sequence[Sequence[Piece]]) -> None:
        """Loops over the dimensions outside the concatenated one, then over the operands."""
        if self._dimension == 0 and not self._is_one_unit:
            for part in self._parts(families):
                self._outermost(part)
            return
        with task_loops(self._entry, self._dims[: self._dimension]) as index:
            for part in self._parts(families):
                self._piece(part, index)

    @property
    def _is_one_unit(self) -> bool:
        return len(self._dims) == 1 and self._dims[0] <= BLOCK

    def _parts(self, families: Sequence[Sequence[Piece]]) -> Iterator[_Part]:
        """Each operand in turn, those of a family inside a loop."""
        fb = self._entry.fb
        for family in families:
            first = family[0]
            if len(family) == 1:
                yield _Part(first.computed, first.offset, {})
                continue
            table = self._module.constant_bytes(table_of(family))
            with fb.loop(0, len(family), nonempty=True) as row:
                yield _Part(first.computed, *read_row(fb, first, table, row))

    def _outermost(self, part: _Part) -> None:
        """What of an operand lies in the entry's part of a result concatenated along its first dimension."""
        fb, size = self._entry.fb, part.computed.shape.dims[self._ones]
        unit = BLOCK if len(self._dims) == 1 else 1
        first = fb.smax(fb.sub(fb.mul(self._entry.begin, unit, "nsw"), part.offset), 0)
        last = fb.smin(fb.sub(fb.mul(self._entry.end, unit, "nsw"), part.offset), size)
        if len(self._dims) > 1:
            with fb.loop(first, last) as position:
                self._piece(part, (Affine(position),))
            return
        left = fb.smax(fb.sub(last, first), 0)
        full = fb.add(first, fb.sub(left, fb.urem(left, self._lanes)))
        with fb.loop(first, full, self._lanes) as position:
            self._copy(part, (Affine(position, 1 if self._lanes > 1 else 0),), self._lanes, None)
        with fb.loop(full, last) as position:
            self._copy(part, (Affine(position),), 1, None)

    def _piece(self, part: _Part, index: Index) -> None:
        """Everything of an operand at the given outer positions."""
        fb, dims = self._entry.fb, part.computed.shape.dims[self._ones :]
        with nested_loops(fb, dims[len(index) : -1]) as inner:
            outer = (*index, *inner)
            for_lanes(fb, dims[-1], self._lanes, lambda at, lanes, mask: self._copy(part, (*outer, at), lanes, mask))

    def _copy(self, part: _Part, index: Index, lanes: int, mask: Value | None) -> None:
        emitter, ones = self._entry.emitter(lanes, mask, part.sources), (ZERO,) * self._ones
        place = list(index)
        place[self._dimension] = emitter.math.add(index[self._dimension], Affine(part.offset))
        element = emitter.element(part.computed, (*ones, *index))
        self._entry.outputs[0].write(emitter.math, (*ones, *place), element, mask)
