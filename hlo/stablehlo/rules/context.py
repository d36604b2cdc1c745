"""What the rule of an operation sees: operands as handles, attributes by kind, computations of regions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ParseError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.op import Attrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.spelling.codecs import Precision
from xlalite.hlo.stablehlo.reading.dense import dense_values
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Dense, Operation, Region, Symbol, Word
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.stablehlo.lowering import ComputationLowering

E = TypeVar("E", bound=enum.Enum)
T = TypeVar("T")
IntArray: TypeAlias = npt.NDArray[np.int64]


_KINDS = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    Word: "a word",
    Symbol: "a symbol (@name)",
    dict: "a dictionary",
}


@dataclass(slots=True)
class OperationContext:
    """One operation under translation.

    Attributes:
        operation: What is written.
        operands: The operands' values.
        lowering: The computation under construction.
    """

    operation: Operation
    operands: tuple[Handle, ...]
    lowering: ComputationLowering

    @property
    def builder(self) -> Builder:
        """Builder of the computation."""
        return self.lowering.builder

    @property
    def results(self) -> tuple[Shape, ...]:
        """Declared types of the results."""
        return self.operation.result_types

    @property
    def result(self) -> Shape:
        """Declared type of the only result.

        Raises:
            ParseError: There is another number of results.
        """
        if len(self.results) != 1:
            raise self.error(f"has {len(self.results)} results, expected 1")
        return self.results[0]

    @property
    def result_shape(self) -> Shape:
        """The only result's type, or the tuple of several."""
        return self.results[0] if len(self.results) == 1 else Shape.tuple(self.results)

    def error(self, message: str) -> ParseError:
        """The error that names the operation and its place."""
        return self.lowering.error(self.operation.token, f"{self.operation.name}: {message}")

    def take(self, count: int) -> tuple[Handle, ...]:
        """The operands, of which there must be so many.

        Raises:
            ParseError: There are more or fewer.
        """
        if len(self.operands) != count:
            raise self.error(f"takes {count} operands, found {len(self.operands)}")
        return self.operands

    def op(
        self, opcode: str, operands: Sequence[Handle], attrs: Attrs = None, called: Sequence[HloComputation] = ()
    ) -> Handle:
        """An instruction whose shape is the declared result."""
        return self.builder.op(opcode, operands, attrs, called, shape=self.result_shape)

    def unpack(self, value: Handle) -> tuple[Handle, ...]:
        """The results of an instruction: its value, or the elements of its tuple."""
        if len(self.results) == 1 and not (value.shape.is_tuple and not self.results[0].is_tuple):
            return (value,)
        return elements(value)

    def has(self, key: str) -> bool:
        """Whether an attribute is there."""
        return key in self.operation.attributes

    def attribute(self, key: str) -> Attribute:
        """An attribute that must be there.

        Raises:
            ParseError: It is not.
        """
        if key not in self.operation.attributes:
            raise self.error(f"needs the attribute {key}")
        return self.operation.attributes[key]

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """An attribute of one kind: int, float, bool, str, Word, Symbol or dict.

        Raises:
            ParseError: It is missing and has no default, or is of another kind.
        """
        if default is not None and not self.has(key):
            return default
        value: object = self.attribute(key)
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(f"the attribute {key} must be {_KINDS[kind]}")
        return value

    def integers(self, key: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers, in any of MLIR's spellings.

        Raises:
            ParseError: It is missing and has no default, or is something else.
        """
        if default is not None and not self.has(key):
            return tuple(default)
        return self.as_integers(self.attribute(key), key)

    def as_integers(self, value: Attribute | None, what: str) -> tuple[int, ...]:
        """The integers of a value; none for None.

        Raises:
            ParseError: It is no list of integers.
        """
        if value is None:
            return ()
        if isinstance(value, Dense):
            return tuple(int(number) for number in self.matrix(value, what).reshape(-1))
        if isinstance(value, tuple):
            numbers = [int(entry) for entry in value if isinstance(entry, int)]
            if len(numbers) == len(value):
                return tuple(numbers)
        raise self.error(f"the attribute {what} must be a list of integers")

    def matrix(self, value: Attribute, what: str) -> IntArray:
        """A constant of integers as an array, one number for all elements included; `[[...], ...]` too.

        Raises:
            ParseError: It is something else.
        """
        if isinstance(value, tuple):
            rows = [self.as_integers(row, what) for row in value]
            if len({len(row) for row in rows}) > 1:
                raise self.error(f"the rows of {what} differ in length")
            return np.array(rows, np.int64).reshape(len(rows), -1 if rows else 0)
        if not isinstance(value, Dense) or value.shape is None or value.shape.element_count > 1 << 20:
            raise self.error(f"the attribute {what} must be a constant of integers")
        numbers = self.dense(value)
        if not (value.shape.dtype.is_integral or numbers.dtype == np.bool_):
            raise self.error(f"the attribute {what} must hold integers")
        return np.broadcast_to(numbers.astype(np.int64), value.shape.dims)

    def dense(self, value: Dense) -> npt.NDArray[np.generic]:
        """The values of a constant; a scalar when all are the same.

        Raises:
            ParseError: The text spells no values of its type.
        """
        if value.shape is None:
            raise self.lowering.error(value.token, "the constant has no type")
        try:
            return dense_values(value.payload, value.shape, self.lowering.limits)
        except (ValueError, OverflowError) as problem:
            raise self.lowering.error(value.token, f"constant: {problem}") from None

    def member(self, enum_class: type[E], key: str, *, prefix: str = "", default: str | None = None) -> E:
        """The member of a closed set that a word names.

        Raises:
            ParseError: There is no such member.
        """
        word = self.get(key, Word, None if default is None else Word(default)).text
        found = next((member for member in enum_class if str(member.value).upper() == prefix + word.upper()), None)
        if found is None:
            raise self.error(f"the attribute {key} cannot be {word!r}")
        return found

    def precision(self) -> tuple[Precision, ...]:
        """The precision of both operands; empty when it is the default."""
        value = self.operation.attributes.get("precision_config", ())
        words = [entry.text.lower() for entry in value if isinstance(entry, Word)] if isinstance(value, tuple) else []
        known = {member.value: member for member in Precision}
        unknown = next((word for word in words if word not in known), None)
        if unknown is not None:
            raise self.error(f"there is no precision {unknown!r}")
        found = tuple(known[word] for word in words)
        return found if any(precision is not Precision.DEFAULT for precision in found) else ()

    def region(self, index: int, count: int) -> Region:
        """One of so many regions.

        Raises:
            ParseError: There are more or fewer.
        """
        if len(self.operation.regions) != count:
            raise self.error(f"has {len(self.operation.regions)} regions, expected {count}")
        return self.operation.regions[index]

    def function(self, index: int = 0, count: int = 1, name: str = "") -> HloComputation:
        """The computation on elements that a region spells; it may use constants from outside, nothing else."""
        return self.lowering.element_function(self.region(index, count), name or f"region_{index}")


def elements(value: Handle) -> tuple[Handle, ...]:
    """The elements of a tuple."""
    return tuple(value[index] for index in range(len(value.shape.elements)))


ImportRule: TypeAlias = Callable[[OperationContext], Handle | Sequence[Handle]]
