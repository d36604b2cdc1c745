"""Expresses functions with loops that are applied to elements by loops over whole arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeAlias, Union

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import callees, reachable
from xlalite.hlo.ops.scanning import ScanAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.expander import OpExpander

Arrays: TypeAlias = Union[Handle, "tuple[Arrays, ...]"]
"""What stands for a scalar, or for a tuple of such: an array with a value for each element."""


@dataclass(frozen=True, slots=True)
class ElementLoopExpander(OpExpander):
    """map(x), to_apply=f, where f has loops -> f on arrays: a loop runs while it does for any element.

    What is done stays as it is meanwhile; a branch is computed for those that take it, for all others its loops end at
    once. A reduce becomes a scan, one of whose steps does so for all results. Functions are looked at before what they
    call is changed.
    """

    name: ClassVar[str] = "element-loop-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"map", "reduce"})
    users_first: ClassVar[bool] = True

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether its function has a loop, and nothing that only scalars can do."""
        functions = list(reachable(instruction.called_computations, callees))
        inside = [one for function in functions for one in function.instructions]
        return any(one.opcode == "while" for one in inside) and all(map(_is_for_arrays, inside))

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the loops."""
        function = instruction.called_computations[0]
        if instruction.opcode == "map":
            result = _applied(builder, function, operands, _everywhere(builder, instruction.shape.dims))
            return _value(builder, result)
        return _reduced(builder, instruction, operands)


def _is_for_arrays(one: HloInstruction) -> bool:
    if one.is_controlled or any(not leaf.is_scalar for _, leaf in one.shape.leaves()):
        return False
    handed_on = ("parameter", "constant", "tuple", "get-tuple-element", "call", "map", "conditional", "while")
    return one.opcode in handed_on or (one.op.is_elementwise and one.is_pure)


def _reduced(builder: Builder, reduce: HloInstruction, operands: Sequence[Handle]) -> Handle:
    """A scan along the reduced elements, which becomes a loop in turn."""
    function, count = reduce.called_computations[0], len(operands) // 2
    dims, summed = operands[0].dims, sorted(reduce.attrs.dimensions)
    kept = [dim for dim in range(len(dims)) if dim not in summed]
    rows = tuple(dims[dim] for dim in kept)
    length = math.prod(dims[dim] for dim in summed)
    types = [leaf.dtype for _, leaf in reduce.shape.leaves()]
    lines = []
    for array in operands[:count]:
        lines.append(builder.reshape(builder.transpose(array, (*summed, *kept)), (length, *rows)))
    starts = [
        builder.broadcast(builder.convert(start, dtype), rows)
        for start, dtype in zip(operands[count:], types, strict=True)
    ]

    def step(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        elements, accumulators = parameters[:count], parameters[count:]
        found = [inner.convert(one, dtype) for one, dtype in zip(elements, types, strict=True)]
        result = _applied(inner, function, [*accumulators, *found], _everywhere(inner, rows))
        return _value(inner, result if isinstance(result, tuple) else (result,))

    shapes = [Shape.array(line.dtype, rows) for line in lines] + [start.shape for start in starts]
    body = builder.subcomputation(f"{reduce.name}.step", shapes, step)
    scan = builder.op("scan", (*lines, *starts), ScanAttrs((0,), count), (body,))
    return scan if reduce.shape.is_tuple else builder.element(scan, 0)


def _applied(builder: Builder, function: HloComputation, arguments: Sequence[Arrays], active: Handle) -> Arrays:
    """A scalar function of arrays, of which only active elements need be right."""
    found: dict[HloInstruction, Arrays] = dict(zip(function.parameters, arguments, strict=True))
    for one in function.post_order():
        if one not in found:
            found[one] = _computed(builder, one, [found[operand] for operand in one.operands], active)
    return found[function.root]


def _computed(builder: Builder, one: HloInstruction, operands: Sequence[Arrays], active: Handle) -> Arrays:
    match one.opcode:
        case "tuple":
            return tuple(operands)
        case "get-tuple-element":
            whole, index = operands[0], one.attrs.index
            assert isinstance(whole, tuple), "the shape rule lets only tuples through"
            element: Arrays = whole[index]
            return element
        case "constant":
            return builder.broadcast(builder.constant(one.attrs.literal), active.dims)
        case "call" | "map":
            return _applied(builder, one.called_computations[0], operands, active)
        case "conditional":
            return _branches(builder, one, operands, active)
        case "while":
            return _loop(builder, one, operands[0], active)
    arrays = [_array(operand) for operand in operands]
    return builder.op(one.opcode, arrays, one.attrs, shape=Shape.array(one.shape.dtype, active.dims))


def _branches(builder: Builder, one: HloInstruction, operands: Sequence[Arrays], active: Handle) -> Arrays:
    """Each branch for those that take it; a number out of range takes the last."""
    selector, *given = operands
    number, last = _array(selector), len(given) - 1
    others, chosen = active, []
    for place in range(last):
        takes = number if number.dtype is DType.PRED else builder.compare(number, place, "EQ")
        chosen.append(takes)
        others = others & ~takes
    takers = [active & takes for takes in chosen] + [others]
    values = [
        _applied(builder, branch, [operand], taker)
        for branch, operand, taker in zip(one.called_computations, given, takers, strict=True)
    ]
    result = values[last]
    for takes, value in zip(reversed(chosen), reversed(values[:last]), strict=True):
        result = _selected(builder, takes, value, result)
    return result


def _loop(builder: Builder, one: HloInstruction, start: Arrays, active: Handle) -> Arrays:
    """A loop over (the elements that go on, state)."""
    condition, body = one.called_computations
    first = active & _array(_applied(builder, condition, [start], active))
    state = builder.tuple([first, *_leaves(start)])

    def goes_on(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        active = inner.element(parameters[0], 0)
        return inner.reduce(active, inner.constant(False, DType.PRED), range(len(active.dims)), "or")

    def step(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
        active, *leaves = (inner.element(parameters[0], n) for n in range(len(state.shape.elements)))
        before = _like(start, iter(leaves))
        after = _selected(inner, active, _applied(inner, body, [before], active), before)
        still = active & _array(_applied(inner, condition, [after], active))
        return inner.tuple([still, *_leaves(after)])

    functions = [
        builder.subcomputation(f"{one.name}.any", (state.shape,), goes_on),
        builder.subcomputation(f"{one.name}.all", (state.shape,), step),
    ]
    end = builder.op("while", (state,), called=functions)
    return _like(start, (builder.element(end, number) for number in range(1, len(state.shape.elements))))


def _selected(builder: Builder, condition: Handle, on_true: Arrays, on_false: Arrays) -> Arrays:
    if isinstance(on_true, tuple) and isinstance(on_false, tuple):
        return tuple(_selected(builder, condition, a, b) for a, b in zip(on_true, on_false, strict=True))
    return builder.select(condition, _array(on_true), _array(on_false))


def _leaves(value: Arrays) -> list[Handle]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [value]


def _like(value: Arrays, leaves: Iterator[Handle]) -> Arrays:
    return tuple(_like(part, leaves) for part in value) if isinstance(value, tuple) else next(leaves)


def _array(value: Arrays) -> Handle:
    assert isinstance(value, Handle), "the shape rule lets only scalars through"
    return value


def _value(builder: Builder, value: Arrays) -> Handle:
    return builder.tuple([_value(builder, part) for part in value]) if isinstance(value, tuple) else value


def _everywhere(builder: Builder, dims: Sequence[int]) -> Handle:
    return builder.full(True, DType.PRED, dims)
