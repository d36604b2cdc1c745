"""Operations without a kernel: compiled code calls the evaluator for them, and a record says so.

This keeps every program runnable; it is slow, so each such call is a decision to look at. Code names the call by the
fingerprint of what it computes; the linker binds the name to a callback made from the HLO text in the code's record.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from xlalite.backends.cpu.rules import RULES
from xlalite.hlo.computation import HloComputation
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.evaluator import Evaluator
from xlalite.hlo.fingerprint import fingerprint
from xlalite.hlo.instruction import HloInstruction
from xlalite.hlo.literal import Token, Value
from xlalite.hlo.module import HloModule
from xlalite.hlo.ops import OPS
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.shape import Shape
from xlalite.hlo.text import parse

_Callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def why_on_host(instruction: HloInstruction) -> str | None:
    """Why an instruction is evaluated rather than compiled; None if it is compiled."""
    if instruction.opcode == "fusion":
        return None
    if instruction.opcode == "bitcast-convert" and instruction.shape.dims != instruction.operand(0).shape.dims:
        return "no kernel changes the width of elements"
    if instruction.shape.is_tuple and instruction.opcode != "reduce":
        return f"no kernel computes {instruction.opcode}"
    return None if instruction.opcode in RULES else f"no kernel computes {instruction.opcode}"


def host_module(instruction: HloInstruction) -> HloModule:
    """A module that computes one instruction from parameters, one for each operand."""
    module = HloModule(instruction.name)
    copies: dict[HloComputation, HloComputation] = {}

    def called(computation: HloComputation) -> HloComputation:
        if computation not in copies:
            copies[computation] = module.add(computation.clone(called=called))
        return copies[computation]

    entry = HloComputation("entry")
    parameters = [
        entry.add(HloInstruction(OPS["parameter"], o.shape, attrs=ParameterAttrs(n), name=f"p{n}"))
        for n, o in enumerate(instruction.operands)
    ]
    callees = [called(computation) for computation in instruction.called_computations]
    entry.set_root(entry.add(instruction.clone(parameters, called_computations=callees)))
    module.add(entry, entry=True)
    return module


def host_symbol(module: HloModule) -> str:
    """The name under which code calls it."""
    return f"xlalite_host_{fingerprint(module)}"


class HostCall:
    """One callback: evaluates a module on arrays at given addresses.

    Attributes:
        failure: What went wrong at the last failure.
    """

    def __init__(self, text: str) -> None:
        """Parses the module."""
        self._module = parse(text)
        self._parameters = [p.shape for p in self._module.entry_computation.parameters]
        self._result = self._module.entry_computation.root.shape
        self._callback = _Callback(self._run)
        self.failure = f"evaluating {self._module.name} failed"

    @property
    def address(self) -> int:
        """Address of the native function: `i32 call(ptr arrays)`, zero on success."""
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _run(self, arrays: int) -> int:
        leaves = [leaf for shape in (*self._parameters, self._result) for _, leaf in shape.leaves() if leaf.is_array]
        pointers = iter((ctypes.c_void_p * len(leaves)).from_address(arrays))
        try:
            operands = [_value_at(shape, pointers) for shape in self._parameters]
            result = Evaluator().call(self._module.entry_computation, operands)
            _store(result, self._result, pointers)
        except (XlaliteError, ArithmeticError, ValueError, MemoryError) as error:
            self.failure = f"evaluating {self._module.name}: {error}"
            return 1
        return 0


class HostFailures(Sequence[str]):
    """The texts of failed calls, as they are when asked for."""

    def __init__(self, calls: Sequence[HostCall]) -> None:
        """Texts of calls, in the order in which code numbers them from 1."""
        self._calls = tuple(calls)

    def __len__(self) -> int:
        """Number of calls."""
        return len(self._calls)

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        """The text of a call."""
        return self._calls[number].failure


def bind_host_calls(texts: Mapping[str, str]) -> dict[str, HostCall]:
    """Callbacks for the names that code calls."""
    return {symbol: HostCall(text) for symbol, text in texts.items()}


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


def _store(value: Value, shape: Shape, pointers: Iterator[int]) -> None:
    if shape.is_tuple:
        assert isinstance(value, tuple), "the evaluator keeps shapes"
        for element, part in zip(value, shape.elements, strict=True):
            _store(element, part, pointers)
    elif shape.is_array:
        assert isinstance(value, np.ndarray), "the evaluator keeps shapes"
        np.copyto(_array_at(shape, pointers), value)
