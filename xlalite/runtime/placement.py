"""On which of a session's processors each operation of a step runs.

A request decides where there is one. Otherwise an operation on a variable lies where the variable lies, one that asks
for a shape lies where the value is, what has no inputs lies with its only user, and all else lies on the first device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from xlalite.framework.graph.device import DeviceSpec
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.operation import Operation
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision

_HOST: Final = "/job:localhost/replica:0/task:0/device:CPU:"
_HERE: Final = {"job": ("localhost", "local"), "replica": (0,), "task": (0,)}
_PROCESSORS: Final = ("CPU", "XLA_CPU", None)


def device_names(count: int) -> tuple[str, ...]:
    """The full names of a session's devices."""
    return tuple(f"{_HOST}{number}" for number in range(max(1, count)))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where operations run.

    Attributes:
        device: The full name of each operation's device.
        decisions: The requests that could not be met.
    """

    device: Mapping[Operation, str]
    decisions: tuple[Decision, ...] = ()


@dataclass(frozen=True, slots=True)
class Placer:
    """Places the operations of steps.

    Attributes:
        devices: The full names of the devices.
        is_soft: Whether requests that cannot be met are, on the first device.
    """

    devices: tuple[str, ...]
    is_soft: bool = False

    def place(self, operations: Sequence[Operation]) -> Placement:
        """The devices of operations, each of which stands behind those it depends on.

        Raises:
            InvalidArgumentError: An operation asks for a device that there is not, and placement is not soft.
        """
        device: dict[Operation, str] = {}
        decisions: list[Decision] = []
        for operation in operations:
            first = operation.inputs[0] if operation.inputs else None
            if first is not None and first.handle_data is not None and first.op in device:
                device[operation] = device[first.op]
                continue
            requested = self._requested(operation, decisions)
            if requested is None and first is not None and operation.spec.is_metadata:
                requested = device.get(first.op)
            device[operation] = requested or self.devices[0]
        for operation in reversed(operations):
            if (user := _only_user(operation)) is not None and not operation.device:
                device[operation] = device.get(user, device[operation])
        return Placement(device, tuple(decisions))

    def _requested(self, operation: Operation, decisions: list[Decision]) -> str | None:
        """The first device that an operation's request fits; None if it requests nothing."""
        spec = DeviceSpec.from_string(operation.device)
        if spec == DeviceSpec():
            return None
        is_here = all(getattr(spec, field) in (None, *values) for field, values in _HERE.items())
        index = spec.device_index or 0
        if is_here and spec.device_type in _PROCESSORS and index < len(self.devices):
            return self.devices[index]
        if not self.is_soft:
            raise InvalidArgumentError(
                None,
                operation,
                f"Cannot assign a device for operation {operation.name}: it was explicitly assigned to "
                f"{operation.device} but available devices are [ {', '.join(self.devices)} ]. Make sure the device "
                "specification refers to a valid device.",
            )
        decisions.append(
            Decision("placement", (operation.name,), self.devices[0], f"soft placement: no device {operation.device}")
        )
        return self.devices[0]


def _only_user(operation: Operation) -> Operation | None:
    """The only user of the only output of an operation without inputs; None for all others and for variables."""
    if operation.inputs or operation.control_inputs or len(operation.outputs) != 1:
        return None
    users = operation.outputs[0].consumers()
    return users[0] if len(users) == 1 and operation.outputs[0].handle_data is None else None
