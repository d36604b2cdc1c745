"""The state of while loops, element by element: what stays the same, what is needed, and loops with another state."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.construct import element
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import hand_over_control, remove_dead, replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import dependencies, reachable
from xlalite.hlo.ops.structural import GetTupleElementAttrs, ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape


@dataclass(frozen=True, slots=True)
class LoopState:
    """A while loop whose state is a tuple that condition and body only take apart.

    Attributes:
        loop: The `while`.
        initial: The initial value of each element.
        updated: What the body makes of each element.
    """

    loop: HloInstruction
    initial: tuple[HloInstruction, ...]
    updated: tuple[HloInstruction, ...]

    @property
    def condition(self) -> HloComputation:
        """The condition computation."""
        return self.loop.called_computations[0]

    @property
    def body(self) -> HloComputation:
        """The body computation."""
        return self.loop.called_computations[1]

    def reads(self, computation: HloComputation, index: int) -> tuple[HloInstruction, ...]:
        """The instructions of condition or body that take an element out of the state."""
        return tuple(user for user in computation.parameters[0].users if user.attrs.index == index)

    def is_invariant(self, index: int) -> bool:
        """Whether the body hands an element on as it is."""
        updated = self.updated[index]
        return is_element_of(updated, self.body.parameters[0]) and updated.attrs.index == index


def loop_state(loop: HloInstruction) -> LoopState | None:
    """The loop's state, or None when it is not a tuple that is only taken apart and put together."""
    operand = loop.operand(0)
    condition, body = loop.called_computations
    if operand.opcode != "tuple" or body.root.opcode != "tuple":
        return None
    for computation in (condition, body):
        parameter = computation.parameters[0]
        if computation.root is parameter or any(user.opcode != "get-tuple-element" for user in parameter.users):
            return None
    return LoopState(loop, operand.operands, body.root.operands)


def is_element_of(instruction: HloInstruction, source: HloInstruction) -> bool:
    """Whether the instruction takes an element out of a tuple."""
    return instruction.opcode == "get-tuple-element" and instruction.operand(0) is source


def can_spread_state(loop: HloInstruction) -> bool:
    """Whether the state is a tuple that `spread_state` would take apart."""
    body = loop.called_computations[1]
    return loop.shape.is_tuple and (loop.operand(0).opcode != "tuple" or body.root.opcode != "tuple")


def spread_state(loop: HloInstruction) -> None:
    """Writes operand and body root, which are tuples, as tuples of elements, so that `loop_state` finds a state."""
    parent, body = loop.parent, loop.called_computations[1]
    assert parent is not None, "a loop in a computation"
    if loop.operand(0).opcode != "tuple":
        loop.replace_operand(0, _taken_apart(loop.operand(0), parent))
    if body.root.opcode != "tuple":
        body.set_root(_taken_apart(body.root, body))


def with_state(
    state: LoopState, kept: Sequence[int], added: Sequence[HloInstruction] = ()
) -> tuple[HloInstruction, HloComputation]:
    """Puts a loop with another state in the place of a loop.

    Nobody may need the elements that are not kept: not the condition, not what the body makes of the kept ones, and not
    the users of the loop, which all take single elements.

    Args:
        state: The loop.
        kept: Indices of the elements that stay, in their new order.
        added: Initial values of new elements, which the body hands on as they are.

    Returns:
        The new loop, and its body.
    """
    loop, parent = state.loop, state.loop.parent
    assert parent is not None, "a loop in a computation"
    assert parent.module is not None, "a computation in a module"
    places = {index: place for place, index in enumerate(kept)}
    initial = parent.add(create("tuple", [*(state.initial[index] for index in kept), *added]))

    condition, copies = _copy_needed(state.condition, (state.condition.root,), initial.shape, places)
    condition.set_root(copies[state.condition.root])
    results = [state.updated[index] for index in kept]
    body, copies = _copy_needed(state.body, results, initial.shape, places)
    handed_on = [body.add(element(body.parameters[0], len(kept) + extra)) for extra in range(len(added))]
    body.set_root(body.add(create("tuple", [*(copies[result] for result in results), *handed_on])))

    called = (parent.module.add(condition), parent.module.add(body))
    new = parent.add(create("while", (initial,), None, called))
    new.copy_annotations(loop)
    _take_place(loop, new, places)
    return new, body


def _take_place(loop: HloInstruction, new: HloInstruction, places: dict[int, int]) -> None:
    parent = loop.parent
    assert parent is not None, "a loop in a computation"
    hand_over_control(loop, new)
    for user in loop.users:
        assert user.opcode == "get-tuple-element", "the caller has looked at the users"
        replace(user, element(new, places[user.attrs.index]))
    if loop.parent is parent:  # Without users it went with the last of them, unless it has side effects.
        operand = loop.operand(0)
        parent.remove(loop)
        remove_dead(operand)


def _taken_apart(source: HloInstruction, computation: HloComputation) -> HloInstruction:
    parts = [computation.add(element(source, index)) for index in range(len(source.shape.elements))]
    return computation.add(create("tuple", parts))


def _copy_needed(
    computation: HloComputation, roots: Sequence[HloInstruction], shape: Shape, places: dict[int, int]
) -> tuple[HloComputation, dict[HloInstruction, HloInstruction]]:
    """A loose copy, without a root, of what `roots` and side effects depend on, reading from another state."""
    twin = HloComputation(computation.name)
    old = computation.parameters[0]
    parameter = twin.add(create("parameter", (), ParameterAttrs(0), shape=shape, name=old.name))
    copies: dict[HloInstruction, HloInstruction] = {old: parameter}
    effects = (instruction for instruction in computation.instructions if instruction.has_side_effect)
    needed = set(reachable([*roots, *effects], dependencies))
    for instruction in computation.post_order():
        if instruction is old or instruction not in needed:
            continue
        copy = instruction.clone([copies[operand] for operand in instruction.operands])
        if is_element_of(instruction, old):
            copy.attrs = GetTupleElementAttrs(places[instruction.attrs.index])
        copies[instruction] = twin.add(copy)
        for predecessor in instruction.control_predecessors:
            copy.add_control_predecessor(copies[predecessor])
    return twin, copies
