"""Meshes, axes and groups of devices as messages."""

from __future__ import annotations

import re

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.spelling.replica_group_text import read_axis, read_devices, read_mesh
from xlalite.hlo.types.device_mesh import Mesh, MeshAxis
from xlalite.hlo.types.replica_groups import ReplicaGroups

_IOTA = re.compile(r"\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", re.ASCII)
_TRANSPOSED = re.compile(r"\[([\d,]+)\]T\(([\d,]+)\)", re.ASCII)


def read_mesh_message(message: ProtoMessage) -> Mesh:
    """The mesh that a `MeshProto` says.

    Raises:
        ParseError: It is impossible.
    """
    axes = tuple((axis.text("name"), axis.integer("size")) for axis in message.messages("axes"))
    if not message.has("iota_transform"):
        return Mesh(axes, message.integers("device_ids"))
    transform = message.message("iota_transform")
    sizes = transform.integers("reshape_dims")
    try:
        return Mesh.transposed(axes, sizes, transform.integers("transpose_perm") or tuple(range(len(sizes))))
    except ValueError as error:
        raise message.error(str(error)) from None


def write_mesh_message(mesh: Mesh, message: ProtoMessage) -> None:
    """Fills a `MeshProto`."""
    for name, size in mesh.axes:
        message.append("axes").put("name", name).put("size", size)
    spelled = _TRANSPOSED.fullmatch(mesh.spelling)
    if spelled is None:
        message.put_all("device_ids", mesh.devices)
        return
    transform = message.open("iota_transform")
    transform.put_all("reshape_dims", _numbers(spelled[1]))
    transform.put_all("transpose_perm", _numbers(spelled[2]))


def read_axis_message(message: ProtoMessage, mesh: Mesh) -> MeshAxis:
    """The axis, or the part of one, that an `AxisRefProto` says.

    Raises:
        ParseError: The mesh has no such axis.
    """
    index = message.integer("mesh_axis_index")
    if not 0 <= index < len(mesh.axes):
        raise message.error(f"there is no axis {index}, the mesh has {len(mesh.axes)}")
    part = message.message("sub_axis_info")
    return MeshAxis(mesh.axes[index][0], part.integer("pre_size") or 1, part.integer("size"))


def write_axis_message(axis: MeshAxis, mesh: Mesh, message: ProtoMessage) -> None:
    """Fills an `AxisRefProto`; the mesh must have the axis."""
    message.put("mesh_axis_index", [name for name, _ in mesh.axes].index(axis.name))
    if axis.size:
        message.open("sub_axis_info").put("pre_size", axis.before).put("size", axis.size)


def read_groups(message: ProtoMessage) -> ReplicaGroups:
    """The groups of a collective operation, in whichever field of the instruction they are.

    Raises:
        ParseError: They are impossible.
    """
    try:
        if message.has("iota_collective_device_list"):
            counted = message.message("iota_collective_device_list")
            sizes = (counted.integer("num_replica_groups"), counted.integer("num_devices_per_group"))
            return ReplicaGroups.iota(
                sizes, counted.integers("iota_reshape_dims"), counted.integers("iota_transpose_perm")
            )
        if message.has("mesh_axes_replica_group_list"):
            listed = message.message("mesh_axes_replica_group_list")
            mesh = read_mesh_message(listed.message("mesh"))
            return ReplicaGroups.mesh(mesh, [read_axis_message(axis, mesh) for axis in listed.messages("axes")])
    except ValueError as error:
        raise message.error(str(error)) from None
    groups = message.message("collective_device_list").messages("replica_groups") or message.messages("replica_groups")
    return ReplicaGroups(tuple(group.integers("replica_ids") for group in groups))


def write_groups(groups: ReplicaGroups, message: ProtoMessage) -> None:
    """Fills the instruction's field for the spelling that the groups have."""
    counted = _IOTA.fullmatch(groups.spelling)
    if counted is not None:
        listed = message.open("iota_collective_device_list")
        listed.put("num_replica_groups", int(counted[1])).put("num_devices_per_group", int(counted[2]))
        reshape = _numbers(counted[3])
        listed.put_all("iota_reshape_dims", reshape)
        listed.put_all("iota_transpose_perm", _numbers(counted[4]) if counted[4] else range(len(reshape)))
    elif groups.spelling:
        _write_mesh_groups(groups.spelling, message.open("mesh_axes_replica_group_list"))
    else:
        listed = message.open("collective_device_list")
        for group in groups.groups:
            listed.append("replica_groups").put_all("replica_ids", group)


def _write_mesh_groups(spelling: str, message: ProtoMessage) -> None:
    cursor = TokenCursor(spelling)
    mesh = read_mesh(cursor)
    if cursor.accept(","):
        mesh = read_devices(cursor, mesh)
    write_mesh_message(mesh, message.open("mesh"))
    cursor.expect("{")
    while not cursor.accept("}"):
        cursor.accept(",")
        write_axis_message(read_axis(cursor), mesh, message.append("axes"))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]
