"""What custom-call targets mean: a table of functions by target name.

>>> @custom_call("scale_by_two")
... def scale_by_two(instruction, operands, call):
...     return operands[0] * 2
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.literal import Token, Value
from xlalite.hlo.op import Caller, Evaluator
from xlalite.hlo.shape import Shape

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
        EvaluationError: Nobody registered its target, or its function gave a value of another shape.
    """
    target: str = instruction.attrs.custom_call_target
    function = CUSTOM_CALLS.get(target)
    if function is None:
        raise EvaluationError(f"custom-call: {_unknown(target)}")
    value = function(instruction, operands, call)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not _is_of_shape(value, instruction.shape):
        raise EvaluationError(
            f"custom-call: target {target!r} gave {_shape_text(value)}, declared is {instruction.shape.text()}"
        )
    return value


def _unknown(target: str) -> str:
    near = difflib.get_close_matches(target, CUSTOM_CALLS, 3, cutoff=0.5)
    texts = [f"no meaning is registered for target {target!r}"]
    if target.startswith("__"):
        texts.append("this is a library call that a compiler put in; the module before its passes has the operation")
    if near:
        texts.append(f"the nearest known {'are' if len(near) > 1 else 'is'} {', '.join(near)}")
    texts.append("`xlalite run --targets` lists all, xlalite.hlo.custom_calls.custom_call registers one")
    return "; ".join(texts)


def _is_of_shape(value: Value, shape: Shape) -> bool:
    """Whether a value has the types and sizes of a shape; run-time sizes are within their bounds."""
    if isinstance(value, tuple):
        return shape.is_tuple and len(value) == len(shape.elements) and all(map(_is_of_shape, value, shape.elements))
    if not shape.is_array or not isinstance(value, np.ndarray):
        return shape.is_token and isinstance(value, Token)
    return value.dtype == shape.dtype.numpy and shape.has_sizes(value.shape)


def _shape_text(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shape_text, value))})"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return type(value).__name__
