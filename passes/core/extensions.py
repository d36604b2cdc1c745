"""What programs add to the compiler: passes under names of their own, and what tells added code apart in caches.

A pass that is registered can be named: by `--passes`, by the flags that restrict passes and by
`--xlalite_extra_passes`. It runs where it is named, or where `CompileOptions` have it.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import TypeVar

from xlalite.hlo.digest import blake2b
from xlalite.hlo.errors import PassError
from xlalite.hlo.late import imported
from xlalite.passes.core.base import HloPass

ENTRY_POINTS = "xlalite.passes"
"""The group of entry points by which a package offers passes: each names a class, which is registered."""

P = TypeVar("P", bound=type[HloPass])

_passes: dict[str, type[HloPass]] = {}
_stamps: dict[str, str] = {}


def register_pass(pass_class: P) -> P:
    """Gives a pass a name among those of the compiler; a decorator of a frozen dataclass that extends `HloPass`.

    A class that is defined again, as notebooks do, takes the place of the one before it.

    Raises:
        PassError: It is no pass, has no name, cannot be made without arguments, or its name is taken.
    """
    given: object = pass_class
    if not (isinstance(given, type) and issubclass(given, HloPass)):
        raise PassError(f"register_pass: expected a class that extends HloPass, found {pass_class!r}")
    name = getattr(pass_class, "name", None)
    if not isinstance(name, str) or not name or set(name) & set(",:{}= "):
        raise PassError(f"register_pass: {pass_class.__qualname__}.name is {name!r}, expected a name such as 'my-pass'")
    known = _passes.get(name) or _built_in().get(name)
    if known is not None and (known.__module__, known.__qualname__) != (pass_class.__module__, pass_class.__qualname__):
        raise PassError(f"register_pass: {known.__module__}.{known.__qualname__} has the name {name!r} already")
    try:
        pass_class()
    except TypeError as error:
        raise PassError(f"register_pass: {name}: all options need defaults: {error}") from error
    _passes[name] = pass_class
    return pass_class


def registered_passes() -> Mapping[str, type[HloPass]]:
    """The passes that programs and installed packages have registered, by name.

    Raises:
        PassError: A package's entry point cannot be loaded.
    """
    _load_entry_points()
    return dict(_passes)


def note_extension(name: str, stamp: str) -> None:
    """Says that all compilations from now on depend on something that was added, and how it is told apart."""
    _stamps[name] = stamp


def extensions_stamp() -> str:
    """What tells the added things apart on which all compilations depend; empty without any."""
    return " ".join(f"{name}={stamp}" for name, stamp in sorted(_stamps.items()))


def pass_stamp(hlo_pass: HloPass) -> str:
    """What tells a pass of somebody's own apart: its name, its options and its source."""
    return f"{hlo_pass.name} {hlo_pass!r} {source_stamp(type(hlo_pass))}"


def source_stamp(thing: type | Callable[..., object]) -> str:
    """A digest of the file that defines a class or function, or of its code where there is no file.

    A file that it imports does not count; `version`, an attribute of the class or function, says that one changed.
    """
    digest = blake2b(digest_size=16)
    digest.update(f"{thing.__module__}.{thing.__qualname__} {getattr(thing, 'version', '')}".encode())
    file = getattr(sys.modules.get(thing.__module__), "__file__", None)
    if file is not None and os.path.isfile(file):
        with open(file, "rb") as source:
            digest.update(source.read())
    for function in _functions(thing):
        digest.update(marshal.dumps(function.__code__))
        for cell in function.__closure__ or ():
            digest.update(repr(cell.cell_contents).encode())
    return digest.hexdigest()


def _functions(thing: type | Callable[..., object]) -> Iterator[FunctionType]:
    found = (
        [thing] if not isinstance(thing, type) else [value for base in thing.__mro__ for value in vars(base).values()]
    )
    for value in found:
        inner = getattr(value, "__func__", value)
        inner = inner.fget if isinstance(inner, property) else inner
        if isinstance(inner, FunctionType) and not inner.__module__.startswith("xlalite."):
            yield inner


def _built_in() -> Mapping[str, type[HloPass]]:
    # It stands above, and only a registration asks.
    passes: Mapping[str, type[HloPass]] = imported("xlalite.passes.registry:PASSES")
    return passes


_loaded: list[bool] = []


def _load_entry_points() -> None:
    if _loaded:
        return
    _loaded.append(True)
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:  # a package of somebody else, which may raise anything
            raise PassError(f"entry point {point.name} of {ENTRY_POINTS} ({point.value}): {error}") from error
        register_pass(loaded)
