"""The operations of HLO, declared once each: a table a family.

A family is imported when one of its operations is first asked for: most programs have few.
"""

from __future__ import annotations

from collections.abc import Mapping

from xlalite.hlo.ir.op import OpDef
from xlalite.hlo.late import LateTable

_FAMILIES = {
    "structural": "parameter constant tuple get-tuple-element",
    "reshaping": "iota broadcast reshape transpose reverse",
    "slicing": "slice dynamic-slice dynamic-update-slice pad concatenate",
    "reduction": "reduce map",
    "dot": "dot",
    "control_flow": "while conditional call fusion",
    "fourier": "fft",
    "linear_algebra": "cholesky triangular-solve",
    "batch_norm": "batch-norm-training batch-norm-inference batch-norm-grad",
    "scanning": "scan",
    "dynamic_shapes": "get-dimension-size set-dimension-size dynamic-reshape",
    "asynchronous": "copy-start copy-done async-start async-update async-done after-all domain",
    "host_transfer": "infeed outfeed send send-done recv recv-done",
    "custom": "custom-call",
    "collectives": (
        "all-reduce all-reduce-start all-reduce-done all-gather all-gather-start all-gather-done "
        "reduce-scatter all-to-all ragged-all-to-all collective-permute collective-permute-start "
        "collective-permute-done collective-broadcast partition-id replica-id"
    ),
    "special_dots": "ragged-dot scaled-dot",
    "windows": "reduce-window select-and-scatter",
    "convolution": "convolution",
    "gathering": "gather scatter",
    "sorting": "sort topk",
    "elementwise_unary": (
        "abs negate sign not popcnt count-leading-zeros ceil floor round-nearest-afz round-nearest-even "
        "is-finite exponential exponential-minus-one log log-plus-one logistic tanh tan sine cosine asin acos "
        "atan asinh acosh atanh sinh cosh sqrt rsqrt cbrt erf real imag"
    ),
    "elementwise_binary": (
        "add subtract multiply divide remainder mulhi power maximum minimum atan2 and or xor shift-left "
        "shift-right-logical shift-right-arithmetic complex add-dependency"
    ),
    "elementwise_ternary": "select clamp",
    "comparison": "compare",
    "conversion": "convert bitcast-convert bitcast reduce-precision copy opt-barrier",
    "random": "rng rng-bit-generator rng-get-and-update-state stochastic-convert",
}
"""The operations that each file declares, in its order."""

OPS: Mapping[str, OpDef] = LateTable(
    {f".{family}:OPS": names for family, names in _FAMILIES.items()}, __name__, lambda ops: {op.name: op for op in ops}
)
