"""What StableHLO text says, before it means anything: operations, regions, attributes, types.

Generic and pretty spelling become the same records, so nothing behind the reader knows which one was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Protocol, TypeAlias, Union

from xlalite.hlo.errors import ParseError, XlaliteError
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.limits import ParseLimits
from xlalite.hlo.types.shape import Shape


class Source(Protocol):
    """Where operations were read from.

    Attributes:
        limits: What it may ask for.
    """

    limits: ParseLimits

    def error_at(self, index: int, error: XlaliteError | str, /) -> ParseError:
        """The error for a place: the number of a token of text, or of a byte."""
        ...


@dataclass(frozen=True, slots=True)
class Dense:
    """`dense<payload> : type`, still as text or bytes; `token` says where, for errors."""

    payload: str | bytes
    shape: Shape | None
    token: int


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a closed set: `DEFAULT`, `#stablehlo<precision DEFAULT>`."""

    text: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """`@name`."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionType:
    """`(types) -> types`."""

    parameters: tuple[Shape, ...]
    results: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Opaque:
    """An attribute that nobody needs to understand, verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a program; `alias` names one that is defined elsewhere in the text."""

    name: str = ""
    file: str = ""
    line: int = 0
    inner: tuple[Location, ...] = ()
    alias: str = ""


Attribute: TypeAlias = Union[
    bool,
    int,
    float,
    str,
    Dense,
    Word,
    Symbol,
    FunctionType,
    Opaque,
    Shape,
    "tuple[Attribute, ...]",
    "dict[str, Attribute]",
]


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function or region."""

    name: str
    shape: Shape
    attributes: dict[str, Attribute] = field(default_factory=dict)
    location: Location | None = None


@dataclass(slots=True)
class Region:
    """One block: parameters, operations, and the values it returns."""

    arguments: list[Argument] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    returned: tuple[str, ...] = ()
    return_token: int = 0

    def walk(self) -> Iterator[Operation]:
        """Every operation of the region and of the regions in it."""
        pending = [iter(self.operations)]
        while pending:
            operation = next(pending[-1], None)
            if operation is None:
                pending.pop()
                continue
            yield operation
            pending.extend(iter(region.operations) for region in operation.regions)


@dataclass(slots=True)
class Operation:
    """One operation as it is written.

    Attributes:
        name: With its dialect: `stablehlo.add`.
        token: Where it stands.
        results: Names of its values; a name for several values `%0:2` stands as `0#0`, `0#1`.
        operands: Names of the operands, `0#1` for one of several values.
        attributes: By their names in the generic spelling.
        regions: The regions.
        operand_types: Types of the operands where the text gives them all.
        result_types: Types of the results.
        location: Where it came from.
    """

    name: str
    token: int
    results: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    attributes: dict[str, Attribute] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    operand_types: tuple[Shape, ...] | None = None
    result_types: tuple[Shape, ...] = ()
    location: Location | None = None


@dataclass(slots=True, eq=False)
class Function:
    """`func.func`; `body` is absent for a mere declaration."""

    name: str
    token: int
    body: Region
    result_types: tuple[Shape, ...]
    result_attributes: tuple[dict[str, Attribute], ...] = ()
    is_declaration: bool = False


@dataclass(slots=True)
class Program:
    """A module: functions by name, attributes, the locations that have names, and the texts of meshes by name."""

    name: str
    attributes: dict[str, Attribute]
    functions: dict[str, Function]
    locations: Mapping[str, Location]
    meshes: dict[str, str] = field(default_factory=dict)
