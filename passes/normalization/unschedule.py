"""Forgets the schedule of a module, so that passes may add and remove instructions."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class Unschedule(HloPass):
    """Clears `is_scheduled`: the order of instructions means nothing from here on, until a scheduler runs."""

    name: ClassVar[str] = "unschedule"

    def run(self, module: HloModule) -> bool:
        """Clears the flag; says whether it was set."""
        was_scheduled = module.config.is_scheduled
        if was_scheduled:
            module.update_config(is_scheduled=False)
        return was_scheduled
