"""Attributes of Shardy in MLIR bytecode: nobody computes with them, so that each becomes the text that MLIR prints.

Sources: the definitions of Shardy's attributes and of their bytecode.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from xlalite.hlo.stablehlo.bytecode.byte_cursor import ByteCursor
from xlalite.hlo.stablehlo.bytecode.container import Container
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Opaque, Symbol

_LONGEST = 1 << 16
_SHARDING, _MESH = "#sdy.sharding", "#sdy.mesh"


class ShardingReader:
    """Reads attributes.

    Attributes:
        readers: For the number of each kind.
    """

    __slots__ = ("_at", "_container", "readers")

    def __init__(self, container: Container, attribute_at: Callable[[ByteCursor, int], Attribute]) -> None:
        self._container = container
        self._at = attribute_at
        found: dict[int, Callable[[ByteCursor], str]] = {
            0: lambda cursor: f"#sdy<manual_axes{{{self._joined(cursor)}}}>",
            1: lambda cursor: f"{self._name(cursor)}={cursor.signed()}",
            2: self._mesh,
            3: lambda cursor: f":({cursor.signed()}){cursor.signed()}",
            4: lambda cursor: self._name(cursor) + self._optional(cursor),
            5: self._dimension,
            6: lambda cursor: self._array(cursor, ("replicated",)),
            7: lambda cursor: f"#sdy.sharding_per_value<[{self._joined(cursor, _SHARDING)}]>",
            15: lambda cursor: self._array(cursor, ("replicated", "unreduced")),
        }
        self.readers = {("sdy", code): self._bounded(read) for code, read in found.items()}

    def _bounded(self, read: Callable[[ByteCursor], str]) -> Callable[[ByteCursor], Attribute]:
        def bounded(cursor: ByteCursor) -> Attribute:
            text = read(cursor)
            if len(text) > _LONGEST:
                raise cursor.error("a sharding is too long")
            return Opaque(text)

        return bounded

    def _mesh(self, cursor: ByteCursor) -> str:
        axes, devices = self._joined(cursor), cursor.list(cursor.signed)
        return f"{_MESH}<[{axes}]{f', device_ids={devices}' if devices else ''}>"

    def _dimension(self, cursor: ByteCursor) -> str:
        axes, is_closed = self._texts(cursor), cursor.byte()
        priority = cursor.integer()
        parts = axes if is_closed else (*axes, "?")
        return f"{{{_list(cursor, parts)}}}{f'p{priority >> 1}' if priority & 1 else ''}"

    def _array(self, cursor: ByteCursor, others: tuple[str, ...]) -> str:
        mesh = self._at(cursor, cursor.integer())
        name = f"@{mesh.name}" if isinstance(mesh, Symbol) else self._text(cursor, mesh).removeprefix("#sdy.")
        text = f"{name}, [{self._joined(cursor)}]"
        for other in others:
            axes = self._joined(cursor)
            text += f", {other}={{{axes}}}" if axes else ""
        return f"{_SHARDING}<{text}>"

    def _name(self, cursor: ByteCursor) -> str:
        return json.dumps(self._container.text(cursor), ensure_ascii=False)

    def _optional(self, cursor: ByteCursor) -> str:
        """The text of an attribute that may be absent."""
        number = cursor.integer()
        return self._text(cursor, self._at(cursor, number >> 1)) if number & 1 else ""

    def _joined(self, cursor: ByteCursor, prefix: str = "") -> str:
        return _list(cursor, [text.removeprefix(prefix) for text in self._texts(cursor)])

    def _texts(self, cursor: ByteCursor) -> list[str]:
        return cursor.list(lambda: self._text(cursor, self._at(cursor, cursor.integer())))

    def _text(self, cursor: ByteCursor, value: Attribute) -> str:
        """What a part of a sharding says; manual axes are named by texts."""
        if isinstance(value, str):
            return json.dumps(value, ensure_ascii=False)
        if not isinstance(value, Opaque):
            raise cursor.error("an attribute of Shardy holds one of another dialect")
        return value.text


def _list(cursor: ByteCursor, parts: Iterable[str]) -> str:
    parts = list(parts)
    if sum(map(len, parts)) > _LONGEST:
        raise cursor.error("a sharding is too long")
    return ", ".join(parts)
