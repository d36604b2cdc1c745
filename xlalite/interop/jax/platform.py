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

MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""The kinds of memory of a device, the usual one first. They are the same memory, as they are on jaxlib's cpu."""

_DEVICE_COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d{1,4})")


def platform_name() -> str:
    """The name of the platform, as devices and lowering rules say it."""
    return os.environ.get(NAME_VARIABLE, "xlalite")


@dataclass(frozen=True)
class Platform:
    """The devices of this process.

    Attributes:
        devices: Handles of the devices.
        memories: Handles of the memories of each by their kind.
        device_list: The devices as an array for C.
        memory_list: The memories as an array for C, those of a device side by side.
    """

    devices: tuple[int, ...]
    memories: tuple[dict[str, int], ...]
    device_list: ctypes.Array[ctypes.c_void_p]
    memory_list: ctypes.Array[ctypes.c_void_p]


@once
def platform() -> Platform:
    """The platform of this process; `XLA_FLAGS=--xla_force_host_platform_device_count=N` gives it more devices."""
    match = _DEVICE_COUNT.search(os.environ.get("XLA_FLAGS", ""))
    count = max(1, int(match[1])) if match else 1
    total = count * (1 + len(MEMORY_KINDS))
    places = (Place * total)()
    addresses = [ctypes.addressof(places) + ctypes.sizeof(Place) * index for index in range(total)]
    devices, all_memories = addresses[:count], addresses[count:]
    kinds = [ctypes.create_string_buffer(kind.encode()) for kind in MEMORY_KINDS]
    memories: list[dict[str, int]] = []
    for number, device in enumerate(devices):
        first = number * len(kinds)
        memories.append(dict(zip(MEMORY_KINDS, all_memories[first:], strict=False)))
        places[number] = Place(number, all_memories[first])
        for place, kind in enumerate(kinds, first):
            places[count + place] = Place(place, device, ctypes.addressof(kind), len(kind) - 1)
    items = (ctypes.c_int64 * len(ELEMENT_TYPES))(*map(_item_bytes, ELEMENT_TYPES))
    shared = native().shared
    shared.item_bytes, shared.default_device = ctypes.addressof(items), devices[0]
    found = Platform(tuple(devices), tuple(memories), pointer_array(devices), pointer_array(all_memories))
    make_immortal((found, places, items, kinds))
    return found


def number_of(place: int) -> int:
    """The number of a device or memory."""
    return int(Place.from_address(place).number)


def other_of(place: int) -> int:
    """The device of a memory, or the usual memory of a device."""
    return int(Place.from_address(place).other)


def pointer_array(addresses: list[int]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses as an array for C."""
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)


def _item_bytes(name: str) -> int:
    try:
        return DType.from_name(name).size_bytes
    except (KeyError, ValueError):
        return 0
