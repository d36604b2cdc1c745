"""Records mean what `dataclasses` makes of the same declaration."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import InitVar, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from xlalite.hlo import records

T = TypeVar("T")
Decorator = Callable[..., Any]


class Empty:
    """No field."""


class Pair:
    """Two fields, one with a default."""

    kind: ClassVar[str] = "pair"
    first: int
    second: Any = 2.5

    def total(self) -> float:
        return self.first + self.second


class Made:
    """Defaults that are made, and fields that are not given."""

    items: list[int] = field(default_factory=list)
    size: int = field(init=False, default=7)
    table: dict[str, int] = field(init=False, default_factory=dict)
    given: int = 3


class Hidden:
    """Fields that do not count everywhere."""

    name: str
    note: str = field(default="", compare=False)
    secret: str = field(default="x", repr=False)
    unhashed: tuple[int, ...] = field(default=(), hash=False)


class Named:
    """Fields by name, in front of one by position."""

    by_name: int = field(kw_only=True)
    position: int = 4


class Finished:
    """Something is done at the end."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


class OwnMethods:
    """Methods that are written out stay."""

    value: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and abs(self.value) == abs(other.value)

    def __repr__(self) -> str:
        return f"<{self.value}>"


class OwnHash:
    """A hash that is written out stays, too."""

    value: int

    def __hash__(self) -> int:
        return 5


class Of(Generic[T]):
    """A generic class."""

    value: T


DECLARATIONS: list[tuple[type, list[tuple[tuple[Any, ...], dict[str, Any]]]]] = [
    (Empty, [((), {})]),
    (Pair, [((1,), {}), ((1, 2.5), {}), ((), {"second": 3, "first": 1}), ((1, float("nan")), {}), ((1, []), {})]),
    (Made, [((), {}), (([1],), {}), (([1], 3), {}), ((), {"given": 4})]),
    (Hidden, [(("a",), {}), (("a", "b"), {}), (("a", "b", "c"), {}), (("a",), {"unhashed": (1,)})]),
    (Named, [((), {"by_name": 1}), ((5,), {"by_name": 1})]),
    (Finished, [((1, 2), {}), ((2, 2), {})]),
    (OwnMethods, [((1,), {}), ((-1,), {}), ((2,), {})]),
    (OwnHash, [((1,), {}), ((2,), {})]),
    (Of, [((1,), {}), (("a",), {})]),
]
OPTIONS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True},
    {"slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True},
    {},
    {"frozen": True, "slots": True, "order": True},
]


def outcome(action: Callable[[], object]) -> object:
    """What an action gives, or how it fails."""
    try:
        return action()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), str(error)


def declared(declaration: type, decorate: Decorator, options: dict[str, bool]) -> Any:
    """A declaration, decorated; copied with its fields, which decorators write in."""
    body = {key: copy.copy(value) for key, value in vars(declaration).items() if key not in ("__dict__", "__weakref__")}
    bases = getattr(declaration, "__orig_bases__", declaration.__bases__)
    body.pop("__orig_bases__", None)
    copied = type(declaration.__name__, declaration.__bases__, {**body, "__orig_bases__": bases})
    return decorate(**options)(copied)


def observed(cls: Any, all_arguments: list[tuple[tuple[Any, ...], dict[str, Any]]]) -> dict[str, object]:
    """What can be seen of a class and of what is made of it, before anybody looks at its `__init__` and after that."""
    seen: dict[str, object] = {"before": instances(cls, all_arguments)}
    seen |= {
        "signature": str(inspect.signature(cls)).replace("<object object", "<factory").split("<factory")[0],
        "slots": getattr(cls, "__slots__", None),
        "match": cls.__match_args__,
        "names": (cls.__name__, cls.__qualname__, cls.__doc__, cls.__init__.__qualname__, cls.__init__.__module__),
        "fields": [
            (one.name, one.type, one.default, one.init, one.compare, one.kw_only) for one in dataclasses.fields(cls)
        ],
        "is one": dataclasses.is_dataclass(cls),
        "hashed": cls.__hash__ is None,
        "missing": outcome(lambda: type(cls(unknown=1))),
    }
    return seen | instances(cls, all_arguments)


def instances(cls: Any, all_arguments: list[tuple[tuple[Any, ...], dict[str, Any]]]) -> dict[str, object]:
    """What can be seen of what is made of a class."""
    seen: dict[str, object] = {}
    for arguments, by_name in all_arguments:
        made = outcome(lambda a=arguments, n=by_name: cls(*a, **n))  # type: ignore[misc]
        if isinstance(made, tuple):
            seen[f"{arguments} {by_name}"] = made
            continue
        one: Any = made
        values = {each.name: getattr(one, each.name) for each in dataclasses.fields(one)}
        other = cls(*arguments, **by_name)
        first = next(iter(values), "")
        seen[f"{arguments} {by_name}"] = {
            "repr": repr(one).split(" at 0x")[0],
            "values": [(name, repr(value)) for name, value in values.items()],
            "equal": (one == other, one != other, one == 1, copy.copy(one) == one),
            "hash": outcome(lambda one=one, other=other: hash(one) == hash(other)),  # type: ignore[misc]
            "set": first and outcome(lambda one=one, first=first: setattr(one, first, 1)),  # type: ignore[misc]
            "delete": first and outcome(lambda one=one, first=first: delattr(one, first)),  # type: ignore[misc]
            "replaced": outcome(lambda other=other: repr(dataclasses.replace(other)).split(" at 0x")[0]),  # type: ignore[misc]
            "dictionary": outcome(lambda other=other: repr(dataclasses.asdict(other))),  # type: ignore[misc]
        }
    return seen


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "none")
@pytest.mark.parametrize(("declaration", "arguments"), DECLARATIONS, ids=lambda one: getattr(one, "__name__", None))
def test_a_record_is_what_dataclasses_makes(
    declaration: type, arguments: list[tuple[tuple[Any, ...], dict[str, Any]]], options: dict[str, bool]
) -> None:
    wanted = observed(declared(declaration, dataclasses.dataclass, options), arguments)
    assert observed(declared(declaration, records.record, options), arguments) == wanted


