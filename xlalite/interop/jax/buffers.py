"""Arrays in the memory of devices, as far as Python makes and reads them."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.backends.cpu.native.pjrt.abi import ELEMENT_TYPES, ErrorCode
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.backends.cpu.native.pjrt.records import Buffer
from xlalite.backends.cpu.native.pjrt.writer import DELETED
from xlalite.hlo.types.dtype import DType
from xlalite.interop.jax.answers import Refusal
from xlalite.interop.jax.platform import other_of, platform
from xlalite.interop.jax.registry import function


def new_buffer(dims: Sequence[int], kind: int, memory: int, block: int | None = None) -> int:
    """A new buffer, whose elements are still to be written.

    Args:
        dims: Its sizes.
        kind: Number of the type of its elements.
        memory: Where it is.
        block: Its memory, which it takes over; None for memory of its own.

    Raises:
        MemoryError: There is no memory for it.
    """
    size = math.prod(dims) * _dtype(kind).itemsize
    block = native().new_block(size) if block is None else block
    sizes = (ctypes.c_int64 * max(1, len(dims)))(*dims)
    address: int | None = block and native().new_buffer(block, size, kind, len(dims), ctypes.addressof(sizes), memory)
    if address is None:
        raise MemoryError(f"there is no memory for {size} bytes")
    return address


@contextmanager
def held(buffers: Iterable[int]) -> Iterator[None]:
    """Keeps the memory of buffers, whoever deletes them meanwhile.

    Raises:
        Refusal: One was deleted before.
    """
    kept: list[int] = []
    try:
        for buffer in buffers:
            if not native().hold(buffer):
                raise Refusal(ErrorCode.INVALID_ARGUMENT, DELETED)
            kept.append(buffer)
        yield
    finally:
        for buffer in kept:
            native().let_go(buffer)


def array_of(address: int) -> npt.NDArray[Any]:
    """The array of a buffer, which must be held as long as that is used."""
    buffer = Buffer.from_address(address)
    dims = numbers_at(address + ctypes.sizeof(Buffer), buffer.rank)
    return _array(buffer.data, buffer.size_bytes, dims, _dtype(buffer.type))


@function("Client_CreateViewOfDeviceBuffer")
def _view(arguments: Any) -> None:
    """A copy: the other owner may free its memory when this returns."""
    dims, dtype = numbers_at(arguments.dims, arguments.rank), _dtype(arguments.type)
    array = _array(arguments.data, math.prod(dims) * dtype.itemsize, dims, dtype)
    arguments.buffer = _buffer_of(array, arguments)
    if arguments.on_delete:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(arguments.on_delete)(None, arguments.on_delete_arg)


def buffer_from_strided(arguments: Any) -> None:
    """A buffer of an array in the host's memory that is not dense."""
    dims, dtype = numbers_at(arguments.dims, arguments.rank), _dtype(arguments.type)
    strides = numbers_at(arguments.strides, arguments.num_strides)
    array: npt.NDArray[Any] = np.empty(dims if 0 in dims else (), dtype)
    if 0 not in dims:
        last = [stride * (count - 1) for stride, count in zip(strides, dims, strict=True)]
        low, high = sum(min(0, offset) for offset in last), sum(max(0, offset) for offset in last) + dtype.itemsize
        memory: Any = (ctypes.c_char * (high - low)).from_address(arguments.data + low)
        array = np.ndarray(dims, dtype, memory, -low, strides)
    arguments.buffer = _buffer_of(array, arguments)
    arguments.done_with_host_buffer = native().ready_event


def _buffer_of(array: npt.NDArray[Any], arguments: Any) -> int:
    """A copy of an array where it is wanted: in a memory, on a device, or on the first one."""
    memory = arguments.memory or other_of(arguments.device or platform().devices[0])
    buffer = new_buffer(array.shape, arguments.type, memory)
    np.copyto(array_of(buffer), array)
    return buffer


def numbers_at(address: int | None, count: int) -> tuple[int, ...]:
    """The integers at an address."""
    return tuple((ctypes.c_int64 * count).from_address(address)) if address and count else ()


def _dtype(kind: int) -> np.dtype[np.generic]:
    return DType.from_name(ELEMENT_TYPES[kind]).numpy


def _array(
    address: int | None, size: int, dims: tuple[int, ...], dtype: np.dtype[np.generic]
) -> npt.NDArray[np.generic]:
    if not size or not address:
        return np.empty(dims, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(dims, dtype, memory)
