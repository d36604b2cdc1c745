"""Meshes of devices: device numbers in an array whose dimensions have names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xlalite.hlo.records import dataclass
from xlalite.hlo.types.quoting import escape

_MOST_DEVICES = 1 << 20


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """An axis of a mesh, or a part of one.

    Attributes:
        name: The axis.
        before: The part's distance from the major end: the product of the parts before it.
        size: The part's size; 0 for the whole axis.
    """

    name: str
    before: int = 1
    size: int = 0

    def __str__(self) -> str:
        """XLA's text."""
        return f"'{escape(self.name)}'" + (f":({self.before}){self.size}" if self.size else "")


@dataclass(frozen=True, slots=True)
class SplitMesh:
    """A mesh whose axes are cut into parts: ((axis, before), size) of each dimension of the device numbers."""

    parts: tuple[tuple[tuple[str, int], int], ...]
    numbers: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Device numbers, row-major over named axes.

    Attributes:
        axes: (name, size) of each axis, the major one first.
        devices: The device numbers when they are not 0, 1, ...
        spelling: The compact text that the device numbers were written in, or "".
    """

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...] = ()
    spelling: str = ""

    @staticmethod
    def transposed(axes: Sequence[tuple[str, int]], sizes: Sequence[int], order: Sequence[int]) -> Mesh:
        """A mesh whose device numbers are arange in the form `sizes`, transposed.

        Raises:
            ValueError: The sizes do not fit together.
        """
        count = math.prod(sizes)
        if min(sizes, default=0) < 1 or sorted(order) != list(range(len(sizes))):
            raise ValueError(f"mesh: sizes {list(sizes)} with the order {list(order)} are impossible")
        require_few_devices(count)
        numbers = np.arange(count).reshape(tuple(sizes)).transpose(tuple(order)).reshape(-1)
        if list(order) == sorted(order):
            return Mesh(tuple(axes))
        written = f"[{','.join(map(str, sizes))}]T({','.join(map(str, order))})"
        return Mesh(tuple(axes), tuple(numbers.tolist()), written)

    def split(self, wanted: Sequence[MeshAxis]) -> SplitMesh:
        """The mesh with each axis cut where a wanted part starts or ends.

        Raises:
            ValueError: A part does not fit, or the mesh has not as many devices as its axes say.
        """
        sizes = dict(self.axes)
        count = math.prod(sizes.values())
        if len(sizes) != len(self.axes) or min(sizes.values(), default=0) < 1:
            raise ValueError("mesh: axes must have different names and sizes of at least 1")
        require_few_devices(count)
        if self.devices and len(self.devices) != count:
            raise ValueError(f"mesh: found {len(self.devices)} device numbers, the axes have {count}")
        cuts = {name: {1, size} for name, size in self.axes}
        for axis in wanted:
            size = sizes.get(axis.name)
            if size is None:
                raise ValueError(f"mesh: there is no axis {axis.name!r}, only {', '.join(sizes)}")
            end = axis.before * axis.size if axis.size else size
            if axis.before < 1 or end < axis.before or size % end or end % axis.before:
                raise ValueError(f"mesh: {axis} does not fit an axis of size {size}")
            cuts[axis.name] |= {axis.before, end}
        parts: list[tuple[tuple[str, int], int]] = []
        for name, size in self.axes:
            points = sorted(cuts[name])
            if any(later % earlier for earlier, later in itertools.pairwise(points)):
                raise ValueError(f"mesh: the parts of axis {name!r} overlap")
            spans = list(itertools.pairwise(points)) or [(1, size)]
            parts.extend(((name, start), end // start) for start, end in spans)
        chosen = [(axis.name, axis.before) for axis in wanted]
        found = dict(parts)
        for axis in wanted:
            whole = axis.size or sizes[axis.name]
            if found.get((axis.name, axis.before)) != whole or chosen.count((axis.name, axis.before)) > 1:
                raise ValueError(f"mesh: {axis} overlaps another part of its axis")
        numbers = np.array(self.devices or range(count), np.int64)
        return SplitMesh(tuple(parts), numbers.reshape([size for _, size in parts]))

    def __str__(self) -> str:
        """XLA's text."""
        axes = ",".join(f"'{escape(name)}'={size}" for name, size in self.axes)
        if not self.devices:
            return f"mesh[{axes}]"
        return f"mesh[{axes}], device_ids=({self.spelling or ','.join(map(str, self.devices))})"


def require_few_devices(count: int) -> None:
    """Raises `ValueError` when there are more devices than anybody has."""
    if count > _MOST_DEVICES:
        raise ValueError(f"{count} devices are more than {_MOST_DEVICES}")
