"""Computes with sizes known only at run time natively: arrays of the largest sizes, and sizes as scalars."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.custom import EVALUATE, REFUSE, evaluated_module
from xlalite.hlo.records import dataclass
from xlalite.passes.normalization.padded_arrays import Padder, known
from xlalite.passes.normalization.padded_forms import has_padded_form, padded_form
from xlalite.passes.rewriting.expander import OpExpander


@dataclass(frozen=True, slots=True)
class DynamicPadder(OpExpander):
    """Calls of the evaluator for what has run-time sizes -> padded arrays and their sizes as scalars.

    What reads across elements gets those that do not count out of the way: a sum reads zeros there. Sizes that do not
    fit are refused by the evaluator, which then computes the whole once more. A call with an operation that has no
    padded form stays. Run after RunTimeSizes.
    """

    name: ClassVar[str] = "dynamic-padder"
    opcodes: ClassVar[frozenset[str]] = frozenset({"custom-call"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether all that the call holds has a padded form; records what has none."""
        if instruction.attrs.custom_call_target != EVALUATE or instruction.has_side_effect:
            return False
        inside = evaluated_module(instruction.backend_config).entry_computation
        missing = sorted({one.opcode for one in inside.instructions if not has_padded_form(one)})
        if missing and instruction.module is not None:
            reason = f"no padded form of {', '.join(missing)}"
            instruction.module.record(self.name, (instruction.name,), "evaluated", reason)
        return not missing

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the padded computation."""
        inside = evaluated_module(instruction.backend_config)
        padder = Padder(builder, padded_form)
        result = padder.value(padder.compute(inside.entry_computation, [known(operand) for operand in operands]))
        if not padder.conditions:
            return result
        given = builder.tuple(operands)
        keep = builder.subcomputation(f"{instruction.name}.fits", (result.shape,), lambda b, p: p[0])

        def refuse(inner: Builder, parameters: tuple[Handle, ...]) -> Handle:
            elements = [inner.element(parameters[0], number) for number in range(len(operands))]
            attrs = replace(instruction.attrs, custom_call_target=REFUSE)
            call = inner.op("custom-call", elements, attrs, shape=instruction.shape)
            call.instruction.backend_config = instruction.backend_config
            return call

        refused = builder.subcomputation(f"{instruction.name}.refused", (given.shape,), refuse)
        return builder.op("conditional", (padder.fits(), result, given), called=(keep, refused))
