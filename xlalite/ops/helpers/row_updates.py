"""Updates of some rows of variables, with sizes that do not depend on how many rows are named twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

RowRule = Callable[[tuple[Handle, ...], Handle], Sequence[Handle]]


def update_rows(
    b: Builder, variables: tuple[Handle, ...], grad: Handle, indices: Handle, rule: RowRule
) -> list[Handle]:
    """The variables after `rule` has changed the rows `indices` of each.

    Rows that are named twice are updated once, with the sum of their gradients. Indices outside are left out.

    Args:
        b: Builds HLO.
        variables: Arrays of one shape.
        grad: A row for each index.
        indices: Which rows.
        rule: Turns rows of the variables and gradients into new rows.
    """
    if not indices.dims[0]:
        return list(variables)
    rows, sums = _summed(b, grad, indices, variables[0].dims[0])
    gathered = tuple(_gathered(b, variable, rows) for variable in variables)
    changed = rule(gathered, sums)
    return [_scattered(b, old, rows, new, None) for old, new in zip(variables, changed, strict=True)]


def _summed(b: Builder, grad: Handle, indices: Handle, count: int) -> tuple[Handle, Handle]:
    """Distinct indices, padded with `count`, and the sum of the gradients of each."""
    number = indices.dims[0]
    scalars = [Shape.array(each) for each in (indices.dtype, indices.dtype, DType.S32, DType.S32)]
    less = b.subcomputation("less", scalars, lambda inner, keys: inner.compare(keys[0], keys[1], "LT"))
    attrs = OPS["sort"].attrs(dimensions=(0,), is_stable=True)
    ordered = b.op("sort", (indices, b.iota(DType.S32, (number,), 0)), attrs, (less,))
    ids, order = ordered[0], ordered[1]
    before = b.slice(ids, [0], [number - 1])
    after = b.slice(ids, [1], [number])
    starts = b.convert(b.compare(after, before, "NE"), DType.S32)
    segments, span = b.pad(starts, b.constant(0, DType.S32), [(1, 0, 0)]), 1
    while span < number:
        segments = segments + b.pad(segments, b.constant(0, DType.S32), [(span, -span, 0)])
        span *= 2
    sums = _scattered(b, b.zeros(grad.shape), segments, _gathered(b, grad, order), "add")
    padding = b.full(count, indices.dtype, (number,))
    return _scattered(b, padding, segments, ids, None), sums


def _gathered(b: Builder, operand: Handle, rows: Handle) -> Handle:
    attrs = OPS["gather"].attrs(
        offset_dims=tuple(range(1, len(operand.dims))),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, *operand.dims[1:]),
    )
    return b.op("gather", (operand, rows), attrs)


def _scattered(b: Builder, operand: Handle, rows: Handle, updates: Handle, opcode: str | None) -> Handle:
    """Rows combined by a function of elements; without one, the new row replaces the old."""
    attrs = OPS["scatter"].attrs(
        update_window_dims=tuple(range(1, len(operand.dims))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
    )
    if opcode is None:
        scalar = Shape.array(operand.dtype)
        combine = b.subcomputation("second", (scalar, scalar), lambda inner, both: both[1])
    else:
        combine = b.scalar_function(opcode, operand.dtype)
    return b.op("scatter", (operand, rows, updates), attrs, (combine,))
