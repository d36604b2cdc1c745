"""Recognises computations that find an extreme value together with its position: arg max, arg min and their kin.

A reduction of (value, position) pairs, the positions counting up in the order of the reduction, often keeps one of two
neighbours by nothing but how their values compare. Where that is a total order with a rule for ties, elements may be
combined in any order as long as ties are settled by position. How the computation is spelt makes no difference: it is
asked for its results in each relation that two values can have.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.monoid import MonoidKind, same_when_computed_in
from xlalite.hlo.ir.origin import Use, origin
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType


class Relation(enum.Enum):
    """How the value of the earlier of two elements relates to that of the later one."""

    LESS = "less"
    EQUAL = "equal"
    GREATER = "greater"
    FIRST_NAN = "the first is NaN"
    SECOND_NAN = "the second is NaN"
    BOTH_NAN = "both are NaN"

    @property
    def swapped(self) -> Relation:
        """The relation with the elements exchanged."""
        return _SWAPPED.get(self, self)


_SWAPPED = {
    Relation.LESS: Relation.GREATER,
    Relation.GREATER: Relation.LESS,
    Relation.FIRST_NAN: Relation.SECOND_NAN,
    Relation.SECOND_NAN: Relation.FIRST_NAN,
}


@dataclass(frozen=True, slots=True)
class Extreme:
    """A total order on values, and which of equals counts.

    The value and the position may come from different elements, but only from equal ones: jax's arg max gives the
    first position and, of +0 and -0, the last. Which of several NaNs is the value is left open.

    Attributes:
        kind: Maximum or minimum.
        value_dtype: Type of the values.
        position_dtype: Type of the positions.
        nan_wins: Whether NaN comes before all numbers, or after them.
        last_value: Whether the value is that of the last of equals, or of the first.
        last_position: The same for the position.
    """

    kind: MonoidKind
    value_dtype: DType
    position_dtype: DType
    nan_wins: bool
    last_value: bool
    last_position: bool

    @property
    def has_one_winner(self) -> bool:
        """Whether value and position are always those of the same element, or of elements that nothing can tell."""
        return self.last_value == self.last_position or not self.value_dtype.is_floating

    def __str__(self) -> str:
        text = f"{'last' if self.last_position else 'first'} {self.kind.value}"
        nan = f", NaN {'before' if self.nan_wins else 'after'} all numbers"
        return text + (nan if self.value_dtype.is_floating else "")


def recognise_extreme(computation: HloComputation) -> Extreme | None:
    """What a computation (value, position, later value, later position) -> (value, position) finds.

    Later positions are taken to be larger. None when it does anything else, or gives NaN no place in the order.
    """
    parameters = computation.parameters
    root = origin(Use(computation.root))
    if len(parameters) != 4 or not all(p.shape.is_array and p.shape.is_scalar for p in parameters):
        return None
    value, position = (parameter.shape.dtype for parameter in parameters[:2])
    if [p.shape.dtype for p in parameters[2:]] != [value, position] or value.is_complex or not position.is_integral:
        return None
    results = root.instruction.operands
    if root.instruction.opcode != "tuple" or [r.shape.dtype for r in results if r.shape.is_array] != [value, position]:
        return None
    relations = [r for r in Relation if value.is_floating or r in _OF_NUMBERS]
    taken: tuple[set[Relation], set[Relation]] = (set(), set())
    for relation in relations:
        case = _Case(tuple(parameters), relation)
        for number, later in enumerate(taken):
            found = case.meaning(Use(results[number], root.calls))
            if found is parameters[2 + number]:
                later.add(relation)
            elif found is not parameters[number]:
                return None
    if not _is_total(*taken, relations):
        return None
    values, positions = taken
    return Extreme(
        MonoidKind.MAXIMUM if Relation.LESS in values else MonoidKind.MINIMUM,
        value,
        position,
        Relation.SECOND_NAN in values,
        Relation.EQUAL in values,
        Relation.EQUAL in positions,
    )


_OF_NUMBERS = (Relation.LESS, Relation.EQUAL, Relation.GREATER)
_STRICT = ((Relation.LESS, Relation.GREATER), (Relation.FIRST_NAN, Relation.SECOND_NAN))


def _is_total(values: set[Relation], positions: set[Relation], relations: list[Relation]) -> bool:
    """Whether the better of two values is taken, with its position, and NaNs tie as numbers do."""
    if Relation.BOTH_NAN in relations and (Relation.BOTH_NAN in positions) is not (Relation.EQUAL in positions):
        return False
    return all(
        (one in values) is (one in positions) is not (other in values) is (other in positions)
        for one, other in _STRICT
        if one in relations
    )


_MOST_INSTRUCTIONS = 64
"""Larger computations are not looked into."""


@dataclass(slots=True)
class _Case:
    """What the scalars of a computation are while two values are in one relation.

    Attributes:
        parameters: Value, position, later value, later position.
        relation: Of the first value to the later one.
        known: What was asked for already.
    """

    parameters: tuple[HloInstruction, ...]
    relation: Relation
    known: dict[Use, HloInstruction | bool | None] = field(default_factory=dict)

    def meaning(self, use: Use) -> HloInstruction | bool | None:
        """The parameter that a scalar equals, or its truth; None if neither is known."""
        use = origin(use)
        if use not in self.known:
            if len(self.known) == _MOST_INSTRUCTIONS:
                return None
            self.known[use] = None
            self.known[use] = self._find(use)
        return self.known[use]

    def _find(self, use: Use) -> HloInstruction | bool | None:
        instruction = use.instruction
        match instruction.opcode:
            case "parameter":
                return instruction
            case "constant":
                return bool(instruction.attrs.literal.to_value()) if instruction.shape.dtype is DType.PRED else None
            case "convert":
                return self._converted(instruction.shape.dtype, self._operand(use, 0))
            case "compare" if instruction.attrs.type is None or instruction.attrs.type.value != "TOTALORDER":
                relation = self._relation(self._operand(use, 0), self._operand(use, 1))
                return None if relation is None else relation in _HOLDS_IN[instruction.attrs.direction.value]
            case "maximum" | "minimum":
                return self._extreme(use)
            case "select":
                condition = self._operand(use, 0)
                return self._operand(use, 1 if condition else 2) if isinstance(condition, bool) else None
            case "not":
                operand = self._operand(use, 0)
                return not operand if isinstance(operand, bool) else None
            case "and" | "or" | "xor":
                return _connected(instruction.opcode, self._operand(use, 0), self._operand(use, 1))
        return None

    def _operand(self, use: Use, number: int) -> HloInstruction | bool | None:
        return self.meaning(Use(use.instruction.operand(number), use.calls))

    def _converted(self, dtype: DType, operand: HloInstruction | bool | None) -> HloInstruction | None:
        """A parameter converted to a type that keeps every value and their order, or back."""
        if not isinstance(operand, HloInstruction):
            return None
        own = operand.shape.dtype
        return operand if dtype is own or same_when_computed_in(dtype, MonoidKind.MAXIMUM, own) else None

    def _relation(self, lhs: HloInstruction | bool | None, rhs: HloInstruction | bool | None) -> Relation | None:
        """How two parameters relate, if they are of one kind."""
        if not (isinstance(lhs, HloInstruction) and isinstance(rhs, HloInstruction)):
            return None
        one, other = self.parameters.index(lhs), self.parameters.index(rhs)
        if one % 2 != other % 2:
            return None
        if one == other:
            is_nan = one % 2 == 0 and self.relation in _NAN_IN[one]
            return Relation.BOTH_NAN if is_nan else Relation.EQUAL
        relation = Relation.LESS if one % 2 else self.relation
        return relation if one < other else relation.swapped

    def _extreme(self, use: Use) -> HloInstruction | None:
        """Maximum and minimum of parameters; which of two zeros or two NaNs they give is not for us to say."""
        lhs, rhs = self._operand(use, 0), self._operand(use, 1)
        relation = self._relation(lhs, rhs)
        if not (isinstance(lhs, HloInstruction) and isinstance(rhs, HloInstruction)):
            return None
        if lhs is rhs or (relation is Relation.EQUAL and not lhs.shape.dtype.is_floating):
            return lhs
        takes_second = {
            Relation.LESS: use.instruction.opcode == "maximum",
            Relation.GREATER: use.instruction.opcode == "minimum",
            Relation.FIRST_NAN: False,
            Relation.SECOND_NAN: True,
        }
        if relation not in takes_second:
            return None
        return rhs if takes_second[relation] else lhs


_HOLDS_IN: Mapping[str, frozenset[Relation]] = {
    "LT": frozenset({Relation.LESS}),
    "LE": frozenset({Relation.LESS, Relation.EQUAL}),
    "GT": frozenset({Relation.GREATER}),
    "GE": frozenset({Relation.GREATER, Relation.EQUAL}),
    "EQ": frozenset({Relation.EQUAL}),
    "NE": frozenset(Relation) - {Relation.EQUAL},
}
_NAN_IN = {
    0: (Relation.FIRST_NAN, Relation.BOTH_NAN),
    2: (Relation.SECOND_NAN, Relation.BOTH_NAN),
}


def _connected(opcode: str, lhs: HloInstruction | bool | None, rhs: HloInstruction | bool | None) -> bool | None:
    """and, or, xor of truths, one of which is enough where it decides."""
    deciding = {"and": False, "or": True}.get(opcode)
    if deciding is not None and (lhs is deciding or rhs is deciding):
        return deciding
    if not (isinstance(lhs, bool) and isinstance(rhs, bool)):
        return None
    return lhs != rhs if opcode == "xor" else not deciding
