"""Shardings: XLA's text to messages and back.

The IR keeps shardings as text. What this file does not understand travels as text in a field that XLA skips.
"""

from __future__ import annotations

from collections.abc import Callable

from xlalite.hlo.errors import ParseError
from xlalite.hlo.proto.meshes import (
    read_axis_message,
    read_mesh_message,
    write_axis_message,
    write_mesh_message,
)
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.metadata import read_metadata, write_metadata
from xlalite.hlo.spelling.cursor import TokenCursor
from xlalite.hlo.spelling.replica_group_text import read_axis, read_devices, read_integers, read_mesh
from xlalite.hlo.text.annotation_text import format_metadata, parse_metadata
from xlalite.hlo.types.device_mesh import Mesh
from xlalite.hlo.types.limits import DEFAULT_LIMITS

_PLAIN = ("replicated", "manual", "unknown", "unreduced")
_AXIS_LISTS = ("replicated", "unreduced", "manual")
_VERBATIM = "sharding"


def read_sharding(message: ProtoMessage, depth: int = 0) -> str:
    """The text of an `OpSharding`.

    Raises:
        ParseError: It says no sharding.
    """
    if depth > DEFAULT_LIMITS.nesting:
        raise message.error(f"tuples are nested more than {DEFAULT_LIMITS.nesting} deep")
    for text in message.messages("xlalite_text"):
        if text.text("name") == _VERBATIM:
            return text.text("text")
    if message.has("named_sharding"):
        return _read_named(message.message("named_sharding"))
    word = message.word("type").lower()
    if word == "tuple":
        parts = ", ".join(read_sharding(part, depth + 1) for part in message.messages("tuple_shardings"))
        return "{" + parts + "}"
    if word == "maximal":
        devices = message.integers("tile_assignment_devices")
        if len(devices) != 1:
            raise message.error(f"found {len(devices)} devices, expected one for a maximal sharding")
        parts = f"maximal device={devices[0]}"
    else:
        parts = word if word in _PLAIN else _read_tiles(message)
    if message.boolean("is_shard_group"):
        parts += f" shard_{message.word('shard_group_type').lower()} {message.integer('shard_group_id')}"
    return "{" + parts + _metadata_text(message) + "}"


def write_sharding(text: str, message: ProtoMessage) -> None:
    """Fills an `OpSharding`."""
    try:
        cursor = TokenCursor(text)
        _write(cursor, message)
        understood = cursor.at("") and _plain(read_sharding(message)) == _plain(text)
    except (ParseError, ValueError):
        understood = False
    if not understood or read_sharding(message) != text:
        if not understood:
            message.values.clear()
            message.put_word("type", "UNKNOWN")
        message.append("xlalite_text").put("name", _VERBATIM).put("text", text)


def _plain(text: str) -> str:
    return text.replace(" ", "").replace("T(0)", "")


def _read_tiles(message: ProtoMessage) -> str:
    text = f"devices=[{_joined(message.integers('tile_assignment_dimensions'))}]"
    reshape, order = message.integers("iota_reshape_dims"), message.integers("iota_transpose_perm")
    if reshape:
        text += f"<=[{_joined(reshape)}]"
        text += f"T({_joined(order)})" if order != tuple(range(len(order))) else ""
    else:
        text += _joined(message.integers("tile_assignment_devices"))
    if message.boolean("replicate_on_last_tile_dim"):
        text += " last_tile_dim_replicate"
    if message.has("last_tile_dims"):
        text += " last_tile_dims={" + ", ".join(word.lower() for word in message.words("last_tile_dims")) + "}"
    return text


def _metadata_text(message: ProtoMessage) -> str:
    texts = [format_metadata(read_metadata(one)) for one in message.messages("metadata")]
    if len(texts) > 1:
        return " metadata={" + ", ".join(texts) + "}"
    return f" metadata={texts[0]}" if texts else ""


def _read_named(message: ProtoMessage) -> str:
    mesh = read_mesh_message(message.message("mesh"))
    parts = [str(mesh)]
    dimensions = []
    for dimension in message.messages("dim_shardings"):
        axes = _axis_texts(dimension, "axes", mesh) + ([] if dimension.boolean("is_closed") else ["?"])
        dimensions.append("{" + ", ".join(axes) + "}")
    parts.append("[" + ", ".join(dimensions) + "]")
    for name in _AXIS_LISTS:
        axes = _axis_texts(message, f"{name}_axes", mesh)
        if axes:
            parts.append(name + "={" + ", ".join(axes) + "}")
    return "{" + ", ".join(parts) + _metadata_text(message) + "}"


