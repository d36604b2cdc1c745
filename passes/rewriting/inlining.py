"""Copies the body of a computation to where it is used."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.building.construct import broadcast
from xlalite.hlo.building.replacement import remove_dead, replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.types.shape import Shape


def inline_body(
    callee: HloComputation, operands: Sequence[HloInstruction], into: HloComputation
) -> tuple[HloInstruction, tuple[HloInstruction, ...]]:
    """Copies the callee's instructions into a computation, with operands for its parameters.

    Returns:
        What stands for the callee's root, and the copies in order.
    """
    copies: dict[HloInstruction, HloInstruction] = dict(zip(callee.parameters, operands, strict=True))
    added = []
    for instruction in callee.post_order():
        if instruction in copies:
            continue
        called = [_own_copy(instruction, inner) for inner in instruction.called_computations]
        operands_here = [copies[operand] for operand in instruction.operands]
        twin = into.add(instruction.clone(operands_here, called_computations=called))
        for predecessor in instruction.control_predecessors:
            twin.add_control_predecessor(copies[predecessor])
        copies[instruction] = twin
        added.append(twin)
    return copies[callee.root], tuple(added)


def inline_instruction(
    instruction: HloInstruction, callee: HloComputation, operands: Sequence[HloInstruction] | None = None
) -> None:
    """Puts a body in the place of an instruction; copies without metadata take the instruction's.

    Args:
        instruction: The instruction.
        callee: The body.
        operands: What stands for its parameters; the instruction's operands when absent.
    """
    computation = instruction.parent
    assert computation is not None, "a loose instruction has no place"
    root, copies = inline_body(callee, instruction.operands if operands is None else operands, computation)
    for copy in copies:
        if copy.metadata == Metadata():
            copy.metadata = instruction.metadata
    replace(instruction, root)
    for copy in copies:
        remove_dead(copy)


def apply_elementwise(
    function: HloComputation, operands: Sequence[HloInstruction], dims: Sequence[int]
) -> HloInstruction | None:
    """A scalar function applied to each element of arrays, as loose array instructions.

    Args:
        function: The scalar function.
        operands: One array of sizes `dims` for each parameter; loose ones that the function does not use are let go.
        dims: Sizes of the result.

    Returns:
        The result; None when the function does something that has no elementwise form, or its value is a tuple.
    """
    results = None if function.root.shape.is_tuple else apply_to_elements(function, operands, dims)
    return results[0] if results is not None else None


def apply_to_elements(
    function: HloComputation, operands: Sequence[HloInstruction], dims: Sequence[int]
) -> tuple[HloInstruction, ...] | None:
    """The same for functions of one value or of a tuple, whose elements are the results."""
    if not is_elementwise_function(function):
        return None
    copies = dict(zip(function.parameters, operands, strict=True))
    roots = function.root.operands if function.root.opcode == "tuple" else (function.root,)
    needed = set(roots)
    for instruction in reversed(function.post_order()):
        if instruction in needed:
            needed.update(instruction.operands)
    for instruction in function.post_order():
        if instruction in copies or instruction not in needed:
            continue
        if not instruction.operands:
            copies[instruction] = broadcast(instruction.clone(), dims)
            continue
        copies[instruction] = instruction.clone(
            [copies[operand] for operand in instruction.operands],
            shape=Shape.array(instruction.shape.dtype, dims),
            name=instruction.opcode,
        )
    for parameter, operand in zip(function.parameters, operands, strict=True):
        if parameter not in needed:
            remove_dead(operand)
    return tuple(copies[root] for root in roots)


def is_elementwise_function(function: HloComputation) -> bool:
    """Whether it is made of scalar parameters, scalars of no operands, elementwise operations, and a tuple of those."""
    return all(
        (instruction.shape.is_scalar and (instruction.op.is_elementwise or not instruction.operands))
        or (instruction is function.root and instruction.opcode == "tuple")
        for instruction in function.instructions
    ) and not any(one.control_predecessors or not one.is_pure for one in function.instructions)


def _own_copy(instruction: HloInstruction, callee: HloComputation) -> HloComputation:
    """The computation that a copy of the instruction calls: a fusion's body belongs to that fusion alone."""
    if instruction.opcode != "fusion" or callee.module is None:
        return callee
    return callee.module.add(callee.clone())
