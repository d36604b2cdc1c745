"""Which instruction a scalar comes from, through all that hands values on unchanged: copies, calls, tuples."""

from __future__ import annotations

from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Use:
    """An instruction, and the calls inside which it stands, the innermost first."""

    instruction: HloInstruction
    calls: tuple[HloInstruction, ...] = ()


_RENAMES = frozenset({"copy", "convert", "bitcast", "reshape", "transpose", "broadcast", "opt-barrier"})


def origin(use: Use) -> Use:
    """What has the very value of an instruction, in the same type."""
    while True:
        instruction, calls = use.instruction, use.calls
        if instruction.opcode in _RENAMES and instruction.operand(0).shape.compatible(instruction.shape):
            use = Use(instruction.operand(0), calls)
        elif instruction.opcode in ("call", "fusion"):
            use = Use(instruction.called_computations[0].root, (instruction, *calls))
        elif instruction.opcode == "parameter" and calls:
            use = Use(calls[0].operand(instruction.attrs.number), calls[1:])
        elif instruction.opcode == "get-tuple-element":
            whole = origin(Use(instruction.operand(0), calls))
            if whole.instruction.opcode != "tuple":
                return use
            use = Use(whole.instruction.operand(instruction.attrs.index), whole.calls)
        else:
            return use
