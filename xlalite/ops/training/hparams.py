"""Named settings of a model that may be changed by text: `name=value,other=[1,2]`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from xlalite.hlo.wording import did_you_mean

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>\w+)(?:\[(?P<index>\d+)\])?\s*=\s*(?:\[(?P<list>[^\]]*)\]|(?P<value>[^,\[]*))\s*(?:,|$)"
)
_SWITCHES = {"true": True, "1": True, "false": False, "0": False}


class HParams:
    """Hyperparameters as attributes; each keeps the type of its first value."""

    def __init__(self, hparam_def: None = None, model_structure: Any = None, **hparams: Any) -> None:
        """Takes the names and values; a tuple or list holds values of one type."""
        self._names: list[str] = []
        for name, value in hparams.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter.

        Raises:
            ValueError: it is there already, or its list is empty.
        """
        if hasattr(self, name):
            raise ValueError(f"hyperparameter {name!r} is there already, or is a method's name")
        if isinstance(value, list | tuple) and not value:
            raise ValueError(f"hyperparameter {name!r} is an empty list, which says no type")
        self._names.append(name)
        setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Gives a hyperparameter another value of its type.

        Raises:
            KeyError: there is no such hyperparameter.
            ValueError: the value has another type.
        """
        old = self._require(name)
        if isinstance(old, list):
            given = list(value) if isinstance(value, list | tuple) else [value]
            setattr(self, name, [_of_type(name, old[0], each) for each in given])
        else:
            setattr(self, name, _of_type(name, old, value))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if it is there."""
        if name in self._names:
            self._names.remove(name)
            delattr(self, name)

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets those that the dictionary names; gives itself."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values: str) -> HParams:
        """Sets what a text says, as `name=value,other=[1,2],list[0]=3`; gives itself.

        Raises:
            KeyError: there is no hyperparameter of a name.
            ValueError: the text cannot be read, or a value has another type.
        """
        position = 0
        while position < len(values):
            match = _ASSIGNMENT.match(values, position)
            if match is None or match.end() == position:
                raise ValueError(f"hyperparameters: cannot read {values[position:]!r}; expected name=value,...")
            self._assign(match)
            position = match.end()
        return self

    def parse_json(self, values_json: str) -> HParams:
        """Sets what a JSON object says; gives itself."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent: int | None = None, sort_keys: bool = False) -> str:
        """All of them as a JSON object."""
        return json.dumps(self.values(), indent=indent, sort_keys=sort_keys)

    def values(self) -> dict[str, Any]:
        """All of them by name."""
        return {name: getattr(self, name) for name in self._names}

    def get(self, key: str, default: Any = None) -> Any:
        """One of them, or the default."""
        return getattr(self, key) if key in self._names else default

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __repr__(self) -> str:
        return f"HParams({sorted(self.values().items())})"

    def _require(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(f"there is no hyperparameter {name!r}{did_you_mean(name, self._names)}")
        return getattr(self, name)

    def _assign(self, match: re.Match[str]) -> None:
        name, old = match["name"], self._require(match["name"])
        if match["index"] is None:
            self.set_hparam(
                name, [each.strip() for each in match["list"].split(",")] if match["list"] else match["value"]
            )
            return
        if not isinstance(old, list) or int(match["index"]) >= len(old):
            raise ValueError(f"hyperparameter {name!r} has no element {match['index']}")
        changed = list(old)
        changed[int(match["index"])] = match["value"]
        self.set_hparam(name, changed)


def _of_type(name: str, old: Any, value: Any) -> Any:
    """The value in the type of the old one; text is read."""
    if old is None or value is None:
        return value
    wanted = type(old)
    if wanted is bool:
        found = _SWITCHES.get(str(value).lower().strip())
        if found is None:
            raise ValueError(f"hyperparameter {name!r}: expected true or false, found {value!r}")
        return found
    if isinstance(value, bool) or (wanted is int and isinstance(value, float) and value != int(value)):
        raise ValueError(f"hyperparameter {name!r}: expected {wanted.__name__}, found {value!r}")
    try:
        return wanted(value)
    except (TypeError, ValueError):
        raise ValueError(f"hyperparameter {name!r}: expected {wanted.__name__}, found {value!r}") from None
