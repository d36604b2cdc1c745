"""Groups of devices that communicate with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.device_mesh import Mesh, MeshAxis, require_few_devices


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
        require_few_devices(math.prod(sizes))
        devices = np.arange(math.prod(sizes)).reshape(tuple(reshape)).transpose(order).reshape(tuple(sizes))
        transposed = "" if order == tuple(range(len(reshape))) else f"T({_joined(order)})"
        return ReplicaGroups(
            tuple(tuple(group) for group in devices.tolist()),
            f"[{_joined(sizes)}]<=[{_joined(reshape)}]{transposed}",
        )

    @staticmethod
    def mesh(mesh: Mesh, axes: Sequence[MeshAxis]) -> ReplicaGroups:
        """Groups of the devices that differ only in their places along the given axes of a mesh.

        Raises:
            ValueError: An axis does not exist, or its parts do not fit.
        """
        devices = mesh.split(axes)
        names = [part for part, _ in devices.parts]
        inside = [names.index((axis.name, axis.before)) for axis in axes]
        outside = [position for position in range(len(names)) if position not in inside]
        size = math.prod(devices.parts[position][1] for position in inside)
        ordered = devices.numbers.transpose((*outside, *inside)).reshape((-1, size))
        shown = ",".join(map(str, axes))
        return ReplicaGroups(tuple(tuple(group) for group in ordered.tolist()), f"{mesh} {{{shown}}}")

    def __str__(self) -> str:
        """XLA's text."""
        return self.spelling or "{" + ",".join("{" + _joined(group) + "}" for group in self.groups) + "}"


def _joined(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
