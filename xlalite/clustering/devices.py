"""Which device requests can be met by one cluster.

A cluster runs on one device of each kind at most; requests that leave something open go along with any that fill it in.
XLA's own devices do not mix with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache

from xlalite.framework.device import DeviceSpec

_MIXING_TYPES = frozenset({None, "CPU", "GPU"})


def merge_devices(first: frozenset[str], second: frozenset[str]) -> frozenset[str] | None:
    """All requests of two clusters; None when no one cluster can meet them."""
    merged = first | second
    if len(merged) < 2:
        return merged
    return merged if _are_compatible(merged) else None


def are_compatible(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether one cluster can meet both sets of requests."""
    return merge_devices(first, second) is not None


def device_requests(device: str) -> frozenset[str]:
    """The requests of one operation; an empty name requests nothing."""
    return frozenset({device}) if device else frozenset()


@lru_cache(maxsize=4096)
def _are_compatible(devices: frozenset[str]) -> bool:
    specs = [DeviceSpec.from_string(device) for device in sorted(devices)]
    kinds = {spec.device_type for spec in specs}
    if len(kinds - {None}) > 1 and not kinds <= _MIXING_TYPES:
        return False
    if not _agree(specs, ("job", "replica", "task")):
        return False
    return all(_agree([spec for spec in specs if spec.device_type == kind], ("device_index",)) for kind in kinds)


def _agree(specs: Iterable[DeviceSpec], names: tuple[str, ...]) -> bool:
    chosen = [field.name for field in fields(DeviceSpec) if field.name in names]
    return all(len({getattr(spec, name) for spec in specs} - {None}) <= 1 for name in chosen)
