"""The table of element rules: how each operation's elements are computed inside a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.late import LateTable

FAMILIES = {
    "elementwise_unary": (
        "abs negate sign not popcnt count-leading-zeros ceil floor round-nearest-afz round-nearest-even is-finite real "
        "imag exponential exponential-minus-one log log-plus-one logistic tanh tan sine cosine asin acos atan asinh "
        "acosh atanh sinh cosh rsqrt cbrt erf sqrt"
    ),
    "elementwise_binary": (
        "add subtract multiply divide remainder maximum minimum mulhi complex power atan2 and or xor shift-left "
        "shift-right-logical shift-right-arithmetic"
    ),
    "elementwise_ternary": "select clamp",
    "comparison": "compare",
    "conversion": "convert copy opt-barrier",
    "reinterpretation": "bitcast-convert reduce-precision",
    "reshaping": "iota broadcast transpose reshape bitcast reverse constant",
    "slicing": "slice dynamic-slice dynamic-update-slice pad concatenate",
    "gathering": "gather",
    "reduction": "reduce reduce-window map",
    "dot": "dot",
    "convolution": "convolution",
    "random": "stochastic-convert rng-get-and-update-state",
    "control": "while conditional get-tuple-element",
}
"""The operations that each file has rules for, in its order."""

ELEMENT_RULES: Mapping[str, ElementRule] = LateTable(
    {f".{family}:ELEMENT_RULES": names for family, names in FAMILIES.items()}, __package__
)

SEVERAL_ELEMENTS: Mapping[str, Callable[[ElementEmitter, HloInstruction, Index], tuple[Element, ...]]] = LateTable(
    {".reduction:SEVERAL_ELEMENTS": "reduce reduce-window"}, __package__
)
"""Rules of the operations that may have several results."""
