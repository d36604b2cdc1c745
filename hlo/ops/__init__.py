"""The operations of HLO, declared once each: one table a family, merged here."""

from __future__ import annotations

from xlalite.hlo.op import OpDef
from xlalite.hlo.ops import (
    comparison,
    control_flow,
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
    sorting,
    structural,
    windows,
)

FAMILIES: tuple[tuple[OpDef, ...], ...] = (
    structural.OPS,
    reshaping.OPS,
    slicing.OPS,
    reduction.OPS,
    dot.OPS,
    control_flow.OPS,
    windows.OPS,
    convolution.OPS,
    gathering.OPS,
    sorting.OPS,
    elementwise_unary.OPS,
    elementwise_binary.OPS,
    elementwise_ternary.OPS,
    comparison.OPS,
    conversion.OPS,
    random.OPS,
)

OPS: dict[str, OpDef] = {op.name: op for family in FAMILIES for op in family}
