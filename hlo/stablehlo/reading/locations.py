"""Turns locations of MLIR into the metadata of HLO: the operation's name, the innermost line of the user's program."""

from __future__ import annotations

from collections.abc import Mapping

from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.stablehlo.reading.syntax import Location

_MAX_STEPS = 200
_NONE = Metadata()


class Locations:
    """Finds metadata; remembers what named locations mean."""

    __slots__ = ("_by_alias", "_found")

    def __init__(self, by_alias: Mapping[str, Location]) -> None:
        """Takes the locations that have names in the text."""
        self._by_alias = by_alias
        self._found: dict[str, Metadata] = {}

    def metadata(self, location: Location | None) -> Metadata:
        """What HLO says about a location: the outermost name, and the file and line that come first."""
        if location is None:
            return _NONE
        if not location.alias:
            return self._walk(location)
        if location.alias not in self._found:
            self._found[location.alias] = self._walk(location)
        return self._found[location.alias]

    def _walk(self, start: Location) -> Metadata:
        """Follows the first branches; a chain that never ends (an alias of itself) is given up."""
        name, pending = "", [start]
        for _ in range(_MAX_STEPS):
            if not pending:
                break
            location = pending.pop()
            if location.alias:
                target = self._by_alias.get(location.alias)
                pending.extend([target] if target is not None else [])
                continue
            name = name or location.name
            if location.file:
                return Metadata(op_name=name, source_file=location.file, source_line=location.line)
            pending.extend(reversed(location.inner))
        return Metadata(op_name=name) if name else _NONE
