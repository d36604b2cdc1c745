"""Elements and slices at indices, taken and put. Indices out of range follow HLO: reads clamp, writes are skipped."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


def gather_rows(b: Builder, params: Handle, indices: Handle, axis: int) -> Handle:
    """`params` at indices along a dimension, whose place the dimensions of the indices take."""
    if not params.dims[axis] and not indices.shape.element_count:
        return b.full(0, params.dtype, (*params.dims[:axis], *indices.dims, *params.dims[axis + 1 :]))
    rank, inner = len(params.dims), len(indices.dims)
    kept = [i for i in range(rank) if i != axis]
    attrs = OPS["gather"].attrs(
        offset_dims=tuple(i if i < axis else i + inner - 1 for i in kept),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=inner,
        slice_sizes=tuple(1 if i == axis else size for i, size in enumerate(params.dims)),
    )
    return b.op("gather", (params, indices), attrs)


def gather_slices(b: Builder, params: Handle, indices: Handle) -> Handle:
    """`params` at index vectors, which address its first dimensions."""
    *batch, depth = indices.dims
    if 0 in params.dims[:depth] and 0 in batch:
        return b.full(0, params.dtype, (*batch, *params.dims[depth:]))
    attrs = OPS["gather"].attrs(
        offset_dims=tuple(range(len(batch), len(batch) + len(params.dims) - depth)),
        collapsed_slice_dims=tuple(range(depth)),
        start_index_map=tuple(range(depth)),
        index_vector_dim=len(batch),
        slice_sizes=(*(1 for _ in range(depth)), *params.dims[depth:]),
    )
    return b.op("gather", (params, indices), attrs)


def scatter_slices(b: Builder, operand: Handle, indices: Handle, updates: Handle, opcode: str) -> Handle:
    """`operand` with `opcode(old, update)` at index vectors; the opcode `assign` puts the update there.

    Raises:
        ShapeError: The updates are not one slice for each index vector.
    """
    *batch, depth = indices.dims
    attrs = OPS["scatter"].attrs(
        update_window_dims=tuple(range(len(batch), len(updates.dims))),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        index_vector_dim=len(batch),
    )
    expected = (*batch, *operand.dims[depth:])
    if updates.dims != expected:
        raise ShapeError(f"Must have updates.shape = {expected} for {operand.shape.text()}, found {updates.dims}")
    return b.op("scatter", (operand, indices, updates), attrs, (_combiner(b, opcode, operand.dtype),))


def gather_along(params: Handle, indices: Handle, axis: int) -> Handle:
    """`take_along_axis`: elements at indices along one dimension, all other places being those of the indices.

    The indices may have fewer elements than `params` along the other dimensions; then the first ones are meant.
    """
    if 0 in indices.dims:
        return params.builder.full(0, params.dtype, indices.dims)
    return gather_slices(params.builder, params, _vectors(indices, axis))


def scatter_along(operand: Handle, indices: Handle, updates: Handle, axis: int, opcode: str) -> Handle:
    """`put_along_axis`: `opcode(old, update)` at the places that `gather_along` would read."""
    if 0 in indices.dims:
        return operand
    return scatter_slices(operand.builder, operand, _vectors(indices, axis), updates, opcode)


def index_vectors(parts: Sequence[Handle]) -> Handle:
    """Index vectors `[..., n]` of n arrays of the same sizes."""
    b, dims = parts[0].builder, parts[0].dims
    return b.concatenate([b.reshape(part, (*dims, 1)) for part in parts], len(dims))


def wrapped(indices: Handle, size: int) -> Handle:
    """Indices of which negative ones count from the end."""
    return indices.builder.select(indices.builder.compare(indices, 0, "LT"), indices + size, indices)


def _vectors(indices: Handle, axis: int) -> Handle:
    """The index vectors of all places of an array whose own elements are the positions along a dimension."""
    b, dims = indices.builder, indices.dims
    return index_vectors([indices if i == axis else b.iota(indices.dtype, dims, i) for i in range(len(dims))])


def _combiner(b: Builder, opcode: str, dtype: DType) -> HloComputation:
    if opcode != "assign":
        return b.scalar_function(opcode, dtype)
    scalar = Shape.array(dtype)
    return b.subcomputation(f"assign_{dtype.value}", (scalar, scalar), lambda inner, p: p[1])
