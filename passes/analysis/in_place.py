"""Which operands a kernel may overwrite: results that can lie in the very memory of an operand.

An update in place writes only a part and leaves the rest as it was. An elementwise kernel reads element i of the
operand before it writes element i of the result, and reads it for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction


def overwritable_operands(instruction: HloInstruction) -> tuple[int, ...]:
    """Operands that an update in place (dynamic-update-slice, scatter, alone or as the root of a fusion) overwrites."""
    if instruction.opcode in ("dynamic-update-slice", "scatter"):
        if instruction.opcode == "scatter" and instruction.shape.is_tuple:
            return ()
        return (0,) if instruction.operands.count(instruction.operand(0)) == 1 else ()
    if instruction.opcode != "fusion":
        return ()
    return _updated_parameter(instruction.called_computations[0], instruction)


def _updated_parameter(body: HloComputation, fusion: HloInstruction) -> tuple[int, ...]:
    """The parameter that the fusion's root updates, if nothing else in the fusion reads it."""
    root = body.root
    if root.opcode not in ("dynamic-update-slice", "scatter"):
        return ()
    target = root.operand(0)
    while root.opcode != "scatter" and target.opcode in ("bitcast", "reshape") and target.user_count == 1:
        target = target.operand(0)
    if target.opcode != "parameter" or root.operands.count(root.operand(0)) != 1:
        return ()
    if any(user is not root and not _reads_what_is_updated(user, root) for user in target.users):
        return ()
    number = target.attrs.number
    return (number,) if fusion.operands.count(fusion.operand(number)) == 1 else ()


def _reads_what_is_updated(reader: HloInstruction, update: HloInstruction) -> bool:
    """Whether a dynamic-slice takes the very elements that an update replaces, each needed for itself only."""
    if update.opcode != "dynamic-update-slice":
        return False
    is_window = reader.opcode == "dynamic-slice" and reader.operand(0) is update.operand(0)
    if not is_window or reader.operands[1:] != update.operands[2:] or reader.shape.dims != update.operand(1).shape.dims:
        return False
    home = update.parent
    assert home is not None, "an update of a fusion belongs to its body"
    return reader in _read_at_own_index(home)


def reusable_operands(instruction: HloInstruction) -> tuple[tuple[int, Sequence[int]], ...]:
    """(operand number, result numbers) where each result can take the operand's memory over.

    The operand must be read at the index being written and at no other. Results are numbered as flattened.
    """
    if instruction.opcode == "fusion":
        return _reusable_in_fusion(instruction)
    if not instruction.op.is_elementwise or not instruction.shape.is_array:
        return ()
    size = instruction.shape.dtype.size_bytes
    return tuple(
        (number, (0,))
        for number, operand in enumerate(instruction.operands)
        if operand.shape.dims == instruction.shape.dims and operand.shape.dtype.size_bytes == size
    )


def _reusable_in_fusion(fusion: HloInstruction) -> tuple[tuple[int, Sequence[int]], ...]:
    body = fusion.called_computations[0]
    results = body.root.operands if body.root.opcode == "tuple" else (body.root,)
    dims = results[0].shape.dims
    if any(not result.shape.is_array or result.shape.dims != dims for result in results):
        return ()
    if any(instruction.opcode in ("reduce", "reduce-window") for instruction in body.instructions):
        return ()
    takers: dict[int, list[int]] = {}
    for number, result in enumerate(results):
        takers.setdefault(result.shape.dtype.size_bytes, []).append(number)
    at_own_index = _read_at_own_index(body)
    return tuple(
        (number, takers[size])
        for number, parameter in enumerate(body.parameters)
        if parameter.shape.dims == dims and parameter in at_own_index
        if (size := parameter.shape.dtype.size_bytes) in takers
    )


def _keeps_index_of(root: HloInstruction, operand: HloInstruction) -> bool:
    """Whether a kernel's root hands elements of an operand on at the kernel's own index."""
    return root.opcode == "tuple" or (root.opcode == "dynamic-update-slice" and root.operand_positions(operand) == (1,))


def _read_at_own_index(body: HloComputation) -> set[HloInstruction]:
    """The instructions from which every path to the kernel's root keeps the index."""
    root, found = body.root, set[HloInstruction]()
    for instruction in reversed(body.post_order()):
        if all(
            (user is root and _keeps_index_of(root, instruction))
            or (user in found and user.op.is_elementwise and user.shape.dims == instruction.shape.dims)
            for user in instruction.users
        ):
            found.add(instruction)
    return found
