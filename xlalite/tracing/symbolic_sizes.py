"""One program for a range of sizes: `xl.jit(dynamic={"x": {0: "n"}})`.

A function is traced at its sizes and at the largest ones of their range, powers of two. What differs between the two
programs follows from the sizes: it becomes sizes that are known at run time, which the compiler pads and masks. Since
each new size is traced, a program is used only where it says what the function does; compiling is what is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xlalite.backends.base import Executable
from xlalite.framework.meaning.host import Array
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import ShapeError, TracingError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.comparison import CompareAttrs, ComparisonType, Direction
from xlalite.hlo.ops.dynamic_shapes import DimensionSizeAttrs
from xlalite.hlo.ops.slicing import DynamicSliceAttrs, PadAttrs, SliceAttrs
from xlalite.hlo.ops.sorting import SortAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.types.window import WindowDimension

SMALLEST_BOUND = 16

Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Size:
    """A size that has a name.

    Attributes:
        name: Its name.
        argument: The leaf of the arguments that has it.
        dimension: The dimension.
        bound: The largest one of its range.
        size: What it is now.
    """

    name: str
    argument: int
    dimension: int
    bound: int
    size: int


class SymbolicSizes:
    """The programs of one function for ranges of sizes."""

    def __init__(self, function: str, dynamic: Mapping[str, Mapping[int, str]]) -> None:
        """`dynamic`: the names of sizes by arguments and dimensions."""
        self._function = function
        self._dynamic = {name: dict(places) for name, places in dynamic.items()}
        self._programs: dict[str, Executable | Decision] = {}

    def program(
        self,
        arguments: Sequence[str],
        shapes: Shapes,
        lowered: Callable[[Shapes], HloModule],
        compiled: Callable[[HloModule], Executable],
    ) -> tuple[Executable | None, list[Decision]]:
        """The program whose range holds these sizes, and what was decided; none if sizes decide about more than sizes.

        Args:
            arguments: Names of the leaves of the arguments.
            shapes: Their sizes.
            lowered: Gives the function's program for sizes.
            compiled: Compiles a program.

        Raises:
            TracingError: Sizes of one name differ, or an argument has no such dimension.
        """
        places = self._places(arguments, shapes)
        sizes = _sizes(places)
        if not sizes:
            return None, []
        subject = (self._function, *(each.name for each in sizes))
        bounds = {each.name: each.bound for each in sizes}
        # A size at its bound would not show what follows from it.
        others = {each.name: each.size if each.size < each.bound else each.bound - 1 for each in sizes}
        try:
            module = _bounded(
                _of_others(lowered, _with_sizes(shapes, places, bounds)),
                _of_others(lowered, _with_sizes(shapes, places, others)),
                [replace(each, size=others[each.name]) for each in sizes],
            )
        except _Unfit as error:
            return None, [Decision("symbolic sizes", subject, "compiled for one size", str(error))]
        text = module.to_string()
        decisions = []
        if text not in self._programs:
            executable = compiled(module)
            left = [each for each in executable.decisions() if each.decided_by == _PADDER and _is_left(each)]
            limits = ", ".join(f"{each.name} <= {each.bound}" for each in sizes)
            decision = Decision("symbolic sizes", subject, "compiled for a range", limits)
            if left:
                decision = Decision("symbolic sizes", subject, "compiled for one size", left[0].reason)
            self._programs[text] = decision if left else executable
            decisions = [decision]
        found = self._programs[text]
        return (None, decisions or [found]) if isinstance(found, Decision) else (found, decisions)

    def _places(self, arguments: Sequence[str], shapes: Shapes) -> list[Size]:
        found = []
        for i, (argument, dims) in enumerate(zip(arguments, shapes, strict=True)):
            for dimension, name in self._dynamic.get(argument.partition(" (")[0], {}).items():
                if not -len(dims) <= dimension < len(dims):
                    raise TracingError(f"{self._function}: {argument} has no dimension {dimension}, for {name!r}")
                size = dims[dimension]
                bound = max(SMALLEST_BOUND, 1 << max(size - 1, 0).bit_length())
                found.append(Size(name, i, dimension % len(dims), bound, size))
        return found


class _Unfit(Exception):
    """Sizes decide about more than sizes; says where."""


def _of_others(lowered: Callable[[Shapes], HloModule], shapes: Shapes) -> HloModule:
    try:
        return lowered(shapes)
    except Exception as error:  # whatever a function does where other sizes do not suit it
        first = str(error).partition("\n")[0]
        raise _Unfit(f"the function takes no other sizes: {type(error).__name__}: {first}") from error


_PADDER = "dynamic-padder"


def _is_left(decision: Decision) -> bool:
    return decision.verdict == "evaluated"


def _sizes(places: Sequence[Size]) -> list[Size]:
    """The first place of each name.

    Raises:
        TracingError: Another place has another size.
    """
    first: dict[str, Size] = {}
    for each in places:
        other = first.setdefault(each.name, each)
        if other.size != each.size:
            raise TracingError(f"the size {each.name!r} is {other.size} and {each.size}")
    return list(first.values())


def _with_sizes(shapes: Shapes, places: Sequence[Size], sizes: Mapping[str, int]) -> Shapes:
    found = [list(dims) for dims in shapes]
    for each in places:
        found[each.argument][each.dimension] = sizes[each.name]
    return [tuple(dims) for dims in found]


def _bounded(largest: HloModule, actual: HloModule, sizes: Sequence[Size]) -> HloModule:
    """The program that is `largest` at the bounds and `actual` at the sizes.

    Raises:
        _Unfit: They differ in more than sizes.
    """
    pairs = list(zip(largest.entry_computation.post_order(), actual.entry_computation.post_order(), strict=False))
    if len(largest.entry_computation) != len(actual.entry_computation):
        raise _Unfit("the operations depend on the size")
    builder = Builder(largest.name)
    writer = _Writer(builder, sizes)
    # Sizes are asked for at parameters, which may stand behind their first use.
    for one, two in sorted(pairs, key=lambda pair: pair[0].opcode != "parameter"):
        with builder.metadata(one.metadata):
            writer.write(one, two)
    return builder.build_module(writer.of(largest.entry_computation.root))


class _Writer:
    """Writes a program out of two that differ in sizes."""

    def __init__(self, builder: Builder, sizes: Sequence[Size]) -> None:
        self._builder = builder
        self._sizes = sizes
        self._made: dict[HloInstruction, Handle] = {}
        self._partners: dict[HloInstruction, HloInstruction] = {}
        self._called: dict[HloComputation, HloComputation] = {}
        self._parameters: dict[int, Handle] = {}

    def of(self, instruction: HloInstruction) -> Handle:
        """What stands for an instruction of the larger program."""
        return self._made[instruction]

    def write(self, one: HloInstruction, two: HloInstruction) -> None:
        """Adds what an instruction is at both sizes.

        Raises:
            _Unfit: It is none.
        """
        self._partners[one] = two
        same = one.opcode == two.opcode and [self._partners.get(each) for each in one.operands] == [*two.operands]
        if not same or _texts(one) != _texts(two):
            raise _Unfit(f"what is computed{_place(one)} depends on the size")
        wanted = _marked(one, one.shape, two.shape)
        if one.opcode == "parameter":
            found = self._builder.parameter(wanted, one.name, one.attrs.number)
            self._parameters[one.attrs.number] = found
        elif one.opcode == "constant":
            found = self._constant(one, two, wanted)
        elif one.opcode == "slice" and (cut := _cut(one, two)) is not None:
            found = self._with_sizes(one, self._without_ends(one, two, cut), two.shape, wanted)
        elif one.opcode == "topk" and _takes_all(one) and _takes_all(two):
            found = self._with_sizes(one, self._in_order(one), two.shape, wanted)
        else:
            if _attributes(one) != _attributes(two):
                raise _Unfit(f"the attributes of {one.opcode}{_place(one)} depend on the size")
            found = self._with_sizes(one, self._operation(one, wanted), two.shape, wanted)
        self._made[one] = found

    def _without_ends(self, one: HloInstruction, two: HloInstruction, cut: Sequence[tuple[int, int] | None]) -> Handle:
        """A slice that takes a part at the end, or all but what stands at the ends."""
        builder, dims = self._builder, one.operand(0).shape.dims
        kept = [(0, size, 1) if ends else part for ends, part, size in zip(cut, one.attrs.slice, dims, strict=True)]
        found = builder.op("slice", (self._made[one.operand(0)],), SliceAttrs(tuple(kept)))
        starts = [builder.constant(0, DType.S32)] * len(dims)
        sizes = list(found.shape.dims)
        for dim, ends in enumerate(cut):
            if ends and one.attrs.slice[dim][0] != two.attrs.slice[dim][0]:
                starts[dim] = self._number(one, one.attrs.slice[dim][0], two.attrs.slice[dim][0], DType.S32)
                sizes[dim] = sum(ends)
        if tuple(sizes) != found.shape.dims:
            return builder.op("dynamic-slice", (found, *starts), DynamicSliceAttrs(tuple(sizes)))
        padding = [(-ends[0], -ends[1], 0) if ends else (0, 0, 0) for ends in cut]
        return builder.op("pad", (found, builder.zeros(Shape.array(one.shape.dtype))), PadAttrs(tuple(padding)))

    def _in_order(self, one: HloInstruction) -> Handle:
        """All elements in order, with their positions."""
        x, builder, last = self._made[one.operand(0)], self._builder, one.operand(0).shape.rank - 1
        positions = builder.iota(DType.S32, one.operand(0).shape.dims, last)
        for dim, flag in enumerate(x.shape.dynamic):
            if flag:
                size = builder.op("get-dimension-size", (x,), DimensionSizeAttrs((dim,)))
                positions = builder.op("set-dimension-size", (positions, size), DimensionSizeAttrs((dim,)))
        kind = ComparisonType.TOTALORDER if x.dtype.is_floating else None
        order = CompareAttrs(Direction.GT if one.attrs.largest else Direction.LT, kind)
        scalars = [Shape.array(each.shape.dtype) for each in (x, x, positions, positions)]
        compare = builder.subcomputation(f"{one.name}.order", scalars, lambda b, p: b.op("compare", p[:2], order))
        shape = Shape.tuple([x.shape, positions.shape])
        return builder.op("sort", (x, positions), SortAttrs((last,), True), (compare,), shape=shape)

    def _operation(self, one: HloInstruction, wanted: Shape) -> Handle:
        operands = [self._made[each] for each in one.operands]
        called = [self._copy(each) for each in one.called_computations]
        shape = wanted
        if one.opcode == "iota":
            shape = one.shape
        elif one.opcode == "broadcast":
            flags = list(operands[0].shape.dynamic or (False,) * operands[0].shape.rank)
            taken = dict(zip(one.attrs.dimensions, flags, strict=True))
            kept = [taken.get(dimension, False) for dimension in range(wanted.rank)]
            shape = Shape.array(one.shape.dtype, one.shape.dims, dynamic=kept)
        try:
            return self._builder.op(one.opcode, operands, one.attrs, called, shape=shape)
        except ShapeError as error:
            raise _Unfit(f"{one.opcode}{_place(one)}: {error}") from None

    def _with_sizes(self, one: HloInstruction, made: Handle, actual: Shape, wanted: Shape) -> Handle:
        """An operation whose sizes are those of its operands, and those that follow from nothing but the size."""
        if made.shape.is_tuple or made.shape.dynamic == wanted.dynamic:
            if made.shape.without_layout() != wanted.without_layout():
                raise _Unfit(f"{one.opcode}{_place(one)} gives {made.shape.text()}, not {wanted.text()}")
            return made
        flags = made.shape.dynamic or (False,) * made.shape.rank
        for dimension, (has, needs) in enumerate(zip(flags, wanted.dynamic or (False,) * wanted.rank, strict=True)):
            if has and not needs:
                raise _Unfit(f"{one.opcode}{_place(one)}: dimension {dimension} has this size by chance")
            if needs and not has:
                size = self._number(one, one.shape.dims[dimension], actual.dims[dimension], DType.S32)
                attrs = DimensionSizeAttrs((dimension,))
                made = self._builder.op("set-dimension-size", (made, size), attrs)
        return made

    def _constant(self, one: HloInstruction, two: HloInstruction, wanted: Shape) -> Handle:
        values, others = one.attrs.literal.to_value(), two.attrs.literal.to_value()
        if wanted.dynamic:
            if not _is_same(values[tuple(map(slice, others.shape))], others):
                raise _Unfit(f"constants{_place(one)} depend on the size")
            return self._with_sizes(one, self._builder.constant(one.attrs.literal), two.shape, wanted)
        if _is_same(values, others):
            return self._builder.constant(one.attrs.literal)
        if values.shape or values.dtype.kind not in "iuf":
            raise _Unfit(f"constants{_place(one)} depend on the size")
        return self._number(one, values.item(), others.item(), one.shape.dtype)

    def _number(self, one: HloInstruction, bound: Any, actual: Any, dtype: DType) -> Handle:
        """What is `bound` at the largest size and `actual` at this one: a multiple of a size, and perhaps more."""
        for each in self._sizes:
            of = self._parameters[each.argument]
            size = self._builder.op("get-dimension-size", (of,), DimensionSizeAttrs((each.dimension,)))
            wide = self._builder.convert(size, DType.S64)
            factor = (bound - actual) / (each.bound - each.size)
            rest = bound - factor * each.bound
            if factor == int(factor) and rest == int(rest):
                return self._builder.convert(wide * int(factor) + int(rest), dtype)
        raise _Unfit(f"a number{_place(one)} is {bound} at the largest size, {actual} at this one")

    def _copy(self, computation: HloComputation) -> HloComputation:
        if computation not in self._called:
            self._called[computation] = self._builder.module.add(computation.clone(called=self._copy))
        return self._called[computation]


def _marked(one: HloInstruction, largest: Shape, actual: Shape) -> Shape:
    """The shape at the largest size, whose other sizes are known at run time."""
    if largest.is_tuple:
        pairs = zip(largest.elements, actual.elements, strict=True)
        return Shape.tuple([_marked(one, *pair) for pair in pairs])
    if largest.dtype is not actual.dtype or largest.rank != actual.rank:
        raise _Unfit(f"what is computed{_place(one)} depends on the size")
    flags = [a != b for a, b in zip(largest.dims, actual.dims, strict=True)]
    return Shape.array(largest.dtype, largest.dims, dynamic=flags)


def _attributes(one: HloInstruction) -> Any:
    """The attributes, in which what takes a dimension as a whole does not say how large it is."""
    match one.opcode:
        case "slice":
            pairs = zip(one.attrs.slice, one.operand(0).shape.dims, strict=True)
            return tuple("whole" if part == (0, size, 1) else part for part, size in pairs)
        case "reduce-window":
            pairs = zip(one.attrs.window.dimensions, one.operand(0).shape.dims, strict=True)
            return tuple(_cumulative(size).get(each, each) for each, size in pairs)
        case "dynamic-slice":
            return _wholes(one.attrs.dynamic_slice_sizes, one)
        case "gather":
            return replace(one.attrs, slice_sizes=()), _wholes(one.attrs.slice_sizes, one)
        case _:
            return one.attrs


def _cumulative(size: int) -> Mapping[WindowDimension, str]:
    """The windows of cumulative sums, forwards and backwards."""
    to_end, from_start = WindowDimension(size, pad_high=size - 1), WindowDimension(size, pad_low=size - 1)
    return {to_end: "from each", from_start: "up to each"}


def _takes_all(one: HloInstruction) -> bool:
    return bool(one.attrs.k == one.operand(0).shape.dims[-1])


def _cut(one: HloInstruction, two: HloInstruction) -> list[tuple[int, int] | None] | None:
    """For each dimension what a slice leaves out at both ends, or what it takes between two distances from the end.

    None stands for the others, and for a slice without such dimensions.
    """
    found = list[tuple[int, int] | None]()
    sizes = zip(one.operand(0).shape.dims, two.operand(0).shape.dims, strict=True)
    for part, other, (size, other_size) in zip(one.attrs.slice, two.attrs.slice, sizes, strict=True):
        ends = [(each[0], whole - each[1]) for each, whole in ((part, size), (other, other_size))]
        at_end = [(whole - each[0], each[1] - whole) for each, whole in ((part, size), (other, other_size))]
        same = next((pair[0] for pair in (ends, at_end) if pair[0] == pair[1]), None)
        if part == other or ends[0] == ends[1] == (0, 0):
            found.append(None)
        elif part[2] != 1 or other[2] != 1 or same is None:
            return None
        else:
            found.append(same)
    return found if any(found) else None


def _wholes(taken: Sequence[int], one: HloInstruction) -> tuple[int, ...]:
    return tuple(-1 if size == whole else size for size, whole in zip(taken, one.operand(0).shape.dims, strict=True))


def _texts(one: HloInstruction) -> list[str]:
    return [each.to_string() for each in one.called_computations]


def _is_same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _place(one: HloInstruction) -> str:
    at = one.metadata
    return f" in line {at.source_line} of {at.source_file}" if at.source_file else ""
