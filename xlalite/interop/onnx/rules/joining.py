"""Joining and splitting of tensors."""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.interop.onnx.context import NodeContext, rule


@rule("Concat")
def _concat(context: NodeContext) -> Handle:
    operands = context.operands()
    axis = context.axis(len(operands[0].dims), 1 if context.version < 4 else None)
    return context.builder.concatenate(operands, axis)


@rule("Split")
def _split(context: NodeContext) -> tuple[Handle, ...]:
    x = context.operand(0)
    axis = context.axis(len(x.dims), 0)
    sizes = context.integers_at(1, "split")
    if sizes is None:
        sizes = _even_sizes(x.dims[axis], context.integer("num_outputs", len(context.node.outputs)))
    return tuple(pieces(context, x, axis, sizes))


def pieces(context: NodeContext, x: Handle, axis: int, sizes: tuple[int, ...]) -> list[Handle]:
    """The parts of given sizes along a dimension."""
    if min(sizes, default=0) < 0 or sum(sizes) != x.dims[axis]:
        raise context.error(f"parts of sizes {list(sizes)} of a dimension of {x.dims[axis]}")
    found, start = [], 0
    for size in sizes:
        starts = [start if i == axis else 0 for i in range(len(x.dims))]
        limits = [start + size if i == axis else own for i, own in enumerate(x.dims)]
        found.append(context.builder.slice(x, starts, limits))
        start += size
    return found


def _even_sizes(size: int, count: int) -> tuple[int, ...]:
    """Equal parts, of which the last ones may be smaller."""
    each = -(-size // count)
    ends = np.minimum(np.arange(1, count + 1) * each, size)
    return tuple(int(part) for part in np.diff(ends, prepend=0))
