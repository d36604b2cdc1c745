"""Programs as text, both ways: the functions that read HLO or StableHLO and the functions that write HLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.late import imported
from xlalite.hlo.stablehlo.reading.recognition import is_stablehlo
from xlalite.hlo.text.parser import parse as parse_hlo, parse_literal, parse_shape
from xlalite.hlo.types.limits import DEFAULT_LIMITS, ParseLimits

if TYPE_CHECKING:
    from xlalite.hlo.spelling.literal_text import format_literal
    from xlalite.hlo.text.print_options import PRESETS, PrintOptions
    from xlalite.hlo.text.printer import print_computation, print_instruction, print_module

__all__ = [
    "DEFAULT_LIMITS",
    "PRESETS",
    "ParseLimits",
    "PrintOptions",
    "format_literal",
    "parse",
    "parse_hlo",
    "parse_literal",
    "parse_shape",
    "print_computation",
    "print_instruction",
    "print_module",
]

_WRITERS = {
    "PRESETS": "xlalite.hlo.text.print_options:PRESETS",
    "PrintOptions": "xlalite.hlo.text.print_options:PrintOptions",
    "format_literal": "xlalite.hlo.spelling.literal_text:format_literal",
    "print_computation": "xlalite.hlo.text.printer:print_computation",
    "print_instruction": "xlalite.hlo.text.printer:print_instruction",
    "print_module": "xlalite.hlo.text.printer:print_module",
}
"""Imported when they are first asked for: programs read more often than they write."""


def __getattr__(name: str) -> object:
    if name not in _WRITERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return imported(_WRITERS[name])


def parse(text: str | bytes, name: str | None = None, *, limits: ParseLimits = DEFAULT_LIMITS) -> HloModule:
    """The module that a text spells: HLO, or StableHLO, told apart by how it begins.

    Args:
        text: A whole module, some computations or a single instruction of HLO, or a module of StableHLO; bytes may be
            MLIR bytecode, and are taken as UTF-8 if they are not.
        name: Name of the module when the text gives none.
        limits: What the text may ask for.

    Raises:
        ParseError: The text is neither; says where.
        TypeError: It is no text.
    """
    if not isinstance(text, str | bytes):
        raise TypeError(f"hlo.parse: a text or bytes are expected, found {type(text).__name__}; hlo.load reads files")
    if not is_stablehlo(text):
        return parse_hlo(text, name, limits=limits)
    # The rules of all StableHLO operations are needed by few programs.
    from xlalite.hlo.stablehlo.importer import parse_stablehlo

    return parse_stablehlo(text, name, limits=limits)
