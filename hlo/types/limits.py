"""How much a text may ask for: what keeps hostile input from taking all memory or the whole stack."""

from __future__ import annotations

from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Limits of the parser.

    Attributes:
        nesting: Depth of tuples in tuples, instructions as operands, computations in instructions.
        rank: Dimensions of one array.
        elements: Elements of one array, its sizes of 0 taken for 1; more could not be addressed, whatever their type.
        literal_elements: Elements of one constant; a few letters can ask for much. Of elided constants, whose values
            are made up, they are counted when the values are asked for.
    """

    nesting: int = 100
    rank: int = 64
    elements: int = 1 << 58
    literal_elements: int = 1 << 28


DEFAULT_LIMITS = ParseLimits()
