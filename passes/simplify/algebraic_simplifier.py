"""The algebraic simplifier: all rule tables together, applied until none fires.

A family of rules is imported when a module has one of the operations that they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import ClassVar

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.late import imported
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.rewrite import RewriteRule, RewriteRun, Strictness
from xlalite.passes.simplify.added_rules import added_rules

FAMILIES: Mapping[str, str] = {
    "sums": "abs add and maximum minimum mulhi multiply negate or subtract xor",
    "products": "divide multiply power remainder",
    "extremes": "maximum minimum",
    "logical": "add and maximum minimum multiply not or shift-left shift-right-arithmetic shift-right-logical xor",
    "choice": "clamp compare select",
    "conversion": (
        "bitcast-convert ceil complex convert floor imag real reduce-precision round-nearest-afz round-nearest-even"
    ),
    "shaping": "broadcast constant iota reshape reverse transpose",
    "slicing": "concatenate dynamic-slice dynamic-update-slice pad slice",
    "reduction": "get-tuple-element reduce sort topk",
    "dot": "dot transpose",
    "indexing": "gather scatter",
    "relaxed": "add divide log multiply subtract",
}
"""The operations that the rules of each file look at; their rules are tried in the order of the files."""


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
        rules = _running_rules(self.reorder_reductions, self.relaxed, self.disabled, added)
        rewriting = RewriteRun(rules, self.may_change, self.explain)
        changed = rewriting.rewrite(module, 0 if self.explain else since)
        rewriting.record_on(module, self.name)
        return changed


@cache
def all_rules() -> tuple[RewriteRule, ...]:
    """The rules of all families."""
    return tuple(rule for family in FAMILIES for rule in _rules_of(family))


def _rules_of(family: str) -> tuple[RewriteRule, ...]:
    rules: tuple[RewriteRule, ...] = imported(f".{family}:RULES", __package__)
    return rules


@cache
def _names() -> frozenset[str]:
    return frozenset(rule.name for rule in all_rules())


@cache
def _running_rules(
    reorder_reductions: bool,
    relaxed_rules: frozenset[str],
    disabled: frozenset[str],
    added: tuple[RewriteRule, ...],
) -> Callable[[str], tuple[RewriteRule, ...]]:
    """The rules of an operation that run."""

    def runs(rule: RewriteRule) -> bool:
        if rule.name in disabled:
            return False
        if rule.strictness is Strictness.RELAXED:
            return rule.name in relaxed_rules
        return reorder_reductions or rule.strictness is not Strictness.REDUCTION_ORDER

    @cache
    def rules_of_opcode(opcode: str) -> tuple[RewriteRule, ...]:
        families = [family for family, opcodes in FAMILIES.items() if opcode in opcodes.split()]
        rules = (*(rule for family in families for rule in _rules_of(family)), *added)
        return tuple(rule for rule in rules if rule.opcode == opcode and runs(rule))

    return rules_of_opcode
