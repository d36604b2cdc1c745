"""What custom-call targets mean: a table of functions by target name.

>>> @custom_call("scale_by_two")
... def scale_by_two(instruction, operands, call):
...     return operands[0] * 2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.op import Caller, Evaluator
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Token, Value
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.ir.instruction import HloInstruction

E = TypeVar("E", bound=Evaluator)

CUSTOM_CALLS: dict[str, Evaluator] = {}


def custom_call(target: str) -> Callable[[E], E]:
    """Makes the decorated function the meaning of a target.

    The function takes the instruction, the operand values, which it must not write to, and a function that evaluates
    computations.

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
    """The value of a custom-call; what its function raises passes through, with a note on the instruction.

    Raises:
        EvaluationError: Nobody registered its target, or its function gave something else than the instruction's shape.
    """
    target: str = instruction.attrs.custom_call_target
    function = CUSTOM_CALLS.get(target)
    if function is None:
        raise EvaluationError(f"custom-call: {_unknown(target)}")
    try:
        value = function(instruction, [_read_only(operand) for operand in operands], call)
    except BaseException as error:
        error.add_note(f"in custom-call target {target!r} of {instruction!r}")
        raise
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not _is_of_shape(value, instruction.shape):
        found, expected = _shape_text(value), instruction.shape.text(layout=False)
        raise EvaluationError(f"custom-call: target {target!r} gave {found}, expected {expected} ({instruction!r})")
    return value


def _unknown(target: str) -> str:
    import difflib  # rarely needed

    near = difflib.get_close_matches(target, CUSTOM_CALLS, 3, cutoff=0.5)
    texts = [f"no meaning is registered for target {target!r}"]
    if target.startswith("__"):
        texts.append("this is a library call that a compiler put in; the module before its passes has the operation")
    if near:
        texts.append(f"the nearest known {'are' if len(near) > 1 else 'is'} {', '.join(near)}")
    texts.append("`xlalite run --targets` lists all, xlalite.hlo.surroundings.custom_calls.custom_call registers one")
    return "; ".join(texts)


def _read_only(value: Value) -> Value:
    """The value, protected from its memory, which may be the caller's own, being overwritten."""
    if isinstance(value, tuple):
        return tuple(_read_only(element) for element in value)
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _is_of_shape(value: object, shape: Shape) -> bool:
    if shape.is_tuple:
        return (
            isinstance(value, tuple)
            and len(value) == len(shape.elements)
            and all(_is_of_shape(part, element) for part, element in zip(value, shape.elements, strict=True))
        )
    if not shape.is_array:
        return isinstance(value, Token)
    # A scalar of a mapped computation stands for an array.
    return (
        isinstance(value, np.ndarray)
        and value.dtype == shape.dtype.numpy
        and (not shape.dims or shape.has_sizes(value.shape))
    )


def _shape_text(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_shape_text, value))})"
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    try:
        return Shape.array(DType.from_numpy(value.dtype), value.shape).text(layout=False)
    except TypeError:
        return f"an array of {value.dtype} with sizes {list(value.shape)}"
