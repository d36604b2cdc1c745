"""The table of element rules: how each operation's elements are computed inside a kernel."""

from __future__ import annotations

from xlalite.backends.codegen.elements import (
    conversion,
    dot,
    elementwise_binary,
    elementwise_ternary,
    elementwise_unary,
    gathering,
    reduction,
    reshaping,
    slicing,
    stochastic,
)
from xlalite.backends.codegen.elements.elements import Rule

RULES: dict[str, Rule] = {
    **elementwise_unary.RULES,
    **elementwise_binary.RULES,
    **elementwise_ternary.RULES,
    **conversion.RULES,
    **reshaping.RULES,
    **slicing.RULES,
    **gathering.RULES,
    **reduction.RULES,
    **dot.RULES,
    **stochastic.RULES,
}
