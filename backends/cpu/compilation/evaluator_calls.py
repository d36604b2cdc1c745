"""Callbacks by which compiled code asks the evaluator, for operations without a kernel.

The linker binds the name that the code calls (`emission/evaluated.py`) to a callback made from the HLO text in the
code's record.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.literal import Token, Value
from xlalite.hlo.types.shape import Shape

if TYPE_CHECKING:
    from xlalite.hlo.surroundings.custom_calls import NativeFunction

_Callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class EvaluatorCall:
    """One callback: evaluates a module on arrays at given addresses."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._callback = _Callback(self._run)
        self._raised = threading.local()

    @property
    def address(self) -> int:
        """Address of the native function: `i32 call(ptr arrays)`, zero on success."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def explain(self) -> tuple[str, BaseException | None]:
        """What went wrong in the calling thread's last call, and what was raised there; forgotten afterwards."""
        error: BaseException | None = self._raised.__dict__.pop("error", None)
        return f"evaluating {self._module.name}: {error}", error

    @functools.cached_property
    def _module(self) -> HloModule:
        # Few programs need the parser, and most of those only if they fail.
        from xlalite.hlo.text import parse

        return parse(self._text)

    def _run(self, arrays: int) -> int:
        from xlalite.hlo.evaluation.evaluator import Evaluator

        try:
            entry = self._module.entry_computation
            shape = Shape.tuple([*(parameter.shape for parameter in entry.parameters), entry.root.shape])
            *operands, result = values_at(shape, arrays)
            # The host, other devices and functions of others may keep what they are given; the memory is used again.
            given = operands if entry.root.is_pure else [*map(copied, operands)]
            _store(Evaluator().call(entry, given), result)
        except BaseException as error:  # it cannot pass through native code, so `explain` hands it over
            self._raised.error = error
            return 1
        return 0


class NativeCall:
    """A custom call of machine code, which programs call as it is."""

    def __init__(self, target: str, function: NativeFunction) -> None:
        self._target = target
        self._function = function  # kept alive for as long as the program

    @property
    def address(self) -> int:
        """Address of the native function: `i32 call(ptr arrays)`, zero on success."""
        return self._function.address

    def explain(self) -> tuple[str, BaseException | None]:
        """That it failed; the code that it gave is not kept."""
        return f"custom-call target {self._target!r} failed: its function gave a code that is not 0", None


BoundCall: TypeAlias = EvaluatorCall | NativeCall


def bind_evaluator_calls(texts: Mapping[str, str]) -> dict[str, BoundCall]:
    """Functions for the names that code calls."""
    return {symbol: _bound(text) for symbol, text in texts.items()}


def _bound(text: str) -> BoundCall:
    from xlalite.hlo.surroundings.custom_calls import NATIVE_CALLS

    if NATIVE_CALLS:
        from xlalite.hlo.text import parse

        root = parse(text).entry_computation.root
        target = root.attrs.custom_call_target if root.opcode == "custom-call" else ""
        if target in NATIVE_CALLS:
            return NativeCall(target, NATIVE_CALLS[target])
    return EvaluatorCall(text)


def values_at(shape: Shape, table: int) -> tuple[Value, ...]:
    """The elements of a tuple, in the memory that a table of addresses gives for its arrays."""
    count = sum(leaf.is_array for _, leaf in shape.leaves())
    pointers = iter((ctypes.c_void_p * count).from_address(table))
    return tuple(_value_at(element, pointers) for element in shape.elements)


def copied(value: Value) -> Value:
    """The value in memory of its own."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _value_at(shape: Shape, pointers: Iterator[int]) -> Value:
    if shape.is_tuple:
        return tuple(_value_at(element, pointers) for element in shape.elements)
    return _array_at(shape, pointers) if shape.is_array else Token()


def _array_at(shape: Shape, pointers: Iterator[int]) -> npt.NDArray[np.generic]:
    address = next(pointers)
    size = shape.size_bytes
    if not size:
        return np.zeros(shape.dims, shape.dtype.numpy)
    memory = (ctypes.c_uint8 * size).from_address(address)
    array: npt.NDArray[np.generic] = np.ctypeslib.as_array(memory).view(shape.dtype.numpy).reshape(shape.dims)
    return array


def _store(value: Value, target: Value) -> None:
    if isinstance(target, tuple):
        assert isinstance(value, tuple), "the evaluator keeps shapes"
        for element, part in zip(value, target, strict=True):
            _store(element, part)
    elif isinstance(target, np.ndarray):
        assert isinstance(value, np.ndarray), "the evaluator keeps shapes"
        np.copyto(target, value)
