"""Records as `dataclasses` makes them, in a tenth of the time.

`dataclasses` writes and compiles the methods of every class, which was half of an import. The methods of two classes
differ in names alone: here each is compiled once for a form and number of fields, and named for a class when somebody
asks for it; most classes have few instances, which are made without. That is done for the options that are usual;
others, and declarations with something amiss, go to `dataclasses`.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import reprlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

_Fields = Mapping[str, "dataclasses.Field[Any]"]
_FIELD = vars(dataclasses)["_FIELD"]  # what marks a field that is neither a ClassVar nor an InitVar
_MISSING = dataclasses.MISSING
_GIVEN_BY_FACTORY = object()
_OPTIONS = {"frozen", "slots", "eq", "repr", "kw_only"}
_WRITES = {
    (True, True): "set{i}(self, {value})",  # by the setter of its slot
    (True, False): "write(self, name{i}, {value})",
    (False, True): "self.n{i} = {value}",
    (False, False): "self.n{i} = {value}",
}
"""How `__init__` writes a field, frozen or not, in a slot or not."""
_FEW_INSTANCES = 8
"""So many are made field by field, at a tenth of the price of an `__init__`."""

_OF_CLASSES = ("ClassVar", "typing.ClassVar")
_RARE = ("InitVar", "KW_ONLY")


def record(cls: type | None = None, /, **options: bool) -> Any:
    """A class with the methods and the meaning that `dataclasses.dataclass` gives it."""
    if cls is None:
        return lambda decorated: record(decorated, **options)
    fields = _fields(cls, options)
    if fields is None:
        return dataclasses.dataclass(**options)(cls)
    return (_slotted if options.get("slots") else _completed)(cls, fields, options)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = record


def _fields(cls: type, options: Mapping[str, bool]) -> _Fields | None:
    """The fields of a class that is made here, those of its bases first; None when `dataclasses` makes it."""
    frozen, own = options.get("frozen", False), vars(cls)
    if options.keys() - _OPTIONS or "__slots__" in own:
        return None
    if frozen and ("__setattr__" in own or "__delattr__" in own):
        return None
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        inherited: dict[str, Any] = getattr(base, "__dataclass_fields__", {})
        if any(one._field_type is not _FIELD for one in inherited.values()):
            return None
        if hasattr(base, "__dataclass_params__") and base.__dataclass_params__.frozen is not frozen:
            return None
        fields.update(inherited)
    for name, annotation in inspect.get_annotations(cls).items():
        text = str(annotation)
        if name == "self" or text.startswith(_RARE) or "dataclasses." in text:
            return None
        if text.startswith(_OF_CLASSES):
            continue
        given = own.get(name, _MISSING)
        one: Any = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        one.name, one.type, one._field_type = name, annotation, _FIELD
        if one.kw_only is _MISSING:
            one.kw_only = options.get("kw_only", False)
        fields[name] = one
    return fields if _in_order(fields) else None


def _in_order(fields: _Fields) -> bool:
    """Whether no argument without a default follows one with a default, and no default can change."""
    optional = False
    for one in fields.values():
        if one.default is not _MISSING and type(one.default).__hash__ is None:
            return False
        if one.init and not one.kw_only:
            if _is_optional(one):
                optional = True
            elif optional:
                return False
    return True


def _is_optional(one: dataclasses.Field[Any]) -> bool:
    return one.default is not _MISSING or one.default_factory is not _MISSING


def _slotted(cls: type, fields: _Fields, options: Mapping[str, bool]) -> type:
    """The class with slots and methods: another class, since slots are there from the beginning."""
    inherited = {name for base in cls.__mro__[1:-1] for name in _slots(base)}
    dropped = {*fields, "__dict__", "__weakref__"}
    methods = _Methods(cls, fields, options)
    made = type(cls)(
        cls.__name__,
        cls.__bases__,
        {
            **{name: value for name, value in vars(cls).items() if name not in dropped},
            "__qualname__": cls.__qualname__,
            "__slots__": tuple(name for name in fields if name not in inherited),
            **methods.added,
        },
    )
    methods.owner = made
    return made


def _completed(cls: type, fields: _Fields, options: Mapping[str, bool]) -> type:
    """The class itself, with methods."""
    for name, one in fields.items():
        if isinstance(vars(cls).get(name), dataclasses.Field):
            if one.default is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, one.default)
    for name, value in _Methods(cls, fields, options).added.items():
        setattr(cls, name, value)
    abc.update_abstractmethods(cls)
    return cls


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


@cache
def _params(frozen: bool) -> Any:
    """What `dataclasses` asks of the bases of a class that it makes: whether they are frozen."""
    left_out: Any = dict.fromkeys(("init", "eq", "repr", "match_args"), False)
    # Without a docstring it would be given its signature, which takes longer than all else.
    example: Any = dataclasses.dataclass(type("Example", (), {"__doc__": "Nothing."}), frozen=frozen, **left_out)
    return example.__dataclass_params__


class _Methods:
    """The methods of a class: common code in which its fields are named. In the texts, field i is `n{i}`.

    Attributes:
        added: What the class gets besides what it has.
        owner: The class that gets it.
    """

    def __init__(self, cls: type, fields: _Fields, options: Mapping[str, bool]) -> None:
        own, self.owner = vars(cls), cls
        self._fields = fields
        self._frozen, self._slots = options.get("frozen", False), options.get("slots", False)
        self.added: dict[str, Any] = {"__dataclass_fields__": fields, "__dataclass_params__": _params(self._frozen)}
        self._positional = tuple(one.name for one in fields.values() if one.init and not one.kw_only)
        usual: dict[str, object] = {"__match_args__": self._positional, "__init__": _Late("__init__", self)}
        if options.get("repr", True):
            usual["__repr__"] = _repr
        if options.get("eq", True):
            usual["__eq__"] = _Late("__eq__", self)
            if "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own):
                self.added["__hash__"] = _Late("__hash__", self) if self._frozen else None
        if self._frozen:
            self.added |= {"__setattr__": _refuse_setting, "__delattr__": _refuse_deleting}
            if self._slots:
                usual |= {"__getstate__": _state, "__setstate__": _set_state}
        self.added |= {name: value for name, value in usual.items() if name not in own}

    def fill(self, instance: Any, given: tuple[object, ...], named: Mapping[str, object]) -> bool:
        """Does what `__init__` does; nothing, and says so, if the arguments do not fit."""
        fields, values = self._fields, dict(zip(self._positional, given, strict=False))
        if len(given) > len(values) or any(one in values or one not in fields or not fields[one].init for one in named):
            return False
        values |= named
        filled: dict[str, object] = {}
        for name, one in fields.items():
            if name in values:
                filled[name] = values[name]
            elif one.default_factory is not _MISSING:
                filled[name] = one.default_factory()
            elif one.default is not _MISSING:
                filled[name] = one.default
            elif one.init:
                return False
        write = object.__setattr__ if self._frozen else setattr
        for name, value in filled.items():
            write(instance, name, value)
        if hasattr(self.owner, "__post_init__"):
            instance.__post_init__()
        return True

    def written(self, name: str) -> FunctionType:
        """One of the methods."""
        if name == "__init__":
            return self._initializer()
        numbered = tuple(enumerate(self._fields.values()))
        if name == "__eq__":
            return self._method(name, _eq_text([i for i, one in numbered if one.compare]), {})
        hashed = [i for i, one in numbered if (one.compare if one.hash is None else one.hash)]
        return self._method(name, _hash_text(hashed), {})

    def _method(self, name: str, text: str, used: dict[str, object]) -> FunctionType:
        code, names = _compiled(text), {f"n{index}": field for index, field in enumerate(self._fields)}
        code = code.replace(
            co_names=tuple(names.get(one, one) for one in code.co_names),
            co_varnames=tuple(names.get(one, one) for one in code.co_varnames),
            co_qualname=f"{self.owner.__qualname__}.{name}",
        )
        return FunctionType(code, {"__name__": self.owner.__module__, **used}, name)

    def _initializer(self) -> FunctionType:
        used: dict[str, object] = {"given_by_factory": _GIVEN_BY_FACTORY, "write": object.__setattr__}
        for index, one in enumerate(self._fields.values()):
            used |= {f"name{index}": one.name, f"default{index}": one.default, f"make{index}": one.default_factory}
            if self._slots:
                used[f"set{index}"] = getattr(self.owner, one.name).__set__
        text = _init_text(self._fields, _WRITES[self._frozen, self._slots], hasattr(self.owner, "__post_init__"))
        method = self._method("__init__", text, used)
        arguments = [one for one in self._fields.values() if one.init]
        optional = {one.name: _value_when_absent(one) for one in arguments if _is_optional(one)}
        method.__defaults__ = tuple(optional[one.name] for one in arguments if one.name in optional and not one.kw_only)
        method.__kwdefaults__ = {
            one.name: optional[one.name] for one in arguments if one.name in optional and one.kw_only
        }
        method.__annotations__ = {one.name: one.type for one in arguments} | {"return": None}
        return method


class _Late:
    """A method of a record in its class, which takes its place when somebody first asks for it: few are.

    `__init__` does so for those who look at it, and after a few instances.
    """

    __slots__ = ("_instances", "_methods", "_name")

    def __init__(self, name: str, methods: _Methods) -> None:
        self._name, self._methods = name, methods
        self._instances = 0 if name == "__init__" else _FEW_INSTANCES

    def __get__(self, instance: object, owner: type) -> object:
        if instance is not None and self._instances < _FEW_INSTANCES:
            self._instances += 1
            return partial(self._fill, instance)
        return self._placed().__get__(instance, owner)

    def _fill(self, instance: object, /, *given: object, **named: object) -> None:
        if not self._methods.fill(instance, given, named):
            self._placed()(instance, *given, **named)  # says what is wrong

    def _placed(self) -> FunctionType:
        method = self._methods.written(self._name)
        setattr(self._methods.owner, self._name, method)
        return method


def _value_when_absent(one: dataclasses.Field[Any]) -> object:
    return _GIVEN_BY_FACTORY if one.default is _MISSING else one.default


@cache
def _compiled(text: str) -> CodeType:
    names: dict[str, Callable[..., object]] = {}
    exec(text, names)
    (function,) = (value for value in names.values() if isinstance(value, FunctionType))
    return function.__code__


def _init_text(fields: _Fields, write: str, ends_with_post_init: bool) -> str:
    numbered = tuple(enumerate(fields.values()))
    by_name = [f"n{i}" for i, one in numbered if one.init and one.kw_only]
    parameters = ["self", *(f"n{i}" for i, one in numbered if one.init and not one.kw_only)]
    parameters += ["*", *by_name] if by_name else []
    lines = [f"def __init__({', '.join(parameters)}):"]
    for i, one in numbered:
        value = _value_text(i, one)
        if value is not None:
            lines.append(" " + write.format(i=i, value=value))
    lines.append(" self.__post_init__()" if ends_with_post_init else " return None")
    return "\n".join(lines)


def _value_text(i: int, one: dataclasses.Field[Any]) -> str | None:
    """What a field gets; None when it gets nothing yet."""
    if one.default_factory is not _MISSING:
        return f"make{i}() if n{i} is given_by_factory else n{i}" if one.init else f"make{i}()"
    if one.init:
        return f"n{i}"
    return None if one.default is _MISSING else f"default{i}"


def _eq_text(compared: list[int]) -> str:
    own, others = _tuple_text("self", compared), _tuple_text("other", compared)
    return (
        "def __eq__(self, other):\n"
        f" if other.__class__ is self.__class__: return {own} == {others}\n"
        " return NotImplemented"
    )


def _hash_text(hashed: list[int]) -> str:
    return f"def __hash__(self): return hash({_tuple_text('self', hashed)})"


def _tuple_text(owner: str, indices: list[int]) -> str:
    return "(" + "".join(f"{owner}.n{i}, " for i in indices) + ")"


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_setting(self: Any, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deleting(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """An ordinary class may derive from a record, and its instances have attributes of their own."""
    return "__dataclass_fields__" in vars(type(self)) or name in type(self).__dataclass_fields__


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
