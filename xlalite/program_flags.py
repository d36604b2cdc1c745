"""The flags that programs in TensorFlow's manner define: `flags.DEFINE_string`, `flags.FLAGS`.

They are read from the command line when the first value is asked for, or by `app.run`.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from xlalite.hlo.errors import FlagError
from xlalite.hlo.records import dataclass


@dataclass(slots=True)
class _Flag:
    """A flag with its value."""

    name: str
    default: Any
    help: str
    read: Callable[[str], Any]
    is_switch: bool = False
    adds_up: bool = False
    is_required: bool = False
    value: Any = None
    present: int = 0

    def take(self, text: str) -> None:
        try:
            found = self.read(text)
        except ValueError as error:
            raise FlagError(f"flag --{self.name}={text}: {error}") from None
        self.value = [*self.value, found] if self.adds_up and self.present else [found] if self.adds_up else found
        self.present += 1


class FlagValues:
    """The defined flags as attributes."""

    def __init__(self) -> None:
        flags: dict[str, _Flag] = {}
        # Programs ask for `FLAGS.__flags`, too, which TensorFlow has.
        self.__dict__.update({"_flags": flags, "__flags": flags, "_parsed": False})

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Reads the flags of a command line; gives it back without them.

        Raises:
            FlagError: A value cannot be read, a flag is required but missing, or not defined and `known_only` not set.
        """
        rest = [argv[0]] if argv else []
        words = iter(argv[1:])
        for word in words:
            if word == "--":
                rest += words
                break
            if not word.startswith("-") or word == "-":
                rest.append(word)
            elif not self._read_one(word, words):
                if not known_only:
                    raise FlagError(f"Unknown command line flag {word.lstrip('-').partition('=')[0]!r}")
                rest.append(word)
        self.__dict__["_parsed"] = True
        for flag in self._flags.values():
            if flag.is_required and flag.value is None:
                raise FlagError(f"Flag --{flag.name} must have a value")
        return rest

    def _read_one(self, word: str, further: Iterator[str]) -> bool:
        """Reads one flag; whether it is defined."""
        name, equals, text = word.lstrip("-").partition("=")
        name = name.replace("-", "_") if name not in self._flags else name
        flag = self._flags.get(name)
        if flag is None:
            negated = self._flags.get(name.removeprefix("no")) if name.startswith("no") and not equals else None
            if negated is None or not negated.is_switch:
                return False
            negated.take("false")
        elif equals:
            flag.take(text)
        elif flag.is_switch:
            flag.take("true")
        else:
            value = next(further, None)
            if value is None:
                raise FlagError(f"Missing value for flag --{name}")
            flag.take(value)
        return True

    def __getattr__(self, name: str) -> Any:
        if name not in self._flags:
            raise AttributeError(f"FLAGS has no flag {name!r}")
        if not self._parsed:
            self(sys.argv, known_only=True)
        return self._flags[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"FLAGS has no flag {name!r}")
        self._flags[name].value = value

    def __getitem__(self, name: str) -> _Flag:
        return self._flags[name]  # type: ignore[no-any-return]  # only `define` puts something there

    def __contains__(self, name: str) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(self._flags)

    def __dir__(self) -> list[str]:
        return sorted(self._flags)

    def define(self, flag: _Flag) -> None:
        """Adds a flag, with its default as its value."""
        flag.value = flag.default
        self._flags[flag.name] = flag
        # What was read before the flag was defined may have it.
        self.__dict__["_parsed"] = False

    def is_parsed(self) -> bool:
        """Whether the command line was read."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Goes on without reading the command line."""
        self.__dict__["_parsed"] = True

    def flag_values_dict(self) -> dict[str, Any]:
        """All values by name."""
        return {name: getattr(self, name) for name in self._flags}

    def set_default(self, name: str, value: Any) -> None:
        """Changes a default, and the value if it is still that."""
        flag = self[name]
        flag.default = value
        if not flag.present:
            flag.value = value

    def __delattr__(self, name: str) -> None:
        self._flags.pop(name, None)


FLAGS: Final = FlagValues()


def _truth(text: str) -> bool:
    if text.lower() in ("true", "t", "1", "yes", "y"):
        return True
    if text.lower() in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError("expected true or false")


def _whole(text: str) -> int:
    return int(text, 0)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


def DEFINE_string(name: str, default: str | None, help: str = "", **unused: Any) -> None:
    """Defines a flag that is text."""
    FLAGS.define(_Flag(name, default, help, str))


def DEFINE_integer(name: str, default: int | None, help: str = "", **unused: Any) -> None:
    """Defines a flag that is an integer."""
    FLAGS.define(_Flag(name, default, help, _whole))


def DEFINE_float(name: str, default: float | None, help: str = "", **unused: Any) -> None:
    """Defines a flag that is a number."""
    FLAGS.define(_Flag(name, None if default is None else float(default), help, float))


def DEFINE_bool(name: str, default: bool | None, help: str = "", **unused: Any) -> None:
    """Defines a flag that is true or false: `--name`, `--noname` or `--name=true`."""
    FLAGS.define(_Flag(name, default, help, _truth, is_switch=True))


def DEFINE_enum(name: str, default: str | None, enum_values: Sequence[str], help: str = "", **unused: Any) -> None:
    """Defines a flag that is one of some words."""

    def read(text: str) -> str:
        if text not in enum_values:
            raise ValueError(f"expected one of {', '.join(enum_values)}")
        return text

    FLAGS.define(_Flag(name, default, help, read))


def DEFINE_list(name: str, default: Any, help: str = "", **unused: Any) -> None:
    """Defines a flag that is words with commas between them."""
    FLAGS.define(_Flag(name, _names(default) if isinstance(default, str) else default, help, _names))


def DEFINE_multi_string(name: str, default: Any, help: str = "", **unused: Any) -> None:
    """Defines a flag that may be given several times."""
    FLAGS.define(_Flag(name, [default] if isinstance(default, str) else default, help, str, adds_up=True))


def DEFINE_multi_integer(name: str, default: Any, help: str = "", **unused: Any) -> None:
    """Defines a flag that is an integer and may be given several times."""
    FLAGS.define(_Flag(name, [default] if isinstance(default, int) else default, help, _whole, adds_up=True))


DEFINE_boolean = DEFINE_bool


def mark_flag_as_required(flag_name: str, flag_values: FlagValues = FLAGS) -> None:
    """Makes reading the command line an error when the flag has no value."""
    flag_values[flag_name].is_required = True


def mark_flags_as_required(flag_names: Sequence[str], flag_values: FlagValues = FLAGS) -> None:
    """Marks several flags."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)
