"""Rules for gather and scatter."""

from __future__ import annotations

from xlalite.hlo.building.construct import dynamic_slice, reshape, scalar, slice_of
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.gathering import GatherAttrs
from xlalite.passes.rewriting.rewrite import RewriteRule, RuleResult


def gather_of_one_window(instruction: HloInstruction) -> RuleResult:
    """A gather of a single window = dynamic-slice: both clamp the start."""
    attrs: GatherAttrs = instruction.attrs
    operand, indices = instruction.operands
    components = len(attrs.start_index_map)
    if attrs.operand_batching_dims or indices.shape.element_count != components or not components:
        return None
    if 0 in attrs.slice_sizes:
        return None
    flat = reshape(indices, (components,))
    starts = []
    for dimension in range(operand.shape.rank):
        if dimension in attrs.start_index_map:
            place = attrs.start_index_map.index(dimension)
            starts.append(reshape(slice_of(flat, [(place, place + 1, 1)]), ()))
        else:
            starts.append(scalar(0, indices.shape.dtype))
    window = dynamic_slice(operand, starts, attrs.slice_sizes)
    return reshape(window, instruction.shape.dims)


def scatter_of_nothing(instruction: HloInstruction) -> RuleResult:
    """A scatter of updates without elements = the operand."""
    if len(instruction.operands) != 3 or instruction.operand(2).shape.element_count:
        return None
    return instruction.operand(0)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("gather", gather_of_one_window),
    RewriteRule("scatter", scatter_of_nothing),
)
