"""The client, its devices and its memories: functions of the table that jaxlib calls at its start."""

from __future__ import annotations

import ctypes
from typing import Any

from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.pjrt.abi import ErrorCode
from xlalite.backends.cpu.native.pjrt.native import native
from xlalite.interop.jax.answers import Refusal, clear_after, named_values, put_bytes, put_list, put_text
from xlalite.interop.jax.platform import MEMORY_KINDS, number_of, other_of, platform, platform_name
from xlalite.interop.jax.registry import function

_NEWEST_STABLEHLO = (1, 17, 0)
_OLDEST_STABLEHLO = (0, 9, 0)
_XLA_VERSION = 2


@function("Plugin_Initialize")
def _nothing(arguments: Any) -> None:
    pass


@function("Plugin_Attributes")
def _plugin_attributes(arguments: Any) -> None:
    values = _attributes()
    arguments.attributes, arguments.num_attributes = ctypes.addressof(values), len(values)


@once
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
    put_list(arguments, platform().memory_list, 0, len(platform().memories) * len(MEMORY_KINDS))


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
    put_list(arguments, platform().memory_list, number_of(arguments.device) * len(MEMORY_KINDS), len(MEMORY_KINDS))


@function("Device_DefaultMemory")
def _default_memory(arguments: Any) -> None:
    arguments.memory = other_of(arguments.device)


@function("Device_MemoryStats")
def _memory_statistics(arguments: Any) -> None:
    clear_after(arguments, "device")
    arguments.in_use = native().shared.bytes_in_use


@function("Memory_Id")
def _memory_number(arguments: Any) -> None:
    arguments.id = number_of(arguments.memory)


@function("Memory_Kind_Id")
def _memory_kind_number(arguments: Any) -> None:
    arguments.id = number_of(arguments.memory) % len(MEMORY_KINDS)


@function("Memory_DebugString", "Memory_ToString")
def _memory_text(arguments: Any) -> None:
    number, kind = divmod(number_of(arguments.memory), len(MEMORY_KINDS))
    put_text(arguments, f"{MEMORY_KINDS[kind]} memory of XlaliteDevice {number}")


@function("Memory_AddressableByDevices")
def _memory_devices(arguments: Any) -> None:
    put_list(arguments, platform().device_list, number_of(other_of(arguments.memory)), 1)
