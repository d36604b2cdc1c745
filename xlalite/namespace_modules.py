"""Modules without files of their own, made of the table of names when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType

from xlalite.hlo.garbage import few_collections
from xlalite.namespace import NAMESPACES

_PREFIX = "xlalite."


class Namespace(ModuleType):
    """A module without a file of its own: names that are defined elsewhere."""

    def __init__(self, name: str, names: Mapping[str, str]) -> None:
        """Offers the names; imports nothing yet."""
        super().__init__(f"xlalite.{name}", f"The names of `xlalite.{name}`: {', '.join(exports_of(names))}.")
        self._exports = exports_of(names)
        self._inner = namespaces_of(name)

    def __getattr__(self, name: str) -> object:
        """Imports a name; it is an ordinary attribute from then on."""
        if name in self._inner:
            return namespace(self._inner[name])
        if name in (inner := namespaces_of(self.__name__.removeprefix("xlalite."))):
            return namespace(inner[name])
        if name not in self._exports:
            raise missing_name(self.__name__, name, self._exports)
        module, attribute = self._exports[name]
        value = imported(module, attribute)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self._exports, *self._inner})


def imported(module: str, attribute: str) -> object:
    """What a module defines, imported when it is first asked for."""
    with few_collections:
        value: object = getattr(importlib.import_module(module), attribute)
    return value


def namespaces_of(package: str) -> dict[str, str]:
    """The namespaces directly under a package (the empty string for `xlalite` itself), by their last names."""
    return {name.rpartition(".")[2]: name for name in NAMESPACES if name.rpartition(".")[0] == package}


class _Finder:
    """Finds namespaces for `import xlalite.nn` and its like."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """What the import system must know of a namespace; None for any other module."""
        if fullname.startswith(_PREFIX) and fullname.removeprefix(_PREFIX) in NAMESPACES:
            return ModuleSpec(fullname, self, is_package=True)  # type: ignore[arg-type]  # a loader by its methods
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The namespace."""
        name = spec.name.removeprefix(_PREFIX)
        return Namespace(name, NAMESPACES[name])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to run."""


sys.meta_path.append(_Finder())


def namespace(name: str) -> ModuleType:
    """The namespace `xlalite.<name>`."""
    return importlib.import_module(_PREFIX + name)


def exports_of(names: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Public name to module and the name there, from lists like `name, name as public_name` by module."""
    return {
        entry.rpartition(" as ")[2]: (module, entry.partition(" as ")[0])
        for module, entries in names.items()
        for entry in entries.split(", ")
    }


def missing_name(place: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a public name that does not exist."""
    if name.startswith("__"):  # Python itself asks modules for such names, and no user misspells them
        return AttributeError(f"{place}.{name}: xlalite has no such name", name=name)
    from xlalite.hlo.wording import did_you_mean  # rarely needed, and more than `import xlalite` loads

    hint = did_you_mean(name, known, "docs/tf1.md lists those there are", likeness=0.75)
    return AttributeError(f"{place}.{name}: xlalite has no such name yet{hint}", name=name)
