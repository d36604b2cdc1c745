"""Expresses collectives of a program for one device by what they do there."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import collectives
from xlalite.hlo.ops.rules.collective_groups import attendance
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.devices import LoneDevice
from xlalite.hlo.types.dtype import DType
from xlalite.passes.rewriting.expander import OpExpander

_DEVICE = LoneDevice(0, 0, 1, 1)
_COUNTS = {"partition-id": "num_partitions", "replica-id": "replica_count"}


@dataclass(frozen=True, slots=True)
class CollectiveExpander(OpExpander):
    """all-reduce(x), all-gather(x), ... -> x and partition-id, replica-id -> 0 in programs for one device.

    What names other devices stays, and is refused when it runs; so does ragged-all-to-all, which checks its offsets.
    """

    name: ClassVar[str] = "collective-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset(op.name for op in collectives.OPS) - {"ragged-all-to-all"}

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether there is one device, and it needs no other."""
        module = instruction.module
        assert module is not None, "passes change modules"
        if instruction.opcode in _COUNTS:
            return bool(getattr(module.config, _COUNTS[instruction.opcode]) == 1)
        return module.config.replica_count == module.config.num_partitions == 1 and _keeps_to_itself(instruction)

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds a number, or what the device gets from itself."""
        if instruction.opcode in _COUNTS:
            return builder.constant(0, DType.U32)
        if getattr(instruction.attrs, "slice_sizes", ()):
            return _updated(builder, instruction, operands)
        if not _belongs(instruction):
            return builder.zeros(instruction.shape)
        return builder.tuple(operands) if instruction.shape.is_tuple else operands[0]


def _keeps_to_itself(instruction: HloInstruction) -> bool:
    """Whether its groups are valid for one device, and its result is what one device gives."""
    shapes = [operand.shape for operand in instruction.operands]
    if not getattr(instruction.attrs, "slice_sizes", ()):
        results = instruction.shape.elements if instruction.shape.is_tuple else (instruction.shape,)
        if len(results) != len(shapes) or not all(a.compatible(b) for a, b in zip(results, shapes, strict=True)):
            return False
    try:
        _belongs(instruction)
    except EvaluationError:
        return False
    return True


def _belongs(instruction: HloInstruction) -> bool:
    """Whether the device gets anything.

    Raises:
        EvaluationError: The groups, or pairs, are not for one device.
    """
    return attendance(instruction, _DEVICE)[1] is not None


def _updated(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    """The output with slices of the input put into it one after the other."""
    source, result, taken_from, put_to = operands
    if not _belongs(instruction):
        return result
    pairs = zip(_starts(builder, taken_from), _starts(builder, put_to), strict=True)
    for sizes, (start, target) in zip(instruction.attrs.slice_sizes, pairs, strict=True):
        piece = builder.dynamic_slice(source, start, sizes)
        result = builder.op("dynamic-update-slice", (result, piece, *target))
    return result


def _starts(builder: Builder, value: Handle) -> list[list[Handle]]:
    """Start indices, one list a slice, from a tuple of scalars or a tuple of such tuples."""
    parts = [builder.element(value, number) for number in range(len(value.shape.elements))]
    if parts and parts[0].shape.is_tuple:
        return [row for part in parts for row in _starts(builder, part)]
    return [parts]
