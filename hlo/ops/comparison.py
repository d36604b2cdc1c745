"""compare: the order and equality of elements."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import numpy as np

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, OpDef, ShapeContext, Trait
from xlalite.hlo.numerics.real import total_order_keys
from xlalite.hlo.numerics.rounding import AnyArray
from xlalite.hlo.ops.evaluation.lifting import arrays_of
from xlalite.hlo.ops.rules.elementwise_rules import binary_rule, is_any
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import attribute
from xlalite.hlo.spelling.codecs import enum_codec
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape


class Direction(enum.Enum):
    """Which relation is asked for."""

    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"

    @property
    def swapped(self) -> Direction:
        """The direction that gives the same answer with the operands swapped."""
        return _SWAPPED.get(self, self)

    @property
    def inverse(self) -> Direction:
        """The direction that gives the opposite answer wherever the order is total."""
        return _INVERSE[self]


_SWAPPED = {
    Direction.GE: Direction.LE,
    Direction.LE: Direction.GE,
    Direction.GT: Direction.LT,
    Direction.LT: Direction.GT,
}
_INVERSE = {
    Direction.EQ: Direction.NE,
    Direction.NE: Direction.EQ,
    Direction.GE: Direction.LT,
    Direction.LT: Direction.GE,
    Direction.GT: Direction.LE,
    Direction.LE: Direction.GT,
}


class ComparisonType(enum.Enum):
    """Which order is meant."""

    FLOAT = "FLOAT"
    """IEEE 754's partial order: NaN is unequal to everything, -0 equals +0."""
    TOTALORDER = "TOTALORDER"
    """-NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


@dataclass(frozen=True, slots=True)
class CompareAttrs:
    """Relation and order; an absent type means the default of the element type."""

    direction: Direction = attribute(enum_codec(Direction, what="direction"))
    type: ComparisonType | None = attribute(enum_codec(ComparisonType, what="comparison type"), default=None)


def default_comparison_type(dtype: DType) -> ComparisonType:
    """The order that `compare` means for an element type when the text names none."""
    if dtype.is_floating or dtype.is_complex:
        return ComparisonType.FLOAT
    return ComparisonType.SIGNED if dtype.is_signed else ComparisonType.UNSIGNED


def _compare_shape(context: ShapeContext) -> Shape:
    shape = binary_rule(is_any, lambda dtype: DType.PRED)(context)
    dtype, attrs = context.operands[0].dtype, context.attrs
    if dtype.is_complex and attrs.direction not in (Direction.EQ, Direction.NE):
        raise context.error(f"complex numbers have no order, so direction {attrs.direction.value} means nothing")
    wanted = attrs.type
    is_usual = wanted is None or wanted is default_comparison_type(dtype)
    if not is_usual and (wanted is not ComparisonType.TOTALORDER or not dtype.is_floating):
        raise context.error(f"comparison type {wanted.value} does not fit element type {dtype.value}")
    return shape


_RELATIONS: dict[Direction, Callable[[AnyArray, AnyArray], AnyArray]] = {
    Direction.EQ: np.equal,
    Direction.NE: np.not_equal,
    Direction.GE: np.greater_equal,
    Direction.GT: np.greater,
    Direction.LE: np.less_equal,
    Direction.LT: np.less,
}


def _compare(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    lhs, rhs = (_comparable(array, instruction.attrs.type) for array in arrays_of(operands))
    return np.asarray(_RELATIONS[instruction.attrs.direction](lhs, rhs))


def _comparable(array: AnyArray, order: ComparisonType | None) -> AnyArray:
    """Numbers in a type of NumPy's own whose order is the wanted one."""
    if order is ComparisonType.TOTALORDER:
        return total_order_keys(array)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float32 if DType.from_numpy(array.dtype).is_floating else np.int8)


OPS = (
    OpDef(
        "compare",
        "x direction y, as pred",
        2,
        _compare_shape,
        _compare,
        attrs=CompareAttrs,
        traits=Trait.ELEMENTWISE,
    ),
)
