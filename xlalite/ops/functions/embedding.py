"""Rows of tables that may lie in several parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.ops.functions.array import concat, gather
from xlalite.ops.functions.math import maximum, reduce_sum, sqrt, square
from xlalite.ops.helpers.constant import constant, convert_to_tensor


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: float | None = None,
) -> Tensor:
    """Rows of `params` at `ids`.

    Args:
        params: A tensor or a variable, or several that are parts of one table.
        ids: Numbers of rows.
        partition_strategy: `mod` if the rows were dealt out to the parts in turn, `div` if each part follows the last.
        name: Name of the operation.
        validate_indices: Accepted for compatibility.
        max_norm: Rows that are longer are scaled down to this length.

    Raises:
        GraphError: there is no part, or no such strategy.
        ShapeError: rows were dealt out to parts whose number of rows is not known.
    """
    several = isinstance(params, list | tuple) or hasattr(params, "_get_variable_list")
    parts = list(params) if several else [params]
    if not parts or partition_strategy not in ("mod", "div"):
        raise GraphError(
            f"embedding_lookup: found {len(parts)} parts by {partition_strategy!r}; expected some, by mod or div"
        )
    numbers = convert_to_tensor(ids)
    if len(parts) == 1:
        rows = gather(parts[0], numbers, name=name)
    else:
        tables = [convert_to_tensor(part) for part in parts]
        places = numbers if partition_strategy == "div" else _dealt_out(tables, numbers)
        rows = gather(concat(tables, 0), places, name=name)
    if max_norm is None:
        return rows
    axes = list(range(numbers.shape.rank or 0, len(rows.shape)))
    length = sqrt(reduce_sum(square(rows), axes, True))
    return rows * (max_norm / maximum(length, max_norm))  # type: ignore[no-any-return]


def _dealt_out(parts: Sequence[Tensor], ids: Tensor) -> Tensor:
    """Where in all parts, one behind the other, the rows lie that were dealt out in turn."""
    counts = [part.shape.as_list()[0] for part in parts]
    if None in counts:
        raise ShapeError("embedding_lookup: the number of rows of each part must be known")
    starts = constant(np.cumsum([0, *counts[:-1]]).astype(ids.dtype.numpy_dtype))
    return gather(starts, ids % len(parts)) + ids // len(parts)  # type: ignore[no-any-return]
