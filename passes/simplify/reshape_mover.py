"""Moves broadcasts, reshapes and transposes past elementwise operations."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.rewrite import RewriteRule, RewriteRun, rules_by_opcode
from xlalite.passes.simplify import motion, shaping


@dataclass(frozen=True, slots=True)
class ReshapeMover(HloPass):
    """Applies the rules of `simplify/motion.py`: everything moves toward the result, so that it comes to an end.

    Broadcasts move when that makes the elementwise work smaller, even if others read them; reshapes and transposes when
    nobody else does, reshapes that only add or remove dimensions of size 1 always. Values keep every bit.

    Attributes:
        explain: Whether declined rules are recorded.
    """

    name: ClassVar[str] = "reshape-mover"
    opcodes: ClassVar[frozenset[str]] = frozenset({"broadcast", "reshape", "transpose"})
    counts_changes: ClassVar[bool] = True
    reaches_fixpoint: ClassVar[bool] = True

    explain: bool = False

    def run(self, module: HloModule) -> bool:
        """Moves in every computation; says whether anything changed."""
        return self.run_on_changes(module, since=0)

    def run_on_changes(self, module: HloModule, since: int) -> bool:
        """Moves what has changed, and what is made of it; says whether anything changed."""
        rewriting = RewriteRun(_table().get, self.may_change, self.explain)
        changed = rewriting.rewrite(module, 0 if self.explain else since)
        rewriting.record_on(module, self.name)
        return changed


# Those that meet on the way become one at once; otherwise each would travel the whole way alone.
_RULES = (*motion.RULES, *shaping.MERGING)


@cache
def _table() -> dict[str, tuple[RewriteRule, ...]]:
    return rules_by_opcode(_RULES)
