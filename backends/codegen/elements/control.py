"""Elements of functions that branch and loop: each lane takes its own branch and makes its own trips.

A loop runs while it does for any lane; what is done stays as it is meanwhile. With several lanes all branches are
computed, each for those that take it: for the others its loops end at once. Values are scalars, or tuples of such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementRule, always
from xlalite.backends.codegen.elements.reduction import SEVERAL_ELEMENTS
from xlalite.backends.codegen.elements.registers import Registers, flatten, unflatten
from xlalite.backends.codegen.llvm import Value
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.dtype import DType

Leaves = tuple[Element, ...]


def _leaves(emitter: ElementEmitter, instruction: HloInstruction) -> Leaves:
    """The scalars in a value, in the order of its shape's leaves."""
    match instruction.opcode:
        case "tuple":
            return tuple(leaf for operand in instruction.operands for leaf in _leaves(emitter, operand))
        case "get-tuple-element":
            return _part(emitter, instruction)
        case "while":
            return _once(emitter, instruction, _loop)
        case "conditional":
            return _once(emitter, instruction, _branches)
        case "parameter" if instruction.shape.is_tuple:
            return emitter.leaves[instruction]
    return (emitter.element(instruction, ()),)


def _part(emitter: ElementEmitter, instruction: HloInstruction) -> Leaves:
    whole, number = instruction.operand(0), instruction.attrs.index
    if whole.opcode in SEVERAL_ELEMENTS:
        return (SEVERAL_ELEMENTS[whole.opcode](emitter, whole, ())[number],)
    before = sum(len([*element.leaves()]) for element in whole.shape.elements[:number])
    return _leaves(emitter, whole)[before : before + len([*instruction.shape.leaves()])]


def _once(
    emitter: ElementEmitter, instruction: HloInstruction, emit: Callable[[ElementEmitter, HloInstruction], Leaves]
) -> Leaves:
    found = emitter.leaves.get(instruction)
    if found is None:
        found = emitter.leaves[instruction] = emit(emitter, instruction)
    return found


def _loop(emitter: ElementEmitter, loop: HloInstruction) -> Leaves:
    fb, (condition, body) = emitter.fb, loop.called_computations
    start = _spread(emitter, _leaves(emitter, loop.operand(0)))

    def goes_on(state: Leaves, active: Value | None) -> Value:
        wanted = _predicate(emitter, _applied(emitter, condition, state, active)[0])
        return wanted if active is None else fb.and_(active, wanted)

    with fb.while_loop([goes_on(start, emitter.mask), *flatten(start)]) as trips:
        active, *registers = trips.values
        before = unflatten(tuple(registers), start)
        trips.continue_while(fb.any_lane(active))
        lanes = active if emitter.lanes > 1 else None
        after = _spread(emitter, _applied(emitter, body, before, lanes))
        if lanes is not None:
            after = unflatten(_selected(emitter, lanes, flatten(after), flatten(before)), start)
        trips.yield_(goes_on(after, lanes), *flatten(after))
    return unflatten(trips.results[1:], start)


def _branches(emitter: ElementEmitter, conditional: HloInstruction) -> Leaves:
    """A number out of range takes the last branch."""
    selector, *given = conditional.operands
    fb, number = emitter.fb, emitter.spread(emitter.register(selector, ()))
    operands = [_leaves(emitter, operand) for operand in given]
    branches, last = conditional.called_computations, len(given) - 1
    assert isinstance(number, Value), "a number takes one register"
    is_first = selector.shape.dtype is DType.PRED
    takes = [number if is_first else fb.icmp("eq", number, place) for place in range(last)]
    like: list[Element] = []

    def alone(place: int) -> Registers:
        if place == last:
            found = _applied(emitter, branches[last], operands[last], None)
            like[:] = found
            return flatten(found)
        choice = fb.if_else(takes[place])
        with choice.then():
            choice.yield_(*flatten(_applied(emitter, branches[place], operands[place], None)))
        with choice.otherwise():
            choice.yield_(*alone(place + 1))
        return choice.results

    def side_by_side(place: int, others: Value | None) -> Registers:
        takers = others
        if place < last:
            takers = takes[place] if others is None else fb.and_(others, takes[place])
        found = _spread(emitter, _applied(emitter, branches[place], operands[place], takers))
        if place == last:
            like[:] = found
            return flatten(found)
        rest = fb.xor(takes[place], -1)
        behind = side_by_side(place + 1, rest if others is None else fb.and_(others, rest))
        return _selected(emitter, takes[place], flatten(found), behind)

    registers = alone(0) if emitter.lanes == 1 else side_by_side(0, emitter.mask)
    return unflatten(registers, like)


def _applied(
    emitter: ElementEmitter, computation: HloComputation, argument: Sequence[Element], mask: Value | None
) -> Leaves:
    """A computation of one parameter applied to its leaves, of which only those of masked lanes need be right."""
    (parameter,) = computation.parameters
    inside = emitter.function({}, mask)
    if parameter.shape.is_tuple:
        inside.leaves[parameter] = tuple(argument)
    else:
        inside.sources[parameter] = always(argument[0])
    inside.prepare(computation, [computation.root])
    return _leaves(inside, computation.root)


def _spread(emitter: ElementEmitter, leaves: Leaves) -> Leaves:
    return tuple(map(emitter.spread, leaves))


def _predicate(emitter: ElementEmitter, element: Element) -> Value:
    spread = emitter.spread(element)
    assert isinstance(spread, Value), "a predicate takes one register"
    return spread


def _selected(emitter: ElementEmitter, condition: Value, on_true: Registers, on_false: Registers) -> Registers:
    return tuple(emitter.fb.select(condition, a, b) for a, b in zip(on_true, on_false, strict=True))


def _scalar(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    return _leaves(emitter, instruction)[0]


def _tuple_element(emitter: ElementEmitter, instruction: HloInstruction, index: Index) -> Element:
    producer = instruction.operand(0)
    number: int = instruction.attrs.index
    if producer.opcode in SEVERAL_ELEMENTS:
        return SEVERAL_ELEMENTS[producer.opcode](emitter, producer, index)[number]
    return _part(emitter, instruction)[0]


ELEMENT_RULES: dict[str, ElementRule] = {
    "while": _scalar,
    "conditional": _scalar,
    "get-tuple-element": _tuple_element,
}
