"""Convolves arrays of any rank: a loop over kernel or output positions around products of matrices.

Padding and the holes of a dilated input are zeros, multiplied like other elements: beside an infinite element of the
kernel they give NaN, as XLA documents it ("zero padding") and computes it on a CPU.
"""

from __future__ import annotations

import math

import numpy as np

from xlalite.hlo.ops.evaluation.products import computing_operands, matmul, round_product
from xlalite.hlo.ops.slicing import pad_array
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Array
from xlalite.hlo.types.window import Window


def convolve(lhs: Array, rhs: Array, window: Window, dtype: DType) -> Array:
    """[groups, batch, space.., inputs] with [groups, space.., inputs, outputs] -> [groups, batch, space.., outputs]."""
    groups, batch, *in_space, inputs = lhs.shape
    outputs = rhs.shape[-1]
    out_space = window.output_sizes(in_space)
    kernel_space = rhs.shape[1:-2]
    flipped = tuple(position + 1 for position, dim in enumerate(window.dimensions) if dim.reversal)
    padding = [(dim.pad_low, dim.pad_high, dim.lhs_dilate - 1) for dim in window.dimensions]
    lhs = pad_array(lhs, np.zeros((), lhs.dtype), [(0, 0, 0), (0, 0, 0), *padding, (0, 0, 0)])
    left, right = computing_operands(lhs, np.flip(rhs, flipped), dtype, math.prod(kernel_space) * inputs)
    # The operands are views in another order of dimensions; one copy now saves a slow one for each position.
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    total = np.zeros((groups, batch, *out_space, outputs), np.result_type(left, right))
    with np.errstate(all="ignore"):
        if total.size and math.prod(kernel_space) <= math.prod(out_space):
            _add_kernel_positions(total, left, right, window)
        elif total.size:
            _add_output_positions(total, left, right, window)
    return round_product(total, dtype)


def _add_kernel_positions(total: Array, lhs: Array, rhs: Array, window: Window) -> None:
    for position in np.ndindex(*rhs.shape[1:-2]):
        seen = [
            _progression(k * dim.rhs_dilate, dim.stride, size)
            for k, dim, size in zip(position, window.dimensions, total.shape[2:-1], strict=True)
        ]
        taken = lhs[(slice(None), slice(None), *seen)]
        rows = taken.reshape(taken.shape[0], math.prod(taken.shape[1:-1]), taken.shape[-1])
        product = matmul(rows, rhs[(slice(None), *position)])
        np.add(total, product.reshape(total.shape), out=total)


def _add_output_positions(total: Array, lhs: Array, rhs: Array, window: Window) -> None:
    groups, batch, outputs = total.shape[0], total.shape[1], total.shape[-1]
    right = rhs.reshape(groups, -1, outputs)
    for position in np.ndindex(*total.shape[2:-1]):
        seen = [
            _progression(o * dim.stride, dim.rhs_dilate, size)
            for o, dim, size in zip(position, window.dimensions, rhs.shape[1:-2], strict=True)
        ]
        left = lhs[(slice(None), slice(None), *seen)].reshape(groups, batch, -1)
        total[(slice(None), slice(None), *position)] = matmul(left, right)


def _progression(first: int, step: int, count: int) -> slice:
    return slice(first, first + (count - 1) * step + 1, step)