@records.dataclass(frozen=True, slots=True)
class Base:
    """A record to derive from."""

    first: int
    second: int = 2


@records.dataclass(frozen=True, slots=True)
class Derived(Base):
    """Fields of the base come first, one with another default."""

    second: int = 3
    third: tuple[int, ...] = ()


def test_a_record_has_the_fields_of_its_bases_first() -> None:
    assert repr(Derived(1)) == "Derived(first=1, second=3, third=())"
    assert Derived.__slots__ == ("third",)
    assert Derived(1, 2) != Base(1, 2)
    assert isinstance(dataclasses.replace(Derived(1), third=(4,)), Base)


def test_dataclasses_derives_from_a_record() -> None:
    @dataclasses.dataclass(frozen=True)
    class Other(Derived):
        fourth: int = 4

    assert Other(1) == Other(1, 3, (), 4)
    assert hash(Other(1)) == hash(Other(1))
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Melted", (Base,), {"__annotations__": {}}))


def test_an_ordinary_class_that_derives_from_a_record_has_attributes_of_its_own() -> None:
    class Ordinary(Base):
        pass

    one = Ordinary(1)
    one.note = "mine"  # type: ignore[attr-defined]
    assert one.note == "mine"  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        one.first = 2  # type: ignore[misc]
    del one.note  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'first'"):
        del one.first  # type: ignore[misc]


def test_a_record_has_no_other_attributes() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Base(1).third = 3  # type: ignore[attr-defined]


def test_a_record_that_holds_itself_is_shown() -> None:
    items: list[object] = []
    one = Made_(items)
    items.append(one)
    assert repr(one) == "Made_(items=[...])"


@records.dataclass(slots=True)
class Made_:
    """Holds anything."""

    items: list[object]


def test_a_record_with_one_field_tells_nan_and_arrays_as_tuples_do() -> None:
    one = declared(Of, records.record, {"frozen": True, "slots": True})
    nan = float("nan")
    assert one(nan) == one(nan)
    assert one(nan) != one(float("nan"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"__annotations__": {"a": "int", "b": "int"}, "a": 1}, "non-default argument 'b' follows default argument"),
        ({"__annotations__": {"a": "list"}, "a": []}, "mutable default <class 'list'> for field a is not allowed"),
        ({"__annotations__": {}, "__slots__": ()}, "Odd already specifies __slots__"),
        ({"__annotations__": {}, "__setattr__": None}, "Cannot overwrite attribute __setattr__ in class Odd"),
        ({"__annotations__": {"a": "int"}, "__annotations__ ": 0, "a": field()}, None),
    ],
)
def test_a_declaration_with_something_amiss_is_refused_as_dataclasses_does(
    body: dict[str, Any], message: str | None
) -> None:
    odd = type("Odd", (), {"__doc__": "", **body})
    if message is None:
        assert records.record(odd, frozen=True, slots=True)(3).a == 3
        return
    with pytest.raises((TypeError, ValueError), match=message):
        records.record(odd, frozen=True, slots=True)


def test_annotations_may_be_types() -> None:
    annotations = {"a": int, "kind": ClassVar[str], "scale": InitVar[int]}
    for wanted in (("a",), ("a", "kind"), ("a", "kind", "scale")):
        body = {
            "__annotations__": {name: annotations[name] for name in wanted},
            "__post_init__": lambda self, *scale: None,
        }
        mine, theirs = (
            decorate(type("Typed", (), dict(body)), frozen=True, slots=True)
            for decorate in (records.record, dataclasses.dataclass)
        )
        assert str(inspect.signature(mine)) == str(inspect.signature(theirs))
        assert [one.name for one in dataclasses.fields(mine)] == ["a"]


def test_values_for_the_beginning_alone_are_left_to_dataclasses() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Scaled:
        value: int
        scale: InitVar[int]

        def __post_init__(self, scale: int) -> None:
            object.__setattr__(self, "value", self.value * scale)

    assert Scaled(3, 4).value == 12


@pytest.mark.parametrize("wrong", [((), {}), ((1, 2, 3, 4), {}), ((1,), {"first": 2}), ((1,), {"fourth": 4})])
def test_the_first_instance_refuses_what_does_not_fit(wrong: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    arguments, by_name = wrong
    declaration = type("Three", (), {"__annotations__": {"first": int, "second": int, "third": int}, "third": 3})
    made = [declared(declaration, decorate, {"frozen": True}) for decorate in (records.record, dataclasses.dataclass)]
    ours, theirs = (outcome(lambda cls=cls: cls(*arguments, **by_name)) for cls in made)  # type: ignore[misc]
    assert ours == theirs
    assert isinstance(theirs, tuple)


def test_instances_do_not_differ_however_many_there_are() -> None:
    cls = declared(Made, records.record, {"frozen": True, "slots": True})
    many = [cls([number]) for number in range(20)]
    assert [one.items for one in many] == [[number] for number in range(20)]
    assert len({id(one.table) for one in many}) == 20
    assert all((one.size, one.given) == (7, 3) for one in many)
