"""The client, its devices and its memories: functions of the table that jaxlib calls at its start."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from xlalite.backends.cpu.native.pjrt.abi import ELEMENT_TYPES, ErrorCode
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.backends.cpu.native.pjrt.records import Block, Place
from xlalite.hlo.types.dtype import DType
from xlalite.interop.jax.answers import Refusal, named_values, put_bytes, put_list, put_text
from xlalite.interop.jax.platform import MEMORY_KIND, number_of, platform, platform_name

_NEWEST_STABLEHLO = (1, 17, 0)
_OLDEST_STABLEHLO = (0, 9, 0)
_XLA_VERSION = 2

FUNCTIONS: dict[str, Callable[[Any], None]] = {}


def function(name: str, *others: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Says which functions of the table a Python function is: it fills in the structure of the arguments."""

    def register(implementation: Callable[[Any], None]) -> Callable[[Any], None]:
        FUNCTIONS.update(dict.fromkeys((name, *others), implementation))
        return implementation

    return register


@function("Plugin_Initialize")
def _nothing(arguments: Any) -> None:
    pass


@function("Plugin_Attributes")
def _plugin_attributes(arguments: Any) -> None:
    values = _attributes()
    arguments.attributes, arguments.num_attributes = ctypes.addressof(values), len(values)


@functools.cache
def _attributes() -> ctypes.Array[Any]:
    from jaxlib.mlir.dialects import stablehlo

    theirs = tuple(map(int, stablehlo.get_current_version().split(".")))
    return named_values(
        {
            "stablehlo_current_version": min(theirs, _NEWEST_STABLEHLO),
            "stablehlo_minimum_version": _OLDEST_STABLEHLO,
            "xla_version": _XLA_VERSION,
        }
    )


@function("Client_Create")
def _create(arguments: Any) -> None:
    arguments.client = platform().devices[0]


@function("Client_TopologyDescription")
def _topology(arguments: Any) -> None:
    arguments.topology = platform().devices[0]


@function("Client_PlatformName", "TopologyDescription_PlatformName")
def _platform_name(arguments: Any) -> None:
    put_text(arguments, platform_name())


@function("Client_PlatformVersion", "TopologyDescription_PlatformVersion")
def _platform_version(arguments: Any) -> None:
    from xlalite import __version__

    put_text(arguments, f"xlalite {__version__}")


@function("Client_ProcessIndex", "DeviceDescription_ProcessIndex")
def _process(arguments: Any) -> None:
    arguments.process_index = 0


@function("Client_Devices", "Client_AddressableDevices", "TopologyDescription_GetDeviceDescriptions")
def _devices(arguments: Any) -> None:
    put_list(arguments, platform().device_list, 0, len(platform().devices))


@function("Client_AddressableMemories")
def _memories(arguments: Any) -> None:
    put_list(arguments, platform().memory_list, 0, len(platform().memories))


@function("Client_LookupDevice", "Client_LookupAddressableDevice")
def _lookup(arguments: Any) -> None:
    if not 0 <= arguments.id < len(platform().devices):
        raise Refusal(ErrorCode.NOT_FOUND, f"there is no device {arguments.id}, only {len(platform().devices)} of them")
    arguments.device = platform().devices[arguments.id]


@function("Client_DefaultDeviceAssignment")
def _default_assignment(arguments: Any) -> None:
    numbers = (ctypes.c_int32 * arguments.size).from_address(arguments.assignment)
    numbers[:] = [number % len(platform().devices) for number in range(arguments.size)]


@function("TopologyDescription_Attributes", "DeviceDescription_Attributes")
def _no_attributes(arguments: Any) -> None:
    arguments.attributes, arguments.num_attributes = None, 0


@function("TopologyDescription_Serialize")
def _serialize_topology(arguments: Any) -> None:
    put_bytes(arguments, platform_name().encode())


@function("Device_GetDescription")
def _description(arguments: Any) -> None:
    arguments.description = arguments.device


@function("Device_IsAddressable")
def _addressable(arguments: Any) -> None:
    arguments.is_addressable = 1


