"""Bodies for which LLVM's passes over IR are wasted: they leave what is written for them as it is.

Those passes are a tenth of LLVM's time. They do better with numbers of elements, comparisons, masks, types that are
computed in others, and what is left of places in arrays of several dimensions.
"""

from __future__ import annotations

from itertools import chain

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType

_TYPES = (DType.F32, DType.F64)
_OPERATIONS = frozenset(
    [
        "parameter",
        "constant",
        "broadcast",
        "reshape",
        "bitcast",
        "copy",
        "tuple",
        "reduce",
        "add",
        "subtract",
        "multiply",
        "divide",
        "negate",
        "abs",
        "maximum",
        "minimum",
        "sqrt",
        "rsqrt",
        "exponential",
        "log",
        "tanh",
    ]
)


def is_plain(body: HloComputation) -> bool:
    """Whether a body is arithmetic on f32 and f64 alone."""
    functions = chain.from_iterable(instruction.called_computations for instruction in body.instructions)
    within = chain.from_iterable(function.instructions for function in functions)
    return all(map(_is_plain, chain(body.instructions, within)))


def _is_plain(instruction: HloInstruction) -> bool:
    leaves = instruction.shape.leaves()
    return instruction.opcode in _OPERATIONS and all(leaf.is_array and leaf.dtype in _TYPES for _, leaf in leaves)
