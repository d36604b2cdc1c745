"""Which rule translates which operation: one table a family, merged here by full name."""

from __future__ import annotations

from xlalite.hlo.stablehlo.rules import (
    chlo_rules,
    collective_rules,
    control_rules,
    elementwise_rules,
    product_rules,
    reduction_rules,
    shaping_rules,
    sharding_rules,
)
from xlalite.hlo.stablehlo.rules.context import ImportRule

_STABLEHLO: dict[str, ImportRule] = {
    **elementwise_rules.RULES,
    **shaping_rules.RULES,
    **reduction_rules.RULES,
    **product_rules.RULES,
    **control_rules.RULES,
    **collective_rules.RULES,
}
_CHLO: dict[str, ImportRule] = {**chlo_rules.RULES, **shaping_rules.CHLO_RULES}

RULES: dict[str, ImportRule] = {
    **{f"stablehlo.{name}": rule for name, rule in _STABLEHLO.items()},
    **{f"mhlo.{name}": rule for name, rule in _STABLEHLO.items()},
    **{f"chlo.{name}": rule for name, rule in _CHLO.items()},
    **control_rules.FUNCTION_RULES,
    **sharding_rules.RULES,
}
