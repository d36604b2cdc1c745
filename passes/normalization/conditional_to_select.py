"""Turns `conditional` into `select` in functions that are applied to elements, where no branch can be jumped over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xlalite.hlo.building.construct import compare, element, scalar
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.base import HloPass
from xlalite.passes.rewriting.inlining import inline_body
from xlalite.passes.simplify.dce import remove_uncalled_computations


@dataclass(frozen=True, slots=True)
class ConditionalToSelect(HloPass):
    """conditional(p, x, y), branches f and g -> select(p, f(x), g(y)) inside reducers, maps and comparators.

    Both branches are computed for each element, so only branches on scalars that end and have no effects are taken.
    Other conditionals stay, with a record.
    """

    name: ClassVar[str] = "conditional-to-select"
    opcodes: ClassVar[frozenset[str]] = frozenset({"conditional"})
    counts_changes: ClassVar[bool] = True

    def run(self, module: HloModule) -> bool:
        """Replaces what there is, innermost last; says whether there was any."""
        changed = False
        waiting = [
            callee
            for instruction in module.instructions()
            if instruction.op.calls.applies_to_elements
            for callee in instruction.called_computations
        ]
        for function in dict.fromkeys(waiting):
            while (conditional := self._first(module, function)) is not None:
                _replace(conditional, function)
                changed = True
        if changed:
            remove_uncalled_computations(module)
        return changed

    def _first(self, module: HloModule, function: HloComputation) -> HloInstruction | None:
        for instruction in function.instructions:
            if instruction.opcode != "conditional":
                continue
            reason = _why_not(instruction)
            if reason is not None:
                module.record(self.name, (instruction.name,), "not replaced", reason)
            elif self.may_change():
                return instruction
        return None


def _why_not(conditional: HloInstruction) -> str | None:
    if conditional.is_controlled:
        return "control dependencies"
    if any(not leaf.is_scalar for _, leaf in conditional.shape.leaves()):
        return "its result is not made of scalars"
    if any(not _may_always_run(branch) for branch in conditional.called_computations):
        return "a branch has effects, or might not end"
    return None


def _may_always_run(computation: HloComputation) -> bool:
    return all(
        instruction.is_pure
        and instruction.opcode != "while"
        and all(map(_may_always_run, instruction.called_computations))
        for instruction in computation.instructions
    )


def _replace(conditional: HloInstruction, function: HloComputation) -> None:
    selector, *operands = conditional.operands
    branches = [
        inline_body(branch, [operand], function)[0]
        for branch, operand in zip(conditional.called_computations, operands, strict=True)
    ]
    chosen = branches[-1]
    for number in range(len(branches) - 2, -1, -1):
        chosen = _select(_takes(selector, number, function), branches[number], chosen, function)
    replace(conditional, chosen)


def _takes(selector: HloInstruction, number: int, function: HloComputation) -> HloInstruction:
    """Whether a branch other than the last is chosen; an index out of range chooses the last."""
    if selector.shape.dtype is DType.PRED:
        return selector
    return function.add(compare(selector, function.add(scalar(number, DType.S32)), Direction.EQ))


def _select(
    condition: HloInstruction, a: HloInstruction, b: HloInstruction, function: HloComputation
) -> HloInstruction:
    if not a.shape.is_tuple:
        return function.add(create("select", (condition, a, b)))
    pairs = zip(_elements(a, function), _elements(b, function), strict=True)
    return function.add(create("tuple", [_select(condition, x, y, function) for x, y in pairs]))


def _elements(value: HloInstruction, function: HloComputation) -> Sequence[HloInstruction]:
    if value.opcode == "tuple":
        return value.operands
    return [function.add(element(value, number)) for number in range(len(value.shape.elements))]
