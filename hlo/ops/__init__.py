"""The operations of HLO, declared once each: one table a family, merged here."""

from __future__ import annotations

from xlalite.hlo.op import OpDef
from xlalite.hlo.ops import elementwise_binary, elementwise_unary, structural

FAMILIES: tuple[tuple[OpDef, ...], ...] = (
    structural.OPS,
    elementwise_unary.OPS,
    elementwise_binary.OPS,
)

OPS: dict[str, OpDef] = {op.name: op for family in FAMILIES for op in family}
