"""Elements of gathers: the indices say where in the operand a window begins, and the window is read in place.

Lanes that share an index vector read neighbours of the operand with one load; lanes with index vectors of their own
read wherever each one says.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import ZERO, Affine, Index, Position
from xlalite.backends.codegen.arrays.types import Element, zero_element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.backends.codegen.elements.slicing import clamped_start
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.gathering import GatherAttrs


def _gather(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    operand, indices = instruction.operands
    attrs: GatherAttrs = instruction.attrs
    sizes = operand.shape.dims
    if any(attrs.slice_sizes[dim] == 0 for dim in attrs.dropped_dims):
        return zero_element(instruction.shape.dtype, 1)
    batch = tuple(position for dim, position in enumerate(index) if dim not in attrs.offset_dims)
    source: list[Position] = [ZERO] * len(sizes)
    kept = [dim for dim in range(len(sizes)) if dim not in attrs.dropped_dims]
    for dim, along in zip(kept, attrs.offset_dims, strict=True):
        source[dim] = index[along]
    for dim, along in zip(attrs.operand_batching_dims, attrs.start_indices_batching_dims, strict=True):
        source[dim] = batch[along - (along > attrs.index_vector_dim)]
    for component, dim in enumerate(attrs.start_index_map):
        last = sizes[dim] - attrs.slice_sizes[dim]
        if last:
            vector = component_index(batch, component, attrs.index_vector_dim, indices.shape.rank)
            start = clamped_start(emitter, indices, vector, last)
            source[dim] = emitter.math.add(source[dim], start)
    return emitter.element(operand, tuple(source))


def component_index(batch: Index, component: int, index_vector_dim: int, rank: int) -> Index:
    """Where in the indices a component of the index vector of a batch position stands."""
    if index_vector_dim == rank:
        return batch
    return (*batch[:index_vector_dim], Affine(component), *batch[index_vector_dim:])


ELEMENT_RULES: dict[str, ElementRule] = {"gather": _gather}
