"""Pieces of a concatenation that are computed alike: one loop over a table serves them all.

Two pieces are alike when they apply the same operations to arrays of the same sizes. What differs is where those arrays
are: which parameter, from which element on, and where the result goes. That is a row of the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from xlalite.backends.codegen.arrays.index import Index, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import Element, representation
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource
from xlalite.backends.codegen.llvm import I8, I64, PTR, FunctionBuilder, Value
from xlalite.hlo.ir.fingerprint import instruction_key
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import depends_on_itself, post_order
from xlalite.hlo.records import dataclass

_MOST_OPERATIONS = 64
"""Longer computations count as unlike all others; to hold on to thousands of them would take much memory."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One operand of a concatenation.

    Attributes:
        computed: What gives its elements.
        offset: Where it begins in the result, along the concatenated dimension.
        leaves: Arrays in memory that it is computed from, in the order in which they are met.
        form: Equal for pieces that are computed alike.
    """

    computed: HloInstruction
    offset: int
    leaves: tuple[HloInstruction, ...]
    form: Hashable


def piece_at(computed: HloInstruction, offset: int) -> Piece:
    """An operand, and what it has in common with others."""
    numbers: dict[HloInstruction, int] = {}
    leaves: list[HloInstruction] = []
    form: list[Hashable] = []
    for instruction in post_order([computed], lambda one: () if _is_leaf(one) else one.operands, depends_on_itself):
        if _is_leaf(instruction):
            leaves.append(instruction)
            form.append(("leaf", _array(instruction).shape, instruction.shape, _strides(instruction)))
        else:
            form.append(instruction_key(instruction, [numbers[operand] for operand in instruction.operands]))
        numbers[instruction] = len(numbers)
    return Piece(computed, offset, tuple(leaves), tuple(form) if len(form) <= _MOST_OPERATIONS else computed)


def table_of(pieces: Sequence[Piece]) -> bytes:
    """For each piece, its offset and, for each leaf, the parameter's number and where in it the leaf begins."""
    rows = [[piece.offset, *(number for leaf in piece.leaves for number in _place(leaf))] for piece in pieces]
    return np.array(rows, np.int64).tobytes()


def parameters_of(pieces: Sequence[Piece]) -> list[HloInstruction]:
    """The parameters that the pieces read."""
    return list(dict.fromkeys(parameter for piece in pieces for parameter in map(_array, piece.leaves)))


def read_row(
    fb: FunctionBuilder, piece: Piece, table: Value, row: Value
) -> tuple[Value, dict[HloInstruction, ElementSource]]:
    """The offset that a row has, and where a piece's leaves are read when they are those of the row."""
    arguments = fb.parameters[0]
    start = fb.mul(row, 1 + 2 * len(piece.leaves), "nsw")

    def entry(column: int) -> Value:
        return fb.load(I64, fb.gep(I64, table, fb.add(start, column, "nsw")), 8)

    sources: dict[HloInstruction, ElementSource] = {}
    for number, leaf in enumerate(piece.leaves):
        address = fb.load(PTR, fb.gep(PTR, arguments, entry(1 + 2 * number)), 8)
        shape = _array(leaf).shape
        view = ArrayView.row_major(fb.gep(I8, address, entry(2 + 2 * number)), shape.dtype, shape.dims)
        sources[leaf] = _read_every(view, _strides(leaf))
    return entry(0), sources


def _is_leaf(instruction: HloInstruction) -> bool:
    return _array(instruction).opcode == "parameter"


def _array(leaf: HloInstruction) -> HloInstruction:
    return leaf.operand(0) if leaf.opcode == "slice" else leaf


def _strides(leaf: HloInstruction) -> tuple[int, ...]:
    if leaf.opcode == "slice":
        return tuple(stride for _, _, stride in leaf.attrs.slice)
    return (1,) * leaf.shape.rank


def _place(leaf: HloInstruction) -> tuple[int, int]:
    """The number of the parameter, and the bytes before the leaf's first element."""
    array = _array(leaf)
    if leaf is array:
        return array.attrs.number, 0
    held = representation(array.shape.dtype)
    strides = row_major_strides(array.shape.dims)
    first = sum(start * stride for (start, _, _), stride in zip(leaf.attrs.slice, strides, strict=True))
    return array.attrs.number, first * held.memory.size_bytes * held.parts


def _read_every(view: ArrayView, strides: tuple[int, ...]) -> ElementSource:
    def read(emitter: ElementEmitter, index: Index) -> Element:
        math = emitter.math
        places = tuple(math.scale(position, stride) for position, stride in zip(index, strides, strict=True))
        return view.read(math, places, emitter.mask)

    return read
