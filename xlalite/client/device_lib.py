"""The computer's devices, for programs that ask before they open a session: TensorFlow's `device_lib`."""

from typing import Any

from xlalite.client.session import Session
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class LocalDevice:
    """A device of this computer, with TensorFlow's names of what is known of it."""

    name: str
    device_type: str
    memory_limit: int = 0
    incarnation: int = 0
    physical_device_desc: str = ""


def list_local_devices(session_config: Any = None) -> list[LocalDevice]:
    """The devices that a session of this configuration would have: processors only."""
    with Session(config=session_config) as session:
        devices = session.list_devices()
    return [LocalDevice(f"/device:{each.name.partition('/device:')[2]}", each.device_type) for each in devices]
