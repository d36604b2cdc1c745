"""How devices combine what they exchange: by compiled code.

Who gives what to whom is for the devices to settle, and the evaluator of a collective asks them; the sums of an
all-reduce are work, for which it calls the collective's computation with whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.emission.evaluated import evaluated_module
from xlalite.hlo.building.create import create
from xlalite.hlo.evaluation.evaluator import Evaluator
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.evaluation.scalar_function import is_vectorizable
from xlalite.hlo.ops.rules.shapes import array_value
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape

Programs = dict[tuple[HloComputation, tuple[int, ...]], Callable[..., Value]]


class CombiningEvaluator(Evaluator):
    """An evaluator that has the arrays of collectives combined by programs, made when they are first needed."""

    def __init__(self, programs: Programs) -> None:
        """Shares programs with other evaluators of the same module."""
        super().__init__()
        self._programs = programs

    def value_of(self, instruction: HloInstruction, operands: Sequence[Value]) -> Value:
        """The value of one instruction."""
        if not instruction.op.has(Trait.COLLECTIVE):
            return super().value_of(instruction, operands)
        return instruction.op.evaluate(instruction, operands, self._combined)

    def _combined(self, computation: HloComputation, values: Sequence[Value]) -> Value:
        dims = array_value(values[0]).shape
        if not dims or not is_vectorizable(computation):
            return self.call(computation, values)
        if (computation, dims) not in self._programs:
            self._programs[computation, dims] = _for_each_element(computation, dims)
        return self._programs[computation, dims](*values)


def _for_each_element(computation: HloComputation, dims: tuple[int, ...]) -> Callable[..., Value]:
    """A program that applies a computation on scalars to each element of arrays.

    One device runs at a time, so that it has a thread and no other.
    """
    parameters = [
        HloInstruction(OPS["parameter"], Shape.array(each.shape.dtype, dims), attrs=ParameterAttrs(number))
        for number, each in enumerate(computation.parameters)
    ]
    module = evaluated_module(create("map", parameters, called=[computation]))
    function: Callable[..., Any] = get_backend("cpu").compile(module, CompileOptions(num_threads=1)).function
    return function
