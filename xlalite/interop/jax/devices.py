"""A program on several devices: the same code for each, which exchange through the house's simulated devices."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.backends.cpu.native.pjrt.abi import ELEMENT_TYPES, ErrorCode
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.backends.cpu.native.pjrt.records import Block, Buffer
from xlalite.hlo.evaluation.spmd import evaluate_spmd
from xlalite.hlo.types.dtype import DType
from xlalite.interop.jax.answers import Refusal
from xlalite.interop.jax.executables import LoadedProgram, program_at
from xlalite.interop.jax.platform import platform

_POINTER = ctypes.sizeof(ctypes.c_void_p)


def execute_on_devices(arguments: Any) -> None:
    """Runs a program on all its devices.

    Raises:
        Refusal: An argument was deleted.
    """
    program = program_at(arguments.executable)
    count = arguments.num_devices
    given = [
        [_array(_entry(row, index)) for index in range(arguments.num_arguments)]
        for row in (_entry(arguments.argument_lists, device) for device in range(count))
    ]
    run: Any = program.executable
    results = evaluate_spmd(program.module, given, run=run)
    for device, value in enumerate(results):
        arrays = value if isinstance(value, tuple) else (value,)
        for index, array in enumerate(arrays):
            row = _entry(arguments.output_lists, device)
            buffer = _new_buffer(program, np.ascontiguousarray(array), index, device)
            ctypes.c_void_p.from_address(row + index * _POINTER).value = buffer
        if arguments.complete_events:
            ctypes.c_void_p.from_address(arguments.complete_events + device * _POINTER).value = native().ready_event


def _entry(table: int, index: int) -> int:
    return ctypes.c_void_p.from_address(table + index * _POINTER).value or 0


def _array(address: int) -> npt.NDArray[Any]:
    buffer = Buffer.from_address(address)
    if buffer.is_deleted:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, "an argument was deleted or donated before")
    dims = (ctypes.c_int64 * buffer.rank).from_address(address + ctypes.sizeof(Buffer))
    dtype = DType.from_name(ELEMENT_TYPES[buffer.type]).numpy
    memory: Any = (ctypes.c_char * max(1, buffer.size_bytes)).from_address(buffer.data)
    return np.ndarray(tuple(dims), dtype, memory)


def _new_buffer(program: LoadedProgram, array: npt.NDArray[Any], index: int, device: int) -> int:
    block = native().new_block(array.nbytes)
    if block is None:
        raise MemoryError(f"there is no memory for {array.nbytes} bytes")
    ctypes.memmove(Block.from_address(block).data, array.ctypes.data, array.nbytes)
    number = program.options.device_numbers[device]
    dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    address: int = native().new_buffer(
        block,
        array.nbytes,
        program.types[index],
        array.ndim,
        ctypes.addressof(dims),
        platform().devices[number],
        platform().memories[number],
    )
    return address
