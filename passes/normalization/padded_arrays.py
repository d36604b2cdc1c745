"""Arrays of the largest sizes, of which only the first elements of each dimension count, and what is built of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import reduce
from typing import TypeAlias

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.evaluation.run_time_sizes import bounded, concerns_run_time_sizes
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class Padded:
    """A value of any shape.

    Attributes:
        array: The array of the largest size; None for a tuple with parts.
        sizes: For each dimension how many elements count; None for all.
        parts: The elements of a tuple.
    """

    array: Handle | None
    sizes: tuple[Handle | None, ...] = ()
    parts: tuple[Padded, ...] = ()

    @property
    def whole(self) -> Handle:
        """The array of the largest size."""
        assert self.array is not None, "the shape rules let only arrays through"
        return self.array


PaddedForm: TypeAlias = Callable[["Padder", HloInstruction, "list[Padded]"], Padded]


@dataclass
class Padder:
    """Builds the padded form of a computation.

    Attributes:
        builder: Where it goes.
        form_of: What stands for an instruction that has a padded form.
        conditions: What must hold of sizes.
    """

    builder: Builder
    form_of: Callable[[HloInstruction], PaddedForm]
    conditions: list[Handle] = field(default_factory=list)
    _copies: dict[HloComputation, HloComputation] = field(default_factory=dict)

    def compute(self, computation: HloComputation, arguments: Sequence[Padded]) -> Padded:
        """The value of a computation."""
        found: dict[HloInstruction, Padded] = dict(zip(computation.parameters, arguments, strict=True))
        for one in computation.post_order():
            if one not in found:
                found[one] = self._computed(one, [found[operand] for operand in one.operands])
        return found[computation.root]

    def _computed(self, one: HloInstruction, operands: list[Padded]) -> Padded:
        if one.opcode == "tuple":
            return Padded(None, parts=tuple(operands))
        if one.opcode == "get-tuple-element" and operands[0].parts:
            part: Padded = operands[0].parts[one.attrs.index]
            return part
        if not concerns_run_time_sizes(one):
            return known(self._like(one, [self.value(operand) for operand in operands]))
        return self.form_of(one)(self, one, operands)

    def _like(self, one: HloInstruction, operands: Sequence[Handle]) -> Handle:
        called = [self.called(callee) for callee in one.called_computations]
        return self.builder.op(one.opcode, operands, one.attrs, called, shape=bounded(one.shape), name=one.name)

    def like(self, one: HloInstruction, operands: Sequence[Padded], sizes: Sequence[Handle | None]) -> Padded:
        """The operation on arrays of the largest sizes."""
        return Padded(self._like(one, [operand.whole for operand in operands]), tuple(sizes))

    def called(self, computation: HloComputation) -> HloComputation:
        """The module's own copy of a computation."""
        if computation not in self._copies:
            self._copies[computation] = self.builder.module.add(computation.clone(called=self.called))
        return self._copies[computation]

    def inside(self, builder: Builder) -> Padder:
        """What builds a called computation, whose conditions are its own."""
        return Padder(builder, self.form_of, _copies=self._copies)

    def value(self, padded: Padded) -> Handle:
        """A value whose sizes are known."""
        if padded.array is not None:
            return padded.array
        return self.builder.tuple([self.value(part) for part in padded.parts])

    def packed(self, padded: Padded) -> list[Handle]:
        """All arrays, each with the sizes that are not known."""
        if padded.array is not None and padded.array.shape.is_tuple:
            count = len(padded.array.shape.elements)
            padded = Padded(None, parts=tuple(known(self.builder.element(padded.array, n)) for n in range(count)))
        if padded.array is None:
            return [handle for part in padded.parts for handle in self.packed(part)]
        return [padded.array, *(size for size in padded.sizes if size is not None)]

    def unpacked(self, shape: Shape, handles: Iterator[Handle]) -> Padded:
        """The value of a shape out of what `packed` gave."""
        if shape.is_tuple:
            return Padded(None, parts=tuple(self.unpacked(element, handles) for element in shape.elements))
        return Padded(next(handles), tuple(next(handles) if flag else None for flag in flags(shape)))

    def fits(self) -> Handle:
        """Whether all conditions hold."""
        return reduce(lambda a, b: a & b, self.conditions, self.builder.constant(True, DType.PRED))

    def size(self, padded: Padded, dimension: int) -> Handle:
        """How many elements of a dimension count."""
        size = padded.sizes[dimension]
        return size if size is not None else self.number(padded.whole.dims[dimension])

    def number(self, value: int) -> Handle:
        """A size that is known."""
        return self.builder.constant(value, DType.S32)

    def least(self, sizes: Sequence[Handle | None]) -> Handle | None:
        """The smallest of sizes; those that are known are the largest there can be."""
        found = [size for size in sizes if size is not None]
        return reduce(lambda a, b: self.builder.op("minimum", (a, b)), found) if found else None

    def filled(self, padded: Padded, dimensions: Sequence[int], value: Handle) -> Handle:
        """The array with a value where elements do not count because of some dimensions."""
        array, builder = padded.whole, self.builder
        for dimension in dimensions:
            size = padded.sizes[dimension]
            if size is not None:
                place = builder.iota(DType.S32, array.dims, dimension)
                array = builder.select(builder.compare(place, size, "LT"), array, builder.broadcast(value, array.dims))
        return array

    def zeros(self, padded: Padded, dimensions: Sequence[int]) -> Handle:
        """The array with zeros there."""
        return self.filled(padded, dimensions, self.builder.zeros(Shape.array(padded.whole.dtype)))

    def require_range(self, size: Handle, bound: int) -> None:
        """Adds the condition that a size is possible."""
        self.conditions += [self.builder.compare(size, 0, "GE"), self.builder.compare(size, bound, "LE")]


def known(array: Handle) -> Padded:
    """A value of which everything counts."""
    return Padded(array, (None,) * (array.shape.rank if array.shape.is_array else 0))


def flags(shape: Shape) -> tuple[bool, ...]:
    """For each dimension, whether its size is known only at run time."""
    return shape.dynamic or (False,) * shape.rank
