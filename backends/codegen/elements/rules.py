"""The table of element rules: how each operation's elements are computed inside a kernel."""

from __future__ import annotations

from xlalite.backends.codegen.elements import (
    comparison,
    control,
    conversion,
    convolution,
    dot,
    elementwise_binary,
    elementwise_ternary,
    elementwise_unary,
    gathering,
    random,
    reduction,
    reshaping,
    slicing,
)
from xlalite.backends.codegen.elements.elements import ElementRule

ELEMENT_RULES: dict[str, ElementRule] = {
    **elementwise_unary.ELEMENT_RULES,
    **elementwise_binary.ELEMENT_RULES,
    **elementwise_ternary.ELEMENT_RULES,
    **comparison.ELEMENT_RULES,
    **conversion.ELEMENT_RULES,
    **reshaping.ELEMENT_RULES,
    **slicing.ELEMENT_RULES,
    **gathering.ELEMENT_RULES,
    **reduction.ELEMENT_RULES,
    **dot.ELEMENT_RULES,
    **convolution.ELEMENT_RULES,
    **random.ELEMENT_RULES,
    **control.ELEMENT_RULES,
}
