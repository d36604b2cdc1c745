"""Writes HLO modules as StableHLO."""

from __future__ import annotations

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.stablehlo.writing.bytecode import bytecode_of
from xlalite.hlo.stablehlo.writing.collective_rules import RULES as COLLECTIVE
from xlalite.hlo.stablehlo.writing.exporter import program_of
from xlalite.hlo.stablehlo.writing.simple_rules import PORTABLE, RULES as SIMPLE
from xlalite.hlo.stablehlo.writing.structure_rules import RULES as STRUCTURE
from xlalite.hlo.stablehlo.writing.text import text_of

RULES = {**SIMPLE, **STRUCTURE, **COLLECTIVE}
"""How each opcode is written; one that is not here has no counterpart."""


def write_stablehlo(module: HloModule, form: str) -> str | bytes:
    """The module as StableHLO: as `text`, or as `bytecode`, a portable artifact.

    Raises:
        LoweringError: StableHLO cannot say it; names the instruction.
        ValueError: There is no such form.
    """
    match form:
        case "text":
            return text_of(program_of(module, RULES))
        case "bytecode":
            return bytecode_of(program_of(module, RULES | PORTABLE))
    raise ValueError(f"StableHLO is written as 'text' or 'bytecode', not as {form!r}")
