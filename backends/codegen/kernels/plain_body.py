"""Bodies for which LLVM's passes over IR are wasted: they leave what is written for them as it is.

Those passes are a tenth of LLVM's time. They do better with numbers of elements, comparisons, masks, types that are
computed in others, and what is left of places in arrays of several dimensions.
"""

from __future__ import annotations

from itertools import chain

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape, ShapeIndex

_TYPES = frozenset((DType.F32, DType.F64))
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
_TYPES_BEHIND_PRODUCTS = _TYPES | {DType.PRED}
_OPERATIONS_BEHIND_PRODUCTS = _OPERATIONS | {"dot", "convolution", "compare", "select"}


def is_plain(body: HloComputation) -> bool:
    """Whether a body is arithmetic on f32 and f64 alone."""
    return _has_only(body, _OPERATIONS, _TYPES)


def is_plain_behind_product(body: HloComputation) -> bool:
    """Whether what follows a product is: vectors of its lines are compared with each other, and nothing is reduced."""
    return _has_only(body, _OPERATIONS_BEHIND_PRODUCTS, _TYPES_BEHIND_PRODUCTS)


def _has_only(body: HloComputation, operations: frozenset[str], types: frozenset[DType]) -> bool:
    functions = chain.from_iterable(instruction.called_computations for instruction in body.instructions)
    within = chain.from_iterable(function.instructions for function in functions)
    return all(
        instruction.opcode in operations and types.issuperset(map(_element_type, instruction.shape.leaves()))
        for instruction in chain(body.instructions, within)
    )


def _element_type(leaf: tuple[ShapeIndex, Shape]) -> DType | None:
    shape = leaf[1]
    return shape.dtype if shape.is_array else None
