"""Arrays in other sizes: along a dimension each new element is a sum of few old ones, with weights known beforehand.

What comes out is `sum over t of weights[:, t] * x[indices[:, t]]`. Resized images and borders that repeat or mirror
what they surround are both that, and the transpose is the derivative.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.building.indexing import gather_rows
from xlalite.hlo.ops import OPS
from xlalite.hlo.records import dataclass

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Taps:
    """Which old elements each new one is made of.

    Attributes:
        indices: `[new, taps]`, within the old size.
        weights: `[new, taps]`, or None for a single tap of weight 1.
    """

    indices: Array
    weights: Array | None = None

    def of(self, x: Handle, axis: int) -> Handle:
        """The new elements along a dimension."""
        b, count = x.builder, self.indices.shape[1]
        parts = [gather_rows(b, x, b.constant(self.indices[:, t].astype(np.int32)), axis) for t in range(count)]
        if self.weights is None:
            return parts[0]
        weighted = (part * _along(weights, axis, part) for part, weights in zip(parts, self.weights.T, strict=True))
        return reduce(add, weighted)

    def transposed(self, x: Handle, axis: int, old: int) -> Handle:
        """The derivative of `of` by its argument, which had the size `old`, where `x` is that by its result."""
        b, sizes = x.builder, [old if i == axis else size for i, size in enumerate(x.dims)]
        result = b.full(0, x.dtype, sizes)
        attrs = OPS["scatter"].attrs(
            update_window_dims=tuple(i for i in range(len(x.dims)) if i != axis),
            inserted_window_dims=(axis,),
            scatter_dims_to_operand_dims=(axis,),
            index_vector_dim=1,
        )
        for t in range(self.indices.shape[1]):
            share = x if self.weights is None else x * _along(self.weights[:, t], axis, x)
            places = b.constant(self.indices[:, t].astype(np.int32))
            result = b.op("scatter", (result, places, share), attrs, (b.scalar_function("add", x.dtype),))
        return result


def cubic_weights(share: Array, sharpness: Any) -> Array:
    """Weights of the four neighbours of places, `share` of the way from the second to the third.

    Args:
        share: `[new]`, from 0 to 1.
        sharpness: The free parameter of Keys (1981), usually -1/2 or -3/4.
    """
    a = sharpness

    def near(x: Array) -> Array:
        return np.asarray(((a + 2) * x - (a + 3)) * x * x + 1)

    def far(x: Array) -> Array:
        return np.asarray(((a * x - 5 * a) * x + 8 * a) * x - 4 * a)

    return np.stack([far(share + 1), near(share), near(1 - share), far(1 - share + 1)], 1)


def _along(weights: Array, axis: int, like: Handle) -> Handle:
    b = like.builder
    return b.broadcast(b.constant(weights.astype(like.dtype.numpy), like.dtype), like.dims, [axis])
