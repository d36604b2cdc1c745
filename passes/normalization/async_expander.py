"""Expresses what starts now and finishes later by what happens at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.host_transfer import device_pairs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape
from xlalite.passes.rewriting.expander import OpExpander

_Expansion = Callable[[Builder, HloInstruction, "tuple[Handle, ...]"], Handle]


@dataclass(frozen=True, slots=True)
class AsyncExpander(OpExpander):
    """X-start -> X with a tuple around its result, X-done -> an element of that tuple.

    So the evaluator has it, which does the work when it starts. The end goes first: whatever ends something must find
    its start.
    """

    name: ClassVar[str] = "async-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset(name for name in OPS if name.endswith(("-start", "-update", "-done")))
    users_first: ClassVar[bool] = True

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether contexts, which mean nothing, are of types that have values; a value from another device waits."""
        if instruction.opcode == "recv-done":
            start = instruction.operand(0)
            return start.opcode == "recv" and device_pairs(start) is None
        return all(leaf.is_array or leaf.is_token for _, leaf in instruction.shape.leaves())

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the operation and the tuple, or takes an element."""
        return _EXPANSIONS[instruction.opcode](builder, instruction, operands)


def _copy_start(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    return _with_contexts(builder, instruction, [builder.op("copy", operands), *operands])


def _async_start(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    result = builder.op("call", operands, called=instruction.called_computations)
    return _with_contexts(builder, instruction, [builder.tuple(operands), result])


def _all_reduce_start(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    return _at_once(builder, instruction, operands, instruction.shape)


def _gather_or_permute_start(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    given, shape = instruction.shape.elements[:2]
    result = _at_once(builder, instruction, operands, shape)
    first = operands[0] if operands[0].shape.compatible(given) else builder.tuple(operands)
    return _with_contexts(builder, instruction, [first, result])


def _at_once(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...], shape: Shape) -> Handle:
    opcode = instruction.opcode.removesuffix("-start")
    return builder.op(opcode, operands, instruction.attrs, instruction.called_computations, shape=shape)


def _with_contexts(builder: Builder, instruction: HloInstruction, parts: list[Handle]) -> Handle:
    return builder.tuple([*parts, *(builder.zeros(shape) for shape in instruction.shape.elements[len(parts) :])])


def _received(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    return builder.tuple([builder.element(operands[0], 0), builder.element(operands[0], 2)])


def _operand(builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
    return operands[0]


def _element(index: int) -> _Expansion:
    return lambda builder, instruction, operands: builder.element(operands[0], index)


_EXPANSIONS: dict[str, _Expansion] = {
    "copy-start": _copy_start,
    "copy-done": _element(0),
    "async-start": _async_start,
    "async-update": _operand,
    "async-done": _element(1),
    "all-reduce-start": _all_reduce_start,
    "all-reduce-done": _operand,
    "all-gather-start": _gather_or_permute_start,
    "all-gather-done": _element(1),
    "collective-permute-start": _gather_or_permute_start,
    "collective-permute-done": _element(1),
    "send-done": _element(2),
    "recv-done": _received,
}
