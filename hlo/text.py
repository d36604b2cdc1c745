"""HLO text, both ways: the functions that read it and the functions that write it."""

from __future__ import annotations

from xlalite.hlo.limits import DEFAULT_LIMITS, ParseLimits
from xlalite.hlo.literal_text import format_literal
from xlalite.hlo.parser import parse, parse_literal, parse_shape
from xlalite.hlo.print_options import PRESETS, PrintOptions
from xlalite.hlo.printer import print_computation, print_instruction, print_module

__all__ = [
    "DEFAULT_LIMITS",
    "PRESETS",
    "ParseLimits",
    "PrintOptions",
    "format_literal",
    "parse",
    "parse_literal",
    "parse_shape",
    "print_computation",
    "print_instruction",
    "print_module",
]
