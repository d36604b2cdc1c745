"""Which parameters are indices, and up to where: made-up arguments that are out of range show little of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ir.traversal import callers

_PASSED_ON = frozenset({"call", "fusion"})


def largest_indices(module: HloModule) -> dict[int, int]:
    """For parameters of the entry whose integers become start indices, by number, the largest that is in range.

    Integers are followed back through elementwise operations, moves of data and calls.
    """
    called_by = callers(module)
    limits: dict[HloInstruction, int] = {}
    waiting = [use for instruction in module.instructions() for use in _index_operands(instruction)]
    while waiting:
        instruction, limit = waiting.pop()
        if not (instruction.shape.is_array and instruction.shape.dtype.is_integral):
            continue
        if limits.get(instruction, limit + 1) <= limit:
            continue
        limits[instruction] = limit
        sources: Sequence[HloInstruction] = ()
        if instruction.opcode == "parameter" and instruction.parent is not None:
            given = [caller for caller in called_by[instruction.parent] if caller.opcode in _PASSED_ON]
            sources = [caller.operand(instruction.attrs.number) for caller in given]
        elif instruction.op.is_elementwise or instruction.op.has(Trait.DATA_MOVEMENT):
            sources = instruction.operands
        waiting.extend((source, limit) for source in sources)
    entry = module.entry_computation.parameters
    return {parameter.attrs.number: limits[parameter] for parameter in entry if parameter in limits}


def _index_operands(instruction: HloInstruction) -> Iterator[tuple[HloInstruction, int]]:
    """The operands that are start indices, each with the largest value that moves no window out of the array."""
    operands, attrs = instruction.operands, instruction.attrs
    match instruction.opcode:
        case "gather":
            rooms = _rooms(operands[0].shape.dims, attrs.slice_sizes)
            yield operands[1], min((rooms[dim] for dim in attrs.start_index_map), default=0)
        case "scatter":
            count = len(operands) // 2
            dims = operands[0].shape.dims
            left_out = (*attrs.inserted_window_dims, *attrs.input_batching_dims)
            window = iter([operands[-1].shape.dims[dim] for dim in attrs.update_window_dims])
            rooms = _rooms(dims, [1 if dim in left_out else next(window) for dim in range(len(dims))])
            yield operands[count], min((rooms[dim] for dim in attrs.scatter_dims_to_operand_dims), default=0)
        case "dynamic-slice" | "dynamic-update-slice":
            first = 1 if instruction.opcode == "dynamic-slice" else 2
            window_dims = instruction.shape.dims if first == 1 else operands[1].shape.dims
            rooms = _rooms(operands[0].shape.dims, window_dims)
            starts = operands[first:]
            if len(starts) == 1 and starts[0].shape.rank == 1:
                yield starts[0], min(rooms, default=0)
            else:
                yield from zip(starts, rooms, strict=True)


def _rooms(sizes: Sequence[int], window: Sequence[int]) -> list[int]:
    return [max(0, size - part) for size, part in zip(sizes, window, strict=True)]
