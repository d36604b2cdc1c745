"""What is imported when it is first asked for: a table says where, as `module:name`, and is there without it.

For what is many and of which a program needs few: kinds of kernels, passes, functions. `tests/test_layering.py` reads
such places like imports.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

Entry = TypeVar("Entry")


@cache
def imported(place: str, package: str = "") -> Any:
    """What stands at a place; a module that begins with a dot is one of the package."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module, package or None), name)


class LateTable(Mapping[str, Entry]):
    """A table in parts, each of which is imported when one of its names is first asked for."""

    def __init__(
        self, parts: Mapping[str, str], package: str = "", entries: Callable[[Any], Mapping[str, Entry]] = dict
    ) -> None:
        """Nothing is imported yet.

        Args:
            parts: The place of each part, and the names in it with spaces between them.
            package: What places that begin with a dot are in.
            entries: Gives the entries by name of what stands at a place.
        """
        self._place_of = {name: place for place, names in parts.items() for name in names.split()}
        self._package = package
        self._entries = entries
        self._known: dict[str, Entry] = {}

    def __getitem__(self, name: str) -> Entry:
        if name not in self._known:
            self._known |= self._entries(imported(self._place_of[name], self._package))
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._place_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._place_of)

    def __len__(self) -> int:
        return len(self._place_of)


class LateFunctions:
    """The functions of a module, which is imported when one of them is first called."""

    def __init__(self, module: str) -> None:
        """Takes the module's name."""
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        place = f"{self._module}:{name}"

        def function(*arguments: Any) -> Any:
            return imported(place)(*arguments)

        return function
