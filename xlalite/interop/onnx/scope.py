"""Names and their values, in graphs inside of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import LoweringError
from xlalite.hlo.records import dataclass
from xlalite.interop.onnx.graph import Attributes

Value: TypeAlias = "Handle | list[Value] | None"
"""A tensor, a sequence whose length is known, or an optional that is empty."""

_DEPTH = 40


@dataclass(slots=True)
class Scope:
    """Names and their values in a graph that is being translated.

    Attributes:
        builder: Builds the computation of the graph.
        versions: Versions of the domains.
        attributes: Those of the function around it.
        parent: The scope whose names are visible, too.
        depth: How many graphs and functions lie around it.
        names: Values by name.
    """

    builder: Builder
    versions: Mapping[str, int]
    attributes: Attributes = field(default_factory=dict)
    parent: Scope | None = None
    depth: int = 0
    names: dict[str, Value] = field(default_factory=dict)

    def find(self, name: str) -> Value:
        """The value of a name.

        Raises:
            LoweringError: Nothing before gives it.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise LoweringError(f"value {name!r} is not given by anything before")

    def has(self, name: str) -> bool:
        """Whether a name has a value."""
        return name in self.names or (self.parent is not None and self.parent.has(name))

    def inner(self, builder: Builder, parent: Scope | None, names: dict[str, Value] | None = None) -> Scope:
        """The scope of a graph or of a function inside.

        Raises:
            LoweringError: Too many lie in each other.
        """
        if self.depth >= _DEPTH:
            raise LoweringError(f"graphs and functions are nested more than {_DEPTH} deep")
        return Scope(builder, self.versions, self.attributes, parent, self.depth + 1, names or {})
