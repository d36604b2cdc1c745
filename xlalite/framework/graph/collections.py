"""Lists of anything that a graph keeps under names."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Any

from xlalite.framework.graph.errors import FinalizedGraphError


class Collections:
    """Collections by name, until they are made read-only."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False

    @property
    def lock(self) -> threading.RLock:
        """Held while the graph changes; take it to see a consistent graph."""
        return self._lock

    @property
    def finalized(self) -> bool:
        """Whether the graph refuses changes."""
        return self._finalized

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends to a collection, which is created when needed."""
        with self._lock:
            self._check_mutable()
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Iterable[Any] | str | None, value: Any) -> None:
        """Appends to several collections; a single name is accepted too."""
        for name in dict.fromkeys([names] if isinstance(names, str) else names or ()):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with `scope`, only items whose name matches that regular expression at its start."""
        with self._lock:
            items = list(self._collections.get(name, ()))
        if scope is None:
            return items
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself; changes to the list change the graph."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        """Names of the collections that are not empty."""
        with self._lock:
            return [name for name, items in self._collections.items() if items]

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        with self._lock:
            self._check_mutable()
            self._collections.pop(name, None)

    def _check_mutable(self) -> None:
        if self._finalized:
            raise FinalizedGraphError("the graph is finalised and cannot be changed")
