"""What surrounds an operation at its creation: the name, device, control and attribute scopes of one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from xlalite.framework.graph.device import merge_device_names
from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.framework.graph.operation import Operation

DeviceFunction: TypeAlias = "Callable[[Operation], Any]"
AttributeValue: TypeAlias = Any


@dataclass(slots=True)
class ControlFrame:
    """One `control_dependencies` block.

    Attributes:
        inputs: Operations that what is created inside must wait for.
        created: Operations created inside; whoever consumes one of them waits already.
    """

    inputs: tuple[Operation, ...]
    created: set[Operation] = field(default_factory=set)


class Scopes(threading.local):
    """The open scopes of a graph; every thread starts with none."""

    def __init__(self) -> None:
        self.name = ""
        self.devices: tuple[str | DeviceFunction, ...] = ()
        self.control: tuple[ControlFrame, ...] = ()
        self.attributes: Mapping[str, AttributeValue] = {}

    def control_inputs_for(self, producers: Sequence[Operation]) -> tuple[Operation, ...]:
        """Control inputs of a new operation; those that its data inputs imply are left out."""
        chosen: dict[Operation, None] = {}
        for frame in self.control:
            if not any(producer in frame.created for producer in producers):
                chosen.update((op, None) for op in frame.inputs if op not in producers)
        return tuple(chosen)

    def record_created(self, operation: Operation) -> None:
        """Notes in all open control blocks that `operation` was created inside."""
        for frame in self.control:
            frame.created.add(operation)

    def device_for(self, operation: Operation) -> str:
        """The device that the open scopes request; the innermost one decides each field."""
        device = ""
        for scope in self.devices:
            requested = scope(operation) if callable(scope) else scope
            device = merge_device_names(device, str(requested)) if requested is not None else device
        return device

    def attributes_for(self, operation: Operation) -> dict[str, AttributeValue]:
        """Values of the open attribute scopes; a callable is asked for each operation and may say None for no value."""
        found = {key: value(operation) if callable(value) else value for key, value in self.attributes.items()}
        return {key: value for key, value in found.items() if value is not None}
