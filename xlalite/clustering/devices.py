"""Which device requests can be met by one cluster.

A cluster runs on one device of each kind at most; requests that leave something open go along with any that fill it in.
XLA's own devices do not mix with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from xlalite.framework.graph.device import DeviceSpec

_MIXING_TYPES = frozenset({None, "CPU", "GPU"})


def are_compatible(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether one cluster can meet both sets of requests."""
    merged = first | second
    return len(merged) < 2 or _can_all_be_met(merged)


def requests(devices: Iterable[str]) -> frozenset[str]:
    """What the device names of operations request; an empty name requests nothing."""
    return frozenset(filter(None, devices))


@lru_cache(maxsize=4096)
def _can_all_be_met(devices: frozenset[str]) -> bool:
    specs = [DeviceSpec.from_string(device) for device in sorted(devices)]
    kinds = {spec.device_type for spec in specs}
    if len(kinds - {None}) > 1 and not kinds <= _MIXING_TYPES:
        return False
    if not _agree(specs, ("job", "replica", "task")):
        return False
    return all(_agree([spec for spec in specs if spec.device_type == kind], ("device_index",)) for kind in kinds)


def _agree(specs: Sequence[DeviceSpec], fields: tuple[str, ...]) -> bool:
    """Whether no two names fill in one of the fields differently."""
    return all(len({getattr(spec, field) for spec in specs} - {None}) <= 1 for field in fields)
