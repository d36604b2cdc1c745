"""The platform's name, devices and memories, and how handles in the C API stand for them."""

from __future__ import annotations

import ctypes
import os
import re

from xlalite.backends.cpu.native.once import once
from xlalite.backends.cpu.native.pjrt.abi import ELEMENT_TYPES
from xlalite.backends.cpu.native.pjrt.native import make_immortal, native
from xlalite.backends.cpu.native.pjrt.records import Place
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.dtype import DType

NAME_VARIABLE = "XLALITE_JAX_PLATFORM_NAME"
"""Environment variable with another name for the platform: some programs ask for `cpu`, jax's tests among them."""

MEMORY_KIND = b"device"
_DEVICE_COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d{1,4})")


def platform_name() -> str:
    """The name of the platform, as devices and lowering rules say it."""
    return os.environ.get(NAME_VARIABLE, "xlalite")


@dataclass(frozen=True)
class Platform:
    """The devices of this process.

    Attributes:
        devices: Handles of the devices.
        memories: Handles of their memories.
        device_list: The devices as an array for C.
        memory_list: The memories as an array for C.
    """

    devices: tuple[int, ...]
    memories: tuple[int, ...]
    device_list: ctypes.Array[ctypes.c_void_p]
    memory_list: ctypes.Array[ctypes.c_void_p]


@once
def platform() -> Platform:
    """The platform of this process; `XLA_FLAGS=--xla_force_host_platform_device_count=N` gives it more devices."""
    match = _DEVICE_COUNT.search(os.environ.get("XLA_FLAGS", ""))
    count = max(1, int(match[1])) if match else 1
    places = (Place * (2 * count))()
    addresses = [ctypes.addressof(places) + ctypes.sizeof(Place) * index for index in range(2 * count)]
    devices, memories = addresses[:count], addresses[count:]
    for number in range(count):
        places[number] = Place(number, memories[number])
        places[count + number] = Place(number, devices[number])
    items = (ctypes.c_int64 * len(ELEMENT_TYPES))(*map(_item_bytes, ELEMENT_TYPES))
    kind = ctypes.create_string_buffer(MEMORY_KIND)
    shared = native().shared
    shared.item_bytes, shared.default_device = ctypes.addressof(items), devices[0]
    shared.memory_kind, shared.memory_kind_size = ctypes.addressof(kind), len(MEMORY_KIND)
    found = Platform(tuple(devices), tuple(memories), pointer_array(devices), pointer_array(memories))
    make_immortal((found, places, items, kind))
    return found


def number_of(place: int) -> int:
    """The number of a device or memory."""
    return int(Place.from_address(place).number)


def pointer_array(addresses: list[int]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses as an array for C."""
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


def _item_bytes(name: str) -> int:
    try:
        return DType.from_name(name).size_bytes
    except (KeyError, ValueError):
        return 0
