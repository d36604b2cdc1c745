"""Convolves arrays of any rank: a loop over kernel or output positions around products of matrices.

Padding is zeros that are multiplied like other elements: beside an infinite element of the kernel they give NaN, as
XLA documents it ("zero padding") and computes it on a CPU. The holes of a dilated input contribute nothing; elements
beyond its edge lie as far apart as those inside. For one kernel position the output positions that read an element form
an arithmetic progression in each dimension, and so do the kernel positions for one output position.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xlalite.hlo.ops.evaluation.products import computing_operands, matmul, round_product
from xlalite.hlo.ops.slicing import pad_array
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.window import Window, WindowDimension


@dataclass(frozen=True, slots=True)
class Progression:
    """Which positions read an existing element, and which element each reads."""

    positions: slice
    elements: slice


def convolve(lhs: Array, rhs: Array, window: Window, dtype: DType) -> Array:
    """[groups, batch, space.., inputs] with [groups, space.., inputs, outputs] -> [groups, batch, space.., outputs]."""
    groups, batch, *in_space, inputs = lhs.shape
    outputs = rhs.shape[-1]
    out_space = window.output_sizes(in_space)
    kernel_space = rhs.shape[1:-2]
    flipped = tuple(position + 1 for position, dim in enumerate(window.dimensions) if dim.reversal)
    left, right = computing_operands(lhs, np.flip(rhs, flipped), dtype, math.prod(kernel_space) * inputs)
    edges = [_edges(dim, n, count) for dim, n, count in zip(window.dimensions, in_space, out_space, strict=True)]
    left = pad_array(left, np.zeros((), left.dtype), [(0, 0, 0), (0, 0, 0), *((*edge, 0) for edge in edges), (0, 0, 0)])
    window = Window(
        tuple(
            replace(dim, pad_low=dim.pad_low - low * dim.lhs_dilate)
            for dim, (low, _) in zip(window.dimensions, edges, strict=True)
        )
    )
    # The operands are views in another order of dimensions; one copy now saves a slow one for each position.
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    total = np.zeros((groups, batch, *out_space, outputs), np.result_type(left, right))
    with np.errstate(all="ignore"):
        if total.size and math.prod(kernel_space) <= math.prod(out_space):
            _add_kernel_positions(total, left, right, window)
        elif total.size:
            _add_output_positions(total, left, right, window)
    return round_product(total, dtype)


def _edges(dim: WindowDimension, size: int, positions: int) -> tuple[int, int]:
    """How many elements before the first one and after the last one windows reach."""
    last = (positions - 1) * dim.stride + (dim.size - 1) * dim.rhs_dilate - dim.pad_low
    return max(0, -(-dim.pad_low // dim.lhs_dilate)), max(0, last // dim.lhs_dilate - size + 1)


def _add_kernel_positions(total: Array, lhs: Array, rhs: Array, window: Window) -> None:
    out_space, in_space, kernel_space = total.shape[2:-1], lhs.shape[2:-1], rhs.shape[1:-2]
    found = [
        [
            progression(out_space[d], dim.stride, k * dim.rhs_dilate - dim.pad_low, dim.lhs_dilate, in_space[d])
            for k in range(kernel_space[d])
        ]
        for d, dim in enumerate(window.dimensions)
    ]
    for position in np.ndindex(*kernel_space):
        here = _all_found([found[d][k] for d, k in enumerate(position)])
        if here is None:
            continue
        taken = lhs[(slice(None), slice(None), *(p.elements for p in here))]
        rows = taken.reshape(taken.shape[0], math.prod(taken.shape[1:-1]), taken.shape[-1])
        product = matmul(rows, rhs[(slice(None), *position)])
        target = total[(slice(None), slice(None), *(p.positions for p in here))]
        np.add(target, product.reshape(target.shape), out=target)


def _add_output_positions(total: Array, lhs: Array, rhs: Array, window: Window) -> None:
    out_space, in_space, kernel_space = total.shape[2:-1], lhs.shape[2:-1], rhs.shape[1:-2]
    found = [
        [
            progression(kernel_space[d], dim.rhs_dilate, o * dim.stride - dim.pad_low, dim.lhs_dilate, in_space[d])
            for o in range(out_space[d])
        ]
        for d, dim in enumerate(window.dimensions)
    ]
    groups, batch, outputs = total.shape[0], total.shape[1], total.shape[-1]
    for position in np.ndindex(*out_space):
        here = _all_found([found[d][o] for d, o in enumerate(position)])
        if here is None:
            continue
        left = lhs[(slice(None), slice(None), *(p.elements for p in here))].reshape(groups, batch, -1)
        right = rhs[(slice(None), *(p.positions for p in here))].reshape(groups, -1, outputs)
        total[(slice(None), slice(None), *position)] = matmul(left, right)


def _all_found(here: Sequence[Progression | None]) -> list[Progression] | None:
    found = [p for p in here if p is not None]
    return found if len(found) == len(here) else None


def progression(positions: int, scale: int, offset: int, divisor: int, limit: int) -> Progression | None:
    """The i in [0, positions) for which (i * scale + offset) / divisor is an integer in [0, limit); None if none is."""
    common = math.gcd(scale, divisor)
    step, element_step = divisor // common, scale // common
    start = next((i for i in range(step) if (i * scale + offset) % divisor == 0), None)
    if start is None:
        return None
    element = (start * scale + offset) // divisor
    skipped = max(0, -(element // element_step))
    start, element = start + skipped * step, element + skipped * element_step
    count = min(-((start - positions) // step), -((element - limit) // element_step))
    if count <= 0:
        return None
    return Progression(
        slice(start, start + (count - 1) * step + 1, step),
        slice(element, element + (count - 1) * element_step + 1, element_step),
    )
