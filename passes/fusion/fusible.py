"""What can be fused at all, and what it costs to compute an element twice."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.types.dtype import DType
from xlalite.passes.analysis.accumulation import accumulated_dimension
from xlalite.passes.analysis.matrix_products import has_tiles

_MOVEMENT = frozenset({"broadcast", "iota", "reshape", "slice", "dynamic-slice", "gather", "pad", "reverse"})
_EXPENSIVE = frozenset({"divide", "remainder", "sqrt", "rsqrt", "power", "atan2"})
_LARGEST_WINDOW = 64
"""Elements of a window that a kernel combines wherever it reads the reduction."""
_MOST_CUT = 64
"""Elements of windows whose index vectors are computed in place: crops of [112,112,3] u8 take 10.5 us so, else 9.4."""
SPELT_OUT_AT_MOST = 16
"""Elements of a window beyond which its code is a loop."""
_FEWEST_OF_TILES = 3
"""Columns or rows up to which a transpose is a loop, which computes what it moves: bytes of [8,224,224,3] that are
scaled and moved to three planes take 39 instead of 127 us."""
_LOOKED_AT = 16
"""Instructions of which an array is computed that are asked whether they are sums."""
_CHEAP_TO_REPEAT = frozenset({"broadcast", "iota"})


def is_immediate(instruction: HloInstruction) -> bool:
    """Whether it is a scalar constant; kernels hold those as immediates."""
    return instruction.opcode == "constant" and instruction.shape.is_scalar


def is_spread_immediate(instruction: HloInstruction) -> bool:
    """Whether all its elements are one constant; kernels hold it as an immediate."""
    return instruction.opcode == "broadcast" and is_immediate(instruction.operand(0))


def why_not_fusible(instruction: HloInstruction) -> str | None:
    """Why an instruction cannot be computed element by element inside a kernel; None if it can."""
    if not instruction.shape.is_array:
        return "its result is not one array"
    if instruction.has_side_effect:
        return "it has a side effect"
    if instruction.op.has(Trait.NON_DETERMINISTIC):
        return "it gives another value each time"
    if instruction.opcode == "constant":
        return None if instruction.shape.is_scalar else "a constant array is memory already"
    if instruction.opcode == "transpose":
        moves = _turned_columns(instruction) is not None
        return "it moves the minor dimension and has a kernel of its own" if moves else None
    is_movement = instruction.opcode in _MOVEMENT or instruction.opcode == "bitcast-convert"
    if instruction.op.is_elementwise or is_movement or is_small_window(instruction):
        return None
    if instruction.opcode == "convolution" and not has_tiles(instruction):
        return None
    return f"{instruction.opcode} has a kernel of its own"


def is_turned_in_tiles(transpose: HloInstruction) -> bool:
    """Whether it moves the minor dimension, and there are enough columns and rows; others are loops."""
    columns = _turned_columns(transpose)
    return columns is not None and (columns > _FEWEST_OF_TILES or _follows_reduction(transpose.operand(0)))


def _turned_columns(transpose: HloInstruction) -> int | None:
    """Columns or rows of what it turns, whatever is fewer; None if neighbours stay neighbours."""
    order: tuple[int, ...] = transpose.attrs.dimensions
    last = len(order) - 1
    if not order or order[-1] == last:
        return None
    return min(transpose.shape.dims[-1], transpose.shape.dims[order.index(last)])


def _follows_reduction(instruction: HloInstruction) -> bool:
    """Whether its elements are computed of sums of their rows, with which they share a kernel."""
    reached = [instruction]
    for one in reached:
        if one.opcode == "reduce":
            return True
        if (one.op.is_elementwise or one.opcode == "broadcast") and len(reached) < _LOOKED_AT:
            reached += one.operands
    return False


def only_adds_ones(instruction: HloInstruction) -> bool:
    """Whether it is a reshape whose elements stand where they stood, but for dimensions of one element."""
    if instruction.opcode not in ("reshape", "bitcast"):
        return False
    before, after = ([size for size in one.shape.dims if size != 1] for one in (instruction, instruction.operand(0)))
    return before == after


def is_small_window(instruction: HloInstruction) -> bool:
    """Whether it combines windows that a kernel combines wherever it reads the reduction."""
    return (
        instruction.opcode == "reduce-window"
        and math.prod(instruction.attrs.window.sizes) <= _LARGEST_WINDOW
        and accumulated_dimension(instruction) is None
    )


def is_index_vector(concatenate: HloInstruction, readers: Iterable[HloInstruction]) -> bool:
    """Whether readers take index vectors out of what puts their components together: each knows which it takes.

    What large windows are cut out by is not computed again for each of their rows.
    """
    return concatenate.opcode == "concatenate" and all(
        (reader.opcode == "scatter" or (reader.opcode == "gather" and _cuts_little(reader)))
        and reader.operand_positions(concatenate) == (_number_of_indices(reader),)
        and reader.attrs.index_vector_dim == concatenate.attrs.dimension
        for reader in readers
    )


def _cuts_little(gather: HloInstruction) -> bool:
    sizes: tuple[int, ...] = gather.attrs.slice_sizes
    return math.prod(sizes) <= _MOST_CUT


def _number_of_indices(reader: HloInstruction) -> int:
    return 1 if reader.opcode == "gather" else len(reader.operands) // 2


def is_cheap_to_repeat(instruction: HloInstruction) -> bool:
    """Whether several kernels may compute it for themselves rather than share an array."""
    if instruction.opcode in _CHEAP_TO_REPEAT or is_immediate(instruction) or instruction.shape.is_scalar:
        return instruction.opcode in _CHEAP_TO_REPEAT or is_immediate(instruction) or not is_expensive(instruction)
    if instruction.op.is_elementwise and not is_expensive(instruction) and _needs_no_array(instruction):
        return True
    if instruction.opcode == "convert":
        source, target = instruction.operand(0).shape.dtype, instruction.shape.dtype
        return source.size_bytes < target.size_bytes or source is DType.PRED
    return False


def _needs_no_array(instruction: HloInstruction) -> bool:
    """Whether the elements are made of spread-out scalars, rows and positions, such as those of a one-hot encoding."""
    return all(operand.opcode in _CHEAP_TO_REPEAT for operand in instruction.operands if operand.shape.rank)


def only_moves(instruction: HloInstruction) -> bool:
    """Whether its elements are those of its operand, or known from their index."""
    return instruction.opcode in _MOVEMENT or instruction.opcode in ("transpose", "copy", "bitcast", "constant")


def is_expensive(instruction: HloInstruction) -> bool:
    """Whether computing an element costs much more than loading it."""
    if instruction.op.has(Trait.TRANSCENDENTAL) or instruction.opcode in _EXPENSIVE:
        return instruction.shape.dtype is not DType.PRED
    return instruction.opcode in ("reduce", "reduce-window", "dot", "convolution")
