"""Who takes part in a collective: the meanings that `replica_groups` has, and pairs of senders and receivers."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.surroundings.devices import Device


class GroupMode(enum.Enum):
    """What the numbers in groups are, and who belongs to a group."""

    REPLICAS = "replica"
    """Replicas; members are those in the same partition."""
    PARTITIONS = "partition"
    """Partitions; members are those of the same replica."""
    WHOLE_REPLICAS = "replica of all partitions"
    """Replicas; members are all their partitions."""
    DEVICES = "device"
    """Ranks: replica * num_partitions + partition."""

    def number(self, device: Device) -> int:
        """How groups call a device."""
        numbers = {GroupMode.PARTITIONS: device.partition, GroupMode.DEVICES: device.rank}
        return numbers.get(self, device.replica)

    def count(self, device: Device) -> int:
        """How many numbers there are."""
        counts = {
            GroupMode.PARTITIONS: device.num_partitions,
            GroupMode.DEVICES: device.replica_count * device.num_partitions,
        }
        return counts.get(self, device.replica_count)

    def ranks(self, number: int, device: Device) -> Sequence[int]:
        """The members that a number stands for, seen from a device."""
        match self:
            case GroupMode.REPLICAS:
                return (number * device.num_partitions + device.partition,)
            case GroupMode.PARTITIONS:
                return (device.replica * device.num_partitions + number,)
            case GroupMode.WHOLE_REPLICAS:
                return range(number * device.num_partitions, (number + 1) * device.num_partitions)
            case GroupMode.DEVICES:
                return (number,)


def group_mode(instruction: HloInstruction, *, channel_means_partitions: bool) -> GroupMode:
    """What groups of an instruction mean.

    Args:
        instruction: A collective.
        channel_means_partitions: Whether groups are partitions as soon as there is a channel. That is so for exchanges;
            reductions and gathers include all partitions of the replicas then.

    Raises:
        EvaluationError: It has global device numbers but no channel.
    """
    attrs = instruction.attrs
    if getattr(attrs, "use_global_device_ids", False):
        if attrs.channel_id is None:
            raise _error(instruction, "has use_global_device_ids, expected a channel_id too")
        return GroupMode.DEVICES
    if attrs.channel_id is None:
        return GroupMode.REPLICAS
    return GroupMode.PARTITIONS if channel_means_partitions else GroupMode.WHOLE_REPLICAS


_EXCHANGES = frozenset({"all-to-all", "ragged-all-to-all", "collective-broadcast", "collective-permute"})
"""Groups of these are of partitions as soon as there is a channel; reductions and gathers include all partitions."""


def attendance(instruction: HloInstruction, device: Device) -> tuple[list[int], int | None]:
    """(ranks that meet for a collective, seen from a device; a place among them).

    The place is the device's own, or that of the one that sends to it in a permutation, None if nobody does. A device
    that takes no part meets nobody.

    Raises:
        EvaluationError: The groups, or pairs, are wrong.
    """
    opcode = instruction.opcode.removesuffix("-start")
    mode = group_mode(instruction, channel_means_partitions=opcode in _EXCHANGES)
    if opcode == "collective-permute":
        return sources_of(instruction, device, mode)
    ranks = members(instruction, device, mode, all_belong=opcode != "collective-broadcast")
    return ranks, ranks.index(device.rank) if ranks else None


def members(instruction: HloInstruction, device: Device, mode: GroupMode, *, all_belong: bool = True) -> list[int]:
    """The ranks in the group of a device, in the group's order; none if it belongs to none.

    Raises:
        EvaluationError: A group names what does not exist, groups overlap, or the device is in none but must be in one.
    """
    count = mode.count(device)
    groups = [group for group in instruction.attrs.replica_groups.groups if group] or [tuple(range(count))]
    named = [number for group in groups for number in group]
    check_numbers(instruction, named, count, mode)
    if len(set(named)) != len(named):
        twice = sorted({number for number in named if named.count(number) > 1})
        raise _error(instruction, f"has {mode.value} {twice[0]} in two groups")
    own = mode.number(device)
    if own not in named:
        if all_belong:
            raise _error(instruction, f"has {mode.value} {own} in no group, which {device} belongs to")
        return []
    group = next(group for group in groups if own in group)
    return [rank for number in group for rank in mode.ranks(number, device)]


def check_numbers(instruction: HloInstruction, numbers: Sequence[int], count: int, mode: GroupMode) -> None:
    """Raises `EvaluationError` for numbers that stand for no device."""
    for number in numbers:
        if not 0 <= number < count:
            raise _error(instruction, f"needs {mode.value} {number}, there are {count}")


def sources_of(instruction: HloInstruction, device: Device, mode: GroupMode) -> tuple[list[int], int | None]:
    """(ranks that take part in a permutation with a device, the place among them of the one that sends to it or None).

    Raises:
        EvaluationError: A pair names what does not exist, or two pairs have one source or one target.
    """
    pairs = instruction.attrs.source_target_pairs
    for what, ends in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        check_numbers(instruction, ends, mode.count(device), mode)
        if len(set(ends)) != len(ends):
            raise _error(instruction, f"has a {mode.value} that is the {what} of two pairs: {sorted(ends)}")
    numbers = sorted({number for pair in pairs for number in pair})
    own = mode.number(device)
    if own not in numbers:
        return [], None
    source = next((numbers.index(source) for source, target in pairs if target == own), None)
    return [rank for number in numbers for rank in mode.ranks(number, device)], source


def _error(instruction: HloInstruction, message: str) -> EvaluationError:
    return EvaluationError(f"{instruction.opcode} (%{instruction.name}) {message}")
