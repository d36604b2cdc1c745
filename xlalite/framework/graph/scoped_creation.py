"""The scopes of a graph as users open them: names, control dependencies, devices and annotations of what is made."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from xlalite.framework.graph.device import DeviceSpec
from xlalite.framework.graph.errors import GraphError
from xlalite.framework.graph.scopes import ControlFrame, Scopes

if TYPE_CHECKING:
    from xlalite.framework.graph.operation import Operation

GRADIENT_OVERRIDE: Final = "_gradient_op_type"
"""The annotation with the name under which an operation's gradient is registered."""

_VALID_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


class ScopedCreation(ABC):
    """What makes operations under the scopes that are open in its thread, with names that are not taken."""

    def __init__(self) -> None:
        """No scope is open, no name is taken."""
        self._scopes = Scopes()
        self._name_counts: dict[str, int] = {}
        self._names_lock = threading.Lock()

    @abstractmethod
    def control_operation(self, element: Any) -> Operation:
        """The operation that an element names as a control input."""

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """`name` under the open name scope, with a number when it is taken; case does not distinguish names."""
        with self._names_lock:
            scoped = f"{self._scopes.name}/{name}" if self._scopes.name else name
            key = scoped.lower()
            count = self._name_counts.get(key, 0)
            if mark_as_used:
                self._name_counts[key] = count + 1
            if count == 0:
                return scoped
            while f"{key}_{count}" in self._name_counts:
                count += 1
            if mark_as_used:
                self._name_counts[f"{key}_{count}"] = 1
                self._name_counts[key] = count + 1
            return f"{scoped}_{count}"

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefixes names of operations created inside; yields the scope with a trailing `/`.

        A name that ends in `/` enters that scope again; None or an empty name returns to the root.
        """
        if name:
            checked_name(name, "scope")
        outer = self._scopes.name
        if not name:
            inner = ""
        elif name.endswith("/"):
            inner = name[:-1]
        else:
            inner = self.unique_name(name)
        self._scopes.name = inner
        try:
            yield inner + "/" if inner else ""
        finally:
            self._scopes.name = outer

    def get_name_scope(self) -> str:
        """The open name scope, without a trailing `/`."""
        return self._scopes.name

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Makes operations created inside wait for `control_inputs`; None lifts all outer dependencies."""
        outer = self._scopes.control
        if control_inputs is None:
            self._scopes.control = ()
        else:
            self._scopes.control = (*outer, ControlFrame(tuple(map(self.control_operation, control_inputs))))
        try:
            yield
        finally:
            self._scopes.control = outer

    @contextmanager
    def device(self, device: str | DeviceSpec | Callable[[Operation], Any] | None) -> Iterator[None]:
        """Requests a device for operations created inside; None lifts all outer requests."""
        outer = self._scopes.devices
        if device is None:
            self._scopes.devices = ()
        elif callable(device):
            self._scopes.devices = (*outer, device)
        else:
            self._scopes.devices = (*outer, str(DeviceSpec.from_string(str(device))))
        try:
            yield
        finally:
            self._scopes.devices = outer

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Requests for operations created inside the device of another, whatever the scopes around ask for."""
        with self.device(None), self.device(op.device):
            yield

    @contextmanager
    def attribute_scope(self, attributes: Mapping[str, Any]) -> Iterator[None]:
        """Annotates operations created inside; a callable value is asked per operation, None removes an outer value."""
        outer = self._scopes.attributes
        merged = {**outer, **attributes}
        self._scopes.attributes = {key: value for key, value in merged.items() if value is not None}
        try:
            yield
        finally:
            self._scopes.attributes = outer

    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> AbstractContextManager[None]:
        """Gives operations created inside, by type, the names under which their gradients are registered."""
        outer = self._scopes.attributes.get(GRADIENT_OVERRIDE)
        names = dict(op_type_map)

        def override(operation: Operation) -> str | None:
            inherited: str | None = None if outer is None else outer(operation)
            return names.get(operation.type, inherited)

        return self.attribute_scope({GRADIENT_OVERRIDE: override})

    @property
    def attribute_scope_values(self) -> Mapping[str, Any]:
        """The open attribute scopes of this thread, merged."""
        return self._scopes.attributes


def checked_name(name: str, of: str) -> str:
    """The name of an operation or scope.

    Raises:
        GraphError: It holds a character that is not allowed.
    """
    if not _VALID_NAME.match(name):
        raise GraphError(f"{name!r} is not a valid {of} name")
    return name
