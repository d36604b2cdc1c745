"""What custom-call targets mean: a table of functions by target name.

>>> @custom_call("scale_by_two")
... def scale_by_two(instruction, operands, call):
...     return operands[0] * 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.literal import Value
from xlalite.hlo.op import Caller, Evaluator

if TYPE_CHECKING:
    from xlalite.hlo.instruction import HloInstruction

E = TypeVar("E", bound=Evaluator)

CUSTOM_CALLS: dict[str, Evaluator] = {}


def custom_call(target: str) -> Callable[[E], E]:
    """Makes the decorated function the meaning of a target.

    The function takes the instruction, the operand values and a function that evaluates computations.

    Raises:
        ValueError: The target has a meaning already.
    """

    def register(function: E) -> E:
        if target in CUSTOM_CALLS:
            raise ValueError(f"custom-call target {target!r} is registered already")
        CUSTOM_CALLS[target] = function
        return function

    return register


def run_custom_call(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The value of a custom-call.

    Raises:
        EvaluationError: Nobody registered its target.
    """
    target: str = instruction.attrs.custom_call_target
    function = CUSTOM_CALLS.get(target)
    if function is None:
        raise EvaluationError(
            f"custom-call: no meaning is registered for target {target!r} "
            f"(known are {', '.join(sorted(CUSTOM_CALLS))}); use xlalite.hlo.custom_calls.custom_call"
        )
    return function(instruction, operands, call)
