"""Native calls: a builtin function for each executable, made of shared machine code and a record of its own.

`make_call` gives the best callable there is. The builtin's `self` is a tuple of a capsule with the record's address and
the `NativeCall` that owns the record, so the garbage collector sees through it, and everything that the machine code
reads lives exactly as long as the function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xlalite.backends.cpu.native.call.call_records import (
    CALL,
    CALL_AT,
    CALL_BOUND,
    LARGE_BYTES,
    MANY_OVERLAP,
    PYTHON_FUNCTIONS,
    RELEASE_ARENA,
    RUN,
    BoundRecord,
    CallRecord,
    InputRecord,
    OutputRecord,
)
from xlalite.backends.cpu.native.call.numpy_interface import (
    ALIGNED,
    C_CONTIGUOUS,
    WRITEABLE,
    NumpyInterface,
    numpy_interface,
    python_functions,
)
from xlalite.backends.cpu.native.call.python_call import PythonCall, pointers, raise_status
from xlalite.backends.cpu.native.call.signature import CallSignature, EntryPoint
from xlalite.backends.cpu.native.linker import LinkedModule
from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.runtime_code import runtime_code
from xlalite.hlo.errors import CodegenError
from xlalite.hlo.types.shape import Shape

MAX_NATIVE_ARRAYS = 8192
"""Calls with more inputs or outputs take the Python path, for the native one keeps its pointers on the stack."""

_MANY_INPUTS = 96
"""From so many on inputs are sorted to find out which of them share memory."""

_KEPT_BY_LIBRARY = 128 << 10
"""So much memory at the end of its heap the C library does not give back to the system."""

_METH_NOARGS = 0x0004
_METH_FASTCALL = 0x0080


class _MethodDefinition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def make_call(signature: CallSignature, entry: EntryPoint) -> PythonCall:
    """The callable of an entry function: native where possible, else with the same meaning in Python."""
    interface = numpy_interface()
    if interface is None or max(len(signature.inputs), len(signature.outputs)) > MAX_NATIVE_ARRAYS:
        return PythonCall(signature, entry)
    return NativeCall(signature, entry, interface)


def native_call(call: PythonCall) -> NativeCall:
    """A native call of the same function, for callers that need its record and not what Python calls.

    Raises:
        CodegenError: NumPy's native interface is not as known.
    """
    interface = numpy_interface()
    if isinstance(call, NativeCall):
        return call
    if interface is None:
        raise CodegenError(f"{call.signature.name}: this NumPy's native interface is not known")
    return NativeCall(call.signature, call.entry, interface)


def run_address() -> int:
    """Where `int run(call record, params, results)` is."""
    return _runtime().module.address(RUN)


class NativeCall(PythonCall):
    """A callable executable whose `function()` is native; `__call__` is its slow path."""

    def __init__(self, signature: CallSignature, entry: EntryPoint, interface: NumpyInterface) -> None:
        super().__init__(signature, entry)
        self._runtime = _runtime()
        self._kept_alive: list[object] = []
        self._record = CallRecord(
            entry=entry.address,
            context=entry.context,
            arena_bytes=entry.arena_bytes,
            releases_lock=entry.releases_lock,
            returns_tuple=signature.returns_tuple,
            has_donations=bool(signature.donations),
            many_overlap=self._many_overlap(),
            inputs=self._keep(self._input_records()),
            outputs=self._keep(self._output_records()),
            num_inputs=len(signature.inputs),
            num_outputs=len(signature.outputs),
            slow_path=id(self),
            raise_status=id(raise_status),
            array_type=interface.array_type,
            new_array=interface.new_array,
            set_handler=interface.set_handler,
            result_handler=self._result_handler(),
            none=id(None),
        )
        # At the end of a process what the module imports may be gone before this object is.
        self._release = partial(self._runtime.release_arena, ctypes.addressof(self._record))

    @property
    def record_address(self) -> int:
        """Where the record is, as long as this object lives."""
        return ctypes.addressof(self._record)

    def function(self) -> Callable[..., object]:
        """A builtin function with the meaning of `__call__`; it keeps this object alive."""
        return self._builtin(self._runtime.module.address(CALL), _METH_FASTCALL, self._record)

    def function_of_addresses(self) -> Callable[..., None]:
        """A builtin function of the addresses of inputs and outputs; it keeps this object alive."""
        return self._builtin(_address_calls().address(CALL_AT), _METH_FASTCALL, self._record)

    def bind(self, params: Sequence[int], results: Sequence[int]) -> Callable[[], None]:
        """A builtin function that runs the entry on these addresses each time it is called."""
        bound_params, bound_results = pointers(params), pointers(results)
        record = BoundRecord(ctypes.addressof(self._record), _address(bound_params), _address(bound_results))
        return self._builtin(_address_calls().address(CALL_BOUND), _METH_NOARGS, record, bound_params, bound_results)

    def __del__(self) -> None:
        """Frees the arena."""
        if hasattr(self, "_release"):
            self._release()

    def _run(self, params: ctypes.Array[ctypes.c_void_p], results: ctypes.Array[ctypes.c_void_p]) -> int:
        return int(self._runtime.run(ctypes.addressof(self._record), params, results))

    def _builtin(self, address: int, flags: int, record: ctypes.Structure, *kept_alive: object) -> Callable[..., Any]:
        """A builtin function; `self`, the record, and what the record points to live as long as it does."""
        runtime = self._runtime
        definition = _MethodDefinition(self.signature.name.encode(), address, flags, None)
        capsule = runtime.new_capsule(ctypes.addressof(record), None, None)
        owner = (capsule, self, record, definition, *kept_alive)
        function: Callable[..., Any] = runtime.new_function(ctypes.addressof(definition), owner, None)
        return function

    def _many_overlap(self) -> int | None:
        is_asked = self.signature.donations and len(self.signature.inputs) >= _MANY_INPUTS
        return _many_donations().address(MANY_OVERLAP) if is_asked else None

    def _input_records(self) -> ctypes.Array[InputRecord]:
        donated = {source for source, _ in self.signature.donations}
        records = (InputRecord * len(self.signature.inputs))()
        for i, shape in enumerate(self.signature.inputs):
            dtype = self._dtype(shape)
            records[i] = InputRecord(
                descriptor=id(dtype),
                type_number=dtype.num,
                rank=shape.rank,
                dims=self._dims(shape),
                size_bytes=shape.size_bytes,
                required_flags=C_CONTIGUOUS | ALIGNED | (WRITEABLE if i in donated else 0),
                is_donated=i in donated,
            )
        return records

    def _output_records(self) -> ctypes.Array[OutputRecord]:
        source_of = {target: source for source, target in self.signature.donations}
        records = (OutputRecord * len(self.signature.outputs))()
        for i, shape in enumerate(self.signature.outputs):
            records[i] = OutputRecord(
                descriptor=id(self._dtype(shape)),
                dims=self._dims(shape),
                rank=shape.rank,
                alias=source_of.get(i, -1),
                is_large=shape.size_bytes >= LARGE_BYTES,
            )
        return records

    def _result_handler(self) -> int | None:
        sizes = [shape.size_bytes for shape in self.signature.outputs]
        if sum(sizes) < _KEPT_BY_LIBRARY:
            return None
        from xlalite.backends.cpu.native.call.result_memory import keep_freed_memory, result_memory

        keep_freed_memory()
        return result_memory().handler_address if any(size >= LARGE_BYTES for size in sizes) else None

    def _dtype(self, shape: Shape) -> np.dtype[np.generic]:
        dtype = shape.dtype.numpy
        self._kept_alive.append(dtype)
        return dtype

    def _dims(self, shape: Shape) -> int:
        return self._keep((ctypes.c_int64 * max(1, shape.rank))(*shape.dims))

    def _keep(self, memory: ctypes.Array[Any]) -> int:
        self._kept_alive.append(memory)
        return _address(memory)


class _Runtime:
    """The shared machine code, and the functions of Python that make capsules and builtins."""

    def __init__(self, module: LinkedModule) -> None:
        self.module = module
        pointer, instance = ctypes.c_void_p, ctypes.py_object
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer)(module.address(RUN))
        self.release_arena = ctypes.CFUNCTYPE(None, pointer)(module.address(RELEASE_ARENA))
        new_capsule = ctypes.PYFUNCTYPE(instance, pointer, pointer, pointer)
        self.new_capsule = new_capsule(("PyCapsule_New", ctypes.pythonapi))
        new_function = ctypes.PYFUNCTYPE(instance, pointer, instance, pointer)
        self.new_function = new_function(("PyCFunction_NewEx", ctypes.pythonapi))


@once
def _runtime() -> _Runtime:
    interface = numpy_interface()
    assert interface is not None, "native calls are made only where the interface is known"
    imports = python_functions(tuple(PYTHON_FUNCTIONS))
    variant = f"objects begin with {object.__basicsize__} bytes"

    def write() -> str:
        from xlalite.backends.cpu.native.call.dispatch_ir import dispatch_ir

        return dispatch_ir(interface.layout)

    return _Runtime(runtime_code("native calls", write, imports, variant))


@once
def _address_calls() -> LinkedModule:
    from xlalite.backends.cpu.native.call.address_calls_ir import address_calls_ir

    imports = {**python_functions(tuple(PYTHON_FUNCTIONS)), RUN: run_address()}
    return runtime_code("calls on addresses", address_calls_ir, imports)


@once
def _many_donations() -> LinkedModule:
    from xlalite.backends.cpu.native.call.many_donations_ir import many_donations_ir

    return runtime_code("many donations", many_donations_ir)


def _address(memory: ctypes.Array[Any]) -> int:
    return ctypes.addressof(memory)
