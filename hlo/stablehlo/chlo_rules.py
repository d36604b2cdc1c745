"""Operations of the chlo dialect, composed of HLO's."""

from __future__ import annotations

from xlalite.hlo.stablehlo.context import Rule
from xlalite.hlo.stablehlo.elementwise_rules import constant, twin

_TWINS = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "sinh", "tan"]

RULES: dict[str, Rule] = {
    **{name: twin(name) for name in _TWINS},
    "constant": constant,
}
