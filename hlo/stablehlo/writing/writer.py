"""Writes HLO modules as StableHLO."""

from __future__ import annotations

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.stablehlo.writing.collective_rules import RULES as COLLECTIVE
from xlalite.hlo.stablehlo.writing.exporter import program_of
from xlalite.hlo.stablehlo.writing.simple_rules import RULES as SIMPLE
from xlalite.hlo.stablehlo.writing.structure_rules import RULES as STRUCTURE
from xlalite.hlo.stablehlo.writing.text import text_of

RULES = {**SIMPLE, **STRUCTURE, **COLLECTIVE}
"""How each opcode is written; one that is not here has no counterpart."""


def stablehlo_text(module: HloModule) -> str:
    """The module as StableHLO text, which MLIR and jax read.

    Raises:
        LoweringError: StableHLO cannot say it; names the instruction.
    """
    return text_of(program_of(module, RULES))
