"""Records as `dataclasses` makes them, in a tenth of the time.

`dataclasses` writes and compiles the methods of every class, which was half of an import. The methods of two classes
differ in names alone: here each is compiled once for a form and number of fields, and named for every class. That is
done for classes with slots, the usual ones; others, and declarations with something amiss, go to `dataclasses`.
"""

from __future__ import annotations

import dataclasses
import inspect
import reprlib
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

_Fields = Mapping[str, "dataclasses.Field[Any]"]
_FIELD = vars(dataclasses)["_FIELD"]  # what marks a field that is neither a ClassVar nor an InitVar
_MISSING = dataclasses.MISSING
_GIVEN_BY_FACTORY = object()
_OPTIONS = {"frozen", "slots", "eq", "repr", "kw_only"}
_OF_CLASSES = ("ClassVar", "typing.ClassVar")
_RARE = ("InitVar", "KW_ONLY", "dataclasses.")


def record(cls: type | None = None, /, **options: bool) -> Any:
    """A class with the methods and the meaning that `dataclasses.dataclass` gives it."""
    if cls is None:
        return lambda decorated: record(decorated, **options)
    fields = _fields(cls, options)
    if fields is None:
        return dataclasses.dataclass(**options)(cls)
    return _slotted(cls, fields, options)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = record


def _fields(cls: type, options: Mapping[str, bool]) -> _Fields | None:
    """The fields of a class that is made here, those of its bases first; None when `dataclasses` makes it."""
    frozen, own = options.get("frozen", False), vars(cls)
    if not options.get("slots") or options.keys() - _OPTIONS or "__slots__" in own:
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
        if not isinstance(annotation, str) or name == "self" or annotation.startswith(_RARE):
            return None
        if annotation.startswith(_OF_CLASSES):
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
    frozen, own = options.get("frozen", False), vars(cls)
    inherited = {name for base in cls.__mro__[1:-1] for name in _slots(base)}
    body = {
        name: value for name, value in own.items() if name not in fields and name not in ("__dict__", "__weakref__")
    }
    body |= {
        "__qualname__": cls.__qualname__,
        "__slots__": tuple(name for name in fields if name not in inherited),
        "__dataclass_fields__": fields,
        "__dataclass_params__": _params(frozen),
    }
    body.setdefault("__match_args__", tuple(one.name for one in fields.values() if one.init and not one.kw_only))
    methods = _Methods(cls, fields)
    methods.add(body, "__init__", _init_text(fields, frozen, hasattr(cls, "__post_init__")))
    if options.get("repr", True):
        body.setdefault("__repr__", _repr)
    if options.get("eq", True):
        has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
        compared = [index for index, one in enumerate(fields.values()) if one.compare]
        methods.add(body, "__eq__", _eq_text(compared))
        if not has_hash:
            body["__hash__"] = None
        if frozen and not has_hash:
            del body["__hash__"]
            hashed = [i for i, one in enumerate(fields.values()) if (one.compare if one.hash is None else one.hash)]
            methods.add(body, "__hash__", _hash_text(hashed))
    if frozen:
        body |= {"__setattr__": _refuse_setting, "__delattr__": _refuse_deleting}
        body.setdefault("__getstate__", _state)
        body.setdefault("__setstate__", _set_state)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    methods.reach_slots_of(made)
    return made


def _slots(cls: type) -> tuple[str, ...]:
    slots = vars(cls).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


@cache
def _params(frozen: bool) -> Any:
    """What `dataclasses` asks of the bases of a class that it makes: whether they are frozen."""
    example: Any = dataclasses.dataclass(type("Example", (), {"__doc__": ""}), frozen=frozen, eq=False, repr=False)
    return example.__dataclass_params__


class _Methods:
    """The methods of a class: common code in which its fields are named. In the texts, field i is `n{i}`.

    A frozen record is filled by the setters of its slots, `set{i}`.
    """

    def __init__(self, cls: type, fields: _Fields) -> None:
        self._owner = cls.__qualname__
        self._fields = fields
        self._names = {f"n{index}": name for index, name in enumerate(fields)}
        self._globals: dict[str, object] = {"__name__": cls.__module__, "given_by_factory": _GIVEN_BY_FACTORY}
        for index, one in enumerate(fields.values()):
            self._globals[f"default{index}"] = one.default
            self._globals[f"make{index}"] = one.default_factory

    def add(self, body: dict[str, Any], name: str, text: str) -> None:
        """A method of the class, if it has none of that name."""
        if name in body:
            return
        code, names = _compiled(text), self._names
        code = code.replace(
            co_names=tuple(names.get(one, one) for one in code.co_names),
            co_varnames=tuple(names.get(one, one) for one in code.co_varnames),
            co_qualname=f"{self._owner}.{name}",
        )
        body[name] = method = FunctionType(code, self._globals, name)
        if name != "__init__":
            return
        arguments = [one for one in self._fields.values() if one.init]
        optional = {one.name: _value_when_absent(one) for one in arguments if _is_optional(one)}
        method.__defaults__ = tuple(optional[one.name] for one in arguments if one.name in optional and not one.kw_only)
        method.__kwdefaults__ = {
            one.name: optional[one.name] for one in arguments if one.name in optional and one.kw_only
        }
        method.__annotations__ = {one.name: one.type for one in arguments} | {"return": None}

    def reach_slots_of(self, made: type) -> None:
        """Lets `__init__` write the slots of the class."""
        for index, name in enumerate(self._fields):
            self._globals[f"set{index}"] = getattr(made, name).__set__


def _value_when_absent(one: dataclasses.Field[Any]) -> object:
    return _GIVEN_BY_FACTORY if one.default is _MISSING else one.default


@cache
def _compiled(text: str) -> CodeType:
    names: dict[str, Callable[..., object]] = {}
    exec(text, names)
    (function,) = (value for value in names.values() if isinstance(value, FunctionType))
    return function.__code__


def _init_text(fields: _Fields, frozen: bool, ends_with_post_init: bool) -> str:
    numbered = tuple(enumerate(fields.values()))
    by_name = [f"n{i}" for i, one in numbered if one.init and one.kw_only]
    parameters = ["self", *(f"n{i}" for i, one in numbered if one.init and not one.kw_only)]
    parameters += ["*", *by_name] if by_name else []
    lines = [f"def __init__({', '.join(parameters)}):"]
    for i, one in numbered:
        value = _value_text(i, one)
        if value is not None:
            lines.append(f" set{i}(self, {value})" if frozen else f" self.n{i} = {value}")
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
