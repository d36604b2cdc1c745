"""A program on several devices: the same code for each, which exchange through the house's simulated devices."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ErrorCode
from xlalite.backends.cpu.native.pjrt.execute_functions import DONATED_TWICE, WRONG_ARGUMENTS
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.backends.cpu.native.pjrt.records import Buffer
from xlalite.interop.jax.answers import Refusal
from xlalite.interop.jax.buffers import array_of, held, new_buffer, numbers_at
from xlalite.interop.jax.executables import LoadedProgram, program_at
from xlalite.interop.jax.platform import platform, pointer_array
from xlalite.interop.jax.shardings import Cut

_POINTER = ctypes.sizeof(ctypes.c_void_p)


def execute_on_devices(arguments: Any) -> None:
    """Runs a program on all its devices.

    Raises:
        Refusal: An argument was deleted, is not what the program expects, or is donated and given a second time.
    """
    program, count = program_at(arguments.executable), arguments.num_devices
    numbers = program.options.device_numbers
    if count != len(numbers):
        wrong = f"{program.name}: the program runs on {len(numbers)} devices, and arguments are given for {count}"
        raise Refusal(ErrorCode.INVALID_ARGUMENT, wrong)
    rows = [numbers_at(_entry(arguments.argument_lists, device), arguments.num_arguments) for device in range(count)]
    options = ARGUMENTS["ExecuteOptions"].from_address(arguments.options)
    kept = numbers_at(options.kept, options.num_kept)
    results = _run(program, rows, kept) if program.cuts is None else _run_whole(program, *program.cuts, rows)
    for device, buffers in enumerate(results):
        target = _entry(arguments.output_lists, device)
        ctypes.memmove(target, pointer_array(buffers), len(buffers) * _POINTER)
        if arguments.complete_events:
            ctypes.c_void_p.from_address(arguments.complete_events + device * _POINTER).value = native().ready_event


def _run(program: LoadedProgram, rows: Sequence[Sequence[int]], kept: Sequence[int]) -> list[list[int]]:
    """The buffers of the results of each device for those of its arguments; some arguments cannot be donated."""
    places = program.options.device_numbers
    with held(address for row in rows for address in row), ExitStack() as undo:
        for row in rows:
            _check(program, row, kept)
        results = [_new_results(program, row, kept, place, undo) for row, place in zip(rows, places, strict=True)]
        given = [_arrays(program, row, buffers) for row, buffers in zip(rows, results, strict=True)]
        for buffers, value in zip(results, program.executable.run_on_devices(given), strict=True):
            arrays: Any = value if isinstance(value, tuple) else (value,)
            for buffer, array in zip(buffers, arrays, strict=True):
                _store(array, array_of(buffer))
        undo.pop_all()
    return results


def _run_whole(
    program: LoadedProgram, given: Sequence[Cut], made: Sequence[Cut], rows: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The same for a program that takes what the devices have together."""
    signature, places = program.call.signature, program.options.device_numbers
    sizes = [cut.part(shape).size_bytes for cut, shape in zip(given, signature.inputs, strict=True)]
    with held(address for row in rows for address in row), ExitStack() as undo:
        if any([Buffer.from_address(each).size_bytes for each in row] != sizes for row in rows):
            raise Refusal(ErrorCode.INVALID_ARGUMENT, WRONG_ARGUMENTS)
        columns = zip(given, signature.inputs, zip(*rows, strict=True), strict=True)
        arrays = [cut.joined([array_of(each) for each in column], shape) for cut, shape, column in columns]
        if program.is_mixed:
            value: Any = program.executable.run_on_devices([arrays] * len(rows))[0]
        else:
            value = program.executable(*arrays)
        values = value if isinstance(value, tuple) else (value,)
        results = [_new_results(program, row, (), place, undo) for row, place in zip(rows, places, strict=True)]
        for device, buffers in enumerate(results):
            described = zip(buffers, values, made, signature.outputs, strict=True)
            for buffer, array, cut, shape in described:
                np.copyto(array_of(buffer), np.asarray(array)[cut.place(device, shape)])
        undo.pop_all()
    return results


def _check(program: LoadedProgram, row: Sequence[int], kept: Sequence[int]) -> None:
    """Refuses arguments of a device with which the program could not run."""
    signature = program.call.signature
    if [shape.size_bytes for shape in signature.inputs] != [Buffer.from_address(each).size_bytes for each in row]:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, WRONG_ARGUMENTS)
    donated = [row[source] for source, _ in signature.donations if source not in kept]
    if sum(address in donated for address in row) != len(donated):
        raise Refusal(ErrorCode.INVALID_ARGUMENT, DONATED_TWICE)


def _new_results(
    program: LoadedProgram, row: Sequence[int], kept: Sequence[int], number: int, undo: ExitStack
) -> list[int]:
    """Buffers for the results of a device; where an argument is donated, with its elements."""
    sources, results = {target: source for source, target in program.call.signature.donations}, list[int]()
    described = zip(program.outputs, program.types, program.memory_kinds, strict=True)
    for target, (shape, kind, memory_kind) in enumerate(described):
        source, block = sources.get(target), None
        if source is not None:
            block = native().donate(row[source], source in kept)
            if block is None:
                raise MemoryError(f"{program.name}: there is no memory for a copy of argument {source}")
        results.append(new_buffer(shape.dims, kind, platform().memories[number][memory_kind], block))
        undo.callback(native().drop_buffer, results[-1])
    return results


def _arrays(program: LoadedProgram, row: Sequence[int], results: Sequence[int]) -> list[Any]:
    """The arguments of a device; those that are donated lie where their results will."""
    arrays = [array_of(address) for address in row]
    for source, target in program.call.signature.donations:
        arrays[source] = array_of(results[target])
    return arrays


def _store(array: Any, target: Any) -> None:
    if array.ctypes.data != target.ctypes.data:
        np.copyto(target, array)


def _entry(table: int, index: int) -> int:
    return ctypes.c_void_p.from_address(table + index * _POINTER).value or 0
