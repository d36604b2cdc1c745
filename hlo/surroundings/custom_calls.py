"""What custom-call targets mean: a table of functions by target name.

>>> @custom_call("scale_by_two")
... def scale_by_two(instruction, operands, call):
...     return operands[0] * 2
"""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

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

NATIVE_CALLS: dict[str, NativeFunction] = {}
"""Those of them that are machine code, which compiled programs call without Python."""


class NativeFunction:
    """Machine code `int32_t f(void **arrays)`: addresses of the operands, then of the results; 0 when all went well.

    Arrays are dense, in row-major order. Tuples stand as their arrays, in order. Operands are not to be written to.

    Attributes:
        address: Where it is.
    """

    __slots__ = ("_keeper", "address")

    def __init__(self, function: Any) -> None:
        """Takes an address, a function pointer of ctypes, or anything with an `address`, as numba's `cfunc` has.

        Raises:
            TypeError: It is none of them.
        """
        self._keeper = function  # its owner may not throw the code away
        address = getattr(function, "address", function)
        if hasattr(function, "argtypes"):
            address = ctypes.cast(function, ctypes.c_void_p).value
        if not isinstance(address, int) or address <= 0:
            raise TypeError(f"expected the address of a function, found {function!r}")
        self.address = address

    def __call__(self, instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        """Runs it on arrays of NumPy."""
        result = _empty(instruction.shape)
        arrays = [*_arrays(tuple(operands)), *_arrays(result)]
        table = (ctypes.c_void_p * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
        code = _NATIVE(self.address)(ctypes.cast(table, ctypes.c_void_p))
        if code:
            raise EvaluationError(f"it gave the code {code}")
        return result


_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def register_custom_call(target: str, function: object = None) -> Any:
    """Gives a custom-call target its meaning, or, without a function, makes a decorator that does.

    A Python function takes the operands, as arrays (tuples of them for tuples) that it must not write to, and the
    keyword `config`, if it has one: the backend's configuration, as text; it gives an array or a tuple. An address, a
    function pointer of ctypes and numba's `cfunc` are machine code `int32_t f(void **arrays)`, which compiled programs
    call without Python: addresses of the operands, then of the results; 0 says that all went well. A second
    registration takes the place of the first. What the compiler itself gives a meaning stays.

    Raises:
        ValueError: The target belongs to the compiler.
        TypeError: It is no function.
    """
    if function is None:
        return lambda given: register_custom_call(target, given)
    if target in CUSTOM_CALLS and target not in _REGISTERED:
        raise ValueError(f"custom-call target {target!r} belongs to the compiler")
    NATIVE_CALLS.pop(target, None)
    if isinstance(function, int) or hasattr(function, "address") or hasattr(function, "argtypes"):
        CUSTOM_CALLS[target] = NATIVE_CALLS[target] = NativeFunction(function)
    elif callable(function):
        CUSTOM_CALLS[target] = _of_python(function)
    else:
        raise TypeError(f"custom-call target {target!r}: expected a function or an address, found {function!r}")
    _REGISTERED.add(target)
    return function


_REGISTERED: set[str] = set()


def _of_python(function: Any) -> Evaluator:
    takes_config = "config" in inspect.signature(function).parameters

    def evaluate(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        options = {"config": instruction.backend_config} if takes_config else {}
        return _of_arrays(function(*operands, **options), instruction.shape)

    return evaluate


def _of_arrays(value: Any, shape: Shape) -> Value:
    """What a function of the user gave, as arrays: Python's numbers and lists where they have the shape's type."""
    if shape.is_tuple and isinstance(value, tuple | list) and len(value) == len(shape.elements):
        return tuple(_of_arrays(part, element) for part, element in zip(value, shape.elements, strict=True))
    if shape.is_array and not hasattr(value, "dtype"):
        return np.asarray(value, shape.dtype.numpy)
    return value  # type: ignore[no-any-return]


def _empty(shape: Shape) -> Value:
    if shape.is_tuple:
        return tuple(map(_empty, shape.elements))
    return np.empty(shape.dims, shape.dtype.numpy) if shape.is_array else Token()


def _arrays(value: Value) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif isinstance(value, np.ndarray):
        yield value if value.flags.c_contiguous else np.ascontiguousarray(value)


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
    texts.append("`xlalite run --targets` lists all, xlalite.register_custom_call registers one")
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
