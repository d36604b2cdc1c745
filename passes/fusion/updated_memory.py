"""What a kernel may do with memory that it updates, or scatters into, in place."""

from __future__ import annotations

from collections.abc import Collection

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.passes.fusion.domain import Place
from xlalite.passes.fusion.fusible import is_cheap_to_repeat, why_not_fusible
from xlalite.passes.fusion.group import KernelGroup
from xlalite.passes.fusion.seams import update_start


def is_updated_in_place(update: HloInstruction) -> bool:
    """Whether what is updated is memory of the program, not an input or a constant of which a whole copy is made."""
    target = _memory(update.operand(0))
    if not update.shape.rank or target.opcode == "constant":
        return False
    computation = update.parent
    return target.opcode != "parameter" or (computation is not None and not computation.is_entry)


def is_rewritten(update: HloInstruction) -> bool:
    """Whether most of an array changes, at a place known now, to what is made of the array.

    A loop over the whole array, split around the update, then writes another array at once: in place, what is read
    would have to be kept until all is computed.
    """
    target, new = update.operands[:2]
    if any(update_start(update, dimension) is None for dimension in range(update.shape.rank)):
        return False
    is_most = 2 * new.shape.element_count >= update.shape.element_count
    memory = _memory(target)
    return is_most and any(_memory(read) is memory for one in _only_for(new) for read in one.operands)


def touches_updated_memory(producer: HloInstruction, group: KernelGroup) -> bool:
    """Whether a kernel that updates in place would read other elements than the one it replaces at a time.

    An update that would come to that is not begun: what it is made of would be written one by one.
    """
    update = group.root
    target = _memory(update.operand(0))
    for one in _only_for(producer) if producer in update.operands else (producer,):
        is_window = one.opcode == "dynamic-slice" and one.operand(0) is update.operand(0)
        if is_window and one.operands[1:] == update.operands[2:] and one.shape.dims == update.operand(1).shape.dims:
            if one is producer and group.place_of_operand(one)[0] is not Place.FULL:
                return True
        elif _memory(one) is target or any(_memory(operand) is target for operand in one.operands):
            return True
    return False


def is_scattered_into(producer: HloInstruction, scatter: HloInstruction) -> bool:
    """Whether a producer is, or reads, memory that the scatter may update in place; what needs no array is none."""
    target = scatter.operand(0)
    if is_cheap_to_repeat(target):
        return False
    return any(_memory(one) is _memory(target) for one in (producer, *producer.operands))


def _only_for(producer: HloInstruction) -> Collection[HloInstruction]:
    """What would be fused with a producer because nothing else needs it."""
    found: dict[HloInstruction, None] = {producer: None}
    waiting = [producer]
    while waiting:
        for operand in waiting.pop().operands:
            if operand not in found and why_not_fusible(operand) is None and all(u in found for u in operand.users):
                found[operand] = None
                waiting.append(operand)
    return found


def _memory(instruction: HloInstruction) -> HloInstruction:
    """The instruction whose memory one has, as far as renaming of arrays goes."""
    while instruction.opcode in ("reshape", "bitcast"):
        instruction = instruction.operand(0)
    return instruction
