"""Arrays in the memory of devices, as far as Python makes and reads them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.backends.cpu.native.pjrt.abi import ELEMENT_TYPES, ErrorCode
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.backends.cpu.native.pjrt.records import Block, Buffer
from xlalite.hlo.types.dtype import DType
from xlalite.interop.jax.answers import Refusal
from xlalite.interop.jax.platform import number_of, platform
from xlalite.interop.jax.registry import function


def new_buffer(kind: int, dims: tuple[int, ...], number: int, fill: Callable[[npt.NDArray[Any]], object]) -> int:
    """A new buffer.

    Args:
        kind: Number of the type of its elements.
        dims: Its sizes.
        number: Number of the device.
        fill: Writes the elements.

    Raises:
        MemoryError: There is no memory for it.
    """
    dtype = _dtype(kind)
    size = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
    block = native().new_block(size)
    if block is None:
        raise MemoryError(f"there is no memory for {size} bytes")
    fill(_array(Block.from_address(block).data, size, dims, dtype))
    sizes = (ctypes.c_int64 * max(1, len(dims)))(*dims)
    place = platform().devices[number], platform().memories[number]
    address: int = native().new_buffer(block, size, kind, len(dims), ctypes.addressof(sizes), *place)
    return address


def array_of(address: int) -> npt.NDArray[Any]:
    """The array of a buffer, which must outlive it.

    Raises:
        Refusal: The buffer was deleted.
    """
    buffer = Buffer.from_address(address)
    if buffer.is_deleted:
        raise Refusal(ErrorCode.INVALID_ARGUMENT, "an argument was deleted or donated before")
    dims = _numbers(address + ctypes.sizeof(Buffer), buffer.rank)
    return _array(buffer.data, buffer.size_bytes, dims, _dtype(buffer.type))


@function("Client_CreateViewOfDeviceBuffer")
def _view(arguments: Any) -> None:
    """A copy: the other owner may free its memory when this returns."""
    dims, dtype = _numbers(arguments.dims, arguments.rank), _dtype(arguments.type)
    size = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
    source = _array(arguments.data, size, dims, dtype)
    arguments.buffer = new_buffer(arguments.type, dims, _number(arguments), lambda array: np.copyto(array, source))
    if arguments.on_delete:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(arguments.on_delete)(None, arguments.on_delete_arg)


def buffer_from_strided(arguments: Any) -> None:
    """A buffer of an array in the host's memory that is not dense."""
    dims, dtype = _numbers(arguments.dims, arguments.rank), _dtype(arguments.type)
    strides = _numbers(arguments.strides, arguments.num_strides)

    def fill(array: npt.NDArray[Any]) -> None:
        if array.size:
            last = [stride * (count - 1) for stride, count in zip(strides, dims, strict=True)]
            low, high = sum(min(0, offset) for offset in last), sum(max(0, offset) for offset in last) + dtype.itemsize
            memory: Any = (ctypes.c_char * (high - low)).from_address(arguments.data + low)
            array[...] = np.ndarray(dims, dtype, memory, -low, strides)

    arguments.buffer = new_buffer(arguments.type, dims, _number(arguments), fill)
    arguments.done_with_host_buffer = native().ready_event


def _number(arguments: Any) -> int:
    """The number of the device that is meant: by its memory, by itself, or the first one."""
    return number_of(arguments.memory or arguments.device or platform().devices[0])


def _dtype(kind: int) -> np.dtype[np.generic]:
    return DType.from_name(ELEMENT_TYPES[kind]).numpy


def _numbers(address: int | None, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address)) if address and count else ()


def _array(
    address: int | None, size: int, dims: tuple[int, ...], dtype: np.dtype[np.generic]
) -> npt.NDArray[np.generic]:
    if not size or not address:
        return np.empty(dims, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(dims, dtype, memory)
