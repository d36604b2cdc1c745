"""What is known of values while a program is being built: those that follow from constants alone.

ONNX gives sizes, axes and the like as ordinary values. What a rule must know is evaluated when it asks.
"""

from __future__ import annotations

import numpy as np

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.errors import EvaluationError, LoweringError
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.types.literal import Array, Value
from xlalite.interop.onnx.graph import Node

_LARGEST = 1 << 26


class UnknownValueError(LoweringError):
    """A value is asked for that no constants give.

    Attributes:
        names: The inputs of the model that it depends on.
        inside: Whether it depends on what changes from one turn of a loop to the next, too.
        node: The node of the model's own graph that needs it.
    """

    node: Node | None = None

    def __init__(self, names: frozenset[str], *, inside: bool) -> None:
        self.names = names
        self.inside = inside
        super().__init__("a size, an axis or the like depends on values that are known only when the program runs")


class KnownValues:
    """Evaluates instructions that depend on no parameter; each once."""

    def __init__(self) -> None:
        self._evaluator = Evaluator()
        self._values: dict[HloInstruction, Value] = {}
        self._origins: dict[HloInstruction, Handle] = {}
        self._inputs: dict[HloInstruction, str] = {}

    def add_input(self, parameter: Handle, name: str) -> None:
        """Takes note of a parameter of the program, which is an input of the model or a part of one."""
        self._inputs[parameter.instruction] = name

    def add_origin(self, inner: Handle, outer: Handle) -> None:
        """Takes note that what a called computation gets is always the same value outside of it."""
        self._origins[inner.instruction] = outer

    def of(self, handle: Handle) -> Array:
        """The value.

        Raises:
            UnknownValueError: It depends on parameters.
            LoweringError: It is too large to be computed beforehand.
        """
        value = self._value(handle.instruction)
        assert isinstance(value, np.ndarray), "handles of rules are arrays"
        return value

    def _value(self, root: HloInstruction) -> Value:
        unknown: set[HloInstruction] = set()
        stack = [root]
        visited: set[HloInstruction] = set()
        while stack:
            instruction = stack[-1]
            if instruction in self._values or instruction in unknown:
                stack.pop()
                continue
            operands = self._sources(instruction)
            waiting = [each for each in operands if each not in self._values and each not in visited]
            if waiting and instruction not in visited:
                visited.add(instruction)
                stack.extend(waiting)
                continue
            visited.add(instruction)
            stack.pop()
            if instruction.opcode == "parameter" and instruction not in self._origins:
                unknown.add(instruction)
            elif not unknown:
                self._values[instruction] = self._evaluate(instruction, operands)
        if unknown:
            inputs = unknown & self._inputs.keys()
            raise UnknownValueError(frozenset(self._inputs[each] for each in inputs), inside=inputs != unknown)
        return self._values[root]

    def _sources(self, instruction: HloInstruction) -> tuple[HloInstruction, ...]:
        origin = self._origins.get(instruction)
        return tuple(instruction.operands) if origin is None else (origin.instruction,)

    def _evaluate(self, instruction: HloInstruction, operands: tuple[HloInstruction, ...]) -> Value:
        if instruction in self._origins:
            return self._values[operands[0]]
        shape = instruction.shape
        if shape.is_array and shape.element_count > _LARGEST:
            raise LoweringError(f"{shape.text()} is too large to be computed before the program runs")
        if instruction.opcode == "constant":
            return instruction.attrs.literal.to_value()  # type: ignore[no-any-return]
        try:
            with np.errstate(all="ignore"):
                return self._evaluator.value_of(instruction, [self._values[each] for each in operands])
        except EvaluationError as error:
            raise LoweringError(f"a value that must be known cannot be computed: {error}") from error
