"""Checks single instructions: attributes, called computations, shape, layout."""

from __future__ import annotations

from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.shape import ProgramShape, Shape
from xlalite.hlo.verification.pair_verifier import PairVerifier

_LONGEST_QUOTE = 300
_CHANGES_LAYOUT = "copy"


def describe(instruction: HloInstruction) -> str:
    """The instruction's text and its computation, for messages."""
    # Only what is wrong is printed; the printer and its options come with the parser.
    from xlalite.hlo.text.print_options import PrintOptions
    from xlalite.hlo.text.printer import print_instruction

    text = print_instruction(instruction, PrintOptions(metadata=False, backend_config=False))
    if len(text) > _LONGEST_QUOTE:
        text = text[:_LONGEST_QUOTE] + "..."
    home = f" (in computation {instruction.parent.name})" if instruction.parent is not None else ""
    return text + home


class InstructionVerifier:
    """Checks instructions of one module; computations must come callees first."""

    __slots__ = ("layout_sensitive", "pairs", "signatures")

    def __init__(self, layout_sensitive: bool) -> None:
        self.layout_sensitive = layout_sensitive
        self.pairs = PairVerifier()
        self.signatures: dict[HloComputation, ProgramShape] = {}

    def finish(self, computation: HloComputation) -> None:
        """Notes that a computation is right, so that callers may be checked against it."""
        self.signatures[computation] = computation.program_shape

    def problem(self, instruction: HloInstruction) -> str | None:
        """What is wrong with an instruction, or None."""
        op = instruction.op
        if type(instruction.attrs) is not op.attrs:
            return f"found attributes {type(instruction.attrs).__name__}, expected {op.attrs.__name__}"
        found = self.pairs.problem(instruction) or _calls_problem(instruction)
        if found is not None:
            return found
        called = [self.signatures[computation] for computation in instruction.called_computations]
        try:
            inferred = op.infer_shape(
                [operand.shape for operand in instruction.operands], instruction.attrs, called, instruction.shape
            )
        except XlaliteError as error:
            return str(error)
        if inferred is not instruction.shape and not inferred.compatible(instruction.shape):
            return f"found shape {instruction.shape.text()}, expected {inferred.text()}"
        return _layout_problem(instruction, inferred) if self.layout_sensitive else None


def _calls_problem(instruction: HloInstruction) -> str | None:
    calls, count = instruction.op.calls, len(instruction.called_computations)
    if calls.list_name is not None or (calls.optional and not count) or count == len(calls.names):
        return None
    return f"it calls {count} computations, expected {len(calls.names)}"


def _layout_problem(instruction: HloInstruction, inferred: Shape) -> str | None:
    op, shape = instruction.op, instruction.shape.with_default_layout()
    expected = inferred.with_default_layout()
    if op.hands_on and shape != expected:
        return f"found layout {shape}, expected {expected}"
    if not op.is_elementwise or op.name == _CHANGES_LAYOUT or not shape.is_array:
        return None
    for position, operand in enumerate(instruction.operands):
        other = operand.shape
        if other.is_array and other.rank == shape.rank and other.minor_to_major != shape.minor_to_major:
            return f"found layout {shape}, operand {position} has {other}; they must have the same order"
    return None
