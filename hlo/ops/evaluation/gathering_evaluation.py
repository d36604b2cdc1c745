"""Reads and writes windows at many positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.ops.evaluation.scatter_evaluation import Places, combine_at
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.literal import Array


@dataclass(frozen=True, slots=True)
class IndexMap:
    """How an array of index vectors addresses an operand.

    Attributes:
        operand_dims: Operand dimension that each component of an index vector addresses.
        index_vector_dim: Dimension of the indices that holds the components; their rank if there is only one component.
        operand_batching_dims: Operand dimensions that go along with dimensions of the indices.
        indices_batching_dims: Those dimensions of the indices.
    """

    operand_dims: tuple[int, ...]
    index_vector_dim: int
    operand_batching_dims: tuple[int, ...]
    indices_batching_dims: tuple[int, ...]

    def batch_sizes(self, indices: Array) -> tuple[int, ...]:
        """Sizes of the indices without the dimension that holds the components."""
        return tuple(size for dim, size in enumerate(indices.shape) if dim != self.index_vector_dim)

    def starts(self, indices: Array) -> dict[int, Places]:
        """For each addressed or batching operand dimension the window starts, an array of the batch sizes."""
        if self.index_vector_dim == indices.ndim:
            indices = indices[..., np.newaxis]
        vectors = _as_int64(np.moveaxis(indices, self.index_vector_dim, -1))
        starts = {dim: vectors[..., component] for component, dim in enumerate(self.operand_dims)}
        batch = vectors.shape[:-1]
        for dim, along in zip(self.operand_batching_dims, self.indices_batching_dims, strict=True):
            position = along - (along > self.index_vector_dim)
            starts[dim] = np.broadcast_to(_along(np.arange(batch[position]), position, len(batch)), batch)
        return starts


def gather_windows(
    operand: Array,
    indices: Array,
    index_map: IndexMap,
    slice_sizes: Sequence[int],
    dropped: Sequence[int],
    offset_dims: Sequence[int],
) -> Array:
    """The window at each index vector, its start clamped into bounds.

    Args:
        operand: What is read.
        indices: The index vectors.
        index_map: What they address.
        slice_sizes: Sizes of a window, with an entry for every operand dimension.
        dropped: Operand dimensions that the result does not have.
        offset_dims: Where the windows' other dimensions stand in the result.
    """
    starts, batch = index_map.starts(indices), index_map.batch_sizes(indices)
    kept = [dim for dim in range(operand.ndim) if dim not in dropped]
    if any(slice_sizes[dim] == 0 for dim in dropped):
        windows = np.zeros((*batch, *(slice_sizes[dim] for dim in kept)), operand.dtype)
    else:
        windows = _read_windows(operand, starts, batch, slice_sizes, [*dropped, *kept])
        windows = windows.reshape((*batch, *(slice_sizes[dim] for dim in kept)))
    order = [0] * windows.ndim
    batch_dims = [dim for dim in range(windows.ndim) if dim not in offset_dims]
    for position, dim in enumerate((*batch_dims, *offset_dims)):
        order[dim] = position
    return windows.transpose(order)


def _read_windows(
    operand: Array, starts: dict[int, Places], batch: tuple[int, ...], slice_sizes: Sequence[int], order: Sequence[int]
) -> Array:
    """[batch..., window...], the window's dimensions in the given order. Only dimensions cut by windows are indexed."""
    cut = [dim for dim in order if dim in starts or slice_sizes[dim] != operand.shape[dim]]
    whole = [dim for dim in order if dim not in cut]
    index = []
    for position, dim in enumerate(cut):
        offsets = _along(np.arange(slice_sizes[dim]), position, len(cut))
        start = (
            np.clip(starts[dim], 0, operand.shape[dim] - slice_sizes[dim]) if dim in starts else np.zeros(batch, int)
        )
        index.append(start.reshape(*batch, *(1,) * len(cut)) + offsets)
    arranged = operand.transpose(*cut, *whole)
    taken = arranged[tuple(index)] if cut else arranged
    taken = np.broadcast_to(taken, (*batch, *(slice_sizes[dim] for dim in (*cut, *whole))))
    now = [*cut, *whole]
    return taken.transpose(*range(len(batch)), *(len(batch) + now.index(dim) for dim in order))


def scatter_windows(
    computation: HloComputation,
    operands: Sequence[Array],
    indices: Array,
    updates: Sequence[Array],
    index_map: IndexMap,
    dropped: Sequence[int],
    window_dims: Sequence[int],
    call: Caller,
) -> list[Array]:
    """The operands with a window of updates combined in at each index vector; windows out of bounds are skipped.

    Args:
        computation: (current values..., updates...) -> new values.
        operands: What is updated; not changed.
        indices: The index vectors.
        updates: The windows, one array for each operand.
        index_map: What the index vectors address.
        dropped: Operand dimensions that windows do not have.
        window_dims: Update dimensions that are windows; the others are batch dimensions.
        call: Evaluates a computation.
    """
    sizes = operands[0].shape
    window = [1] * len(sizes)
    for update_dim, dim in zip(window_dims, [dim for dim in range(len(sizes)) if dim not in dropped], strict=True):
        window[dim] = updates[0].shape[update_dim]
    starts, batch = index_map.starts(indices), index_map.batch_sizes(indices)
    inside = np.ones(batch, np.bool_)
    first, offsets = np.zeros(batch, np.int64), np.zeros(window, np.int64)
    stride = 1
    for dim in reversed(range(len(sizes))):
        if dim in starts:
            inside &= (starts[dim] >= 0) & (starts[dim] <= sizes[dim] - window[dim])
            # Starts far out of bounds must not overflow the product; their windows are skipped anyway.
            first += np.clip(starts[dim], 0, sizes[dim]) * stride
        offsets += _along(np.arange(window[dim]), dim, len(sizes)) * stride
        stride *= sizes[dim]
    kept = inside.ravel()
    places = (first.ravel()[kept, np.newaxis] + offsets.ravel()).ravel()
    batch_dims = [dim for dim in range(updates[0].ndim) if dim not in window_dims]
    rows = [
        update.transpose(*batch_dims, *window_dims).reshape(kept.size, offsets.size)[kept].ravel() for update in updates
    ]
    results = combine_at(computation, [operand.ravel() for operand in operands], places, rows, call)
    return [result.reshape(sizes) for result in results]


def _along(line: Places, position: int, rank: int) -> Places:
    """A vector as an array of the given rank whose other dimensions have size 1."""
    return line.reshape(*(1,) * position, line.size, *(1,) * (rank - 1 - position))


def _as_int64(indices: Array) -> Places:
    """Indices as signed numbers; unsigned ones that are too large become the largest."""
    if indices.dtype == np.uint64:
        return np.minimum(indices, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)
    return indices.astype(np.int64)
