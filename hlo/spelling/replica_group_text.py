"""Reads groups of devices in their three spellings: lists, counting, and axes of a mesh."""

from __future__ import annotations

from xlalite.hlo.spelling.attributes import Cursor
from xlalite.hlo.spelling.separated import separated
from xlalite.hlo.types.device_mesh import Mesh, MeshAxis
from xlalite.hlo.types.replica_groups import ReplicaGroups


def read_replica_groups(cursor: Cursor) -> ReplicaGroups:
    """Consumes `{{0,1},{2,3}}`, `[2,2]<=[4]`, `[2,2]<=[2,2]T(1,0)` or `mesh['a'=2,'b'=2] {'a'}`.

    Raises:
        ParseError: The text is none of these, or the groups are impossible.
    """
    try:
        if cursor.at("["):
            return _read_iota(cursor)
        if cursor.at("mesh"):
            return _read_mesh(cursor)
    except ValueError as error:
        if isinstance(error, type(cursor.error(""))):
            raise
        raise cursor.error(str(error)) from None
    cursor.expect("{")
    groups = [read_integers(cursor, "{", "}") for _ in separated(cursor, "}")]
    return ReplicaGroups(tuple(groups))


def read_integers(cursor: Cursor, opening: str, closing: str) -> tuple[int, ...]:
    """Consumes integers between two brackets, with commas."""
    cursor.expect(opening)
    return tuple(cursor.integer() for _ in separated(cursor, closing))


def _read_iota(cursor: Cursor) -> ReplicaGroups:
    sizes = read_integers(cursor, "[", "]")
    cursor.expect("<=")
    reshape = read_integers(cursor, "[", "]")
    permutation = read_integers(cursor, "(", ")") if cursor.accept("T") else ()
    return ReplicaGroups.iota(sizes, reshape, permutation)


def read_mesh(cursor: Cursor) -> Mesh:
    """Consumes `mesh['a'=2,'b'=2]`."""
    cursor.expect("mesh")
    cursor.expect("[")
    axes = [(_read_axis_name(cursor), cursor.integer()) for _ in separated(cursor, "]")]
    return Mesh(tuple(axes))


def read_devices(cursor: Cursor, mesh: Mesh) -> Mesh:
    """Consumes `device_ids=(0,2,1,3)` or `device_ids=([2,2]T(1,0))`: the mesh with these device numbers.

    Raises:
        ValueError: The device numbers are impossible.
    """
    cursor.expect("device_ids=")
    cursor.expect("(")
    if not cursor.at("["):
        numbers = [cursor.integer()]
        while not cursor.accept(")"):
            cursor.expect(",")
            numbers.append(cursor.integer())
        return Mesh(mesh.axes, tuple(numbers))
    sizes = read_integers(cursor, "[", "]")
    order = read_integers(cursor, "(", ")") if cursor.accept("T") else tuple(range(len(sizes)))
    cursor.expect(")")
    return Mesh.transposed(mesh.axes, sizes, order)


def read_axis(cursor: Cursor) -> MeshAxis:
    """Consumes `'a'`, or `'a':(1)2` for a part of an axis."""
    name = cursor.string()
    if not cursor.accept(":"):
        return MeshAxis(name)
    cursor.expect("(")
    before = cursor.integer()
    cursor.expect(")")
    return MeshAxis(name, before, cursor.integer())


def _read_mesh(cursor: Cursor) -> ReplicaGroups:
    mesh = read_mesh(cursor)
    if cursor.accept(","):
        mesh = read_devices(cursor, mesh)
    cursor.expect("{")
    wanted = [read_axis(cursor) for _ in separated(cursor, "}")]
    return ReplicaGroups.mesh(mesh, wanted)


def _read_axis_name(cursor: Cursor) -> str:
    """`'a'=`, or `a=` as older printers write it."""
    if cursor.peek().endswith("="):
        return cursor.word("the name of an axis").removesuffix("=")
    name = cursor.string()
    cursor.expect("=")
    return name
