"""Puts instructions in the place of others and takes away what nobody needs afterwards.

What stays although nobody uses its value is decided here and nowhere else.
"""

from __future__ import annotations

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.traversal import depends_on_itself, post_order

_NO_METADATA = Metadata()


def replace(old: HloInstruction, new: HloInstruction) -> tuple[HloInstruction, ...]:
    """Puts `new` in the place of `old`: its users, the root, control dependencies and annotations; removes `old`.

    `new` may be loose; it then joins the computation, and what it depends on and is loose joins before it. Metadata
    goes to all that have none. A `new` that was loose gets sharding and attributes, too: of those that xlalite does not
    know, such as `result_accuracy`, only when the operation is the same. Operands that become unused are removed.

    Returns:
        The instructions that joined, operands before users.

    Raises:
        ShapeError: The shapes differ.
        XlaliteError: `old` is in no computation.
    """
    computation = old.parent
    if computation is None:
        raise XlaliteError(f"replacing %{old.name}: it belongs to no computation")
    joined = _loose_ones(new)
    for instruction in joined:
        computation.add(instruction)
    for instruction in joined or (new,):
        if instruction.metadata == _NO_METADATA:
            instruction.metadata = old.metadata
    if joined:
        _take_annotations(new, old)
    hand_over_control(old, new)
    old.replace_all_uses_with(new)
    operands = old.operands
    if old.opcode != "parameter":
        computation.remove(old)
    for operand in operands:
        remove_dead(operand)
    return joined


def hand_over_control(old: HloInstruction, new: HloInstruction) -> None:
    """Makes `new` run after what `old` runs after, and before what had to wait for `old`."""
    for predecessor in old.control_predecessors:
        if predecessor is not new:
            new.add_control_predecessor(predecessor)
    for successor in old.control_successors:
        successor.drop_control_predecessor(old)
        if successor is not new:
            successor.add_control_predecessor(new)


def remove_dead(instruction: HloInstruction) -> None:
    """Removes an unused instruction, then every operand that became unused.

    Loose instructions let go of their operands. Parameters, roots, instructions with side effects and those that others
    must run after stay.
    """
    waiting = [instruction]
    while waiting:
        candidate = waiting.pop()
        if candidate.user_count:
            continue
        operands = candidate.operands
        if candidate.parent is None:
            candidate.detach()
        elif _is_needed(candidate):
            continue
        else:
            candidate.parent.remove(candidate)
        waiting.extend(operands)


def _is_needed(unused: HloInstruction) -> bool:
    return unused.opcode == "parameter" or unused.is_root or unused.has_side_effect or bool(unused.control_successors)


def _loose_ones(root: HloInstruction) -> tuple[HloInstruction, ...]:
    """A loose instruction behind the loose ones it depends on; nothing for one that belongs to a computation."""
    return post_order([root], _loose_operands, depends_on_itself) if root.parent is None else ()


def _loose_operands(instruction: HloInstruction) -> list[HloInstruction]:
    return [operand for operand in instruction.operands if operand.parent is None]


def _take_annotations(new: HloInstruction, old: HloInstruction) -> None:
    if new.sharding == "":
        new.sharding = old.sharding
        new.frontend_attributes = new.frontend_attributes or old.frontend_attributes
    if new.op is old.op:
        new.extra_attributes = new.extra_attributes or old.extra_attributes
