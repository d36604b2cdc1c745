"""How arrays lie on several devices: jax says so with a program, and asks where it has not."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.records import dataclass
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Opaque, Operation, Program
from xlalite.hlo.stablehlo.rules.sharding_rules import SHARDING
from xlalite.hlo.types.shape import Shape

_SHARDING = re.compile(r"<@(\w+), \[([^\]]*)\]([^>]*)>")
_MESH = re.compile(r"#sdy\.mesh<\[([^\]]*)\]>")
_DIMENSION = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Cut:
    """How an array is cut.

    Attributes:
        sizes: The axes of the mesh, the number of a device running through the last one first.
        axes: Those along which each dimension is cut; dimensions that are left out are not.
    """

    sizes: Mapping[str, int]
    axes: tuple[tuple[str, ...], ...]

    @property
    def is_cut(self) -> bool:
        """Whether not every device has the whole array."""
        return any(self.sizes[axis] > 1 for axes in self.axes for axis in axes)

    @property
    def devices(self) -> int:
        """The number of devices of the mesh."""
        return math.prod(self.sizes.values())

    def along(self, axes: Collection[str]) -> Cut:
        """The same without some axes."""
        return Cut(self.sizes, tuple(tuple(axis for axis in each if axis in axes) for each in self.axes))

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The devices that have different parts of one array together."""
        cut = {axis for axes in self.axes for axis in axes}
        order = sorted(range(len(self.sizes)), key=lambda number: list(self.sizes)[number] in cut)
        numbers = np.arange(self.devices).reshape(tuple(self.sizes.values())).transpose(order)
        count = math.prod(size for axis, size in self.sizes.items() if axis in cut)
        return tuple(tuple(row) for row in numbers.reshape(-1, count).tolist())

    def is_even(self, shape: Shape) -> bool:
        """Whether all parts are of one size."""
        if len(self.axes) != shape.rank:
            return False
        return not any(size % count for size, count in zip(shape.dims, self.tiles(shape.rank), strict=True))

    def tiles(self, rank: int) -> list[int]:
        """Into how many parts each dimension is cut."""
        counts = [math.prod(self.sizes[axis] for axis in axes) for axes in self.axes]
        return [*counts, *(1,) * (rank - len(counts))]

    def part(self, shape: Shape) -> Shape:
        """What a device has of an array."""
        return shape.with_dims([size // count for size, count in zip(shape.dims, self.tiles(shape.rank), strict=True)])

    def place(self, device: int, shape: Shape) -> tuple[slice, ...]:
        """Where the part of a device is."""
        if not self.is_cut:
            return ()
        at = dict(zip(self.sizes, np.unravel_index(device, tuple(self.sizes.values())), strict=True))
        slices = []
        for axes, size in zip(self.axes, self.part(shape).dims, strict=False):
            tile = 0
            for axis in axes:
                tile = tile * self.sizes[axis] + int(at[axis])
            slices.append(slice(tile * size, (tile + 1) * size))
        return tuple(slices)

    def joined(self, parts: Sequence[npt.NDArray[Any]], shape: Shape) -> npt.NDArray[Any]:
        """The whole of what the devices have."""
        if not self.is_cut:
            return parts[0]
        whole = np.empty(shape.dims, parts[0].dtype)
        for device, part in enumerate(parts):
            whole[self.place(device, shape)] = part
        return whole

    def message(self) -> ProtoMessage:
        """The same in XLA's words."""
        message = ProtoMessage("OpSharding")
        order = [axis for axes in self.axes for axis in axes]
        if not order:
            return message.put_word("type", "REPLICATED")
        tiles = self.tiles(len(self.axes))
        rest = [axis for axis in self.sizes if axis not in order]
        copies = math.prod(self.sizes[axis] for axis in rest)
        if copies > 1:
            tiles.append(copies)
            message.put("replicate_on_last_tile_dim", True)
        message.put_word("type", "OTHER").put_all("tile_assignment_dimensions", tiles)
        message.put_all("iota_reshape_dims", self.sizes.values())
        return message.put_all("iota_transpose_perm", [list(self.sizes).index(axis) for axis in [*order, *rest]])


WHOLE = Cut({}, ())
"""Every device has all of it."""


def manual_cuts(program: Program) -> tuple[list[Cut], list[Cut]] | None:
    """How arguments and results of the operation that is all of the entry are cut; None if that is not known here."""
    (operation,) = program.functions["main"].body.operations
    given, made = (_operation_cuts(program, operation, name) for name in ("in_shardings", "out_shardings"))
    is_known = len(given) == len(operation.operands) and len(made) == len(operation.results)
    return (given, made) if is_known else None


def is_as_asked(program: Program) -> bool:
    """Whether such an operation takes and gives what the entry is to take and give, as far as both are known here."""
    function, cuts = program.functions["main"], manual_cuts(program)
    if cuts is None:
        return True
    (operation,) = function.body.operations
    arguments, inner = function.body.arguments, operation.regions[0].arguments
    parts = [each for each in zip(cuts[0], arguments, inner, strict=True) if each[0].is_cut]
    if any(not cut.is_even(outer.shape) or cut.part(outer.shape) != own.shape for cut, outer, own in parts):
        return False
    attributes = (*(each.attributes for each in arguments), *function.result_attributes)
    for cut, wanted in zip((*cuts[0], *cuts[1]), attributes, strict=True):
        value = wanted.get(SHARDING)
        asked = cuts_in(program, value.text) if isinstance(value, Opaque) else []
        if any(each != cut for each in asked if each.is_cut or cut.is_cut):
            return False
    return True


def entry_cuts(program: Program, num_devices: int) -> tuple[list[Cut], list[Cut]] | None:
    """How arguments and results of the entry are to be cut; None if that is not known here."""
    function = program.functions["main"]
    given = [_attribute_cut(program, each.attributes, each.shape, num_devices) for each in function.body.arguments]
    pairs = zip(function.result_attributes, function.result_types, strict=True)
    made = [_attribute_cut(program, attributes, shape, num_devices) for attributes, shape in pairs]
    known = [each for each in (*given, *made) if each is not None]
    return (known[: len(given)], known[len(given) :]) if len(known) == len(given) + len(made) else None


def cuts_in(program: Program, text: str) -> list[Cut]:
    """Those that Shardy spells, which are known here."""
    return [cut for cut in (_cut(program, each) for each in _SHARDING.finditer(text)) if cut is not None]


def put_shardings(cuts: tuple[list[Cut], list[Cut]], module: ProtoMessage) -> None:
    """Puts into a module how its arguments and results are cut."""
    module.put_all("spmd_parameters_shardings", [cut.message() for cut in cuts[0]])
    whole = module.open("spmd_output_sharding").put_word("type", "TUPLE")
    whole.put_all("tuple_shardings", [cut.message() for cut in cuts[1]])


def _operation_cuts(program: Program, operation: Operation, name: str) -> list[Cut]:
    value = operation.attributes.get(name)
    return cuts_in(program, value.text) if isinstance(value, Opaque) else []


def _attribute_cut(program: Program, attributes: Mapping[str, Attribute], shape: Shape, num_devices: int) -> Cut | None:
    value = attributes.get(SHARDING)
    if not isinstance(value, Opaque):
        return WHOLE
    text = _SHARDING.search(value.text)
    cut = None if text is None or "unreduced" in text[3] else _cut(program, text)
    if cut is None or not cut.is_cut:
        return cut
    return cut if cut.devices == num_devices and cut.is_even(shape) else None


def _cut(program: Program, text: re.Match[str]) -> Cut | None:
    """None for parts of axes, and meshes of devices out of order."""
    mesh, dimensions = _MESH.fullmatch(program.meshes.get(text[1], "")), _DIMENSION.findall(text[2])
    if mesh is None or any(":" in each for each in dimensions):
        return None
    sizes = {axis: int(size) for axis, size in re.findall(r'"([^"]+)"=(\d+)', mesh[1])}
    axes = tuple(tuple(re.findall(r'"([^"]+)"', each)) for each in dimensions)
    return Cut(sizes, axes) if {axis for each in axes for axis in each} <= set(sizes) else None
