"""Operations without a kernel: compiled code calls the evaluator for them, and a record says so.

This keeps every program runnable; it is slow, so each such call is a decision to look at. Code names the call by the
fingerprint of what it computes.
"""

from __future__ import annotations

from xlalite.backends.cpu.rules import RULES
from xlalite.hlo.computation import HloComputation
from xlalite.hlo.fingerprint import fingerprint
from xlalite.hlo.instruction import HloInstruction
from xlalite.hlo.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.passes.constant_folding import is_uniform


def why_on_host(instruction: HloInstruction) -> str | None:
    """Why an instruction is evaluated rather than compiled; None if it is compiled."""
    if instruction.opcode == "fusion":
        body = instruction.called_computations[0].instructions
        missing = sorted({i.opcode for i in body if i.opcode not in RULES} - {"parameter", "tuple"})
        missing += ["constants of several numbers"] if any(map(_is_table, body)) else []
        return f"no kernel computes {', '.join(missing)} inside a fusion" if missing else None
    if instruction.opcode == "bitcast-convert" and instruction.shape.dims != instruction.operand(0).shape.dims:
        return "no kernel changes the width of elements"
    if instruction.shape.is_tuple and instruction.opcode != "reduce":
        return f"no kernel computes {instruction.opcode}"
    return None if instruction.opcode in RULES else f"no kernel computes {instruction.opcode}"


def _is_table(instruction: HloInstruction) -> bool:
    """Whether it is a constant that only memory can hold."""
    return (
        instruction.opcode == "constant"
        and instruction.shape.rank > 0
        and not is_uniform(instruction.attrs.literal.value)
    )


def host_module(instruction: HloInstruction) -> HloModule:
    """A module that computes one instruction from parameters, one for each operand."""
    module = HloModule(instruction.name)
    copies: dict[HloComputation, HloComputation] = {}

    def called(computation: HloComputation) -> HloComputation:
        if computation not in copies:
            copies[computation] = module.add(computation.clone(called=called))
        return copies[computation]

    entry = HloComputation("entry")
    parameters = [
        entry.add(HloInstruction(OPS["parameter"], o.shape, attrs=ParameterAttrs(n), name=f"p{n}"))
        for n, o in enumerate(instruction.operands)
    ]
    callees = [called(computation) for computation in instruction.called_computations]
    entry.set_root(entry.add(instruction.clone(parameters, called_computations=callees)))
    module.add(entry, entry=True)
    return module


def host_symbol(module: HloModule) -> str:
    """The name under which code calls it."""
    return f"xlalite_host_{fingerprint(module)}"
