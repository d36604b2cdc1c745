"""A program on several devices: the same code for each, which exchange through the house's simulated devices."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np

from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.interop.jax.buffers import array_of, new_buffer
from xlalite.interop.jax.executables import program_at

_POINTER = ctypes.sizeof(ctypes.c_void_p)


def execute_on_devices(arguments: Any) -> None:
    """Runs a program on all its devices.

    Raises:
        Refusal: An argument was deleted.
    """
    program = program_at(arguments.executable)
    count = arguments.num_devices
    given = [
        [array_of(_entry(row, index)) for index in range(arguments.num_arguments)]
        for row in (_entry(arguments.argument_lists, device) for device in range(count))
    ]
    results = program.executable.run_on_devices(given)
    for device, value in enumerate(results):
        arrays: Any = value if isinstance(value, tuple) else (value,)
        for index, array in enumerate(arrays):
            row = _entry(arguments.output_lists, device)
            number = program.options.device_numbers[device]
            buffer = new_buffer(program.types[index], array.shape, number, partial(np.copyto, src=array))
            ctypes.c_void_p.from_address(row + index * _POINTER).value = buffer
        if arguments.complete_events:
            ctypes.c_void_p.from_address(arguments.complete_events + device * _POINTER).value = native().ready_event


def _entry(table: int, index: int) -> int:
    return ctypes.c_void_p.from_address(table + index * _POINTER).value or 0
