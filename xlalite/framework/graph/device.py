"""Device names such as `/job:worker/task:1/device:CPU:0`, whole or in part, and how nested scopes combine them."""

from __future__ import annotations

from dataclasses import fields

from xlalite.framework.graph.errors import GraphError
from xlalite.hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device name; a field that is None is left open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @staticmethod
    def from_string(text: str) -> DeviceSpec:
        """Reads a full or partial name, including the short forms `/cpu:0` and `/gpu:*`.

        Raises:
            GraphError: a part of the name is not understood.
        """
        found: dict[str, str | int | None] = {}
        for part in filter(None, text.split("/")):
            found.update(_read_part(part, text))
        return DeviceSpec(**found)  # type: ignore[arg-type]

    def merged_into(self, outer: DeviceSpec) -> DeviceSpec:
        """This name with the fields it leaves open taken from `outer`."""
        chosen = {
            field.name: getattr(outer, field.name) if getattr(self, field.name) is None else getattr(self, field.name)
            for field in fields(self)
        }
        return DeviceSpec(**chosen)

    def __str__(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        text += "" if self.replica is None else f"/replica:{self.replica}"
        text += "" if self.task is None else f"/task:{self.task}"
        if self.device_type is None:
            return text
        return f"{text}/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}"


def merge_device_names(outer: str, inner: str) -> str:
    """The name that an inner scope gives inside an outer one: field by field, the inner one wins."""
    return str(DeviceSpec.from_string(inner).merged_into(DeviceSpec.from_string(outer)))


def _read_part(part: str, whole: str) -> dict[str, str | int | None]:
    pieces = part.split(":")
    key = pieces[0].lower()
    if key == "job" and len(pieces) == 2:
        return {"job": pieces[1]}
    if key in ("replica", "task") and len(pieces) == 2 and pieces[1].isdigit():
        return {key: int(pieces[1])}
    if key == "device":
        pieces = pieces[1:]
    index = pieces[1] if len(pieces) == 2 else "*"
    if len(pieces) not in (1, 2) or not pieces[0].replace("_", "").isalnum() or not (index == "*" or index.isdigit()):
        raise GraphError(
            f"device name {whole!r}: cannot read {part!r}; expected job:NAME, replica:N, task:N or device:TYPE:N"
        )
    return {"device_type": pieces[0].upper(), "device_index": None if index == "*" else int(index)}
