"""How attributes of operations are declared.

An operation's attributes are one frozen dataclass; each field names the codec that reads and writes its text. Printer,
parser, clone and fingerprint are driven by these declarations and know no attribute by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from xlalite.hlo.records import dataclass

if TYPE_CHECKING:
    from xlalite.hlo.types.literal import Literal
    from xlalite.hlo.types.shape import Shape

T = TypeVar("T")


class Cursor(Protocol):
    """What a codec needs of the parser: a position in a token list."""

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is exactly `text`; says whether it did."""

    def expect(self, text: str) -> None:
        """Consumes the next token, which must be exactly `text`."""

    def at(self, text: str) -> bool:
        """Whether the next token is exactly `text`."""

    def peek(self) -> str:
        """The next token, not consumed; "" at the end of the text."""

    def touching(self) -> bool:
        """Whether the next token follows the previous one with no space between."""

    def word(self, expected: str) -> str:
        """Consumes one word, number or compound token (`3x3`, `b01f_01io->b01f`); `expected` is for the message."""

    def integer(self) -> int:
        """Consumes an integer."""

    def number(self) -> float:
        """Consumes an integer or a floating-point number."""

    def string(self) -> str:
        """Consumes a quoted string and returns its contents."""

    def balanced(self) -> str:
        """Consumes a braced, bracketed or parenthesised group and returns its text verbatim, braces included."""

    def verbatim(self) -> str:
        """Consumes an attribute's value of any form, up to the next comma outside braces, and returns its text."""

    def shape(self) -> Shape:
        """Consumes a shape."""

    def literal(self, shape: Shape) -> Literal:
        """Consumes a literal of a shape."""

    def enter(self) -> None:
        """Notes that something nested starts, which may not go on for ever; `leave` notes its end."""

    def leave(self) -> None:
        """Notes that something nested ended."""

    def error(self, message: str) -> Exception:
        """The error to raise for the token at the cursor."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """Reads and writes the text of one kind of attribute value."""

    name: str
    parse: Callable[[Cursor], T]
    format: Callable[[T], str]


@dataclass(frozen=True, slots=True)
class NoAttrs:
    """The attributes of an operation that has none."""


@dataclass(frozen=True, slots=True)
class AttributeField:
    """One declared attribute as printer and parser see it."""

    field: str
    text_name: str
    codec: Codec[Any]
    default: Any
    print_default: bool
    after_calls: bool

    @property
    def required(self) -> bool:
        """Whether the text must give the attribute."""
        return self.default is dataclasses.MISSING


def attribute(
    codec: Codec[T],
    *,
    name: str | None = None,
    default: Any = dataclasses.MISSING,
    print_default: bool = False,
    after_calls: bool = False,
) -> Any:
    """Declares a field of an attributes dataclass.

    Args:
        codec: Reads and writes the value.
        name: The name in HLO text; the field's own name when absent.
        default: The value when the text does not give it; without one the attribute is required.
        print_default: Whether the printer writes the attribute even when it has its default value.
        after_calls: Whether the printer writes it behind the called computations, not before.
    """
    metadata = {"codec": codec, "text_name": name, "print_default": print_default, "after_calls": after_calls}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@cache
def attribute_fields(attrs_class: type) -> tuple[AttributeField, ...]:
    """The declared attributes of a class, in printing order; fields without a codec (numbers, literals) left out."""
    return tuple(
        AttributeField(
            field.name,
            field.metadata["text_name"] or field.name,
            field.metadata["codec"],
            field.default,
            field.metadata["print_default"],
            field.metadata["after_calls"],
        )
        for field in dataclasses.fields(attrs_class)
        if "codec" in field.metadata
    )
