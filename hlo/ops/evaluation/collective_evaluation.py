"""What collectives compute: each device gives a value to its group and makes its result out of everybody's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Evaluator
from xlalite.hlo.ops.asynchronous import tuple_element, zero_value
from xlalite.hlo.ops.evaluation.scalar_function import array_function
from xlalite.hlo.ops.rules.collective_groups import attendance
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.surroundings.devices import current_device
from xlalite.hlo.types.literal import Array, Value

Combine = Callable[[HloInstruction, "list[list[Array]]", int, Caller], "list[Array]"]
"""(instruction, each member's operands, place of this device among them, call) -> this device's results."""


def collective(combine: Combine) -> Evaluator:
    """The meaning of a collective; devices in no group get zeros if they may be in none."""

    def evaluate(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        device = current_device(instruction)
        ranks, place = attendance(instruction, device)
        if place is None:
            return zero_value(instruction.shape)
        given = device.exchange(instruction, ranks, tuple(operands))
        pieces = [[array_value(part) for part in value] for value in given if isinstance(value, tuple)]
        results = combine(instruction, pieces, place, call)
        return tuple(results) if instruction.shape.is_tuple else results[0]

    return evaluate


def started(evaluate: Evaluator) -> Evaluator:
    """The meaning of a -start operation that gives (operands, results): everything happens at once."""

    def start(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        results = evaluate(instruction, operands, call)
        if len(operands) == 1:
            return operands[0], tuple_element(results, 0)
        return tuple(operands), results

    return start


def _reduced(instruction: HloInstruction, pieces: list[list[Array]], call: Caller) -> list[Array]:
    apply = array_function(instruction.called_computations[0], call)
    return [reduce(lambda a, b: apply((a, b))[0], column) for column in zip(*pieces, strict=True)]


def _all_reduce(instruction: HloInstruction, pieces: list[list[Array]], place: int, call: Caller) -> list[Array]:
    return _reduced(instruction, pieces, call)


def _reduce_scatter(instruction: HloInstruction, pieces: list[list[Array]], place: int, call: Caller) -> list[Array]:
    (dimension,) = instruction.attrs.dimensions
    return [np.split(array, len(pieces), dimension)[place] for array in _reduced(instruction, pieces, call)]


def _all_gather(instruction: HloInstruction, pieces: list[list[Array]], place: int, call: Caller) -> list[Array]:
    (dimension,) = instruction.attrs.dimensions
    return [np.concatenate(column, dimension) for column in zip(*pieces, strict=True)]


def _all_to_all(instruction: HloInstruction, pieces: list[list[Array]], place: int, call: Caller) -> list[Array]:
    if instruction.attrs.dimensions:
        (dimension,) = instruction.attrs.dimensions
        mine = [np.split(arrays[0], len(pieces), dimension)[place] for arrays in pieces]
        return [np.concatenate(mine, dimension)]
    if len(pieces[0]) != len(pieces):
        raise EvaluationError(
            f"{instruction.opcode} (%{instruction.name}) has {len(pieces[0])} operands for a group of {len(pieces)}"
        )
    return [arrays[place] for arrays in pieces]


def _broadcast(instruction: HloInstruction, pieces: list[list[Array]], place: int, call: Caller) -> list[Array]:
    return pieces[0]


def _ragged_all_to_all(instruction: HloInstruction, pieces: list[list[Array]], place: int, call: Caller) -> list[Array]:
    """The offsets of device i are in blocks, one for each receiver; block i of everybody is about what i gets."""
    result = pieces[place][1].copy()
    for operand, _, starts, sizes, targets, _ in pieces:
        block = len(starts) // len(pieces)
        chunk = slice(place * block, (place + 1) * block)
        for start, size, target in zip(starts[chunk], sizes[chunk], targets[chunk], strict=True):
            rows = operand[int(start) : int(start) + int(size)]
            if len(rows) != int(size) or int(start) < 0 or not 0 <= int(target) <= len(result) - int(size):
                raise EvaluationError(
                    f"{instruction.opcode} (%{instruction.name}) moves rows [{start}, {int(start) + int(size)}) of "
                    f"{len(operand)} to row {target} of {len(result)}"
                )
            result[int(target) : int(target) + int(size)] = rows
    return [result]


def collective_permute(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """What the device that sends to this one has; zeros, or the output as it was, if nobody sends."""
    device = current_device(instruction)
    ranks, source = attendance(instruction, device)
    given = device.exchange(instruction, ranks, tuple(operands)) if ranks else ()
    if instruction.attrs.slice_sizes:
        sent = tuple_element(given[source], 0) if source is not None else None
        return _updated(instruction, operands, sent, given[source] if source is not None else ())
    if source is None:
        results: Value = tuple(zero_value(operand.shape) for operand in instruction.operands)
    else:
        results = given[source]
    return results if len(operands) > 1 else tuple_element(results, 0)


def collective_permute_start(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """(operands, results, contexts...)."""
    result = collective_permute(instruction, operands, call)
    in_place = bool(instruction.attrs.slice_sizes)
    first = operands[0] if len(operands) == 1 or in_place else tuple(operands)
    return (first, result, *(zero_value(element) for element in instruction.shape.elements[2:]))


def _updated(instruction: HloInstruction, operands: Sequence[Value], sent: Value | None, sender: Value) -> Value:
    """The output with slices of the sender's input, from the sender's starts to this device's."""
    result = array_value(operands[1]).copy()
    if sent is None:
        return result
    source = array_value(sent)
    sizes = instruction.attrs.slice_sizes
    from_starts, to_starts = _starts(tuple_element(sender, 2)), _starts(operands[3])
    for size, start, target in zip(sizes, from_starts, to_starts, strict=True):
        result[_window(target, size, result.shape)] = source[_window(start, size, source.shape)]
    return result


def _starts(value: Value) -> list[tuple[int, ...]]:
    """Start indices, one tuple a slice, from a tuple of scalars or a tuple of such tuples."""
    assert isinstance(value, tuple), "the shape rule wants tuples"
    rows = value if value and isinstance(value[0], tuple) else (value,)
    return [tuple(int(array_value(number)) for number in row) for row in rows if isinstance(row, tuple)]


def _window(start: tuple[int, ...], size: Sequence[int], dims: Sequence[int]) -> tuple[slice, ...]:
    """The slice, moved so that it lies inside."""
    clamped = [max(0, min(s, dim - n)) for s, n, dim in zip(start, size, dims, strict=True)]
    return tuple(slice(s, s + n) for s, n in zip(clamped, size, strict=True))


def device_number(name: str) -> Evaluator:
    """The meaning of partition-id and replica-id."""

    def evaluate(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        return np.asarray(getattr(current_device(instruction), name), np.uint32)

    return evaluate


ALL_REDUCE = collective(_all_reduce)
REDUCE_SCATTER = collective(_reduce_scatter)
ALL_GATHER = collective(_all_gather)
ALL_TO_ALL = collective(_all_to_all)
RAGGED_ALL_TO_ALL = collective(_ragged_all_to_all)
BROADCAST = collective(_broadcast)
