"""The algebraic simplifier: all rule tables together, applied until none fires."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.rewrite import RewriteRule, RewriteRun, Strictness, rules_by_opcode
from xlalite.passes.simplify import (
    choice,
    conversion,
    dot,
    extremes,
    indexing,
    logical,
    products,
    reduction,
    relaxed,
    shaping,
    slicing,
    sums,
)
from xlalite.passes.simplify.added_rules import added_rules

RULES: tuple[RewriteRule, ...] = (
    *sums.RULES,
    *products.RULES,
    *extremes.RULES,
    *logical.RULES,
    *choice.RULES,
    *conversion.RULES,
    *shaping.RULES,
    *slicing.RULES,
    *reduction.RULES,
    *dot.RULES,
    *indexing.RULES,
    *relaxed.RULES,
)


@dataclass(frozen=True, slots=True)
class AlgebraicSimplifier(HloPass):
    """Applies the algebraic rules; by default only those that keep every bit or the order of no sum.

    How often each rule fired is recorded, and in explain mode each rule that saw its pattern but declined. Leaves
    instructions with control dependencies or dynamic sizes alone.

    Attributes:
        reorder_reductions: Whether rules may change the order in which a floating-point sum is taken.
        relaxed: Names of the relaxed rules that run.
        disabled: Names of rules that do not run.
        explain: Whether declined rules are recorded.
    """

    name: ClassVar[str] = "algebraic-simplifier"
    counts_changes: ClassVar[bool] = True
    reaches_fixpoint: ClassVar[bool] = True

    reorder_reductions: bool = True
    relaxed: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    explain: bool = False

    def __post_init__(self) -> None:
        """Refuses names of rules that do not exist.

        Raises:
            PassError: The name.
        """
        for name in sorted(self.relaxed | self.disabled):
            if name not in _names() and name not in added_rules():
                raise PassError(f"{self.name}: there is no rule {name!r}")

    def run(self, module: HloModule) -> bool:
        """Simplifies every computation; says whether anything changed."""
        return self.run_on_changes(module, since=0)

    def run_on_changes(self, module: HloModule, since: int) -> bool:
        """Simplifies what has changed, and what is made of it; says whether anything changed."""
        added = tuple(added_rules().values())
        table = _table(self.reorder_reductions, self.relaxed, self.disabled, added)
        rewriting = RewriteRun(table, self.may_change, self.explain)
        changed = rewriting.rewrite(module, 0 if self.explain else since)
        rewriting.record_on(module, self.name, (*RULES, *added))
        return changed


@cache
def _names() -> frozenset[str]:
    return frozenset(rule.name for rule in RULES)


@cache
def _table(
    reorder_reductions: bool,
    relaxed_rules: frozenset[str],
    disabled: frozenset[str],
    added: tuple[RewriteRule, ...],
) -> dict[str, tuple[RewriteRule, ...]]:
    def runs(rule: RewriteRule) -> bool:
        if rule.name in disabled:
            return False
        if rule.strictness is Strictness.RELAXED:
            return rule.name in relaxed_rules
        return reorder_reductions or rule.strictness is not Strictness.REDUCTION_ORDER

    return rules_by_opcode([rule for rule in (*RULES, *added) if runs(rule)])
