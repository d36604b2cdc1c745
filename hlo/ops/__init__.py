"""The operations of HLO, declared once each: one table a family, merged here."""

from __future__ import annotations

from xlalite.hlo.ir.op import OpDef
from xlalite.hlo.ops import (
    asynchronous,
    batch_norm,
    collectives,
    comparison,
    control_flow,
    conversion,
    convolution,
    custom,
    dot,
    dynamic_shapes,
    elementwise_binary,
    elementwise_ternary,
    elementwise_unary,
    fourier,
    gathering,
    host_transfer,
    linear_algebra,
    random,
    reduction,
    reshaping,
    scanning,
    slicing,
    sorting,
    special_dots,
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
    fourier.OPS,
    linear_algebra.OPS,
    batch_norm.OPS,
    scanning.OPS,
    dynamic_shapes.OPS,
    asynchronous.OPS,
    host_transfer.OPS,
    custom.OPS,
    collectives.OPS,
    special_dots.OPS,
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
