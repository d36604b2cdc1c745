"""Passes that are imported when a module has operations that they are about, which few modules have."""

from __future__ import annotations

import re
from functools import cache

from xlalite.hlo.errors import PassError
from xlalite.hlo.late import imported
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class LateClass:
    """What a pipeline knows of a class of passes before it is imported.

    Attributes:
        place: The class, as `module:Class`.
        name: The name of the passes.
        opcodes: The operations that they are about.
    """

    place: str
    name: str
    opcodes: frozenset[str]

    def __call__(self, *options: object) -> LatePass:
        """A pass of the class."""
        return LatePass(self, options)


@dataclass(frozen=True, slots=True)
class LatePass:
    """A pass of a class that may not have been imported yet."""

    made_by: LateClass
    options: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.made_by.name

    @property
    def opcodes(self) -> frozenset[str]:
        """The operations that it is about; without them it stays where it is."""
        return self.made_by.opcodes

    def loaded(self) -> HloPass:
        """The pass, always the same.

        Raises:
            PassError: Its class declares another name or other operations than the pipeline.
        """
        return _loaded(self)


def late(place: str, *opcodes: str, name: str = "") -> LateClass:
    """A class by its place; without a name for its passes, they have that of the class, as `scan-expander`."""
    usual = re.sub("(?<!^)(?=[A-Z])", "-", place.partition(":")[2]).lower()
    return LateClass(place, name or usual, frozenset(opcodes))


@cache
def _loaded(late_pass: LatePass) -> HloPass:
    made: HloPass = imported(late_pass.made_by.place)(*late_pass.options)
    if (made.name, made.opcodes) != (late_pass.name, late_pass.opcodes):
        expected = f"{late_pass.name!r} about {sorted(late_pass.opcodes)}"
        declared = f"{made.name!r} about {sorted(made.opcodes or ())}"
        raise PassError(f"{late_pass.made_by.place}: its pipeline expects {expected}, it declares {declared}")
    return made
