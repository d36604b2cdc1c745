"""Products of matrices of which only what is not zero is there."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.cumulative import cumulative
from xlalite.hlo.building.indexing import gather_rows, index_vectors, scatter_slices


def csr_product(data: Handle, starts: Handle, columns: Handle, dense: Handle) -> Handle:
    """[rows, k] x [k, ...] -> [rows, ...]: the product of a matrix of compressed rows with a dense one.

    Args:
        data: [entries] what is there, row after row.
        starts: [rows + 1] where each row starts in `data`, and where the last one ends; what is beyond is in no row.
        columns: [entries] the column of each; those that the matrix does not have count as zero.
        dense: The dense matrix, or a vector.
    """
    b, (entries,), rows, (size, *others) = data.builder, data.dims, starts.dims[0] - 1, dense.dims
    nothing = b.full(0, data.dtype, (rows, *others))
    if not entries or not size:
        return nothing
    begun = scatter_slices(
        b, b.full(0, starts.dtype, (entries,)), index_vectors([starts]), b.full(1, starts.dtype, starts.dims), "add"
    )
    row = cumulative(begun, 0, "add", 0) - 1
    is_there = b.compare(columns, 0, "GE") & b.compare(columns, size, "LT")
    terms = gather_rows(b, dense, columns, 0) * b.broadcast(data, (entries, *others), (0,))
    return scatter_slices(b, nothing, index_vectors([b.select(is_there, row, rows)]), terms, "add")
