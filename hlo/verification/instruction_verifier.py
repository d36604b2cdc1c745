"""Checks single instructions: attributes, called computations, shape, layout."""

from __future__ import annotations

from xlalite.hlo.errors import VerificationError, XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text.print_options import PrintOptions
from xlalite.hlo.text.printer import print_instruction
from xlalite.hlo.types.shape import ProgramShape, Shape
from xlalite.hlo.verification.pair_verifier import PairVerifier

_QUOTED = PrintOptions(metadata=False, backend_config=False)
_LONGEST_QUOTE = 300
# Operations that hand on whole values: layouts come out as they go in.
_HANDS_ON = frozenset({"tuple", "get-tuple-element", "while", "conditional", "call", "opt-barrier"})
_CHANGES_LAYOUT = "copy"


def describe(instruction: HloInstruction) -> str:
    """The instruction's text and its computation, for messages."""
    text = print_instruction(instruction, _QUOTED)
    if len(text) > _LONGEST_QUOTE:
        text = text[:_LONGEST_QUOTE] + "..."
    home = f" (in computation {instruction.parent.name})" if instruction.parent is not None else ""
    return text + home


class InstructionVerifier:
    """Checks instructions of one module; computations must come callees first."""

    __slots__ = ("layout_sensitive", "module", "pairs", "signatures")

    def __init__(self, module: HloModule, layout_sensitive: bool) -> None:
        self.module = module
        self.layout_sensitive = layout_sensitive
        self.pairs = PairVerifier()
        self.signatures: dict[HloComputation, ProgramShape] = {}

    def finish(self, computation: HloComputation) -> None:
        """Notes that a computation is right, so that callers may be checked against it."""
        self.signatures[computation] = computation.program_shape

    def check(self, instruction: HloInstruction) -> None:
        """Checks an instruction.

        Raises:
            VerificationError: A rule is broken.
        """
        op = instruction.op
        if type(instruction.attrs) is not op.attrs:
            raise self._error(
                instruction, f"found attributes {type(instruction.attrs).__name__}, expected {op.attrs.__name__}"
            )
        problem = self.pairs.problem(instruction)
        if problem is not None:
            raise self._error(instruction, problem)
        self._check_called(instruction)
        called = [self.signatures[computation] for computation in instruction.called_computations]
        try:
            inferred = op.infer_shape(
                [operand.shape for operand in instruction.operands], instruction.attrs, called, instruction.shape
            )
        except XlaliteError as error:
            raise self._error(instruction, str(error)) from error
        if inferred is not instruction.shape and not inferred.compatible(instruction.shape):
            raise self._error(instruction, f"found shape {instruction.shape.text()}, expected {inferred.text()}")
        if self.layout_sensitive:
            self._check_layouts(instruction, inferred)

    def _check_called(self, instruction: HloInstruction) -> None:
        calls, count = instruction.op.calls, len(instruction.called_computations)
        if calls.list_name is not None or (calls.optional and not count):
            return
        if count != len(calls.names):
            raise self._error(instruction, f"it calls {count} computations, expected {len(calls.names)}")

    def _check_layouts(self, instruction: HloInstruction, inferred: Shape) -> None:
        op, shape = instruction.op, instruction.shape.with_default_layout()
        if op.name in _HANDS_ON:
            expected = inferred.with_default_layout()
            if shape != expected:
                raise self._error(instruction, f"found layout {shape}, expected {expected}")
        if not op.is_elementwise or op.name == _CHANGES_LAYOUT or not shape.is_array:
            return
        for position, operand in enumerate(instruction.operands):
            other = operand.shape
            if other.is_array and other.rank == shape.rank and other.minor_to_major != shape.minor_to_major:
                raise self._error(
                    instruction, f"found layout {shape}, operand {position} has {other}; they must have the same order"
                )

    def _error(self, instruction: HloInstruction, message: str) -> VerificationError:
        return VerificationError(f"verifying module {self.module.name}: {describe(instruction)}: {message}")
