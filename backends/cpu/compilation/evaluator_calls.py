"""Callbacks by which compiled code asks the evaluator, for operations without a kernel.

The linker binds the name that the code calls (`emission/evaluated.py`) to a callback made from the HLO text in the
code's record.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from xlalite.hlo.types.literal import Token, Value
from xlalite.hlo.types.shape import Shape

_Callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class EvaluatorCall:
    """One callback: evaluates a module on arrays at given addresses."""

    def __init__(self, text: str) -> None:
        # Few programs need an evaluator and the parser.
        from xlalite.backends.cpu.compilation.combining import CombiningEvaluator
        from xlalite.hlo.text import parse

        self._new_evaluator = partial(CombiningEvaluator, {})
        self._module = parse(text)
        self._parameters = [p.shape for p in self._module.entry_computation.parameters]
        root = self._module.entry_computation.root
        self._result = root.shape
        # The host, other devices and functions of others may keep what they are given; the memory is used again.
        self._lends = root.is_pure
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

    def _run(self, arrays: int) -> int:
        leaves = [leaf for shape in (*self._parameters, self._result) for _, leaf in shape.leaves() if leaf.is_array]
        pointers = iter((ctypes.c_void_p * len(leaves)).from_address(arrays))
        try:
            operands = [_value_at(shape, pointers) for shape in self._parameters]
            if not self._lends:
                operands = [_copied(operand) for operand in operands]
            result = self._new_evaluator().call(self._module.entry_computation, operands)
            _store(result, self._result, pointers)
        except BaseException as error:  # it cannot pass through native code, so `explain` hands it over
            self._raised.error = error
            return 1
        return 0


def bind_evaluator_calls(texts: Mapping[str, str]) -> dict[str, EvaluatorCall]:
    """Callbacks for the names that code calls."""
    return {symbol: EvaluatorCall(text) for symbol, text in texts.items()}


def _value_at(shape: Shape, pointers: Iterator[int]) -> Value:
    if shape.is_tuple:
        return tuple(_value_at(element, pointers) for element in shape.elements)
    return _array_at(shape, pointers) if shape.is_array else Token()


def _copied(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(map(_copied, value))
    return value.copy() if isinstance(value, np.ndarray) else value


def _array_at(shape: Shape, pointers: Iterator[int]) -> npt.NDArray[np.generic]:
    address = next(pointers)
    size = shape.size_bytes
    if not size:
        return np.zeros(shape.dims, shape.dtype.numpy)
    memory = (ctypes.c_uint8 * size).from_address(address)
    array: npt.NDArray[np.generic] = np.ctypeslib.as_array(memory).view(shape.dtype.numpy).reshape(shape.dims)
    return array


def _store(value: Value, shape: Shape, pointers: Iterator[int]) -> None:
    if shape.is_tuple:
        assert isinstance(value, tuple), "the evaluator keeps shapes"
        for element, part in zip(value, shape.elements, strict=True):
            _store(element, part, pointers)
    elif shape.is_array:
        assert isinstance(value, np.ndarray), "the evaluator keeps shapes"
        np.copyto(_array_at(shape, pointers), value)
