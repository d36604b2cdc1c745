"""Groups of devices that communicate with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """Groups of device numbers; no groups means all devices in one.

    Attributes:
        groups: The groups.
        spelling: The compact text it was written in (`[2,2]<=[4]`), or "" for the list form. Not part of the value.
    """

    groups: tuple[tuple[int, ...], ...] = ()
    spelling: str = field(default="", compare=False)

    @staticmethod
    def iota(sizes: Sequence[int], reshape: Sequence[int], permutation: Sequence[int] = ()) -> ReplicaGroups:
        """Groups from counting: arange in the form `reshape`, transposed, cut into `sizes[0]` groups of `sizes[1]`.

        Raises:
            ValueError: The sizes do not fit together.
        """
        order = tuple(permutation) or tuple(range(len(reshape)))
        if len(sizes) != 2 or math.prod(sizes) != math.prod(reshape) or sorted(order) != list(range(len(reshape))):
            raise ValueError(
                f"replica groups: [{_joined(sizes)}]<=[{_joined(reshape)}]T({_joined(order)}) is impossible"
            )
        if math.prod(sizes) > _LIMIT:
            raise ValueError(f"replica groups: {math.prod(sizes)} devices are more than {_LIMIT}")
        devices = np.arange(math.prod(sizes)).reshape(tuple(reshape)).transpose(order).reshape(tuple(sizes))
        transposed = "" if order == tuple(range(len(reshape))) else f"T({_joined(order)})"
        return ReplicaGroups(
            tuple(tuple(group) for group in devices.tolist()),
            f"[{_joined(sizes)}]<=[{_joined(reshape)}]{transposed}",
        )

    def __str__(self) -> str:
        """XLA's text."""
        return self.spelling or "{" + ",".join("{" + _joined(group) + "}" for group in self.groups) + "}"


_LIMIT = 1 << 20


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
