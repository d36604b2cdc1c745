"""Takes layouts out of a module: afterwards every array is row-major and what depended on layouts says so itself."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.construct import reshape, transpose
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.core.base import HloPass
from xlalite.passes.simplify.dimensions import inverse


@dataclass(frozen=True, slots=True)
class LayoutNormalization(HloPass):
    """Removes layouts, `bitcast` and `copy`.

    A bitcast means what its layouts say, so it becomes transpose(reshape(transpose(A))), with the bits reinterpreted
    in between when the element type changes (a row-major bitcast does that for pred and complex types). A copy is the
    identity. Layouts of all other instructions change no value and are dropped, in the entry's signature too. A copy
    with control dependencies stays.

    Run it first, on modules that are dumps of a finished compilation.
    """

    name: ClassVar[str] = "layout-normalization"

    def run(self, module: HloModule) -> bool:
        """Normalises every computation; says whether anything changed."""
        changed = False
        for computation in module.computations():
            # A bitcast reads its operand's layout, which replacing the operand would lose: collect all, then edit.
            bitcasts = [
                (instruction, instruction.operand(0).shape.minor_to_major)
                for instruction in computation.post_order()
                if instruction.opcode == "bitcast" and not _is_plain_bitcast(instruction)
            ]
            for instruction, operand_order in bitcasts:
                _replace_bitcast(instruction, operand_order)
            changed |= bool(bitcasts)
            for instruction in computation.instructions:
                changed |= _drop_layout(instruction)
                if instruction.opcode == "copy" and not instruction.is_controlled:
                    replace(instruction, instruction.operand(0))
                    changed = True
        return _drop_entry_layout(module) or changed


def _replace_bitcast(instruction: HloInstruction, operand_order: tuple[int, ...]) -> None:
    operand, result = instruction.operand(0), instruction.shape
    order = result.minor_to_major[::-1]
    in_memory = transpose(operand, operand_order[::-1])
    dims = [result.dims[dimension] for dimension in order]
    elements = _reinterpret(in_memory, Shape.array(result.dtype, dims))
    replacement = transpose(elements, inverse(order))
    if replacement is operand and instruction.is_controlled:
        replacement = create("copy", (operand,))
    replace(instruction, replacement)


def _reinterpret(operand: HloInstruction, result: Shape) -> HloInstruction:
    """The elements of a row-major array as a row-major array of another shape and perhaps type."""
    source = operand.shape
    if source.dtype is result.dtype:
        return reshape(operand, result.dims)
    if _needs_bitcast(source, result):
        return create("bitcast", (operand,), shape=result)
    count, before, after = source.element_count, source.dtype.bits, result.dtype.bits
    if before == after:
        converted = create("bitcast-convert", (operand,), shape=Shape.array(result.dtype, source.dims))
        return reshape(converted, result.dims)
    parts = max(before, after) // min(before, after)
    split = (parts,)
    outer = count // parts if before < after else count
    flat = reshape(operand, (outer, *split) if before < after else (outer,))
    dims = (outer, *split) if before > after else (outer,)
    converted = create("bitcast-convert", (flat,), shape=Shape.array(result.dtype, dims))
    return reshape(converted, result.dims)


def _needs_bitcast(source: Shape, result: Shape) -> bool:
    """Whether `bitcast-convert` does not take the types."""
    types = (source.dtype, result.dtype)
    return source.dtype is not result.dtype and (DType.PRED in types or any(dtype.is_complex for dtype in types))


def _is_plain_bitcast(instruction: HloInstruction) -> bool:
    """Whether it only does what no other operation can: reinterpret pred or complex numbers, row-major on both ends."""
    source, result = instruction.operand(0).shape, instruction.shape
    return _needs_bitcast(source, result) and source.is_row_major and result.is_row_major


def _drop_layout(instruction: HloInstruction) -> bool:
    """Drops the written layouts; says whether the text of the shape changes by that."""
    written = instruction.shape
    instruction.shape = written.without_layout()
    return written.says_layout


def _drop_entry_layout(module: HloModule) -> bool:
    layout = module.config.entry_layout
    if layout is None:
        return False
    if not any(shape.says_layout for shape in (*layout.parameters, layout.result)):
        return False
    module.update_config(entry_layout=None)
    return True
