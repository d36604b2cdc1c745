"""Divides the steps of a plan among devices, and puts sends and receives between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from xlalite.clustering.dependencies import Dependencies
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.records import dataclass
from xlalite.runtime.device_plan import ReceiveStep, SendStep, Transfer
from xlalite.runtime.operation_step import PlanStep

if TYPE_CHECKING:
    from xlalite.clustering.clusters import Cluster


@dataclass(slots=True)
class DeviceParts:
    """The steps of each device, with the registers that each step uses.

    Attributes:
        steps: The steps of each device in order.
        used: The registers of those.
        homes: The device of each register that a step writes.
    """

    steps: dict[str, list[PlanStep]] = field(default_factory=dict)
    used: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    homes: dict[int, str] = field(default_factory=dict)

    def add(self, device: str, step: PlanStep, used: tuple[int, ...]) -> None:
        """Adds a step at the end of a device's."""
        self.steps.setdefault(device, []).append(step)
        self.used.setdefault(device, []).append(used)


def divide(
    pieces: Sequence[tuple[Operation | Cluster, PlanStep]],
    device_of: Mapping[Operation, str],
    number_of: Callable[[Tensor], int],
    dependencies: Dependencies,
    meeting: int,
) -> DeviceParts:
    """The steps of each device.

    A value is sent right after the step that makes it, and received right before the first step that uses it.

    Args:
        pieces: Operations and clusters in the order of the plan, with their steps.
        device_of: Where each operation lies.
        number_of: The register of a tensor.
        dependencies: What must run before what.
        meeting: The register of the step's rendezvous.
    """
    members = [_members(part, dependencies) for part, _ in pieces]
    places = [device_of[operations[0]] for operations in members]
    made_by = {tensor: index for index, (part, _) in enumerate(pieces) for tensor in part.outputs}
    run_by = {operation: index for index, operations in enumerate(members) for operation in operations}
    sends: dict[int, list[SendStep]] = {}
    receives: dict[int, list[ReceiveStep]] = {}
    sent: set[tuple[Tensor | Operation, str]] = set()

    def send(what: Tensor | Operation, source: int | None, user: int) -> None:
        if source is None or places[source] == places[user] or (what, places[user]) in sent:
            return
        sent.add((what, places[user]))
        register = number_of(what) if isinstance(what, Tensor) else None
        transfer = Transfer(what, places[source], places[user])
        sends.setdefault(source, []).append(SendStep(transfer, len(sent), register, meeting))
        receives.setdefault(user, []).append(ReceiveStep(transfer, len(sent), register, meeting))

    for index, (part, _) in enumerate(pieces):
        for tensor in part.inputs:
            send(tensor, made_by.get(tensor), index)
        given = {tensor.op for tensor in part.inputs}
        for before in _before(members[index], dependencies):
            if before not in given:
                send(before, run_by.get(before), index)
    parts = DeviceParts()
    for index, (part, step) in enumerate(pieces):
        written = tuple(number_of(tensor) for tensor in part.outputs)
        parts.homes.update(dict.fromkeys(written, places[index]))
        for receive in receives.get(index, ()):
            parts.add(places[index], receive, receive.registers)
        parts.add(places[index], step, (*(number_of(tensor) for tensor in part.inputs), *written))
        for sending in sends.get(index, ()):
            parts.add(places[index], sending, sending.registers)
    return parts


def _members(part: Operation | Cluster, dependencies: Dependencies) -> tuple[Operation, ...]:
    """A part's own operations, without the copies of small constants that it may have."""
    if isinstance(part, Operation):
        return (part,)
    own = tuple(operation for operation in part.operations if operation not in dependencies.copied)
    return own or part.operations


def _before(members: Sequence[Operation], dependencies: Dependencies) -> Iterator[Operation]:
    """The operations outside that must have run before some are, each once."""
    own = frozenset(members)
    positions = (dependencies.position[operation] for operation in members)
    found = dict.fromkeys(before for position in positions for before in dependencies.predecessors[position])
    return (dependencies.operations[i] for i in found if dependencies.operations[i] not in own)