def _axis_texts(message: ProtoMessage, name: str, mesh: Mesh) -> list[str]:
    return [str(read_axis_message(axis, mesh)) for axis in message.messages(name)]


def _joined(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _write(cursor: TokenCursor, message: ProtoMessage) -> None:
    cursor.expect("{")
    cursor.enter()
    if cursor.at("{") or cursor.at("}"):
        message.put_word("type", "TUPLE")
        while not cursor.at("}"):
            cursor.accept(",")
            _write(cursor, message.append("tuple_shardings"))
    elif cursor.at("mesh"):
        _write_named(cursor, message.open("named_sharding"))
    else:
        _write_single(cursor, message)
    cursor.leave()
    cursor.expect("}")


def _write_single(cursor: TokenCursor, message: ProtoMessage) -> None:
    while not cursor.at("}"):
        cursor.accept(",")
        token = cursor.peek()
        if token in _PLAIN:
            message.put_word("type", token.upper())
        elif token == "maximal":
            message.put_word("type", "MAXIMAL")
        elif token.startswith("metadata={"):
            write_metadata(parse_metadata(token.removeprefix("metadata=")), message.append("metadata"))
        elif token == "last_tile_dim_replicate":
            message.put("replicate_on_last_tile_dim", True)
        elif token not in _PARTS:
            raise cursor.unexpected("a part of a sharding")
        cursor.index += 1
        if token in _PARTS:
            _PARTS[token](cursor, message)


def _write_device(cursor: TokenCursor, message: ProtoMessage) -> None:
    message.put_all("tile_assignment_devices", [cursor.integer()])


def _write_tiles(cursor: TokenCursor, message: ProtoMessage) -> None:
    message.put_word("type", "OTHER")
    message.put_all("tile_assignment_dimensions", read_integers(cursor, "[", "]"))
    if cursor.accept("<="):
        reshape = read_integers(cursor, "[", "]")
        order = read_integers(cursor, "(", ")") if cursor.accept("T") else tuple(range(len(reshape)))
        message.put_all("iota_reshape_dims", reshape).put_all("iota_transpose_perm", order)
        return
    devices = [cursor.integer()]
    while cursor.accept(","):
        devices.append(cursor.integer())
    message.put_all("tile_assignment_devices", devices)


def _write_last_dims(cursor: TokenCursor, message: ProtoMessage) -> None:
    words: list[str] = []
    cursor.expect("{")
    while not cursor.accept("}"):
        cursor.accept(",")
        word = cursor.word("the type of a subgroup")
        if word not in _PLAIN and word != "maximal":
            raise cursor.error(f"{word} is no type of a subgroup")
        words.append(word.upper())
    message.put_words("last_tile_dims", words)


def _write_group(kind: str, cursor: TokenCursor, message: ProtoMessage) -> None:
    message.put("is_shard_group", True).put_word("shard_group_type", kind).put("shard_group_id", cursor.integer())


_PARTS: dict[str, Callable[[TokenCursor, ProtoMessage], None]] = {
    "device=": _write_device,
    "devices=": _write_tiles,
    "last_tile_dims=": _write_last_dims,
    "shard_as": lambda cursor, message: _write_group("AS", cursor, message),
    "shard_like": lambda cursor, message: _write_group("LIKE", cursor, message),
}


def _write_named(cursor: TokenCursor, message: ProtoMessage) -> None:
    mesh = read_mesh(cursor)
    cursor.expect(",")
    if cursor.at("device_ids="):
        mesh = read_devices(cursor, mesh)
        cursor.expect(",")
    write_mesh_message(mesh, message.open("mesh"))
    cursor.expect("[")
    while not cursor.accept("]"):
        cursor.accept(",")
        dimension = message.append("dim_shardings")
        dimension.put("is_closed", not _write_axes(cursor, mesh, dimension, "axes"))
    while cursor.accept(","):
        name = cursor.word("replicated, unreduced or manual").removesuffix("=")
        if name not in _AXIS_LISTS:
            raise cursor.error(f"{name} is no list of axes")
        _write_axes(cursor, mesh, message, f"{name}_axes")


def _write_axes(cursor: TokenCursor, mesh: Mesh, message: ProtoMessage, name: str) -> bool:
    """Fills a list of axes; says whether it is open."""
    is_open = False
    cursor.expect("{")
    while not cursor.accept("}"):
        cursor.accept(",")
        if cursor.accept("?"):
            is_open = True
        else:
            write_axis_message(read_axis(cursor), mesh, message.append(name))
    return is_open
