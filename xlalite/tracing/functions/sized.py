"""Functions whose results are as large as their values say: a traced function says how large, as in jax.numpy.

`size` is the length of the result: what exceeds it is left out, and what is missing is filled up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xlalite.hlo.errors import TracingError


def nonzero(a: Any, *, size: int, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of what is not zero, in order, then `fill_value`: a number, or one for each dimension; 0."""
    flat = np.ravel(a) != 0
    places, is_found = _places(flat, size)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * max(np.ndim(a), 1)
    sizes = np.shape(a) or (1,)
    if len(fills) != len(sizes):
        raise TracingError(f"nonzero: fill_value has {len(fills)} numbers, the array {len(sizes)} dimensions")
    indices, distance = [], flat.shape[0]
    for length, fill in zip(sizes, fills, strict=True):
        distance //= max(length, 1)
        indices.append(np.where(is_found, places // max(distance, 1) % max(length, 1), fill))
    return tuple(indices)


def flatnonzero(a: Any, *, size: int, fill_value: Any = None) -> Any:
    """The positions of what is not zero in the flattened array."""
    return nonzero(np.ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int, fill_value: Any = None) -> Any:
    """The indices of what is not zero, a row each."""
    return np.stack(nonzero(a, size=size, fill_value=fill_value), axis=1)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    size: int,
    fill_value: Any = None,
) -> Any:
    """Different elements in order, then `fill_value`: the first of them.

    What fills up has the index of the first of them, too, and the count 0.
    """
    if axis is not None:
        raise TracingError("unique: with a size, elements of the whole array only: axis must be None")
    flat = np.ravel(ar)
    count = flat.shape[0]
    order = np.argsort(flat, stable=True)
    ordered = flat[order]
    is_first = _is_first(ordered, equal_nan)
    places, is_found = _places(is_first, size)
    results = [_filled(ordered, places, is_found, fill_value)]
    if return_index:
        results.append(_filled(order, places, is_found, None))
    if return_inverse:
        numbers = np.zeros_like(order)
        numbers[order] = np.cumsum(is_first, dtype=order.dtype) - 1
        results.append(numbers.reshape(np.shape(ar)))
    if return_counts:
        following, is_there = _places(is_first, size + 1)
        ends = np.where(is_there, following, count)[1:]
        results.append(np.where(is_found, ends - places, 0))
    return results[0] if len(results) == 1 else tuple(results)


def union1d(ar1: Any, ar2: Any, *, size: int, fill_value: Any = None) -> Any:
    """What is in either array, in order, once."""
    return unique(np.concatenate((np.ravel(ar1), np.ravel(ar2))), size=size, fill_value=fill_value)


def intersect1d(ar1: Any, ar2: Any, *, size: int, fill_value: Any = None) -> Any:
    """What is in both arrays, in order, once."""
    return _chosen(ar1, lambda ordered: np.isin(ordered, ar2), size, fill_value)


def setdiff1d(ar1: Any, ar2: Any, *, size: int, fill_value: Any = None) -> Any:
    """What is in the first array only, in order, once."""
    return _chosen(ar1, lambda ordered: ~np.isin(ordered, ar2), size, fill_value)


def setxor1d(ar1: Any, ar2: Any, *, size: int, fill_value: Any = None) -> Any:
    """What is in one of the arrays only, in order, once."""
    both = np.concatenate((np.ravel(ar1), np.ravel(ar2)))
    return _chosen(both, lambda ordered: np.isin(ordered, ar1) != np.isin(ordered, ar2), size, fill_value)


SIZED: Mapping[str, Callable[..., Any]] = {
    each.__name__: each for each in (nonzero, flatnonzero, argwhere, unique, union1d, intersect1d, setdiff1d, setxor1d)
}
"""By NumPy's names; without `size` NumPy's own are asked, whose results have the size that they need."""


def _chosen(array: Any, is_wanted: Callable[[Any], Any], size: int, fill_value: Any) -> Any:
    ordered = np.sort(np.ravel(array))
    places, is_found = _places(_is_first(ordered, True) & is_wanted(ordered), size)
    return _filled(ordered, places, is_found, fill_value)


def _places(mask: Any, size: int) -> tuple[Any, Any]:
    """Where the mask holds, and which of the `size` places there are."""
    wanted = np.arange(1, size + 1)
    count = np.cumsum(mask, dtype=np.int64)
    if not mask.shape[0]:
        return np.zeros_like(wanted), np.zeros_like(wanted, dtype=bool)
    places = np.searchsorted(count, wanted)
    is_found = wanted <= count[-1]
    return np.where(is_found, places, 0), is_found


def _filled(values: Any, places: Any, is_found: Any, fill_value: Any) -> Any:
    if not values.shape[0] or not places.shape[0]:
        return np.full(places.shape, 0 if fill_value is None else fill_value, values.dtype)
    chosen = values[places]
    return np.where(
        is_found, chosen, (chosen[0] if fill_value is None else np.asarray(fill_value)).astype(values.dtype)
    )


def _is_first(ordered: Any, equal_nan: bool) -> Any:
    """Of equal neighbours the first; NaNs are equal if asked."""
    before, after = ordered[:-1], ordered[1:]
    differs = before != after
    if equal_nan:
        differs = differs & ~((before != before) & (after != after))
    return np.concatenate((np.ones(ordered[:1].shape, bool), differs))
