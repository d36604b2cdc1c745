"""Rewrite rules that programs add to those of the algebraic simplifier, which asks for them last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from xlalite.hlo.errors import PassError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import OPS
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.extensions import note_extension, source_stamp
from xlalite.passes.rewriting.rewrite import RewriteRule, RuleResult, Strictness

R = TypeVar("R", bound=Callable[[HloInstruction], RuleResult])

_rules: dict[str, RewriteRule] = {}


def register_rule(opcode: str, strictness: Strictness = Strictness.EXACT) -> Callable[[R], R]:
    """Makes the decorated function a rule of the algebraic simplifier, in every compilation from now on.

    The function takes an instruction of the operation and gives what may stand in its place, `Declined(reason)`, or
    None. The first line of its docstring is the identity that it applies, which records show. A function of the same
    name takes the place of one before it.

    Args:
        opcode: The operation it looks at.
        strictness: What it does to bits; a relaxed rule runs only where it is named.

    Raises:
        PassError: There is no such operation, or a rule of the compiler has the function's name.
    """
    if opcode not in OPS:
        raise PassError(f"register_rule: there is no operation {opcode!r}{did_you_mean(opcode, OPS)}")

    def register(function: R) -> R:
        from xlalite.passes.simplify.algebraic_simplifier import all_rules

        rule = RewriteRule(opcode, function, strictness)
        if any(rule.name == known.name for known in all_rules()):
            raise PassError(f"register_rule: the compiler has a rule {rule.name!r}")
        _rules[rule.name] = rule
        note_extension(f"rule {rule.name}", f"{opcode} {strictness.value} {source_stamp(function)}")
        return function

    return register


def added_rules() -> Mapping[str, RewriteRule]:
    """The added rules by name."""
    return _rules
