"""How the dimensions of a reshape correspond, and where elements lie along them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class DimensionGroup:
    """Neighbouring dimensions before and after a reshape that hold the same number of elements.

    Dimensions of size 1 belong to no group.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]


def dimension_groups(before: Sequence[int], after: Sequence[int]) -> tuple[DimensionGroup, ...] | None:
    """The smallest groups of dimensions that a reshape keeps apart; None when there are no elements.

    >>> dimension_groups((2, 3, 1, 8), (6, 4, 2))
    (DimensionGroup(before=(0, 1), after=(0,)), DimensionGroup(before=(3,), after=(1, 2)))
    """
    if 0 in before or 0 in after:
        return None
    groups: list[DimensionGroup] = []
    left = [i for i, size in enumerate(before) if size != 1]
    right = [i for i, size in enumerate(after) if size != 1]
    i = j = 0
    while i < len(left) and j < len(right):
        first_i, first_j = i, j
        left_count, right_count = before[left[i]], after[right[j]]
        while left_count != right_count:
            if left_count < right_count:
                i += 1
                left_count *= before[left[i]]
            else:
                j += 1
                right_count *= after[right[j]]
        i, j = i + 1, j + 1
        groups.append(DimensionGroup(tuple(left[first_i:i]), tuple(right[first_j:j])))
    return tuple(groups)


def without_ones(dims: Sequence[int]) -> tuple[int, ...]:
    """The sizes other than 1."""
    return tuple(size for size in dims if size != 1)


def corresponding_dimensions(before: Sequence[int], after: Sequence[int]) -> dict[int, int]:
    """Each dimension's number after a reshape that only inserts and drops dimensions of size 1; none for one dropped.

    >>> corresponding_dimensions((1, 2, 1, 1, 3), (2, 1, 3, 1))
    {1: 0, 2: 1, 4: 2}
    """
    found: dict[int, int] = {}
    j = 0
    for i, size in enumerate(before):
        while size != 1 and after[j] == 1:
            j += 1
        if j < len(after) and after[j] == size:
            found[i] = j
            j += 1
    return found


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    result = [0] * len(permutation)
    for position, source in enumerate(permutation):
        result[source] = position
    return tuple(result)


def is_increasing(values: Sequence[int]) -> bool:
    """Whether each value is larger than the one before."""
    return all(a < b for a, b in itertools.pairwise(values))


def positions(dims: Sequence[int], along: int) -> NDArray[np.int64]:
    """Each element's position along one dimension.

    >>> positions((2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    line = np.arange(dims[along], dtype=np.int64).reshape(-1, *(1,) * (len(dims) - along - 1))
    return np.broadcast_to(line, dims)