@function("Device_LocalHardwareId")
def _device_number(arguments: Any) -> None:
    arguments.id = number_of(arguments.device)


@function("DeviceDescription_Id")
def _described_number(arguments: Any) -> None:
    arguments.id = number_of(arguments.description)


@function("DeviceDescription_Kind")
def _kind(arguments: Any) -> None:
    put_text(arguments, "cpu")


@function("DeviceDescription_DebugString", "DeviceDescription_ToString")
def _device_text(arguments: Any) -> None:
    put_text(arguments, f"XlaliteDevice(id={number_of(arguments.description)})")


@function("Device_AddressableMemories")
def _device_memories(arguments: Any) -> None:
    put_list(arguments, platform().memory_list, number_of(arguments.device), 1)


@function("Device_DefaultMemory")
def _default_memory(arguments: Any) -> None:
    arguments.memory = Place.from_address(arguments.device).other


@function("Device_MemoryStats")
def _memory_statistics(arguments: Any) -> None:
    arguments.in_use = native().shared.bytes_in_use


@function("Memory_Id")
def _memory_number(arguments: Any) -> None:
    arguments.id = number_of(arguments.memory)


@function("Memory_Kind_Id")
def _memory_kind_number(arguments: Any) -> None:
    arguments.id = 1


@function("Memory_DebugString", "Memory_ToString")
def _memory_text(arguments: Any) -> None:
    put_text(arguments, f"{MEMORY_KIND.decode()} memory of XlaliteDevice {number_of(arguments.memory)}")


@function("Memory_AddressableByDevices")
def _memory_devices(arguments: Any) -> None:
    put_list(arguments, platform().device_list, number_of(arguments.memory), 1)


@function("Client_CreateViewOfDeviceBuffer")
def _view(arguments: Any) -> None:
    """A copy: the other owner may free its memory when this returns."""
    dims = (ctypes.c_int64 * arguments.rank).from_address(arguments.dims or 0) if arguments.rank else ()
    dtype = DType.from_name(ELEMENT_TYPES[arguments.type]).numpy
    size = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize
    arguments.buffer = _buffer_with(arguments, size, lambda target: ctypes.memmove(target, arguments.data, size))
    if arguments.on_delete:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(arguments.on_delete)(None, arguments.on_delete_arg)


def buffer_from_strided(arguments: Any) -> None:
    """A buffer of an array in the host's memory that is not dense."""
    dims = tuple((ctypes.c_int64 * arguments.rank).from_address(arguments.dims))
    strides = tuple((ctypes.c_int64 * arguments.num_strides).from_address(arguments.strides))
    dtype = DType.from_name(ELEMENT_TYPES[arguments.type]).numpy
    size = int(np.prod(dims, dtype=np.int64)) * dtype.itemsize

    def fill(target: int) -> None:
        if not size:
            return
        last = [stride * (count - 1) for stride, count in zip(strides, dims, strict=True)]
        low, high = sum(min(0, offset) for offset in last), sum(max(0, offset) for offset in last) + dtype.itemsize
        memory: Any = (ctypes.c_char * (high - low)).from_address(arguments.data + low)
        target_memory: Any = (ctypes.c_char * size).from_address(target)
        copy = np.ndarray(dims, dtype, target_memory)
        copy[...] = np.ndarray(dims, dtype, memory, -low, strides)

    arguments.buffer = _buffer_with(arguments, size, fill)
    arguments.done_with_host_buffer = native().ready_event


def _buffer_with(arguments: Any, size: int, fill: Callable[[int], object]) -> int:
    """A new buffer with the type, sizes and place of the arguments."""
    block = native().new_block(size)
    if block is None:
        raise MemoryError(f"there is no memory for {size} bytes")
    fill(Block.from_address(block).data)
    number = number_of(arguments.memory or arguments.device or platform().devices[0])
    place = platform().devices[number], platform().memories[number]
    address: int = native().new_buffer(block, size, arguments.type, arguments.rank, arguments.dims, *place)
    return address
