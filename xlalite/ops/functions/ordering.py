"""Order among elements: the functions that users call, under TensorFlow's names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import as_dtype
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, reshape, shape, transpose
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.helpers.promotion import cast_to, promote
from xlalite.ops.helpers.shape_rules import normalize_axis


class TopKV2(NamedTuple):
    """What `top_k` gives.

    Attributes:
        values: The largest elements of each row.
        indices: Where they are.
    """

    values: Tensor
    indices: Tensor


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> TopKV2:
    """The `k` largest elements of each row in descending order; of equal ones those come first that lie first."""
    operands = [convert_to_tensor(input), convert_to_tensor(k)]
    return TopKV2(*operation("TopKV2", operands, {"sorted": sorted}, name).outputs)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether the element of each row that its target names is among the `k` largest."""
    places = convert_to_tensor(targets)
    return node("InTopKV2", [convert_to_tensor(predictions), places, cast_to(convert_to_tensor(k), places.dtype)])


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The elements along a dimension in order; NaN is the largest.

    Raises:
        ShapeError: the direction is not ASCENDING or DESCENDING, or the rank is not known.
    """
    return _sorted(values, axis, direction, name or "sort")[0]


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Where the elements along a dimension come from once they are in order; equal ones keep theirs.

    Raises:
        ShapeError: the direction is not ASCENDING or DESCENDING, or the rank is not known.
    """
    return _sorted(values, axis, direction, name or "argsort")[1]


def _sorted(values: Any, axis: int, direction: str, name: str) -> tuple[Tensor, Tensor]:
    x = convert_to_tensor(values)
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ShapeError(f"{name}: direction {direction!r} is not ASCENDING or DESCENDING")
    if x.shape.rank is None:
        raise ShapeError(f"{name}: the rank of {x.name!r} is not known")
    along = normalize_axis(axis, x.shape.rank)
    order = [*(i for i in range(x.shape.rank) if i != along), along]
    rows = x if along == x.shape.rank - 1 else transpose(x, order)
    length = rows.shape.as_list()[-1]
    k = constant(length) if length is not None else shape(rows)[-1]
    attrs = {"largest": direction == "DESCENDING"}
    found = operation("_SortRows", [rows, k], attrs, name).outputs
    back = list(np.argsort(order))
    return (found[0], found[1]) if rows is x else (transpose(found[0], back), transpose(found[1], back))


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Where each value would go in a sorted sequence: before equal elements (left) or behind them (right).

    Raises:
        ShapeError: the side is neither left nor right.
    """
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side {side!r} is neither 'left' nor 'right'")
    ordered, wanted = promote(sorted_sequence, values)
    sizes = shape(wanted)
    rows = reshape(ordered, concat([constant([-1]), shape(ordered)[-1:]], 0))
    columns = reshape(wanted, concat([constant([-1]), sizes[-1:]], 0))
    op_type = "LowerBound" if side == "left" else "UpperBound"
    return reshape(node(op_type, [rows, columns], {"out_type": as_dtype(out_type)}, name), sizes)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The element at position `n` of each row in ascending order, or in descending order."""
    return node("NthElement", [convert_to_tensor(input), convert_to_tensor(n)], {"reverse": reverse}, name)


def bucketize(input: Any, boundaries: Any, name: str | None = None) -> Tensor:
    """How many of the ascending boundaries are not above each element.

    Raises:
        TypeError: the boundaries are no list.
    """
    if np.ndim(boundaries) != 1:
        raise TypeError(f"Expected list for the boundaries of bucketize, found {boundaries!r}")
    return node("Bucketize", [convert_to_tensor(input)], {"boundaries": tuple(map(float, boundaries))}, name)
