"""Which values must share memory for the program to be right: loop state, results of branches, donated inputs.

Copy insertion asks this to learn where a copy is needed; buffer assignment asks again when the copies are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import ShapeIndex
from xlalite.passes.analysis.buffer_groups import BufferGroup, BufferGroups
from xlalite.passes.analysis.buffer_values import BufferValue, BufferValues
from xlalite.passes.analysis.in_place import overwritable_operands, reusable_operands


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value that must be copied because it cannot lie where the program needs it.

    Attributes:
        holder: The instruction whose operand or root the copy goes into: a `while`, or a computation's root.
        at_root: Whether the copy goes to the end of the holder's computation (else before the holder).
        index: The leaf.
        value: What is copied.
        reason: Why it cannot lie there.
        is_loop_state: Whether it is the state of the very loop, which a copy at the end might overwrite too early.
    """

    holder: HloInstruction
    at_root: bool
    index: ShapeIndex
    value: BufferValue
    reason: str
    is_loop_state: bool = False


OnRefusal = Callable[[Refusal], None]


def share_required(groups: BufferGroups, on_refusal: OnRefusal) -> None:
    """Merges what must share memory; reports each pair that cannot and leaves it apart."""
    values = groups.values
    _share_updates(groups)
    for instruction in values.schedule.spans:
        if instruction.opcode == "while":
            _share_loop(groups, instruction, on_refusal)
        elif instruction.opcode == "conditional":
            _share_branches(groups, instruction, on_refusal)
    _share_outputs(groups, values.module, on_refusal)


def try_share(
    groups: BufferGroups, source: BufferGroup, target: BufferGroup, handed_over: HloInstruction | None = None
) -> str | None:
    """Merges two groups if they may share memory; the reason if not."""
    reason = groups.fixed_conflict(source, target)
    if reason is not None:
        return reason
    blocking = groups.conflict(source, target, handed_over=handed_over)
    if blocking is not None:
        return f"%{blocking.instruction.name} is still needed"
    groups.merge(source, target)
    return None


def hands_over(value: BufferValue, groups: BufferGroups, target: BufferGroup) -> HloInstruction | None:
    """The instruction that defines a value, if it may write it over an operand that lies in `target`."""
    instruction, index = value.position
    leaves = [leaf_index for leaf_index, leaf in instruction.shape.leaves() if leaf.is_array]
    for number, results in overwrites(instruction, [*_updates(instruction), *reusable_operands(instruction)], groups):
        is_taken = groups.of(groups.values.of(instruction.operand(number))) is target
        if is_taken and any(leaves[result] == index for result in results):
            return instruction
    return None


def _updates(instruction: HloInstruction) -> list[tuple[int, Sequence[int]]]:
    return [(number, (0,)) for number in overwritable_operands(instruction)]


def overwrites(
    instruction: HloInstruction, pairs: Sequence[tuple[int, Sequence[int]]], groups: BufferGroups
) -> Iterator[tuple[int, Sequence[int]]]:
    """Those (operand number, result numbers) pairs whose memory no other operand of the instruction reads.

    An operand that renames another's memory (a reshape of it, say) may be read at any index while results are written.
    """
    if not pairs:
        return
    allowed = {number for number, _ in pairs}
    read_elsewhere = {
        groups.of(groups.values.of(operand, index))
        for number, operand in enumerate(instruction.operands)
        if number not in allowed
        for index, leaf in operand.shape.leaves()
        if leaf.is_array
    }
    for number, results in pairs:
        operand = instruction.operand(number)
        if operand.shape.is_array and groups.of(groups.values.of(operand)) not in read_elsewhere:
            yield number, results


def _share_updates(groups: BufferGroups) -> None:
    for instruction in groups.values.schedule.spans:
        for number, _ in overwrites(instruction, _updates(instruction), groups):
            source = groups.of(groups.values.of(instruction.operand(number)))
            try_share(groups, source, groups.of(groups.values.of(instruction)), instruction)


def _share_loop(groups: BufferGroups, loop: HloInstruction, on_refusal: OnRefusal) -> None:
    values, body = groups.values, loop.called_computations[1]
    for index, leaf in loop.shape.leaves():
        if not leaf.is_array or values.is_passed_through(loop, index):
            continue
        state = groups.merge(groups.of(values.of(body.parameters[0], index)), groups.of(values.of(loop, index)))
        initial = values.of(loop.operand(0), index)
        reason = try_share(groups, groups.of(initial), state, loop)
        if reason is not None:
            on_refusal(Refusal(loop, False, index, initial, reason))
        result = values.of(body.root, index)
        state = groups.of(values.of(loop, index))
        reason = try_share(groups, state, groups.of(result), hands_over(result, groups, state))
        if reason is not None or result.instruction is body.parameters[0]:
            of_state = result.instruction is body.parameters[0]
            on_refusal(Refusal(body.root, True, index, result, reason or "other loop state", of_state))


def _share_branches(groups: BufferGroups, choice: HloInstruction, on_refusal: OnRefusal) -> None:
    values = groups.values
    for index, leaf in choice.shape.leaves():
        if not leaf.is_array:
            continue
        for branch in choice.called_computations:
            result, merged = values.of(branch.root, index), groups.of(values.of(choice, index))
            if result.start < 2 * values.schedule.computation_spans[branch].start:
                # Sharing it would keep the memory busy while the other branches want to write their results there.
                reason: str | None = "it comes from outside the branch"
            else:
                reason = try_share(groups, groups.of(result), merged)
            if reason is not None:
                on_refusal(Refusal(branch.root, True, index, result, reason))


def _share_outputs(groups: BufferGroups, module: HloModule, on_refusal: OnRefusal) -> None:
    values, root = groups.values, module.entry_computation.root
    aliases = {alias.output_index: alias for alias in module.config.input_output_alias}
    parameters = module.entry_computation.parameters
    takers = {
        groups.of(values.of(parameters[alias.parameter_number], alias.parameter_index)).parameter: index
        for index, alias in aliases.items()
    }
    number = 0
    for index, leaf in root.shape.leaves():
        if not leaf.is_array:
            continue
        value = values.of(root, index)
        group = groups.of(value)
        reason = _claim_output(group, number)
        if group.parameter is not None and takers.get(group.parameter, index) != index:
            reason = "an input whose memory another output takes"
        alias = aliases.get(index)
        if reason is None and alias is not None:
            memory = groups.of(values.of(parameters[alias.parameter_number], alias.parameter_index))
            reason = try_share(groups, memory, group, hands_over(value, groups, memory))
        if reason is not None:
            on_refusal(Refusal(root, True, index, value, reason))
        else:
            groups.of(value).output = number
        number += 1


def _claim_output(group: BufferGroup, number: int) -> str | None:
    if not group.is_writable:
        return "constant" if group.is_constant else "an input, which the result must not share memory with"
    if group.output is not None and group.output != number:
        return "it is another output too"
    return None


def analyse(module: HloModule) -> BufferGroups:
    """Groups of a scheduled module, nothing shared yet."""
    return BufferGroups(BufferValues(module))
