"""Calling an entry function from Python: the whole meaning of a call, without any native help.

It is the slow path of native calls, and the only path where NumPy's or Python's native interface is not as known.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from xlalite.backends.cpu.native.aligned_memory import ByteArray, aligned_bytes
from xlalite.backends.cpu.native.call.call_records import NO_MEMORY_STATUS
from xlalite.backends.cpu.native.call.signature import CallSignature, EntryPoint
from xlalite.hlo.errors import ArgumentError, ExecutionError

_Entry = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)


class PythonCall:
    """A callable executable; safe to call from several threads at once.

    Attributes:
        signature: The arrays of a call.
        entry: The function behind it.
    """

    def __init__(self, signature: CallSignature, entry: EntryPoint) -> None:
        """Binds the signature to the function; the caller vouches that they fit."""
        self.signature = signature
        self.entry = entry
        self._function = _Entry(entry.address)
        self._free_arenas: list[ByteArray] = []

    def __call__(self, *arguments: object) -> object:
        """The results for arguments of any kind that fit the signature.

        Raises:
            ArgumentError: The arguments do not fit.
            ExecutionError: The function reported a failure.
        """
        from xlalite.backends.cpu.native.call.arguments import new_results, to_arrays

        arrays = to_arrays(self.signature, arguments)
        results = new_results(self.signature, arrays)
        self._run_at([array.ctypes.data for array in arrays], [result.ctypes.data for result in results])
        return tuple(results) if self.signature.returns_tuple else results[0]

    def function(self) -> Callable[..., object]:
        """The quickest callable with the meaning of `__call__`."""
        return self.__call__

    def function_of_addresses(self) -> Callable[..., None]:
        """A callable that runs the function on the addresses of its inputs and outputs, which it is called with.

        Its caller owns the memory and vouches for its sizes; donated inputs and their outputs have equal addresses.
        It raises ExecutionError if the function reported a failure, and ArgumentError for another number of addresses.
        """
        num_inputs, num_outputs = len(self.signature.inputs), len(self.signature.outputs)

        def call_at(*addresses: int) -> None:
            if len(addresses) != num_inputs + num_outputs:
                raise ArgumentError(
                    f"{self.signature.name}: {len(addresses)} addresses given, {num_inputs + num_outputs} expected"
                )
            self._run_at(addresses[:num_inputs], addresses[num_inputs:])

        return call_at

    def bind(self, params: Sequence[int], results: Sequence[int]) -> Callable[[], None]:
        """A callable that runs the function on these addresses, as above, each time it is called."""
        bound_params, bound_results = pointers(params), pointers(results)

        def call_bound() -> None:
            status = self._run(bound_params, bound_results)
            if status:
                raise_status(self, status)

        return call_bound

    def _run_at(self, params: Sequence[int], results: Sequence[int]) -> None:
        status = self._run(pointers(params), pointers(results))
        if status:
            raise_status(self, status)

    def _run(self, params: ctypes.Array[ctypes.c_void_p], results: ctypes.Array[ctypes.c_void_p]) -> int:
        context = self.entry.context
        if not self.entry.arena_bytes:
            return int(self._function(params, results, None, context))
        arena = self._take_arena()
        try:
            return int(self._function(params, results, arena.ctypes.data, context))
        finally:
            self._free_arenas.append(arena)

    def _take_arena(self) -> ByteArray:
        try:
            return self._free_arenas.pop()
        except IndexError:
            return aligned_bytes(self.entry.arena_bytes)


def raise_status(call: PythonCall, status: int) -> None:
    """Raises the error of a nonzero result of an entry function."""
    name, failures = call.signature.name, call.entry.failures
    if status == NO_MEMORY_STATUS:
        raise MemoryError(f"{name}: no memory for {call.entry.arena_bytes} bytes of scratch space")
    if not 1 <= status <= len(failures):
        raise ExecutionError(f"{name}: native code gave error {status}")
    text, cause = failures[status - 1].explain()
    if cause is not None and not isinstance(cause, Exception):
        raise cause
    raise ExecutionError(f"{name}: {text}") from cause


def pointers(addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    """The addresses as an array that native code reads."""
    return (ctypes.c_void_p * len(addresses))(*addresses)
