"""What a pass is: a named change of a module that keeps its meaning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from typing import ClassVar

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass


class Fuel:
    """How many changes a pass may still make; shared by all runs of the pass in one compilation.

    Bisecting the number finds the one change that breaks a program.
    """

    __slots__ = ("left", "taken")

    def __init__(self, limit: int) -> None:
        """Allows `limit` changes."""
        self.left = limit
        self.taken = 0

    def take(self) -> bool:
        """Uses one unit; false when none is left."""
        if self.left <= 0:
            return False
        self.left -= 1
        self.taken += 1
        return True


@dataclass(frozen=True, slots=True)
class HloPass(ABC):
    """A pass; a subclass is a frozen dataclass whose fields are its options.

    Attributes:
        name: The pass's name in pipelines, flags, dumps and decision records.
        opcodes: Operations; pipelines leave the pass out where a module has none of them. None if it may always do
            something.
        counts_changes: Whether `run` asks `may_change` before each change. Fuel then counts single changes;
            otherwise it counts runs that changed something.
        reaches_fixpoint: Whether a second run, right after one that changed something, has nothing to change.
        fuel: Changes that are left, None for any number. The pipeline fills it in.
    """

    name: ClassVar[str]
    opcodes: ClassVar[frozenset[str] | None] = None
    counts_changes: ClassVar[bool] = False
    reaches_fixpoint: ClassVar[bool] = False

    fuel: Fuel | None = field(default=None, kw_only=True, compare=False, repr=False)

    @abstractmethod
    def run(self, module: HloModule) -> bool:
        """Changes the module in place and says truthfully whether it did."""

    def run_on_changes(self, module: HloModule, since: int) -> bool:
        """Like `run`, on a module in which the pass found nothing to change at a time (see `HloInstruction.stamp`).

        A pass that can tell looks only at what has changed since.
        """
        return self.run(module)

    def may_change(self) -> bool:
        """Takes fuel for one change; false when there is none left."""
        return self.fuel is None or self.fuel.take()


def run_to_fixpoint(hlo_pass: HloPass, module: HloModule, max_rounds: int = 25) -> bool:
    """Runs one pass until it changes nothing; says whether it changed anything at all.

    Raises:
        PassError: It still changes the module after `max_rounds` runs.
    """
    for rounds in range(max_rounds):
        if not hlo_pass.run(module):
            return rounds > 0
    raise PassError(f"{hlo_pass.name}: module {module.name} still changes after {max_rounds} runs, expected a fixpoint")
