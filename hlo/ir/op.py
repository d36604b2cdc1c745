"""What an operation is: the one declaration that everything generic reads.

Printer, parser, verifier, clone, fingerprint, constant folding, evaluator and cost analysis ask an `OpDef`; they
contain no operation names beyond the few structural ones.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from xlalite.hlo.errors import ShapeError
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.attributes import NoAttrs
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import ProgramShape, Shape

if TYPE_CHECKING:
    from xlalite.hlo.ir.computation import HloComputation
    from xlalite.hlo.ir.instruction import HloInstruction

# The attributes dataclass of some operation; rules narrow it to their own class.
Attrs: TypeAlias = Any


class Trait(enum.Flag):
    """Facts about an operation that passes ask for instead of comparing names."""

    NONE = 0
    ELEMENTWISE = enum.auto()
    """Element i of the result depends on element i of each operand only."""
    COMMUTATIVE = enum.auto()
    """The two operands may be swapped."""
    SIDE_EFFECT = enum.auto()
    """Must not be removed, merged or reordered against other side effects."""
    NON_DETERMINISTIC = enum.auto()
    """Two equal instructions may give different values: never merge or fold."""
    DATA_MOVEMENT = enum.auto()
    """Every result element is a copy of an operand element or a constant: no arithmetic."""
    TRANSCENDENTAL = enum.auto()
    """Costs many machine operations an element."""
    COLLECTIVE = enum.auto()
    """Communicates among replicas or partitions."""
    OF_DEVICE = enum.auto()
    """Its value follows from the device that runs the program: the compiler does not know it."""
    CONTROL_FLOW = enum.auto()
    """Runs the computations that it calls as parts of the program."""
    OPAQUE = enum.auto()
    """Runs code that HLO does not know."""
    IMPURE = SIDE_EFFECT | NON_DETERMINISTIC | COLLECTIVE | OPAQUE
    """Somebody may notice when, where or how often it runs; `HloInstruction.is_pure` asks for any of them."""

    # Passes ask of every instruction; what `enum.Flag` does goes through its constructor.
    def __contains__(self, other: Trait) -> bool:
        return self._value_ & other._value_ == other._value_

    def meets(self, other: Trait) -> bool:
        """Whether both have a trait."""
        return self._value_ & other._value_ != 0


class Memory(enum.Enum):
    """What an operation does to memory."""

    WRITES = enum.auto()
    """It computes, into memory of its own."""
    NAMES_OPERAND = enum.auto()
    """Its result is memory of its operands under another name: nothing is computed."""
    GIVEN = enum.auto()
    """Its result is there before the program runs."""
    NONE = enum.auto()
    """Its result holds no array."""


@dataclass(frozen=True, slots=True)
class ShapeContext:
    """What a shape rule sees."""

    opcode: str
    operands: tuple[Shape, ...]
    attrs: Attrs
    called: tuple[ProgramShape, ...]
    declared: Shape | None

    def error(self, message: str) -> ShapeError:
        """The error that names the operation, its operands and what is wrong."""
        operands = ", ".join(shape.text() for shape in self.operands)
        return ShapeError(f"{self.opcode}({operands}): {message}")

    def require(self, holds: bool, message: str) -> None:
        """Raises `ShapeError` with the message unless `holds`."""
        if not holds:
            raise self.error(message)

    def array(self, position: int, what: str = "") -> Shape:
        """The operand's shape, which must be an array."""
        shape = self.operands[position]
        if not shape.is_array:
            raise self.error(f"operand {position}{' (' + what + ')' if what else ''} must be an array")
        return shape

    def declared_array(self) -> Shape:
        """The declared result shape, which must be there and an array."""
        if self.declared is None or not self.declared.is_array:
            raise self.error("the result shape must be given and be an array")
        return self.declared


ShapeRule: TypeAlias = Callable[[ShapeContext], Shape]
Caller: TypeAlias = "Callable[[HloComputation, Sequence[Value]], Value]"
Evaluator: TypeAlias = "Callable[[HloInstruction, Sequence[Value], Caller], Value]"
Place: TypeAlias = tuple[int, int]
"""An operand's number and one of its dimensions."""
Aligned: TypeAlias = "Callable[[HloInstruction], Iterable[tuple[Place, ...]]]"
FlopCount: TypeAlias = "Callable[[HloInstruction], int]"


@dataclass(frozen=True, slots=True)
class Calls:
    """Which computations an instruction calls.

    Attributes:
        names: Attribute names, one for each called computation.
        list_name: Attribute that holds any number of computations instead (`branch_computations`, ...).
        optional: Whether the instruction may call none.
        applies_to_elements: Whether the computation is a scalar function applied to elements (reducers, comparators)
            rather than control flow.
    """

    names: tuple[str, ...] = ()
    list_name: str | None = None
    optional: bool = False
    applies_to_elements: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """The declaration of one operation.

    Attributes:
        name: XLA's opcode text.
        summary: One line with the formula.
        arity: Number of operands; None when it varies.
        shape_rule: Gives the result shape or raises `ShapeError`. For an operation with `explicit_shape` it checks the
            declared shape and returns it.
        evaluate: The meaning in NumPy: (instruction, operand values, call) -> value.
        attrs: The attributes dataclass.
        traits: Facts for passes.
        memory: What it does to memory.
        explicit_shape: Whether text must write the result shape because it does not follow from the operands.
        calls: Called computations.
        aligned: Dimensions of operands that must have equal sizes, one group after another, for operations that are
            not elementwise; sizes known only at run time are made to fit by them.
        flops: Arithmetic operations of one execution; None means one an element for elementwise operations, else 0.
        is_elementwise: Whether element i of the result depends on element i of each operand only.
        computes: Whether running it does anything: the others name memory that exists, or hold none.
    """

    name: str
    summary: str
    arity: int | None
    shape_rule: ShapeRule
    evaluate: Evaluator
    attrs: type = NoAttrs
    traits: Trait = Trait.NONE
    memory: Memory = Memory.WRITES
    explicit_shape: bool = False
    calls: Calls = Calls()
    aligned: Aligned | None = None
    flops: FlopCount | None = None
    # Asked of every instruction by most passes.
    is_elementwise: bool = field(init=False, repr=False)
    computes: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_elementwise", Trait.ELEMENTWISE in self.traits)
        object.__setattr__(self, "computes", self.memory is Memory.WRITES)

    def has(self, trait: Trait) -> bool:
        """Whether the operation has all of the given traits."""
        return trait in self.traits

    @property
    def hands_on(self) -> bool:
        """Whether its value is made of whole values that others made: of operands, or of what its callees return."""
        names_whole = self.memory is Memory.NAMES_OPERAND and not self.explicit_shape
        return names_whole or Trait.CONTROL_FLOW in self.traits

    def infer_shape(
        self,
        operands: Sequence[Shape],
        attrs: Attrs,
        called: Sequence[ProgramShape] = (),
        declared: Shape | None = None,
    ) -> Shape:
        """The result shape.

        Raises:
            ShapeError: Wrong number of operands, or shapes and attributes that do not fit.
        """
        context = ShapeContext(self.name, tuple(operands), attrs, tuple(called), declared)
        if self.arity is not None and len(operands) != self.arity:
            raise context.error(f"takes {self.arity} operands, found {len(operands)}")
        return self.shape_rule(context)

    def __repr__(self) -> str:
        return f"OpDef({self.name})"
